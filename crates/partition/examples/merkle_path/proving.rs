//! Keys, a proof by one process, and a proof by workers.

use std::ops::ControlFlow;
use std::sync::Arc;

use ark_bn254::{Bn254, Fr};
use ark_std::rand::rngs::OsRng;
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_aggregation::Srs;
use proofmill_groth16::ResidentForm;
use proofmill_groth16::mirage::{CommitmentKey, ProvingKey, Setup};
use proofmill_partition::Partition;
use proofmill_partition::proof::distributed::{
    CommitTask, CommitmentChecker, CommitmentKeys, Coordination, ProofChecker, ProveTask, Worker,
};
use proofmill_partition::proof::{
    ClassKeys, Index, Journal, PartVerifiers, PartitionProof, Prover,
};

use crate::parts::MembershipInParts;

type Error = Box<dyn std::error::Error>;

/// Keys for development: whoever makes them alone could forge proofs.
pub(crate) struct Keys {
    pub(crate) index: Arc<Index<Bn254>>,
    srs: Arc<Srs<Bn254>>,
    of_classes: ClassKeys<Bn254>,
    to_commit: CommitmentKeys<Bn254>,
    verifiers: PartVerifiers<Bn254>,
}

// === impl Keys ===

impl Keys {
    /// A key for each class, and a reference string for the aggregation.
    pub(crate) fn new(
        partition: Partition<Fr>,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<Self, Error> {
        let srs = Srs::setup(partition.num_parts().next_power_of_two().max(2), rng)?;
        let setup = Setup::<Bn254>::new(rng);
        let mut keys = Vec::new();
        for class in partition.classes() {
            keys.push(setup.key(class.committed_system()?, rng)?);
        }
        let verifying: Vec<_> = keys.iter().map(ProvingKey::vk).collect();
        let verifiers = PartVerifiers::new(&partition, verifying.clone())?;
        let to_commit = keys.iter().map(CommitmentKey::from).collect();
        let to_commit = CommitmentKeys::new(&partition, to_commit)?;
        let of_classes = ClassKeys::hold(&partition, keys, ResidentForm::Plain)?;
        Ok(Self {
            index: Arc::new(Index::new(partition, verifying, &srs)?),
            srs: Arc::new(srs),
            of_classes,
            to_commit,
            verifiers,
        })
    }

    /// A proof by this process, one part after the other.
    pub(crate) fn prove(
        &self,
        circuit: &MembershipInParts,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<PartitionProof<Bn254>, Error> {
        let prover = Prover {
            index: &self.index,
            srs: &self.srs,
            keys: &self.of_classes,
        };
        let mut journal = Journal::in_memory(rng);
        let proof = prover.prove(circuit, &mut journal, rng, |_| ControlFlow::Continue(()))?;
        Ok(proof)
    }

    /// A proof by workers, who get bytes: the coordinator has the circuit with its witness, and a worker the shape.
    pub(crate) fn prove_with_workers(
        &self,
        blank: &MembershipInParts,
        circuit: MembershipInParts,
    ) -> Result<PartitionProof<Bn254>, Error> {
        let seed = random_seed();
        let (index, srs) = (Arc::clone(&self.index), Arc::clone(&self.srs));
        let coordination = Arc::new(Coordination::new(index, srs, circuit, &seed)?);
        let worker = Worker {
            partition: self.index.partition(),
            keys: &self.of_classes,
        };
        let mut committed = Vec::new();
        for part in 0..coordination.num_parts() {
            let sent = coordination.commit_task(part)?.to_bytes();
            let task = CommitTask::from_bytes(&sent)?;
            let commitment = self.to_commit.commit(worker.partition, &task)?;
            committed.push((task, commitment));
        }
        let checker = CommitmentChecker {
            partition: self.index.partition(),
            keys: &self.to_commit,
        };
        for verdict in checker.check(&committed, &mut OsRng)? {
            verdict?;
        }
        let commitments = committed.iter().map(|(_, commitment)| *commitment);
        let challenged = coordination.challenge(commitments.collect())?;
        let mut proved = Vec::new();
        for part in 0..coordination.num_parts() {
            let sent = challenged.prove_task(part)?.to_bytes();
            let task = ProveTask::from_bytes(&sent)?;
            let proof = worker.prove(blank, &task, &mut OsRng)?;
            proved.push((task, proof));
        }
        let checker = ProofChecker {
            verifiers: &self.verifiers,
        };
        for verdict in checker.check(&proved, &mut OsRng) {
            verdict?;
        }
        let proofs: Vec<_> = proved.iter().map(|(_, proof)| *proof).collect();
        Ok(challenged.aggregate(&proofs)?)
    }

    /// The lengths of a part's two tasks.
    #[cfg(test)]
    pub(crate) fn bytes_of_tasks(
        &self,
        circuit: MembershipInParts,
        part: usize,
    ) -> Result<[usize; 2], Error> {
        let (index, srs) = (Arc::clone(&self.index), Arc::clone(&self.srs));
        let coordination = Arc::new(Coordination::new(index, srs, circuit, &random_seed())?);
        let partition = self.index.partition();
        let tasks = (0..coordination.num_parts()).map(|part| coordination.commit_task(part));
        let tasks = tasks.collect::<Result<Vec<_>, _>>()?;
        let commitments = tasks
            .iter()
            .map(|task| self.to_commit.commit(partition, task));
        let challenged = coordination.challenge(commitments.collect::<Result<_, _>>()?)?;
        let proved = challenged.prove_task(part)?.to_bytes().len();
        Ok([tasks[part].to_bytes().len(), proved])
    }
}

/// The secret from which a proof's randomness follows; a coordinator that begins again needs the same.
fn random_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    OsRng.fill_bytes(&mut seed);
    seed
}
