//! BLS12-377 G1 as the ZKPU has it: twisted Edwards points in Montgomery form, tables, scalars, results.
//!
//! `docs/zkpu.md` has the formats and the map; `hardware/zkpu/scripts/constants.py` derives the constants.

use ark_bls12_377::{Fq, Fr, G1Affine, G1Projective};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, BigInt, Field, MontFp, PrimeField, batch_inversion};
use proofmill_kernels::in_subgroup_each;
use rayon::prelude::*;

use crate::nvme::zkpu::{RESULT_BYTES, SCALAR_BYTES, Shape, TABLE_ENTRY_BYTES};

/// s: u = s (x + 1), v = s y.
const S: Fq = MontFp!(
    "10189023633222963290707194929886294091415157242906428298294512798502806398782149227503530278436336312243746741931"
);
/// f: X = f u / v.
const SCALE: Fq = MontFp!(
    "23560188534917577818843641916571445935985386319233886518929971599490231428764380923487987729215299304184915158756"
);
/// d of -X² + Y² = 1 + d X² Y².
const D: Fq = MontFp!(
    "122268283598675559488486339158635529096981886914877139579534153582033676785385790730042363341236035746924960903179"
);
const TWO_D: Fq = MontFp!(
    "244536567197351118976972678317271058193963773829754279159068307164067353570771581460084726682472071493849921806358"
);

/// Bytes of a field element.
const ELEMENT_BYTES: usize = 48;
const ENTRY_BYTES: usize = TABLE_ENTRY_BYTES as usize;
/// Points that one task maps; each shares one inversion.
const MAP_CHUNK: usize = 256;

/// A point without an image in twisted Edwards form, or outside the subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("point {index} is not in the prime-order subgroup of BLS12-377 G1")]
pub struct NotInSubgroup {
    /// Index of the first such point.
    pub index: usize,
}

/// A result that no correct device gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadResult {
    /// It has not 192 bytes.
    #[error("a result of {0} bytes")]
    Length(usize),
    /// A coordinate is not below the modulus.
    #[error("a coordinate of the result is not below the modulus")]
    NotCanonical,
    /// The coordinates are those of no curve point.
    #[error("the result is not a point of the curve")]
    NotOnCurve,
    /// The point is outside the subgroup.
    #[error("the result is not in the prime-order subgroup")]
    NotInSubgroup,
}

/// A twisted Edwards point, affine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edwards {
    x: Fq,
    y: Fq,
}

const NEUTRAL: Edwards = Edwards {
    x: Fq::ZERO,
    y: Fq::ONE,
};

/// Scalars as the device reads them: 32 bytes each, little-endian.
pub fn encode_scalars(scalars: &[Fr]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(scalars.len() * SCALAR_BYTES as usize);
    for scalar in scalars {
        for limb in scalar.into_bigint().0 {
            bytes.extend_from_slice(&limb.to_le_bytes());
        }
    }
    bytes
}

/// Checks that points are on the curve and in the subgroup.
///
/// # Errors
///
/// [`NotInSubgroup`] with the first that is not.
pub fn check_points(points: &[G1Affine]) -> Result<(), NotInSubgroup> {
    let off_curve = points
        .par_iter()
        .position_first(|point| !point.is_on_curve());
    if let Some(index) = off_curve {
        return Err(NotInSubgroup { index });
    }
    match in_subgroup_each::<G1Projective>(points)
        .iter()
        .position(|is_in| !is_in)
    {
        Some(index) => Err(NotInSubgroup { index }),
        None => Ok(()),
    }
}

/// Table entries of points for a shape: for each point its multiples by 2^(w V i), i below the levels, in 144 bytes each.
/// Points must have passed [`check_points`].
pub fn table(points: &[G1Affine], shape: Shape) -> Vec<u8> {
    let doublings = shape.doublings();
    let levels = usize::from(shape.levels);
    let multiples = |chunk: &[G1Affine]| -> Vec<u8> {
        let mut all = Vec::with_capacity(chunk.len() * levels);
        for point in chunk {
            let mut multiple = point.into_group();
            all.push(multiple);
            for _ in 1..levels {
                for _ in 0..doublings {
                    multiple.double_in_place();
                }
                all.push(multiple);
            }
        }
        let affine = G1Projective::normalize_batch(&all);
        to_edwards(&affine).iter().flat_map(entry_bytes).collect()
    };
    points
        .par_chunks(MAP_CHUNK / 8)
        .flat_map_iter(multiples)
        .collect()
}

/// Points of table entries; `None` for an entry that is not canonical or not of the curve.
pub fn points_of_table(bytes: &[u8]) -> Vec<Option<G1Affine>> {
    points_of_entries(bytes, entry_point)
}

/// The table of multiples for a shape from a plain table, of whose entries only Y − X and Y + X are read. An entry that is
/// no point counts as infinity.
pub fn table_of_plain(plain: &[u8], shape: Shape) -> Vec<u8> {
    let points: Vec<G1Affine> = points_of_entries(plain, entry_point_of_two)
        .into_iter()
        .map(Option::unwrap_or_default)
        .collect();
    table(&points, shape)
}

fn points_of_entries(bytes: &[u8], read: fn(&[u8]) -> Option<Edwards>) -> Vec<Option<G1Affine>> {
    bytes
        .par_chunks(MAP_CHUNK * ENTRY_BYTES)
        .flat_map_iter(|chunk| {
            let points: Vec<Option<Edwards>> = chunk.chunks_exact(ENTRY_BYTES).map(read).collect();
            to_weierstrass(&points)
        })
        .collect()
}

/// A result as a device writes it.
pub fn encode_result(sum: &G1Projective) -> [u8; RESULT_BYTES as usize] {
    let point = to_edwards(&[sum.into_affine()])
        .first()
        .copied()
        .unwrap_or(NEUTRAL);
    let mut bytes = [0; RESULT_BYTES as usize];
    let coordinates = [point.x, point.y, Fq::ONE, point.x * point.y];
    for (to, coordinate) in bytes.chunks_exact_mut(ELEMENT_BYTES).zip(coordinates) {
        to.copy_from_slice(&element_bytes(&coordinate));
    }
    bytes
}

/// Reads a result, and checks that it is a point of the subgroup.
///
/// # Errors
///
/// [`BadResult`] says why it is not.
pub fn decode_result(bytes: &[u8]) -> Result<G1Projective, BadResult> {
    if bytes.len() != RESULT_BYTES as usize {
        return Err(BadResult::Length(bytes.len()));
    }
    let mut coordinates = [Fq::ZERO; 4];
    for (to, from) in coordinates
        .iter_mut()
        .zip(bytes.chunks_exact(ELEMENT_BYTES))
    {
        *to = element(from).ok_or(BadResult::NotCanonical)?;
    }
    let [x, y, z, t] = coordinates;
    let inverse = z.inverse().ok_or(BadResult::NotOnCurve)?;
    if t * z != x * y || y.square() - x.square() != z.square() + D * t.square() {
        return Err(BadResult::NotOnCurve);
    }
    let point = Edwards {
        x: x * inverse,
        y: y * inverse,
    };
    let point = to_weierstrass(&[Some(point)]).first().copied().flatten();
    let point = point.ok_or(BadResult::NotOnCurve)?;
    match in_subgroup_each::<G1Projective>(&[point]).first() {
        Some(true) => Ok(point.into_group()),
        _ => Err(BadResult::NotInSubgroup),
    }
}

/// The map to twisted Edwards form. Points of order two, which have no image, become neutral: callers exclude them.
fn to_edwards(points: &[G1Affine]) -> Vec<Edwards> {
    let uv: Vec<(Fq, Fq)> = points
        .iter()
        .map(|point| (S * (point.x + Fq::ONE), S * point.y))
        .collect();
    let mut inverses: Vec<Fq> = uv.iter().map(|(u, v)| *v * (*u + Fq::ONE)).collect();
    batch_inversion(&mut inverses);
    let image = |((point, (u, v)), inverse): ((&G1Affine, &(Fq, Fq)), &Fq)| {
        if point.is_zero() || *inverse == Fq::ZERO {
            return NEUTRAL;
        }
        Edwards {
            x: SCALE * u * (*u + Fq::ONE) * inverse,
            y: (*u - Fq::ONE) * v * inverse,
        }
    };
    points.iter().zip(&uv).zip(&inverses).map(image).collect()
}

/// The map back. `None` stays `None`.
fn to_weierstrass(points: &[Option<Edwards>]) -> Vec<Option<G1Affine>> {
    let denominator =
        |point: &Option<Edwards>| point.map_or(Fq::ZERO, |point| (Fq::ONE - point.y) * point.x * S);
    let mut inverses: Vec<Fq> = points.iter().map(denominator).collect();
    batch_inversion(&mut inverses);
    let preimage = |(point, inverse): (&Option<Edwards>, &Fq)| {
        let point = (*point)?;
        if point.x == Fq::ZERO {
            // X = 0 has Y = 1, infinity, or Y = -1, the point of order two.
            let of_order_two = G1Affine::new_unchecked(-Fq::ONE, Fq::ZERO);
            return Some(if point.y == Fq::ONE {
                G1Affine::zero()
            } else {
                of_order_two
            });
        }
        // 1 / ((1 - Y) s) is the inverse times X, 1 / (X (1 - Y) s) the inverse itself.
        let u_over_s = (Fq::ONE + point.y) * inverse * point.x;
        let v_over_s = (Fq::ONE + point.y) * SCALE * inverse;
        Some(G1Affine::new_unchecked(u_over_s - Fq::ONE, v_over_s))
    };
    points.iter().zip(&inverses).map(preimage).collect()
}

fn entry_bytes(point: &Edwards) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    let parts = [
        point.y - point.x,
        point.y + point.x,
        TWO_D * point.x * point.y,
    ];
    for (to, part) in bytes.chunks_exact_mut(ELEMENT_BYTES).zip(parts) {
        to.copy_from_slice(&element_bytes(&part));
    }
    bytes
}

/// The point of an entry, if it is one.
fn entry_point(bytes: &[u8]) -> Option<Edwards> {
    let point = entry_point_of_two(bytes)?;
    let product = element(bytes.get(2 * ELEMENT_BYTES..ENTRY_BYTES)?)?;
    (product == TWO_D * point.x * point.y).then_some(point)
}

/// The point of an entry by Y − X and Y + X, whatever the third element is.
fn entry_point_of_two(bytes: &[u8]) -> Option<Edwards> {
    let mut parts = bytes.chunks_exact(ELEMENT_BYTES).map(element);
    let (minus, plus) = (parts.next()??, parts.next()??);
    let half = Fq::ONE.double().inverse()?;
    let (x, y) = ((plus - minus) * half, (plus + minus) * half);
    let (xx, yy) = (x.square(), y.square());
    (yy - xx == Fq::ONE + D * xx * yy).then_some(Edwards { x, y })
}

/// Montgomery form, R = 2^384, which is arkworks' own.
fn element_bytes(element: &Fq) -> [u8; ELEMENT_BYTES] {
    let mut bytes = [0; ELEMENT_BYTES];
    for (to, limb) in bytes.chunks_exact_mut(8).zip(element.0.0) {
        to.copy_from_slice(&limb.to_le_bytes());
    }
    bytes
}

/// Reads Montgomery form; `None` if it is not below the modulus.
fn element(bytes: &[u8]) -> Option<Fq> {
    let mut limbs = [0; 6];
    for (limb, from) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
        *limb = u64::from_le_bytes(from.try_into().ok()?);
    }
    let limbs = BigInt(limbs);
    (limbs < Fq::MODULUS).then(|| Fq::new_unchecked(limbs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::PrimeGroup;
    use ark_ff::{UniformRand, Zero};
    use ark_std::rand::{SeedableRng, rngs::StdRng};

    fn points(count: usize) -> Vec<G1Affine> {
        let mut rng = StdRng::seed_from_u64(7);
        (0..count)
            .map(|_| G1Projective::rand(&mut rng).into_affine())
            .collect()
    }

    /// arkworks' own twisted Edwards form of the curve has the same d, and its generator is the image of G1's.
    #[test]
    fn the_map_is_that_of_arkworks() {
        use ark_ec::twisted_edwards::TECurveConfig;
        assert_eq!(D, <ark_bls12_377::g1::Config as TECurveConfig>::COEFF_D);
        let generator = <ark_bls12_377::g1::Config as TECurveConfig>::GENERATOR;
        let image = to_edwards(&[G1Projective::generator().into_affine()]);
        assert_eq!(image[0].y, generator.y);
        assert!(image[0].x == generator.x || image[0].x == -generator.x);
    }

    #[test]
    fn a_table_has_the_multiples_of_its_points() {
        let mut points = points(5);
        points.push(G1Affine::zero());
        let shape = Shape {
            window: 13,
            levels: 3,
        };
        assert_eq!(shape.passes(), 7);
        let table = table(&points, shape);
        assert_eq!(table.len() as u64, shape.table_bytes(6));
        let read = points_of_table(&table);
        for (j, point) in points.iter().enumerate() {
            for level in 0..3_u64 {
                let factor = Fr::from(2u64).pow([13 * 7 * level]);
                let expected = (*point * factor).into_affine();
                assert_eq!(
                    read[j * 3 + level as usize],
                    Some(expected),
                    "point {j}, level {level}"
                );
            }
        }
        assert_eq!(
            table[144 * 15..144 * 15 + 48],
            element_bytes(&Fq::ONE),
            "infinity is (1, 1, 0)"
        );
    }

    #[test]
    fn a_plain_table_becomes_one_of_multiples() {
        let plain = Shape {
            window: 13,
            levels: 1,
        };
        let shape = Shape {
            window: 13,
            levels: 5,
        };
        let mut points = points(4);
        let mut entries = table(&points, plain);
        // The third element is not read; an entry of no point is infinity.
        entries[96] ^= 1;
        entries[144] ^= 1;
        points[1] = G1Affine::zero();
        assert_eq!(table_of_plain(&entries, shape), table(&points, shape));
    }

    #[test]
    fn results_are_read_back_and_bad_ones_refused() {
        for point in [
            points(1)[0].into_group(),
            G1Projective::zero(),
            G1Projective::generator(),
        ] {
            assert_eq!(decode_result(&encode_result(&point)), Ok(point));
        }
        let good = encode_result(&G1Projective::generator());
        let with = |at: usize, byte: u8| {
            let mut bytes = good;
            bytes[at] ^= byte;
            decode_result(&bytes)
        };
        assert_eq!(with(0, 1), Err(BadResult::NotOnCurve));
        assert_eq!(with(47, 0x80), Err(BadResult::NotCanonical));
        assert_eq!(decode_result(&good[1..]), Err(BadResult::Length(191)));
        assert_eq!(decode_result(&[0; 192]), Err(BadResult::NotOnCurve));
        // (0, -1) is of the curve and of order two.
        let minus_one = element_bytes(&-Fq::ONE);
        let mut order_two = [0; 192];
        order_two[48..96].copy_from_slice(&minus_one);
        order_two[96..144].copy_from_slice(&element_bytes(&Fq::ONE));
        assert_eq!(decode_result(&order_two), Err(BadResult::NotInSubgroup));
    }

    #[test]
    fn points_outside_the_subgroup_are_found() {
        let mut all = points(3);
        assert_eq!(check_points(&all), Ok(()));
        all[2] = G1Affine::new_unchecked(-Fq::ONE, Fq::ZERO);
        assert_eq!(check_points(&all), Err(NotInSubgroup { index: 2 }));
        all[1] = G1Affine::new_unchecked(Fq::ONE, Fq::ONE);
        assert_eq!(check_points(&all), Err(NotInSubgroup { index: 1 }));
    }

    #[test]
    fn entries_that_are_no_points_are_found() {
        let mut table = table(
            &points(2),
            Shape {
                window: 13,
                levels: 1,
            },
        );
        table[100] ^= 1;
        let read = points_of_table(&table);
        assert_eq!(read[0], None);
        assert!(read[1].is_some());
    }

    #[test]
    fn scalars_are_little_endian() {
        let bytes = encode_scalars(&[Fr::from(0x0102_0304u64), -Fr::ONE]);
        assert_eq!(bytes[..5], [4, 3, 2, 1, 0]);
        // r - 1, from the page.
        assert_eq!(bytes[32..40], 0x0a11_8000_0000_0000_u64.to_le_bytes());
        assert_eq!(bytes[63], 0x12);
        let scalar = Fr::rand(&mut StdRng::seed_from_u64(8));
        let mut canonical = Vec::new();
        ark_serialize::CanonicalSerialize::serialize_compressed(&scalar, &mut canonical).unwrap();
        assert_eq!(encode_scalars(&[scalar]), canonical);
    }
}
