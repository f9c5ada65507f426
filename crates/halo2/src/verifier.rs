//! Reducing proofs, and checking claims: one and many.

use std::fmt;
use std::sync::{Arc, OnceLock};

use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, One, Zero};
use proofmill_kernels::PreparedBases;

use crate::claim::MAX_CIRCUITS;
use crate::field::BYTES;
use crate::params::row_commitments;
use crate::reduce::reduce;
use crate::{Claim, Instances, Invalid, Params, Point, Scalar, Sum, VerifyingKey};

/// Memory limit in bytes for the points of public inputs, for each number of rows.
const ROWS_BYTES_MAX: usize = 1 << 20;
/// The most steps of evaluating constraints that one proof may take: about a second of work.
const WORK_MAX: usize = 1 << 26;

/// Checks proofs of circuits of up to 2^k rows, under any number of keys.
///
/// The points of a smaller circuit are the first points of a larger one, so claims of all sizes are
/// checked together.
pub struct Verifier {
    /// g, W and U.
    bases: PreparedBases<Sum>,
    /// Points for public inputs, by the binary logarithm of the circuit's rows, computed at the first circuit of
    /// that size: for each of the first rows a commitment to one in that row and zero in the others; then W.
    rows: Vec<OnceLock<PreparedBases<Sum>>>,
    hiding: Point,
    inputs_max: usize,
    k: u32,
}

// === impl Verifier ===

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Verifier of up to 2^{} rows, {} of public inputs",
            self.k, self.inputs_max
        )
    }
}

impl Verifier {
    /// Prepares points in about `memory_limit` bytes, and for columns of up to `inputs_max` public
    /// inputs, each of which takes a multiplication of all points.
    pub fn new(params: &Params, inputs_max: usize, memory_limit: usize) -> Self {
        let k = params.k();
        let verifier = Self {
            bases: PreparedBases::new(&params.bases(), memory_limit),
            rows: (0..=k).map(|_| OnceLock::new()).collect(),
            hiding: params.hiding(),
            inputs_max,
            k,
        };
        verifier.rows(k);
        verifier
    }

    /// Binary logarithm of the most rows of a circuit.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// The points that commit to public inputs of circuits of 2^k rows; computed at the first call for each k.
    fn rows(&self, k: u32) -> &PreparedBases<Sum> {
        let cell = &self.rows[k as usize];
        if let Some(rows) = cell.get() {
            return rows;
        }
        // Not within the cell's initialization: this multiplies on a pool of threads, and one of them may
        // meanwhile start on another proof of such a circuit, which would wait for itself.
        let count = self.inputs_max.min(1 << k);
        let mut rows = row_commitments(&self.bases, k, count);
        rows.push(self.hiding);
        let rows = PreparedBases::new(&rows, ROWS_BYTES_MAX);
        cell.get_or_init(|| rows)
    }

    /// Reduces a proof to its claim, all the work that proofs cannot share, on this thread.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the proof is invalid by itself, before any points are multiplied.
    pub fn reduce(
        &self,
        key: &Arc<VerifyingKey>,
        instances: &Instances,
        proof: &[u8],
    ) -> Result<Claim, Invalid> {
        if key.k > self.k {
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
        // A column of public inputs may have no bytes of the proof.
        if circuits.saturating_mul(key.operations) > WORK_MAX
            || circuits.saturating_mul(key.instance_columns) > proof.len() / BYTES
        {
            let bytes = proof.len();
            return Err(Invalid::Work { circuits, bytes });
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

    /// The commitment to a column of public inputs. It hides nothing: halo2 commits to all of them under
    /// the blinding factor 1.
    fn commit(&self, key: &VerifyingKey, column: &[Scalar]) -> Result<Sum, Invalid> {
        let usable = key.usable_rows().unwrap_or(0);
        let maximum = usable.min(self.inputs_max);
        if column.len() > maximum {
            return Err(Invalid::Inputs {
                found: column.len(),
                maximum,
            });
        }
        if column.iter().all(Scalar::is_zero) {
            return Ok(self.hiding.into());
        }
        let rows = self.rows(key.k);
        let mut scalars = column.to_vec();
        scalars.resize(rows.len() - 1, Scalar::ZERO);
        scalars.push(Scalar::one());
        Ok(rows.msm(&scalars))
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
    /// If a claim's circuit has more rows than this verifier's points are for.
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
            assert!(claim.key.k <= self.k, "a claim for more points");
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
        self.bases.msm_with(&fixed, &own.0, &own.1)
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
