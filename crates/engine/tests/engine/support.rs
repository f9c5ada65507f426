//! Circuits, witnesses and engines for the tests.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Cursor};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::time::Duration;

use ark_ff::{BigInteger, One, PrimeField, UniformRand};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_engine::{
    AnyProof, CircuitRef, CircuitSource, DeviceKind, DeviceOptions, Error, Event, EventKind, Fault,
    Handle, Input, Interference, JobId, JobResult, JobState, Options, Partition, PartitionProof,
    PipelineStage, Priority, ProofOf, Registration, RequestId, Secret, Service, Submission,
};
use proofmill_files::MappedFile;
use proofmill_groth16::snarkjs::{ZkeyFile, setup_zkey};
use proofmill_groth16::{
    Curve, PointCheck, PreparedVerifyingKey, SnarkCurve, VerifyingKey, setup, verify, with_curve,
};
use proofmill_r1cs::R1cs;
use proofmill_r1cs::iden3::{LabelledR1cs, R1csFile, write_r1cs, write_wtns};
use proofmill_shutdown::{Level, Trigger, channel};
use tempfile::TempDir;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

/// A circuit with `length` constraints zᵢ₊₂ = zᵢ·zᵢ₊₁, whose first two values are public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Chain {
    pub(crate) curve: Curve,
    pub(crate) length: usize,
    pub(crate) source: Source,
}

/// The form of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    Zkey,
    /// A `.r1cs` file and a key of this project's format.
    R1cs,
    /// A precompiled file and a key of this project's format.
    Precompiled,
}

pub(crate) const BN254: Chain = Chain {
    curve: Curve::Bn254,
    length: 300,
    source: Source::Zkey,
};
pub(crate) const BLS12_381: Chain = Chain {
    curve: Curve::Bls12_381,
    length: 200,
    source: Source::Precompiled,
};
pub(crate) const BLS12_377: Chain = Chain {
    curve: Curve::Bls12_377,
    length: 150,
    source: Source::R1cs,
};
pub(crate) const FROM_R1CS: Chain = Chain {
    curve: Curve::Bn254,
    length: 400,
    source: Source::R1cs,
};

static FILES: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
static MADE: LazyLock<Mutex<HashMap<Chain, CircuitSource>>> = LazyLock::new(Mutex::default);

// === impl Chain ===

impl Chain {
    pub(crate) fn name(&self) -> String {
        format!("{}-{}-{:?}", self.curve.name(), self.length, self.source).to_lowercase()
    }

    pub(crate) fn circuit(&self) -> CircuitRef {
        CircuitRef::Name(self.name())
    }

    /// The files of the circuit, made once for all tests.
    pub(crate) fn source(&self) -> CircuitSource {
        let mut made = MADE.lock().unwrap();
        let source = made.entry(*self).or_insert_with(|| self.make(FILES.path()));
        source.clone()
    }

    /// Makes its files.
    pub(crate) fn make(&self, folder: &Path) -> CircuitSource {
        with_curve!(self.curve, E => self.make_over::<E>(folder))
    }

    fn make_over<E: SnarkCurve>(&self, folder: &Path) -> CircuitSource {
        let path = |ending: &str| -> PathBuf { folder.join(format!("{}.{ending}", self.name())) };
        let system = self.system::<E>();
        let mut rng = StdRng::seed_from_u64(self.length as u64);
        if self.source == Source::Zkey {
            let plain = LabelledR1cs::plain(system).unwrap();
            let circuit = write_r1cs(Cursor::new(Vec::new()), &plain)
                .unwrap()
                .into_inner();
            let file = R1csFile::parse(&circuit).unwrap();
            let out = BufWriter::new(File::create(path("zkey")).unwrap());
            setup_zkey::<E, _>(&file, &mut rng, out, &|_| {}).unwrap();
            return CircuitSource::Zkey(path("zkey"));
        }
        let key = path("key");
        setup::<E>(&system, &mut rng).unwrap().save(&key).unwrap();
        let constraints = if self.source == Source::Precompiled {
            system.save_precompiled(&path("pmcs")).unwrap();
            path("pmcs")
        } else {
            let plain = LabelledR1cs::plain(system).unwrap();
            let out = BufWriter::new(File::create(path("r1cs")).unwrap());
            write_r1cs(out, &plain).unwrap();
            path("r1cs")
        };
        CircuitSource::System { constraints, key }
    }

    pub(crate) fn system<E: SnarkCurve>(&self) -> R1cs<E::ScalarField> {
        let one = E::ScalarField::one();
        let rows = [0, 1, 2].map(|shift| {
            (0..self.length)
                .map(|i| vec![(one, 1 + i + shift)])
                .collect()
        });
        R1cs::from_rows(3, self.length, rows).unwrap()
    }

    fn z<E: SnarkCurve>(&self, seed: u64) -> Vec<E::ScalarField> {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut random = || E::ScalarField::rand(&mut rng);
        let mut z = vec![E::ScalarField::one(), random(), random()];
        for i in 0..self.length {
            z.push(z[i + 1] * z[i + 2]);
        }
        z
    }

    /// A witness as a vector.
    pub(crate) fn vector(&self, seed: u64) -> Vec<u8> {
        with_curve!(self.curve, E => {
            self.z::<E>(seed).iter().flat_map(|value| value.into_bigint().to_bytes_le()).collect()
        })
    }

    /// A witness as a `.wtns` file's content.
    pub(crate) fn wtns(&self, seed: u64) -> Vec<u8> {
        with_curve!(self.curve, E => {
            write_wtns(Cursor::new(Vec::new()), &self.z::<E>(seed)).unwrap().into_inner()
        })
    }

    /// A vector that satisfies all constraints but the last.
    pub(crate) fn wrong_vector(&self, seed: u64) -> Vec<u8> {
        let mut vector = self.vector(seed);
        let last = vector.len() - 32;
        vector[last] ^= 1;
        vector
    }

    pub(crate) fn partition(&self, seed: u64) -> Partition {
        Partition {
            circuit: self.circuit(),
            input: Input::Vector(Secret::new(self.vector(seed))),
        }
    }

    pub(crate) async fn register(&self, handle: &Handle) {
        let registration = Registration {
            name: self.name(),
            source: self.source(),
        };
        handle.register(registration).await.unwrap();
    }

    /// Checks that a proof is one for the witness of that seed.
    pub(crate) fn check(&self, proof: &PartitionProof, seed: u64) {
        assert_eq!(proof.proof.curve(), self.curve);
        match &proof.proof {
            AnyProof::Bn254(made) => self.check_over(made, seed),
            AnyProof::Bls12_381(made) => self.check_over(made, seed),
            AnyProof::Bls12_377(made) => self.check_over(made, seed),
        }
    }

    fn check_over<E: SnarkCurve>(&self, made: &ProofOf<E>, seed: u64) {
        let key: VerifyingKey<E> = match self.source() {
            CircuitSource::Zkey(path) => {
                let file = MappedFile::open(&path).unwrap();
                let zkey = ZkeyFile::parse(&file).unwrap();
                zkey.read::<E>(PointCheck::Skip).unwrap().verifying_key()
            }
            CircuitSource::System { key, .. } => {
                let check = PointCheck::Skip;
                proofmill_groth16::ProvingKey::<E>::load(&key, check)
                    .unwrap()
                    .vk
            }
        };
        assert_eq!(made.public, self.z::<E>(seed)[1..3]);
        verify(&PreparedVerifyingKey::from(key), &made.public, &made.proof).unwrap();
    }
}

/// A submission of partitions by `client`.
pub(crate) fn submission(client: &str, request: &str, partitions: Vec<Partition>) -> Submission {
    Submission {
        request: RequestId::new(client, request).unwrap(),
        priority: Priority::Normal,
        deadline: None,
        partitions,
        trace: None,
    }
}

/// Options for a small engine.
pub(crate) fn options() -> Options {
    Options {
        memory: Some(1 << 30),
        threads: 2,
        ..Options::default()
    }
}

/// Devices of those names.
pub(crate) fn devices(names: &[&str]) -> Vec<DeviceOptions> {
    names
        .iter()
        .map(|name| DeviceOptions {
            name: (*name).to_owned(),
            kind: DeviceKind::Processors { threads: None },
        })
        .collect()
}

/// An engine that runs.
pub(crate) struct Running {
    pub(crate) handle: Handle,
    trigger: Trigger,
    task: JoinHandle<Result<(), Error>>,
}

// === impl Running ===

impl Running {
    pub(crate) async fn start(options: Options) -> Self {
        let (service, handle) = Service::open(options).await.unwrap();
        let (trigger, shutdown) = channel();
        let task = tokio::spawn(service.run(shutdown));
        Self {
            handle,
            trigger,
            task,
        }
    }

    /// Starts an engine with these circuits.
    pub(crate) async fn with(options: Options, chains: &[Chain]) -> Self {
        let running = Self::start(options).await;
        for chain in chains {
            chain.register(&running.handle).await;
        }
        running
    }

    pub(crate) fn raise(&self, level: Level) {
        self.trigger.raise(level);
    }

    pub(crate) async fn stop(self, level: Level) {
        self.trigger.raise(level);
        self.task.await.unwrap().unwrap();
    }

    /// Ends the engine at once, without draining.
    pub(crate) async fn crash(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }

    pub(crate) async fn submit(&self, submission: Submission) -> JobId {
        self.handle.submit(submission).await.unwrap().job
    }

    pub(crate) async fn result(&self, job: JobId) -> JobResult {
        self.handle.await_result(job).await.unwrap()
    }

    /// Proves one partition, which must succeed.
    pub(crate) async fn prove(&self, chain: Chain, request: &str, seed: u64) {
        let result = self
            .handle
            .prove(submission("client", request, vec![chain.partition(seed)]));
        let result = result.await.unwrap();
        assert_eq!(result.state, JobState::Done);
        chain.check(&result.proofs[0], seed);
    }
}

/// Longest wait for an event; no test takes as long unless it is stuck.
const PATIENCE: Duration = Duration::from_secs(240);

/// Waits for an event.
pub(crate) async fn until(
    events: &mut broadcast::Receiver<Event>,
    mut is: impl FnMut(&EventKind) -> bool,
) -> Event {
    let awaited = async {
        loop {
            let event = events.recv().await.unwrap();
            if is(&event.kind) {
                return event;
            }
        }
    };
    let event = tokio::time::timeout(PATIENCE, awaited).await;
    event.expect("the event comes in time")
}

/// Whether a partition of `job` enters `stage`.
pub(crate) fn begins(event: &EventKind, job: JobId, stage: PipelineStage) -> bool {
    matches!(event, EventKind::Began { span, stage: entered, .. } if span.job == job && *entered == stage)
}

/// Whether `job` has ended.
pub(crate) fn ends(event: &EventKind, ended: JobId) -> bool {
    matches!(event, EventKind::Job { job, state, .. } if *job == ended && state.is_final())
}

/// A gate before the devices: while it is closed, attempts wait at it.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

// === impl Gate ===

impl Gate {
    pub(crate) fn closed() -> Arc<Self> {
        let gate = Self::default();
        *gate.closed.lock().unwrap() = true;
        Arc::new(gate)
    }

    pub(crate) fn open(&self) {
        *self.closed.lock().unwrap() = false;
        self.opened.notify_all();
    }

    pub(crate) fn pass(&self) {
        let closed = self.closed.lock().unwrap();
        drop(self.opened.wait_while(closed, |closed| *closed).unwrap());
    }
}

impl Interference for Gate {
    fn with_products(&self, _: &str, _: u32, _: u32) -> Fault {
        self.pass();
        Fault::None
    }
}
