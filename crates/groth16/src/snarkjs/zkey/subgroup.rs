//! Whether many points are all in the subgroup of prime order, faster than one by one.

use ark_std::rand::rngs::{OsRng, StdRng};
use ark_std::rand::{Rng, SeedableRng};
use proofmill_kernels::MsmGroup;

use crate::PointGroup;

/// Buckets of one round, and their logarithm.
const LOG_BUCKETS: u32 = 8;
const BUCKETS: usize = 1 << LOG_BUCKETS;

/// Rounds: a wrong verdict has probability 2^(−8·8) = 2⁻⁶⁴.
const ROUNDS: usize = 8;

/// Fewer points than this are tested one by one.
const FEW: usize = 2 * ROUNDS * BUCKETS;

/// Whether `points`, which are on their curve, are all in the subgroup. A yes is wrong with
/// probability at most 2⁻⁶⁴, whatever the points; a no is always right.
///
/// In each round every point goes into a bucket chosen uniformly at random, and the sum of each
/// bucket is tested. Write each point as one of the subgroup plus an error. If a single point has an
/// error, its bucket's sum shows it. If several have, take one of them: given where the others went,
/// at most one bucket is such that its error makes all sums vanish, so that the round is passed with
/// probability at most 1/[`BUCKETS`]. The randomness is drawn after the points are fixed. Unlike with
/// a random linear combination, small factors of the cofactor (3 divides that of BLS12-381's first
/// group) do not matter.
pub(super) fn all_in_subgroup<P: PointGroup<Group: MsmGroup>>(points: &[P]) -> bool {
    if points.len() < FEW {
        return points.iter().all(P::in_subgroup);
    }
    let Ok(mut rng) = StdRng::from_rng(OsRng) else {
        return points.iter().all(P::in_subgroup);
    };
    (0..ROUNDS).all(|_| bucket_sums(points, &mut rng).iter().all(P::in_subgroup))
}

/// The sums of the buckets into which the points were thrown.
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
    use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
    use ark_ff::{PrimeField, Zero};
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

    /// A point whose order is 3: the smallest error there is, and the easiest to cancel.
    fn of_order_three() -> G1Affine {
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
        let good = points(FEW + 77);
        assert!(all_in_subgroup(&good));
        let error = of_order_three();
        assert!(!error.in_subgroup());
        assert!((error + error + error).into_affine().is_zero());
        for places in [
            vec![5],
            vec![0, FEW],
            vec![1, 2, 3],
            (0..FEW).collect::<Vec<_>>(),
        ] {
            let mut wrong = good.clone();
            for (nth, place) in places.iter().enumerate() {
                let error = if nth % 2 == 0 { error } else { -error };
                wrong[*place] = (wrong[*place] + error).into_affine();
            }
            assert!(!all_in_subgroup(&wrong), "{} errors", places.len());
        }
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
