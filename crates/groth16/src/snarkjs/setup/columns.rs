//! A system's matrices by column, and the sums of points that make a key.

use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{BigInteger, PrimeField};
use proofmill_r1cs::{Matrix, R1cs};
use rayon::prelude::*;

/// Number of points that one task computes and converts to affine coordinates.
const CHUNK_POINTS: usize = 1 << 10;

/// The entries of a matrix, sorted by column.
pub(super) struct Columns {
    /// The start of each column, and the end of the last one.
    starts: Vec<usize>,
    /// Index of the coefficient, and row; sorted within a column, so that equal coefficients are neighbours.
    entries: Vec<(u32, u32)>,
}

/// A coefficient as sign and magnitude, the smaller of the coefficient and its negation: most are ±1 or short.
pub(super) struct Multiplier {
    negative: bool,
    limbs: Vec<u64>,
}

// === impl Columns ===

impl Columns {
    /// Sorts the entries of `matrix`. Memory is allocated for each of `columns` columns, so that their number must have
    /// been checked against the size of the circuit's file.
    pub(super) fn new(matrix: &Matrix, columns: usize) -> Self {
        let mut starts = vec![0; columns + 1];
        let entries = || {
            (0..matrix.rows()).flat_map(|row| {
                matrix
                    .row(row)
                    .map(move |(column, coefficient)| (column, (coefficient as u32, row as u32)))
            })
        };
        for (column, _) in entries() {
            starts[column + 1] += 1;
        }
        for column in 0..columns {
            starts[column + 1] += starts[column];
        }
        let mut next = starts.clone();
        let mut sorted = vec![(0, 0); matrix.entries()];
        for (column, entry) in entries() {
            sorted[next[column]] = entry;
            next[column] += 1;
        }
        for column in 0..columns {
            sorted[starts[column]..starts[column + 1]].sort_unstable();
        }
        Self {
            starts,
            entries: sorted,
        }
    }

    /// Σ coefficient · point\[row\] over a column.
    pub(super) fn sum<G: CurveGroup>(
        &self,
        column: usize,
        coefficients: &[Multiplier],
        points: &[G::Affine],
    ) -> G {
        let mut sum = G::zero();
        let entries = &self.entries[self.starts[column]..self.starts[column + 1]];
        for entries in entries.chunk_by(|left, right| left.0 == right.0) {
            let mut part = G::zero();
            for (_, row) in entries {
                part += points[*row as usize];
            }
            sum += coefficients[entries[0].0 as usize].times(part);
        }
        sum
    }

    /// Σ coefficient · value\[row\] over a column.
    pub(super) fn evaluate<F: PrimeField>(&self, column: usize, table: &[F], values: &[F]) -> F {
        self.entries[self.starts[column]..self.starts[column + 1]]
            .iter()
            .map(|(coefficient, row)| table[*coefficient as usize] * values[*row as usize])
            .sum()
    }
}

// === impl Multiplier ===

impl Multiplier {
    fn new<F: PrimeField>(value: &F) -> Self {
        let plain = value.into_bigint();
        let negated = (-*value).into_bigint();
        let negative = negated < plain;
        let smaller = if negative { negated } else { plain };
        let limbs = smaller.num_bits().div_ceil(64) as usize;
        Self {
            negative,
            limbs: smaller.as_ref()[..limbs].to_vec(),
        }
    }

    /// A multiplier for each coefficient of a system.
    pub(super) fn all<F: PrimeField>(system: &R1cs<F>) -> Vec<Self> {
        system.coefficients().iter().map(Self::new).collect()
    }

    fn times<G: PrimeGroup>(&self, point: G) -> G {
        let product = match self.limbs[..] {
            [1] => point,
            ref limbs => point.mul_bigint(limbs),
        };
        if self.negative { -product } else { product }
    }
}

/// The affine points `point(0)`, `point(1)`, … `point(n − 1)`, computed in parallel.
pub(super) fn affine_points<G: CurveGroup>(
    n: usize,
    point: impl Fn(usize) -> G + Sync,
) -> Vec<G::Affine> {
    let chunks: Vec<Vec<G::Affine>> = (0..n.div_ceil(CHUNK_POINTS))
        .into_par_iter()
        .map(|chunk| {
            let points: Vec<G> = (chunk * CHUNK_POINTS..n.min((chunk + 1) * CHUNK_POINTS))
                .map(&point)
                .collect();
            G::normalize_batch(&points)
        })
        .collect();
    chunks.concat()
}

/// Each point times one scalar.
pub(super) fn scale<G: CurveGroup>(points: &[G::Affine], scalar: G::ScalarField) -> Vec<G::Affine> {
    affine_points(points.len(), |i| G::from(points[i]) * scalar)
}

/// The Lagrange polynomials at τ of a domain whose generator is `root`, given the powers of τ: an inverse Fourier
/// transform of points. Their number must be a power of two.
pub(super) fn lagrange<G: CurveGroup>(powers: Vec<G>, root: G::ScalarField) -> Vec<G::Affine> {
    use ark_ff::Field;
    let n = powers.len();
    let inverse_root = root.inverse().expect("a root of unity is not zero");
    let scale = G::ScalarField::from(n as u64)
        .inverse()
        .expect("a domain is smaller than the field");
    let values = transform(powers, inverse_root);
    affine_points(n, |i| values[i] * scale)
}

/// Σⱼ root^(i·j) · point\[j\] for each i, by recursion on the even and the odd points.
fn transform<G: CurveGroup>(points: Vec<G>, root: G::ScalarField) -> Vec<G> {
    use ark_ff::Field;
    if points.len() == 1 {
        return points;
    }
    let (even, odd): (Vec<_>, Vec<_>) = points.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
    drop(points);
    let square = root.square();
    let (mut even, mut odd) = rayon::join(|| transform(even, square), || transform(odd, square));
    let half = even.len();
    let chunk = half.div_ceil(rayon::current_num_threads()).max(1);
    even.par_chunks_mut(chunk)
        .zip(odd.par_chunks_mut(chunk))
        .enumerate()
        .for_each(|(i, (even, odd))| {
            let mut twiddle = root.pow([(i * chunk) as u64]);
            for (even, odd) in even.iter_mut().zip(odd) {
                let product = *odd * twiddle;
                *odd = *even - product;
                *even += product;
                twiddle *= root;
            }
        });
    even.extend(odd);
    even
}

#[cfg(test)]
mod tests {
    use ark_bn254::{Fr, G1Affine, G1Projective};
    use ark_ec::AffineRepr;
    use ark_ff::{Field, UniformRand};
    use ark_std::rand::{SeedableRng, rngs::StdRng};
    use proofmill_kernels::Domain;

    use super::lagrange;

    #[test]
    fn lagrange_points_are_those_of_the_scalars() {
        let rng = &mut StdRng::seed_from_u64(2);
        for n in [1usize, 2, 4, 16] {
            let tau = Fr::rand(rng);
            let g = G1Affine::generator();
            let powers = (0..n as u64).map(|i| g * tau.pow([i])).collect::<Vec<_>>();
            let domain = Domain::<Fr>::snarkjs(n).unwrap();
            let expected: Vec<G1Affine> = domain
                .lagrange_at(tau)
                .iter()
                .map(|value| (g * value).into())
                .collect();
            let found = lagrange::<G1Projective>(powers, domain.generator());
            assert_eq!(found, expected);
        }
    }
}
