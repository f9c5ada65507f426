//! Inputs of the histories: circuits, options, and keys that compute nothing.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use ark_ec::pairing::Pairing;
use ark_ff::One;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_groth16::{Bn254, QueryPoints, setup};
use proofmill_mutation::SplitMix64;
use proofmill_r1cs::R1cs;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::interface::{CircuitId, CircuitSource, PartitionProof, Registration, proof_for_tests};
use crate::key::{Accelerator, Key, KeyPolicy, StepError, Work};
use crate::options::{DeviceOptions, Limits, Options, StageWorkers};
use crate::registry::{Inspection, Registered, inspect};

/// Constraints of each circuit.
pub(super) const CIRCUITS: [usize; 3] = [20, 90, 400];

static FILES: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    for length in CIRCUITS {
        make_circuit(folder.path(), length);
    }
    folder
});

/// A key that returns the same proof for every input.
pub(super) struct FakeKey {
    pub(super) knows_constraints: bool,
}

struct FakeWork;

pub(super) fn options(numbers: &mut SplitMix64) -> Options {
    let devices = *numbers.one_of(&[1, 2, 3]);
    let workers = *numbers.one_of(&[1, 2]);
    Options {
        partition_workers: *numbers.one_of(&[1, 2, 4, 6]),
        express_workers: *numbers.one_of(&[0, 1, 2]),
        batch: *numbers.one_of(&[0, 2, 8]),
        devices: DeviceOptions::processors(devices),
        stage_workers: StageWorkers {
            witness: workers,
            evaluate: 1,
            finish: workers,
            verify: 1,
        },
        attempts: *numbers.one_of(&[1, 2, 3]),
        limits: Limits {
            jobs: 14,
            jobs_per_client: 7,
            results: 9,
            ..Limits::default()
        },
        recent: 5,
        ..Options::default()
    }
}

pub(super) fn name(length: usize) -> String {
    format!("chain-{length}")
}

/// Makes the files of a circuit with `length` constraints zᵢ₊₂ = zᵢ·zᵢ₊₁, whose first two values are
/// public.
fn make_circuit(folder: &Path, length: usize) {
    type Scalar = <Bn254 as Pairing>::ScalarField;
    let one = Scalar::one();
    let rows = [0, 1, 2].map(|shift| {
        (0..length)
            .map(|row| vec![(one, 1 + row + shift)])
            .collect()
    });
    let system = R1cs::<Scalar>::from_rows(3, length, rows).unwrap();
    let mut rng = StdRng::seed_from_u64(length as u64);
    let path = |ending: &str| folder.join(format!("{}.{ending}", name(length)));
    let key = setup::<Bn254>(&system, &mut rng).unwrap();
    key.save(&path("key")).unwrap();
    system.save_precompiled(&path("pmcs")).unwrap();
}

pub(super) fn registered(length: usize, policy: KeyPolicy, folder: &Path) -> Registered {
    let path = |ending: &str| FILES.path().join(format!("{}.{ending}", name(length)));
    let inspection = Inspection::new(Registration {
        name: name(length),
        source: CircuitSource::System {
            constraints: path("pmcs"),
            key: path("key"),
        },
    });
    inspect(&inspection.unwrap(), policy, folder).unwrap()
}

// === impl FakeKey ===

impl Key for FakeKey {
    fn bytes(&self) -> u64 {
        0
    }

    fn points(&self) -> QueryPoints {
        unreachable!("nobody counts the points of a key in use")
    }

    fn work(self: Arc<Self>) -> Box<dyn Work> {
        Box::new(FakeWork)
    }

    fn knows_constraints(&self) -> bool {
        self.knows_constraints
    }
}

// === impl FakeWork ===

impl Work for FakeWork {
    fn read_witness(&mut self, _: &[u8]) -> Result<(), StepError> {
        Ok(())
    }

    fn evaluate(&mut self, _: &CancellationToken) -> Result<(), StepError> {
        Ok(())
    }

    fn prove(&mut self, _: &CancellationToken) -> Result<(), StepError> {
        Ok(())
    }

    fn prove_on(
        &mut self,
        _: &Accelerator,
        _: &rayon::ThreadPool,
        _: &CancellationToken,
    ) -> Result<(), StepError> {
        Ok(())
    }

    fn finish(&mut self, _: &CancellationToken) -> Result<(), StepError> {
        Ok(())
    }

    fn verify(&mut self, circuit: CircuitId) -> Result<PartitionProof, StepError> {
        Ok(proof_for_tests(circuit))
    }

    fn corrupt_product(&mut self) {}
}
