//! Keys for a circuit, proofs of it, and the verdicts of both verifiers.

use std::ops::ControlFlow;
use std::sync::Arc;

use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_aggregation::Srs;
use proofmill_groth16::ResidentForm;
use proofmill_groth16::mirage::{CommitmentKey, ProvingKey, Setup};

use super::naive;
use crate::proof::distributed::CommitmentKeys;
use crate::proof::{
    ClassKeys, Index, Journal, PartVerifiers, PartitionCurve, PartitionProof, ProveError, Prover,
    Step, VerifyingKey,
};
use crate::{Partition, PartitionedCircuit};

/// A circuit's keys.
pub(super) struct Case<E: PartitionCurve> {
    pub(super) srs: Srs<E>,
    pub(super) index: Index<E>,
    pub(super) keys: Vec<ProvingKey<E>>,
    pub(super) held: ClassKeys<E>,
    pub(super) commitment_keys: CommitmentKeys<E>,
    pub(super) verifiers: PartVerifiers<E>,
}

pub(super) fn rng(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

/// A key for each class.
pub(super) fn class_keys<E: PartitionCurve>(
    partition: &Partition<E::ScalarField>,
    seed: u64,
) -> Vec<ProvingKey<E>> {
    let rng = &mut rng(seed);
    let setup = Setup::new(rng);
    let classes = partition.classes().iter();
    classes
        .map(|class| setup.key(class.committed_system().unwrap(), rng).unwrap())
        .collect()
}

pub(super) fn srs<E: PartitionCurve>(parts: usize, seed: u64) -> Srs<E> {
    Srs::setup(parts.next_power_of_two().max(2), &mut rng(seed)).unwrap()
}

/// The verdict of both verifiers about the same bytes, which must be one.
pub(super) fn verdict<E: PartitionCurve>(
    key: &[u8],
    inputs: &[E::ScalarField],
    proof: &[u8],
) -> bool {
    let fast = || {
        let key = VerifyingKey::<E>::from_bytes(key).ok()?;
        let proof = PartitionProof::<E>::from_bytes(proof).ok()?;
        Some(key.verify(inputs, &proof).is_ok())
    };
    let fast = fast().unwrap_or(false);
    let slow = naive::verify::<E>(E::CURVE.name(), key, inputs, proof).unwrap_or(false);
    assert_eq!(fast, slow, "both verifiers agree");
    fast
}

// === impl Case ===

impl<E: PartitionCurve> Case<E> {
    pub(super) fn new(blank: &impl PartitionedCircuit<E::ScalarField>) -> Self {
        Self::of(Partition::new(blank).unwrap(), 1)
    }

    pub(super) fn of(partition: Partition<E::ScalarField>, seed: u64) -> Self {
        let srs = srs::<E>(partition.num_parts(), seed);
        let keys = class_keys::<E>(&partition, seed);
        let held = ClassKeys::hold(&partition, keys.clone(), ResidentForm::Plain).unwrap();
        let to_commit = keys.iter().map(CommitmentKey::from).collect();
        let commitment_keys = CommitmentKeys::new(&partition, to_commit).unwrap();
        let of_classes: Vec<_> = keys.iter().map(ProvingKey::vk).collect();
        Self {
            commitment_keys,
            verifiers: PartVerifiers::new(&partition, of_classes.clone()).unwrap(),
            index: Index::new(partition, of_classes, &srs).unwrap(),
            srs,
            keys,
            held,
        }
    }

    /// The index and the reference string once more, for provers that share them.
    pub(super) fn shared(&self) -> (Arc<Index<E>>, Arc<Srs<E>>) {
        let srs = self.srs.clone();
        let partition = self.index.partition().clone();
        let of_classes = self.keys.iter().map(ProvingKey::vk).collect();
        let index = Index::new(partition, of_classes, &srs).unwrap();
        (Arc::new(index), Arc::new(srs))
    }

    pub(super) const fn prover(&self) -> Prover<'_, E> {
        Prover {
            index: &self.index,
            srs: &self.srs,
            keys: &self.held,
        }
    }

    pub(super) fn try_prove(
        &self,
        circuit: &impl PartitionedCircuit<E::ScalarField>,
        seed: u64,
    ) -> Result<PartitionProof<E>, ProveError> {
        let rng = &mut rng(seed);
        let mut journal = Journal::in_memory(rng);
        let go_on = |_: Step| ControlFlow::Continue(());
        self.prover().prove(circuit, &mut journal, rng, go_on)
    }

    pub(super) fn prove(
        &self,
        circuit: &impl PartitionedCircuit<E::ScalarField>,
        seed: u64,
    ) -> PartitionProof<E> {
        self.try_prove(circuit, seed).unwrap()
    }

    /// The verdict of both verifiers, which must be one.
    pub(super) fn holds(&self, inputs: &[E::ScalarField], proof: &PartitionProof<E>) -> bool {
        let key = self.index.verifying_key().to_bytes();
        verdict::<E>(&key, inputs, &proof.to_bytes())
    }
}
