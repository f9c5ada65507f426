//! Square roots of eight elements side by side, where the modulus is three modulo four.

use ark_ff::{AdditiveGroup, Field};

use super::field::Fp;
use super::field2::{Extension, Quadratic};
use super::modulus::Modulus;
use super::vector_field::{Layout, VectorField};

/// A field with square roots.
///
/// # Safety
///
/// Every unsafe function: the instructions of this back end.
pub(crate) trait SquareRoot: VectorField {
    /// Whether this field has what [`root`](Self::root) needs; else nothing may be called.
    const HAS_ROOTS: bool;

    /// A root of each tight value, where it has one; something else where it has none, or where it
    /// [may be missed](Self::may_miss): tight. One value or two: a power is a chain of products, and beside another one it
    /// takes hardly more time.
    unsafe fn roots<const K: usize>(values: [Self; K]) -> [Self; K];

    /// Whether the value may have a root that [`root`](Self::root) does not find.
    fn may_miss(value: &Self::Ark) -> bool;
}

/// Bits of the exponent that one multiplication takes in.
const WINDOW: usize = 5;

/// The power of each tight value by `(p − 3)/4`, which is `p` without its two low bits: tight. By its
/// digits, the highest first.
///
/// # Safety
///
/// The instructions of this back end.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn root_powers<P: Modulus<L, N>, const L: usize, const N: usize, const K: usize>(
    values: [Fp<P, L, N>; K],
) -> [Fp<P, L, N>; K]
where
    Fp<P, L, N>: Layout<P, N>,
{
    let words = P::MODULUS.0;
    let bit = |at: usize| match words.get((at + 2) / 64) {
        Some(word) => word >> ((at + 2) % 64) & 1,
        None => 0,
    };
    let digit = |low: usize| (0..WINDOW).fold(0, |sum, i| sum | (bit(low + i) as usize) << i);
    // SAFETY: as the caller promises.
    unsafe {
        let mut powers = [[VectorField::one(); K]; 1 << WINDOW];
        for i in 1..powers.len() {
            powers[i] = products(&powers[i - 1], &values);
        }
        let windows = (64 * N).div_ceil(WINDOW);
        let mut power: [Fp<P, L, N>; K] = [VectorField::one(); K];
        let mut is_one = true;
        for window in (0..windows).rev() {
            if !is_one {
                for _ in 0..WINDOW {
                    power = products(&power, &power);
                }
            }
            let digit = digit(window * WINDOW);
            if digit != 0 {
                power = products(&power, &powers[digit]);
                is_one = false;
            }
        }
        power
    }
}

/// The products of loose values, of which one each is tight: tight. Two of them in step.
///
/// # Safety
///
/// The instructions of this back end.
#[inline(always)]
unsafe fn products<P: Modulus<L, N>, const L: usize, const N: usize, const K: usize>(
    a: &[Fp<P, L, N>; K],
    b: &[Fp<P, L, N>; K],
) -> [Fp<P, L, N>; K] {
    let mut products = *a;
    // SAFETY: as the caller promises.
    unsafe {
        if K == 2 {
            [products[0], products[K - 1]] =
                Fp::multiply_two([&a[0], &a[K - 1]], [&b[0], &b[K - 1]]);
        } else {
            for (product, b) in products.iter_mut().zip(b) {
                *product = Fp::multiply_by_call(product, b);
            }
        }
    }
    products
}

impl<P: Modulus<L, N>, const L: usize, const N: usize> SquareRoot for Fp<P, L, N>
where
    Self: Layout<P, N>,
{
    const HAS_ROOTS: bool = P::MODULUS.0[0] & 3 == 3;

    #[inline(always)]
    unsafe fn roots<const K: usize>(values: [Self; K]) -> [Self; K] {
        // SAFETY: as the caller promises.
        unsafe { products(&root_powers(values), &values) }
    }

    fn may_miss(_: &Self::Ark) -> bool {
        false
    }
}

/// The roots of `a = a₀ + a₁·i` where i² = −1 ("complex method"; Scott, "Implementing cryptographic
/// pairings", 2007). A root `x₀ + x₁·i` has `x₀² = t = (a₀ + s)/2` and `x₁ = a₁/(2·x₀)` for one of the two
/// s with `s² = a₀² + a₁²`. With d = t^((p − 3)/4) and r = t·d, if t is a square it is r², and d is 1/r. If
/// not, the t of the other s is a square: it is −a₁²/(4·t) = (a₁·d/2)², and x₁ is ±r. So there is one
/// power for s and one for d, and no inverse.
impl<E: Extension<L, N>, const L: usize, const N: usize> SquareRoot for Quadratic<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    const HAS_ROOTS: bool =
        E::MINUS_NONRESIDUE == 1 && <Fp<E::Base, L, N> as SquareRoot>::HAS_ROOTS;

    #[inline(always)]
    unsafe fn roots<const K: usize>(values: [Self; K]) -> [Self; K] {
        let mut roots = values;
        // SAFETY: as the caller promises; so below.
        unsafe {
            let two = <Fp<E::Base, L, N> as VectorField>::Ark::ONE.double();
            let half = Fp::<E::Base, L, N>::splat(&two.inverse().expect("two is not zero"));
            let mut norms = [half; K];
            for (norm, value) in norms.iter_mut().zip(&values) {
                *norm =
                    Fp::add_reduced(VectorField::square(value.c0), VectorField::square(value.c1));
            }
            let mut halves = SquareRoot::roots(norms);
            for (half_sum, value) in halves.iter_mut().zip(&values) {
                *half_sum = VectorField::mul(Fp::add_reduced(value.c0, *half_sum), half);
            }
            let powers = root_powers(halves);
            for i in 0..K {
                let (t, d) = (halves[i], powers[i]);
                let r = VectorField::mul(t, d);
                let half_c1 = VectorField::mul(values[i].c1, half);
                let other = VectorField::mul(half_c1, d);
                let is_square = Fp::sub(VectorField::mul(r, d), VectorField::one()).zero_lanes();
                let minus_r = Fp::sub_signed_reduced(VectorField::zero(), r, 0);
                roots[i] = Self {
                    c0: Fp::select(is_square, other, r),
                    c1: Fp::select(is_square, minus_r, other),
                };
            }
        }
        roots
    }

    /// With a₁ = 0 one of the two t is zero, from which the other cannot be computed.
    fn may_miss(value: &Self::Ark) -> bool {
        value.c1 == AdditiveGroup::ZERO
    }
}
