//! The points that polynomials are committed with, derived by hashing to the curve.

use ark_ec::CurveGroup;
use ark_ff::{FftField, Field};
use pasta_curves::arithmetic::CurveExt;
use pasta_curves::group::Curve;
use pasta_curves::vesta;
use proofmill_kernels::PreparedBases;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::field::from_pasta;
use crate::{MAX_K, Point, Scalar, Sum};

/// Domain separator of the hash to the curve.
const DOMAIN: &str = "Halo2-Parameters";

/// The points of circuits of 2^k rows: `poly::commitment::Params` of halo2_proofs.
///
/// Each is a hash of its number; there is no secret behind them.
#[derive(Clone, PartialEq, Eq)]
pub struct Params {
    /// g: one for each coefficient.
    points: Vec<Point>,
    /// W, which hides, and U, which carries the value.
    hiding: Point,
    value: Point,
}

// === impl Params ===

impl Params {
    /// Derives 2^`k` points on all threads of the current rayon pool.
    ///
    /// # Panics
    ///
    /// If `k` is above [`MAX_K`].
    pub fn derive(k: u32) -> Self {
        assert!(k <= MAX_K, "2^{k} points: at most 2^{MAX_K}");
        let numbered = |number: u32| {
            let mut message = [0; 5];
            message[1..].copy_from_slice(&number.to_le_bytes());
            hashed(&message)
        };
        Self {
            points: (0..1u32 << k).into_par_iter().map(numbered).collect(),
            hiding: hashed(&[1]),
            value: hashed(&[2]),
        }
    }

    /// Binary logarithm of the number of rows.
    pub fn k(&self) -> u32 {
        self.points.len().ilog2()
    }

    /// W, which hides.
    pub(crate) fn hiding(&self) -> Point {
        self.hiding
    }

    /// g, W and U: the bases of every combination, in this order.
    pub(crate) fn bases(&self) -> Vec<Point> {
        let mut bases = self.points.clone();
        bases.extend([self.hiding, self.value]);
        bases
    }
}

impl std::fmt::Debug for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Params of 2^{} points", self.k())
    }
}

fn hashed(message: &[u8]) -> Point {
    let hash = vesta::Point::hash_to_curve(DOMAIN);
    from_pasta(&hash(message).to_affine()).expect("no hash that is known is infinite")
}

/// Commitments to the polynomials that are one in one of 2^k rows and zero in the others, for the first
/// `rows` rows: public inputs are combinations of them. `bases` are for as many rows or more.
pub(crate) fn row_commitments(bases: &PreparedBases<Sum>, k: u32, rows: usize) -> Vec<Point> {
    let size = 1u64 << k;
    let root = Scalar::get_root_of_unity(size).expect("the field has roots of unity of order 2³²");
    let inverse_root = root.inverse().expect("a root of unity is not zero");
    let inverse_size = Scalar::from(size).inverse().expect("2^k is not zero");
    let commitment = |row: u64| {
        // Σ ω^(−row·j)·Xʲ / 2^k.
        let step = inverse_root.pow([row]);
        let powers = std::iter::successors(Some(inverse_size), |power| Some(*power * step));
        let mut scalars: Vec<Scalar> = powers.take(size as usize).collect();
        scalars.resize(bases.len(), Scalar::default());
        bases.msm(&scalars)
    };
    let commitments: Vec<Sum> = (0..rows as u64).map(commitment).collect();
    Sum::normalize_batch(&commitments)
}
