//! The prover: one part after the other.

use std::ops::ControlFlow;
use std::sync::Arc;

use ark_std::rand::{CryptoRng, RngCore};
use proofmill_aggregation::{AggregateProveError, Srs};
use proofmill_groth16::Proof;
use proofmill_groth16::mirage::{Commitment, Inputs, Opening, ResidentKey, verify};

use super::assembly::Challenged;
use super::index::{ClassKeys, Index, IndexError};
use super::journal::{Journal, JournalError};
use super::secrets::Secrets;
use super::verifier::{PartitionProof, VerifyError};
use super::{PartitionCurve, SHARED};
use crate::{PartitionError, PartitionedCircuit, Traces};

/// The keys that a prover works with.
#[derive(Clone, Copy, Debug)]
pub struct Prover<'a, E: PartitionCurve> {
    /// The partition and the keys of its parts.
    pub index: &'a Index<E>,
    /// The reference string that the index was made with.
    pub srs: &'a Srs<E>,
    /// The proving keys of all classes.
    pub keys: &'a ClassKeys<E>,
}

/// A step of the prover, reported at its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Runs the code of all parts, for the values of shared wires and transfers.
    Trace,
    /// Commits to a part's share of the traces and its transfers.
    Commit {
        /// The part, from 0.
        part: usize,
        /// The number of parts that are done.
        done: usize,
    },
    /// Proves a part.
    Prove {
        /// The part, from 0.
        part: usize,
        /// The number of parts that are done.
        done: usize,
    },
    /// Aggregates the proofs of all parts.
    Aggregate,
}

/// The reason why there is no proof.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// The circuit is not the partition's, or its code failed.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// A key could not be read, or is for another class.
    #[error(transparent)]
    Keys(#[from] IndexError),
    /// A part could not be proved.
    #[error("part {part}: {source}")]
    Part {
        /// The part, from 0.
        part: usize,
        /// The reason.
        source: proofmill_groth16::ProveError,
    },
    /// The proof of a part is invalid, so the machine or this program is at fault.
    #[error("part {part}: its proof, just made, is invalid: this machine cannot be trusted")]
    FalsePart {
        /// The part, from 0.
        part: usize,
    },
    /// The aggregation failed.
    #[error(transparent)]
    Aggregation(#[from] AggregateProveError),
    /// The journal could not be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The final proof is invalid, so the machine or this program is at fault.
    #[error("the proof, just made, is invalid ({0}): this machine cannot be trusted")]
    False(VerifyError),
    /// The caller stopped the prover.
    #[error("interrupted")]
    Interrupted,
}

/// State of a proof that is being made.
struct Run<'a, E: PartitionCurve, C, P> {
    prover: Prover<'a, E>,
    circuit: &'a C,
    journal: &'a mut Journal<E>,
    progress: P,
    traces: Traces<E::ScalarField>,
    secrets: Secrets,
}

// === impl Prover ===

impl<'a, E: PartitionCurve> Prover<'a, E> {
    /// Proves that the circuit, which must have a witness, holds for its public inputs. Parts are proved class by
    /// class, so that each key is read at most twice, and one is held at a time. Steps recorded in the journal are
    /// not repeated. `progress` is called before each step and may stop the proof there.
    ///
    /// Every part's proof and the whole proof are verified when they are made.
    ///
    /// # Errors
    ///
    /// [`ProveError`] if the witness does not satisfy the circuit, or a step fails.
    pub fn prove<C: PartitionedCircuit<E::ScalarField>>(
        self,
        circuit: &C,
        journal: &mut Journal<E>,
        rng: &mut (impl RngCore + CryptoRng),
        mut progress: impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<PartitionProof<E>, ProveError> {
        report(&mut progress, Step::Trace)?;
        let partition = self.index.partition();
        let traces = partition.trace(circuit)?;
        let key = self.index.verifying_key();
        let secrets = Secrets::new(journal.seed(), &key.digest(), &traces);
        journal.bind(secrets.witness_tag(), partition.num_parts())?;
        self.settle();
        let mut run = Run {
            prover: self,
            circuit,
            journal,
            progress,
            traces,
            secrets,
        };
        run.commit()?;
        let d = run.commitments();
        let challenged = Challenged::new(self.index, self.srs, &run.traces, &run.secrets, &d)?;
        run.prove(&challenged, rng)?;
        let proofs = run.proofs();
        report(&mut run.progress, Step::Aggregate)?;
        let public_inputs = run.traces.public_inputs().to_vec();
        drop(run);
        challenged.aggregate(self.index, &public_inputs, |statement| {
            let parts = self.index.parts();
            parts.aggregate(self.srs, statement, &proofs, &d)
        })
    }

    /// Returns a part's freed heap memory to the system, unless all keys are held, in which case memory is plentiful.
    fn settle(self) {
        if !matches!(self.keys, ClassKeys::Held(_)) {
            proofmill_memory::release_heap();
        }
    }

    /// The parts, those of a class together.
    fn by_class(self) -> Vec<usize> {
        let class_of = &self.index.parts().parts().class_of;
        let mut parts: Vec<usize> = (0..class_of.len()).collect();
        parts.sort_by_key(|part| class_of[*part]);
        parts
    }
}

/// Returns to the system the memory that products of parts kept for the next ones.
pub(super) fn release() {
    proofmill_kernels::release_memory();
    proofmill_memory::release_heap();
}

fn report(
    progress: &mut impl FnMut(Step) -> ControlFlow<()>,
    step: Step,
) -> Result<(), ProveError> {
    match progress(step) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(ProveError::Interrupted),
    }
}

/// The key of the class that is worked on.
struct CurrentKey<'a, E: PartitionCurve> {
    prover: Prover<'a, E>,
    current: Option<(usize, Arc<ResidentKey<E>>)>,
}

// === impl CurrentKey ===

impl<E: PartitionCurve> CurrentKey<'_, E> {
    /// The key of a part's class. That of another class is dropped first.
    fn of(&mut self, part: usize) -> Result<Arc<ResidentKey<E>>, ProveError> {
        let partition = self.prover.index.partition();
        let class = partition.class_of(part)?;
        if let Some((held, key)) = &self.current
            && *held == class
        {
            return Ok(Arc::clone(key));
        }
        self.current = None;
        if !matches!(self.prover.keys, ClassKeys::Held(_)) {
            release();
        }
        let key = self.prover.keys.key(partition, class)?;
        self.current = Some((class, Arc::clone(&key)));
        Ok(key)
    }
}

// === impl Run ===

impl<'a, E, C, P> Run<'a, E, C, P>
where
    E: PartitionCurve,
    C: PartitionedCircuit<E::ScalarField>,
    P: FnMut(Step) -> ControlFlow<()>,
{
    const fn keys(&self) -> CurrentKey<'a, E> {
        CurrentKey {
            prover: self.prover,
            current: None,
        }
    }

    /// Commits to the share of each part that has no commitment yet.
    fn commit(&mut self) -> Result<(), ProveError> {
        let mut keys = self.keys();
        for part in self.prover.by_class() {
            if self.journal.commitment(part).is_some() {
                continue;
            }
            let (done, _) = self.journal.progress();
            report(&mut self.progress, Step::Commit { part, done })?;
            let key = keys.of(part)?;
            let (values, opening) = self.opening(part)?;
            let commitment = key.prover().commit_with(&values, &opening);
            let commitment = commitment.map_err(|source| ProveError::Part { part, source })?;
            self.journal.add_commitment(part, commitment)?;
            self.prover.settle();
        }
        Ok(())
    }

    /// A part's committed values, and what opens their commitment.
    fn opening(&self, part: usize) -> Result<(Vec<E::ScalarField>, Opening<E>), ProveError> {
        let partition = self.prover.index.partition();
        let values = partition.part_trace(&self.traces, part)?.committed();
        let randomness = self.secrets.commitment_randomness(part);
        let opening = Opening::new(&values, randomness);
        Ok((values, opening))
    }

    /// Proves each part that has no proof yet.
    fn prove(
        &mut self,
        challenged: &Challenged<E>,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<(), ProveError> {
        let mut keys = self.keys();
        let shared = challenged.shared();
        for part in self.prover.by_class() {
            if self.journal.proof(part).is_some() {
                continue;
            }
            let (_, done) = self.journal.progress();
            report(&mut self.progress, Step::Prove { part, done })?;
            let key = keys.of(part)?;
            let proof = self.prove_part(&key, part, challenged, rng)?;
            if !self.holds(part, &shared, &proof) {
                return Err(ProveError::FalsePart { part });
            }
            self.journal.add_proof(part, proof)?;
            self.prover.settle();
        }
        Ok(())
    }

    fn prove_part(
        &self,
        key: &ResidentKey<E>,
        part: usize,
        challenged: &Challenged<E>,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<Proof<E>, ProveError> {
        let partition = self.prover.index.partition();
        let trace = partition.part_trace(&self.traces, part)?;
        let assignment = partition.assignment(
            self.circuit,
            part,
            &trace,
            &challenged.statement().challenges(),
            &challenged.states().opening(part)?,
        )?;
        let (_, opening) = self.opening(part)?;
        let proved = key.prover().prove(assignment.z(), &opening, rng);
        let (proof, _) = proved.map_err(|source| ProveError::Part { part, source })?;
        Ok(proof)
    }

    /// True if a part's proof holds for the inputs that all parts share, the last of which is β.
    fn holds(&self, part: usize, shared: &[E::ScalarField; SHARED], proof: &Proof<E>) -> bool {
        let [.., beta] = *shared;
        let (key, prepared) = self.prover.index.verifier_of(part, beta);
        let inputs = Inputs::with_prepared(shared, &prepared);
        self.journal
            .commitment(part)
            .is_some_and(|commitment| verify(key, inputs, commitment, proof).is_ok())
    }

    fn commitments(&self) -> Vec<E::G1Affine> {
        let made = |part| -> &Commitment<E> { self.journal.commitment(part).expect("made") };
        (0..self.num_parts()).map(|part| made(part).point).collect()
    }

    fn proofs(&self) -> Vec<Proof<E>> {
        let made = |part| -> &Proof<E> { self.journal.proof(part).expect("made") };
        (0..self.num_parts()).map(|part| *made(part)).collect()
    }

    fn num_parts(&self) -> usize {
        self.prover.index.partition().num_parts()
    }
}
