//! The kernels' layout of points: see `weierstrass.cuh` and `edwards.cuh`.

use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::twisted_edwards::{MontCurveConfig, TECurveConfig};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, Field, Zero, batch_inversion};

use super::words::{Words, read_all, write_all};

/// The sizes of a group's points and sums, in elements of its base field, and their conversion to words.
pub trait Coordinates: CurveGroup<BaseField: Words> {
    /// Elements of a point.
    const POINT: usize;
    /// Elements of a sum.
    const SUM: usize = 4;

    /// Writes points.
    fn write_points(points: &[Self::Affine], words: &mut [u32]);

    /// Reads a sum; `None` if the words do not encode one.
    fn read_sum(words: &[u32]) -> Option<Self>;
}

/// Words of an affine point.
pub(crate) const fn point_words<G: Coordinates>() -> usize {
    G::POINT * <G::BaseField as Words>::WORDS
}

/// Words of a sum.
pub(crate) const fn sum_words<G: Coordinates>() -> usize {
    G::SUM * <G::BaseField as Words>::WORDS
}

/// Implements groups in Weierstrass form.
macro_rules! weierstrass {
    ($($group:ty;)*) => {$(
        impl Coordinates for $group {
            const POINT: usize = 2;

            fn write_points(points: &[Self::Affine], words: &mut [u32]) {
                write_weierstrass(points, words);
            }

            fn read_sum(words: &[u32]) -> Option<Self> {
                read_weierstrass(words)
            }
        }
    )*};
}

weierstrass! {
    Projective<ark_bls12_381::g1::Config>;
    Projective<ark_bls12_381::g2::Config>;
    Projective<ark_bls12_377::g2::Config>;
    Projective<ark_bn254::g1::Config>;
    Projective<ark_bn254::g2::Config>;
}

/// x and y; infinity is all zeros.
fn write_weierstrass<C: SWCurveConfig<BaseField: Words>>(points: &[Affine<C>], words: &mut [u32]) {
    let size = 2 * C::BaseField::WORDS;
    for (point, words) in points.iter().zip(words.chunks_exact_mut(size)) {
        match point.xy() {
            Some((x, y)) => write_all(&[x, y], words),
            None => words.fill(0),
        }
    }
}

/// X, Y, ZZ and ZZZ.
fn read_weierstrass<C: SWCurveConfig<BaseField: Words>>(words: &[u32]) -> Option<Projective<C>> {
    let [x, y, zz, zzz] = read_all::<C::BaseField, 4>(words)?;
    if zz.is_zero() {
        return Some(Projective::zero());
    }
    // With Z = ZZZ: X/ZZ = X·ZZ²/Z², since ZZ³ = ZZZ²; Y/ZZZ = Y·ZZZ²/Z³.
    let point = Projective::new_unchecked(x * zz * zz, y * zzz * zzz, zzz);
    point.into_affine().is_on_curve().then_some(point)
}

/// G1 of BLS12-377 as a twisted Edwards curve with a = −1.
///
/// By way of a Montgomery curve, with X = s·(x + 1) and Y = s·y: the Edwards point is
/// (β·X/Y, (X − 1)/(X + 1)). arkworks has the Montgomery curve's A, which is −3s, and the d that
/// belongs to it.
struct Edwards;

type Config377 = ark_bls12_377::g1::Config;
type Field377 = ark_bls12_377::Fq;

impl Edwards {
    /// s, and β² = −(A + 2)/s.
    fn constants() -> (Field377, Field377) {
        let a = <Config377 as MontCurveConfig>::COEFF_A;
        let invert = |value: Field377| value.inverse().unwrap_or(Field377::ZERO);
        let s = -a * invert(Field377::from(3u64));
        let beta = (-(a + Field377::from(2u64)) * invert(s)).sqrt();
        (s, beta.unwrap_or(Field377::ZERO))
    }
}

impl Coordinates for Projective<Config377> {
    const POINT: usize = 3;

    /// y − x, y + x and 2d·x·y. No point of odd order but infinity has a zero below a fraction line.
    fn write_points(points: &[Self::Affine], words: &mut [u32]) {
        let (s, beta) = Edwards::constants();
        let twice_d = <Config377 as TECurveConfig>::COEFF_D.double();
        let one = Field377::ONE;
        let coordinates = || points.iter().map(|point| point.xy());
        let montgomery = |x: Field377| s * (x + one);
        let mut inverses: Vec<Field377> = coordinates()
            .map(|xy| xy.map_or(one, |(x, y)| y * (montgomery(x) + one)))
            .collect();
        batch_inversion(&mut inverses);
        let size = Self::POINT * Field377::WORDS;
        for ((xy, inverse), words) in coordinates()
            .zip(inverses)
            .zip(words.chunks_exact_mut(size))
        {
            let (x, y) = xy.map_or((Field377::ZERO, one), |(x, y)| {
                let montgomery = montgomery(x);
                (
                    beta * (x + one) * (montgomery + one) * inverse,
                    (montgomery - one) * y * inverse,
                )
            });
            write_all(&[y - x, y + x, twice_d * x * y], words);
        }
    }

    /// X, Y, Z and T.
    fn read_sum(words: &[u32]) -> Option<Self> {
        let [x, y, z, t] = read_all::<Field377, 4>(words)?;
        if z.is_zero() || x * y != z * t {
            return None;
        }
        if x.is_zero() {
            return (y == z).then(Self::zero);
        }
        let (s, beta) = Edwards::constants();
        let from_minus_one = (z + y) * (s * (z - y)).inverse()?;
        let affine = Affine::new_unchecked(
            from_minus_one - Field377::ONE,
            beta * from_minus_one * z * x.inverse()?,
        );
        affine.is_on_curve().then(|| affine.into())
    }
}
