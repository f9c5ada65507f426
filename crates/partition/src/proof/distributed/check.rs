//! Checks of what workers return.

use ark_ec::CurveGroup;
use ark_ff::{UniformRand, Zero};
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_groth16::Proof;
use proofmill_groth16::mirage::{Claim, Commitment, Inputs, Opening, verify_batch};

use super::CommitmentKeys;
use super::task::{CommitTask, ProveTask};
use crate::Partition;
use crate::proof::{PartVerifiers, PartitionCurve, ProveError};

/// The keys with which commitments are checked.
#[derive(Clone, Copy, Debug)]
pub struct CommitmentChecker<'a, E: PartitionCurve> {
    /// The partition.
    pub partition: &'a Partition<E::ScalarField>,
    /// The commitment keys of its classes.
    pub keys: &'a CommitmentKeys<E>,
}

/// The keys with which proofs of parts are checked.
#[derive(Clone, Copy, Debug)]
pub struct ProofChecker<'a, E: PartitionCurve> {
    /// The verifying keys of the parts.
    pub verifiers: &'a PartVerifiers<E>,
}

/// The fault of a worker's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// The task's values have another commitment.
    #[error("it is no commitment to the values of part {part}")]
    Commitment {
        /// The part, from 0.
        part: usize,
    },
    /// The proof is invalid for the task's commitment and the challenges.
    #[error("it is no proof of part {part}")]
    Proof {
        /// The part, from 0.
        part: usize,
    },
}

/// A verdict for each result, in order.
type Verdicts = Vec<Result<(), ResultError>>;

// === impl CommitmentChecker ===

impl<E: PartitionCurve> CommitmentChecker<'_, E> {
    /// Checks commitments, which must be canonical points of the group, as decoded ones are. Those of a class are checked
    /// together: a random sum of them is the commitment to the same sum of their values. A false one passes with
    /// probability 1/|F|. If some are false, halves are checked until each is known.
    ///
    /// `rng` must be unpredictable to workers.
    ///
    /// # Errors
    ///
    /// [`ProveError`] if a task is of another partition.
    pub fn check(
        &self,
        results: &[(CommitTask<E>, Commitment<E>)],
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<Verdicts, ProveError> {
        let partition = self.partition;
        let classes = results
            .iter()
            .map(|(task, _)| partition.class_of(task.part()));
        let classes = classes.collect::<Result<Vec<_>, _>>()?;
        let mut verdicts: Verdicts = vec![Ok(()); results.len()];
        for class in 0..partition.classes().len() {
            let of_class = (0..results.len()).filter(|index| classes[*index] == class);
            let mut pending = vec![of_class.collect::<Vec<usize>>()];
            while let Some(group) = pending.pop() {
                if group.is_empty() || self.is_valid(class, &group, results, rng)? {
                    continue;
                }
                match group[..] {
                    [index] => {
                        let part = results[index].0.part();
                        verdicts[index] = Err(ResultError::Commitment { part });
                    }
                    _ => {
                        let (left, right) = group.split_at(group.len() / 2);
                        pending.extend([left.to_vec(), right.to_vec()]);
                    }
                }
            }
        }
        Ok(verdicts)
    }

    /// Whether all of these commitments of a class are right.
    fn is_valid(
        &self,
        class: usize,
        group: &[usize],
        results: &[(CommitTask<E>, Commitment<E>)],
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<bool, ProveError> {
        let key = self.keys.of(class)?;
        let mut values: Vec<E::ScalarField> = Vec::new();
        let mut randomness = E::ScalarField::zero();
        let mut sum = E::G1::zero();
        for index in group {
            let (task, commitment) = &results[*index];
            let weight = E::ScalarField::rand(rng);
            let committed = task.trace.committed();
            if values.is_empty() {
                values = vec![E::ScalarField::zero(); committed.len()];
            }
            if values.len() != committed.len() {
                // A task of another partition, of which nothing can be said.
                return Ok(false);
            }
            for (total, value) in values.iter_mut().zip(&committed) {
                *total += weight * value;
            }
            randomness += weight * task.opening.randomness();
            sum += commitment.point * weight;
        }
        let part = results[group[0]].0.part();
        let opening = Opening::new(&values, randomness);
        let expected = key.commit_with(&values, &opening);
        let expected = expected.map_err(|source| ProveError::Part { part, source })?;
        Ok(expected.point == sum.into_affine())
    }
}

// === impl ProofChecker ===

impl<E: PartitionCurve> ProofChecker<'_, E> {
    /// Checks proofs together, and each by itself if some are false. `rng` must be unpredictable to workers.
    pub fn check(
        &self,
        results: &[(ProveTask<E>, Proof<E>)],
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Verdicts {
        let shared: Vec<_> = results
            .iter()
            .map(|(task, _)| {
                [
                    task.states.root,
                    task.challenges.alpha,
                    task.challenges.beta,
                ]
            })
            .collect();
        // A task of another partition has no verifier.
        let known = results
            .iter()
            .map(|(task, _)| self.verifiers.of(task.part(), task.challenges.beta));
        let verifiers: Vec<_> = known.collect();
        let claims = results.iter().zip(&shared).zip(&verifiers);
        let claims = claims.filter_map(|(((task, proof), shared), verifier)| {
            let (key, prepared) = verifier.as_ref()?;
            Some(Claim {
                key,
                inputs: Inputs::with_prepared(shared, prepared),
                commitment: &task.commitment,
                proof,
            })
        });
        let claims: Vec<_> = claims.collect();
        let mut verified = verify_batch(&claims, rng).into_iter();
        let verdicts = results.iter().zip(&verifiers).map(|((task, _), known)| {
            let part = task.part();
            let verdict = known.as_ref().and_then(|_| verified.next());
            match verdict {
                Some(Ok(())) => Ok(()),
                _ => Err(ResultError::Proof { part }),
            }
        });
        verdicts.collect()
    }
}
