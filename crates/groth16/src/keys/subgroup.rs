//! Subgroup test of many points together, which is faster than testing each.

use ark_ec::{AffineRepr, CurveConfig, CurveGroup};
use ark_ff::PrimeField;
use ark_std::rand::rngs::{OsRng, StdRng};
use ark_std::rand::{Rng, RngCore, SeedableRng};
use proofmill_kernels::{MsmGroup, in_subgroup_each, msm_bigint};
use rayon::prelude::*;

use crate::PointGroup;

/// Base-two logarithm of the number of buckets in one round of the bucket test.
const LOG_BUCKETS: u32 = 8;
/// Number of buckets in one round of the bucket test.
const BUCKETS: usize = 1 << LOG_BUCKETS;

/// Number of points from which they are tested together; fewer are tested one by one.
const COMBINED_POINTS_MIN: usize = 1 << 12;

/// Number of points that one task tests together. More points make the test of each cheaper, but a point takes several
/// times its size in memory during the test.
pub const SUBGROUP_CHUNK_POINTS: usize = 1 << 16;

/// Security of the test in bits: a set with a point outside the subgroup passes with probability 2^−SECURITY_BITS at
/// most.
const SECURITY_BITS: u32 = 64;

/// The most bits of a random coefficient. The kernels use coefficients this small as integers, not modulo the
/// order, as a point outside the subgroup requires.
const MAX_COEFFICIENT_BITS: u32 = 16;

/// Index of the first of `points` that is not in the subgroup of prime order; `None` if all are. The points must be on
/// their curve. They are tested in parallel, many together: see [`all_in_subgroup`].
pub(crate) fn first_outside<P: PointGroup>(points: &[P]) -> Option<usize> {
    if P::IS_WHOLE_CURVE {
        return None;
    }
    let (chunk, points) = points
        .par_chunks(SUBGROUP_CHUNK_POINTS)
        .enumerate()
        .find_first(|(_, points)| !all_in_subgroup(points))?;
    // The combined test does not tell which point failed.
    let inside = in_subgroup_each::<P::Group>(points);
    let i = inside.iter().position(|inside| !inside);
    Some(chunk * SUBGROUP_CHUNK_POINTS + i.unwrap_or(0))
}

/// Whether `points`, which are on their curve, are all in the subgroup. `true` is wrong with probability 2⁻⁶⁴ at most,
/// whatever the points; `false` is always right.
///
/// The randomness is drawn after the points are fixed. In the comments below, each point is the sum of a point of the
/// subgroup and an error, whose order divides the cofactor.
fn all_in_subgroup<P: PointGroup<Group: MsmGroup>>(points: &[P]) -> bool {
    let rng = StdRng::from_rng(OsRng);
    let (Ok(mut rng), true) = (rng, points.len() >= COMBINED_POINTS_MIN) else {
        return each_in_subgroup(points);
    };
    let bits = least_factor_bits(P::Config::COFACTOR, MAX_COEFFICIENT_BITS);
    if bits > LOG_BUCKETS {
        test_combinations(points, bits, &mut rng)
    } else {
        test_bucket_sums(points, &mut rng)
    }
}

/// Like [`all_in_subgroup`], by testing each point alone.
fn each_in_subgroup<P: PointGroup>(points: &[P]) -> bool {
    let inside = in_subgroup_each::<P::Group>(points);
    inside.into_iter().all(|inside| inside)
}

/// Tests random linear combinations with coefficients below 2^`bits`, which must not exceed the smallest prime factor
/// of the cofactor.
///
/// If some points have errors, take one of them: given the coefficients of the others, the errors cancel for a single
/// residue of its coefficient modulo the order of its error, and so for at most one of 2^`bits` coefficients.
fn test_combinations<P: PointGroup<Group: MsmGroup>>(
    points: &[P],
    bits: u32,
    rng: &mut StdRng,
) -> bool {
    (0..SECURITY_BITS.div_ceil(bits)).all(|_| {
        let coefficients: Vec<_> = points
            .iter()
            .map(|_| BigIntOf::<P>::from(rng.next_u32() >> (32 - bits)))
            .collect();
        let combination = msm_bigint::<P::Group>(points, &coefficients);
        P::in_subgroup(&combination.into_affine())
    })
}

type BigIntOf<P> = <<P as AffineRepr>::ScalarField as PrimeField>::BigInt;

/// The largest number of bits b, up to `bits_max`, such that 2^b does not exceed the smallest prime factor of the
/// cofactor.
fn least_factor_bits(cofactor: &[u64], bits_max: u32) -> u32 {
    let divides = |divisor: u64| {
        let halves = cofactor
            .iter()
            .rev()
            .flat_map(|word| [word >> 32, word & 0xffff_ffff]);
        halves.fold(0, |rest, half| (rest << 32 | half) % divisor) == 0
    };
    let least = (2..1 << bits_max).find(|divisor| divides(*divisor));
    least.map_or(bits_max, u64::ilog2)
}

/// Distributes the points over buckets, and tests the sums of the buckets.
///
/// In each round every point goes into a bucket chosen uniformly at random. If a single point has an
/// error, the sum of its bucket has it too. If several have, take one of them: given the buckets of the others,
/// the errors cancel in all sums for at most one choice of its bucket, so that the round is passed with
/// probability at most 1/[`BUCKETS`]. Unlike with random coefficients, small factors of the cofactor
/// (3 divides that of BLS12-381's first group) do not matter.
fn test_bucket_sums<P: PointGroup<Group: MsmGroup>>(points: &[P], rng: &mut StdRng) -> bool {
    (0..SECURITY_BITS / LOG_BUCKETS).all(|_| each_in_subgroup(&bucket_sums(points, rng)))
}

/// The sums of buckets over which the points are distributed at random.
fn bucket_sums<P: PointGroup<Group: MsmGroup>>(points: &[P], rng: &mut StdRng) -> Vec<P> {
    let choices: Vec<u16> = points
        .iter()
        .map(|_| rng.gen_range(0..BUCKETS as u16))
        .collect();
    // Sorted by counting: bucket b's points are at ends[b - 1]..ends[b].
    let mut ends = vec![0usize; BUCKETS];
    for choice in &choices {
        ends[usize::from(*choice)] += 1;
    }
    let mut total = 0;
    for end in &mut ends {
        total += std::mem::replace(end, total);
    }
    let mut sorted = vec![P::zero(); points.len()];
    for (choice, point) in choices.iter().zip(points) {
        let end = &mut ends[usize::from(*choice)];
        sorted[*end] = *point;
        *end += 1;
    }

    // Halve every bucket by adding neighbours, until each has at most one point left.
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        let mut start = 0;
        let mut odd = Vec::with_capacity(BUCKETS);
        for end in &ends {
            let pairs = sorted[start..*end].chunks_exact(2);
            odd.push(pairs.remainder().first().copied());
            for pair in pairs {
                left.push(pair[0]);
                right.push(pair[1]);
            }
            start = *end;
        }
        if left.is_empty() {
            return odd.into_iter().flatten().collect();
        }
        P::Group::batch_add_assign(&mut left, &right);
        let mut sums = left.iter();
        let (mut start, mut written) = (0, 0);
        for (end, odd) in ends.iter_mut().zip(odd) {
            let pairs = (*end - start) / 2;
            start = *end;
            for point in sums.by_ref().take(pairs).copied().chain(odd) {
                sorted[written] = point;
                written += 1;
            }
            *end = written;
        }
        sorted.truncate(written);
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::{Fr, G1Affine, G1Projective};
    use ark_ec::PrimeGroup;
    use ark_ff::Zero;
    use ark_std::UniformRand;

    use super::*;

    fn points(count: usize) -> Vec<G1Affine> {
        let rng = &mut StdRng::seed_from_u64(1);
        let start = G1Projective::rand(rng);
        let step = G1Projective::rand(rng);
        let points: Vec<_> = (0..count)
            .scan(start, |point, _| {
                *point += step;
                Some(*point)
            })
            .collect();
        G1Projective::normalize_batch(&points)
    }

    /// A point of order 3: the error of the smallest order, and so the easiest to cancel.
    fn point_of_order_three() -> G1Affine {
        // The first group's cofactor, from the curve's specification.
        let cofactor: u128 = 0x396c_8c00_5555_e156_8c00_aaab_0000_aaab;
        assert_eq!(cofactor % 3, 0);
        let third = cofactor / 3;
        (1u64..)
            .find_map(|x| {
                let point = G1Affine::get_point_from_x_unchecked(x.into(), false)?;
                let outside = point.mul_bigint(Fr::MODULUS);
                let error = outside.mul_bigint([third as u64, (third >> 64) as u64]);
                (!error.is_zero()).then(|| error.into_affine())
            })
            .unwrap()
    }

    #[test]
    fn errors_are_found_alone_and_when_they_cancel() {
        let good = points(COMBINED_POINTS_MIN + 77);
        assert!(all_in_subgroup(&good));
        let error = point_of_order_three();
        assert!(!error.in_subgroup());
        assert!((error + error + error).into_affine().is_zero());
        for places in [
            vec![5],
            vec![0, COMBINED_POINTS_MIN],
            vec![1, 2, 3],
            (0..COMBINED_POINTS_MIN).collect::<Vec<_>>(),
        ] {
            let mut wrong = good.clone();
            for (nth, place) in places.iter().enumerate() {
                let error = if nth % 2 == 0 { error } else { -error };
                wrong[*place] = (wrong[*place] + error).into_affine();
            }
            assert!(!all_in_subgroup(&wrong), "{} errors", places.len());
        }
    }

    /// The second group of BN254 has the cofactor 2p − r, whose smallest factor is 10069.
    #[test]
    fn combinations_find_errors() {
        use ark_bn254::{G2Affine, G2Projective};
        type Scalar = ark_bn254::Fr;

        let bits = least_factor_bits(<G2Affine as AffineRepr>::Config::COFACTOR, 16);
        assert_eq!(bits, 13);
        let rng = &mut StdRng::seed_from_u64(3);
        let scalars: Vec<_> = (0..COMBINED_POINTS_MIN + 5)
            .map(|_| Scalar::rand(rng))
            .collect();
        let mut points = proofmill_kernels::fixed_base(G2Projective::generator(), &scalars);
        points[17] = G2Affine::zero();
        assert!(all_in_subgroup(&points));
        let outside = (1u64..)
            .find_map(|x| G2Affine::get_point_from_x_unchecked(x.into(), false))
            .unwrap();
        let error = outside.mul_bigint(Scalar::MODULUS).into_affine();
        assert!(!error.in_subgroup());
        for places in [
            vec![5],
            vec![0, COMBINED_POINTS_MIN],
            (0..COMBINED_POINTS_MIN).collect(),
        ] {
            let mut wrong = points.clone();
            for (nth, place) in places.iter().enumerate() {
                let error = if nth % 2 == 0 { error } else { -error };
                wrong[*place] = (wrong[*place] + error).into_affine();
            }
            assert!(!all_in_subgroup(&wrong), "{} errors", places.len());
        }
    }

    #[test]
    fn least_factors() {
        assert_eq!(least_factor_bits(&[3 * 5], 16), 1);
        assert_eq!(least_factor_bits(&[257 * 263], 16), 8);
        assert_eq!(least_factor_bits(&[65_537], 16), 16);
        // 2^64 + 1 = 274177 · 67280421310721.
        assert_eq!(least_factor_bits(&[1, 1], 16), 16);
    }

    #[test]
    fn bucket_sums_are_sums() {
        let rng = &mut StdRng::seed_from_u64(2);
        let mut points = points(1000);
        // Equal points and infinity are no exception.
        points[7] = points[8];
        points[9] = G1Affine::identity();
        points.resize(5000, points[3]);
        let expected: G1Projective = points.iter().sum();
        let sums = bucket_sums(&points, rng);
        assert!(sums.len() <= BUCKETS);
        assert_eq!(sums.iter().sum::<G1Projective>(), expected);
    }
}
