//! The points that polynomials are committed with, derived by hashing to the curve.

use ark_ff::{BigInt, PrimeField};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use sha2::{Digest, Sha256};

use crate::{Base, Point};

/// Binary logarithm of the size of barretenberg's openings (`CONST_ECCVM_LOG_N`): those of rollup
/// proofs have 2¹⁵ coefficients.
pub const ROLLUP_LOG_SIZE: u32 = 15;
/// Largest binary logarithm of a size that is derived: as many points as barretenberg publishes.
pub const MAX_LOG_SIZE: u32 = 18;

/// Prefix of the hash that derives each point.
const DOMAIN: &[u8] = b"BARRETENBERG_GRUMPKIN_IPA_CRS";

/// A structured reference string: 2^k points of Grumpkin without a known relation between them.
///
/// Each point is a hash of its number, so a shorter string is the beginning of a longer one, and there
/// is no secret behind it.
#[derive(Clone, PartialEq, Eq)]
pub struct Srs {
    points: Vec<Point>,
}

// === impl Srs ===

impl Srs {
    /// Derives 2^`log_size` points on all threads of the current rayon pool, each in some 30 µs
    /// of one core.
    ///
    /// # Panics
    ///
    /// If `log_size` is above [`MAX_LOG_SIZE`].
    pub fn derive(log_size: u32) -> Self {
        assert!(
            log_size <= MAX_LOG_SIZE,
            "2^{log_size} points: at most 2^{MAX_LOG_SIZE}"
        );
        let points = (0..1u64 << log_size).into_par_iter().map(point).collect();
        Self { points }
    }

    /// Points that are known to be these: the callers have a digest.
    pub(crate) fn from_points(points: Vec<Point>) -> Self {
        assert!(points.len().is_power_of_two(), "{} points", points.len());
        Self { points }
    }

    /// The points, by number.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Binary logarithm of the number of points.
    pub fn log_size(&self) -> u32 {
        self.points.len().ilog2()
    }

    /// The first 2^`log_size` of the points.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[must_use]
    pub fn prefix(&self, log_size: u32) -> Self {
        assert!(
            log_size <= self.log_size(),
            "2^{log_size} points of 2^{}",
            self.log_size()
        );
        Self {
            points: self.points[..1 << log_size].to_vec(),
        }
    }
}

impl std::fmt::Debug for Srs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Srs of 2^{} points", self.log_size())
    }
}

/// Point `index`, as barretenberg derives it (`srs/factories/grumpkin_srs_gen.cpp`): attempts are
/// hashed until one is the abscissa of a point.
fn point(index: u64) -> Point {
    (0..)
        .find_map(|attempt| candidate(index, attempt))
        .expect("every second attempt gives a point")
}

/// The point that a hash names: four big-endian words of 64 bits, the least significant first; 255
/// bits of abscissa, and whether the ordinate is odd.
fn candidate(index: u64, attempt: u64) -> Option<Point> {
    let hash = Sha256::new()
        .chain_update(DOMAIN)
        .chain_update(index.to_be_bytes())
        .chain_update(attempt.to_be_bytes())
        .finalize();
    let mut words = [0u64; 4];
    for (word, bytes) in words.iter_mut().zip(hash.chunks_exact(8)) {
        *word = u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    }
    let odd = words[3] >> 63 == 1;
    words[3] &= u64::MAX >> 1;
    let x = Base::from_bigint(BigInt::new(words))?;
    let (even_y, odd_y) = even_first(Point::get_ys_from_x_unchecked(x)?);
    Some(Point::new_unchecked(x, if odd { odd_y } else { even_y }))
}

/// A pair of opposite y-coordinates, the even one first: their sum is the odd modulus, so exactly one is even.
fn even_first((a, b): (Base, Base)) -> (Base, Base) {
    if is_odd(&a) { (b, a) } else { (a, b) }
}

fn is_odd(element: &Base) -> bool {
    element.into_bigint().0[0] & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::AffineRepr;
    use ark_ff::{BigInteger, MontFp, Zero};

    #[test]
    fn points_are_on_the_curve_and_differ() {
        let srs = Srs::derive(6);
        assert_eq!(srs.points().len(), 64);
        for (index, point) in srs.points().iter().enumerate() {
            assert!(point.is_on_curve() && !point.is_zero());
            assert!(!srs.points()[..index].contains(point));
        }
    }

    #[test]
    fn a_shorter_string_is_the_beginning_of_a_longer() {
        assert_eq!(Srs::derive(7).prefix(5), Srs::derive(5));
    }

    /// G = (1, √−16), of the roots the even one, as `grumpkin::g1` of barretenberg has it.
    #[test]
    fn generator_is_barretenbergs() {
        let y: Base = MontFp!("17631683881184975370165255887551781615748388533673675138860");
        assert_eq!(Point::generator(), Point::new(MontFp!("1"), y));
        assert!(!is_odd(&y) && (y * y + Base::from(16)).is_zero());
    }

    /// The digest of the first 2¹⁶ points, each as abscissa and ordinate in 32 big-endian bytes:
    /// `GRUMPKIN_G1_CHUNK_HASHES[0]` of barretenberg's `srs/factories/grumpkin_crs_data.hpp`.
    #[test]
    fn points_have_the_digest_that_barretenberg_pins() {
        let mut hasher = Sha256::new();
        for point in Srs::derive(16).points() {
            for coordinate in [point.x, point.y] {
                hasher.update(coordinate.into_bigint().to_bytes_be());
            }
        }
        let digest: String = hasher
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let expected = "64236c9455e75aeea77a94587ea607eed2e978d2609a421d66bf10bb9698b8fd";
        assert_eq!(digest, expected);
    }
}
