//! Reducing proofs, and checking claims: one and many.

use std::fmt;
use std::sync::Arc;

use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, One, Zero};
use proofmill_kernels::{PreparedBases, msm};

use crate::claim::MAX_CIRCUITS;
use crate::field::BYTES;
use crate::params::row_commitments;
use crate::reduce::reduce;
use crate::{Claim, Instances, Invalid, Params, Point, Scalar, Sum, VerifyingKey};

/// What the points of public inputs may take in memory.
const ROWS_BYTES_MAX: usize = 1 << 20;

/// Checks proofs of circuits of one size, under any number of keys.
pub struct Verifier {
    /// g, W and U.
    bases: PreparedBases<Sum>,
    /// For the first rows a commitment to one in that row; and W.
    rows: PreparedBases<Sum>,
    k: u32,
}

// === impl Verifier ===

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Verifier of 2^{} rows, {} of public inputs",
            self.k,
            self.inputs_max()
        )
    }
}

impl Verifier {
    /// Prepares points in about `memory_limit` bytes, and for columns of up to `inputs_max` public
    /// inputs, each of which takes a multiplication of all points.
    ///
    /// # Panics
    ///
    /// If there are fewer rows than public inputs.
    pub fn new(params: &Params, inputs_max: usize, memory_limit: usize) -> Self {
        let k = params.k();
        assert!(inputs_max <= 1 << k, "{inputs_max} public inputs");
        let bases = PreparedBases::new(&params.bases(), memory_limit);
        let mut rows = row_commitments(&bases, k, inputs_max);
        rows.push(params.hiding());
        Self {
            rows: PreparedBases::new(&rows, ROWS_BYTES_MAX),
            bases,
            k,
        }
    }

    /// All the work that is a proof's own, on this thread.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if it cannot hold, whatever the points are.
    pub fn reduce(
        &self,
        key: &Arc<VerifyingKey>,
        instances: &Instances,
        proof: &[u8],
    ) -> Result<Claim, Invalid> {
        if key.k != self.k {
            return Err(Invalid::Rows {
                key: key.k,
                verifier: self.k,
            });
        }
        let circuits = instances.len();
        if circuits == 0 || circuits > MAX_CIRCUITS {
            return Err(Invalid::Circuits(circuits));
        }
        // Public inputs cost more than they have bytes: none before there is a proof to them.
        if proof.len() < key.proof_bytes_min(circuits) {
            return Err(Invalid::Short(proof.len() / BYTES * BYTES));
        }
        let mut sums = Vec::new();
        for columns in instances {
            if columns.len() != key.instance_columns {
                return Err(Invalid::Columns {
                    found: columns.len(),
                    expected: key.instance_columns,
                });
            }
            for column in columns {
                sums.push(self.commit(key, column)?);
            }
        }
        reduce(key, Sum::normalize_batch(&sums), circuits, proof)
    }

    /// Public inputs that a column may have.
    fn inputs_max(&self) -> usize {
        self.rows.len() - 1
    }

    /// The commitment to a column of public inputs. It hides nothing: halo2 commits to all of them under
    /// the blinding factor 1.
    fn commit(&self, key: &VerifyingKey, column: &[Scalar]) -> Result<Sum, Invalid> {
        let usable = key.usable_rows().unwrap_or(0);
        let maximum = usable.min(self.inputs_max());
        if column.len() > maximum {
            return Err(Invalid::Inputs {
                found: column.len(),
                maximum,
            });
        }
        let mut scalars = column.to_vec();
        scalars.resize(self.inputs_max(), Scalar::ZERO);
        scalars.push(Scalar::one());
        Ok(self.rows.msm(&scalars))
    }

    /// Checks one claim, without any chance of error but that of the proof itself.
    ///
    /// # Errors
    ///
    /// [`Invalid::Proof`].
    pub fn check(&self, claim: &Claim) -> Result<(), Invalid> {
        match self.all_hold(&[(claim, Scalar::one())]) {
            true => Ok(()),
            false => Err(Invalid::Proof),
        }
    }

    /// Reduces a proof and checks it.
    ///
    /// # Errors
    ///
    /// [`Invalid`], with the reason.
    pub fn verify(
        &self,
        key: &Arc<VerifyingKey>,
        instances: &Instances,
        proof: &[u8],
    ) -> Result<(), Invalid> {
        self.check(&self.reduce(key, instances, proof)?)
    }

    /// Whether claims under their weights add up to zero: whether all hold, if the weights were
    /// [drawn](crate::draw_weights) after the claims were fixed.
    pub fn all_hold(&self, claims: &[(&Claim, Scalar)]) -> bool {
        self.value(claims).is_zero()
    }

    /// The sum of claims under weights, any elements of the field: zero if all hold. On all threads of
    /// the current rayon pool.
    ///
    /// It is additive: the value of some claims is that of all less that of the others, under the
    /// same weights.
    ///
    /// # Panics
    ///
    /// If a claim was reduced for points of another size.
    pub fn value(&self, claims: &[(&Claim, Scalar)]) -> Sum {
        if claims.is_empty() {
            return Sum::zero();
        }
        let size = 1 << self.k;
        let mut fixed = vec![Scalar::ZERO; size + 2];
        let mut own: (Vec<Point>, Vec<Scalar>) = (Vec::new(), Vec::new());
        let mut keys: Vec<(&Arc<VerifyingKey>, Vec<Scalar>)> = Vec::new();
        let mut scratch = Vec::with_capacity(size);
        for (claim, weight) in claims {
            assert_eq!(claim.key.k, self.k, "a claim for points of another size");
            add_folded(&mut fixed, claim, *weight, &mut scratch);
            fixed[0] += claim.constant * weight;
            fixed[size] += claim.hiding * weight;
            fixed[size + 1] += claim.value * weight;
            own.0.extend(&claim.points);
            own.1
                .extend(claim.scalars.iter().map(|scalar| *scalar * weight));
            let known = keys
                .iter()
                .position(|(key, _)| Arc::ptr_eq(key, &claim.key));
            let number = known.unwrap_or_else(|| {
                keys.push((&claim.key, vec![Scalar::ZERO; claim.key_scalars.len()]));
                keys.len() - 1
            });
            for (sum, scalar) in keys[number].1.iter_mut().zip(&claim.key_scalars) {
                *sum += *scalar * weight;
            }
        }
        for (key, scalars) in keys {
            own.0.extend(&key.fixed_commitments);
            own.0.extend(&key.permutation_commitments);
            own.1.extend(scalars);
        }
        self.bases.msm(&fixed) + msm::<Sum>(&own.0, &own.1)
    }
}

/// Adds a claim's folded vector under a weight: each entry is the product of a seed with those of the
/// challenges whose bit is set. The seed is doubled in place, once for each challenge, the last one
/// being the lowest bit's.
fn add_folded(sums: &mut [Scalar], claim: &Claim, weight: Scalar, scratch: &mut Vec<Scalar>) {
    scratch.clear();
    scratch.push(claim.folded * weight);
    for challenge in claim.challenges.iter().rev() {
        for i in 0..scratch.len() {
            scratch.push(scratch[i] * challenge);
        }
    }
    for (sum, entry) in sums.iter_mut().zip(scratch) {
        *sum += *entry;
    }
}
