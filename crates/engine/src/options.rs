//! Settings of an engine.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proofmill_accelerator::Device;

use crate::generator::Generator;
use crate::interface::Stage;

/// Settings of an engine. The default is one for this machine, with nothing kept on disk.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where jobs, results, inputs and the list of circuits are kept, so that they survive a restart;
    /// made (mode 0700) if it is not there, and open in one process at a time. Without one, inputs
    /// lie in a private temporary directory, and everything is gone when the engine ends. Witnesses
    /// are removed when their jobs end, but not overwritten: where that matters, give a directory on an
    /// encrypted disk or in memory.
    pub state_dir: Option<PathBuf>,
    /// Go on with a log there that holds less than was durable.
    pub accept_loss: bool,
    /// The byte budget; without one, three quarters of the memory that this process may use.
    pub memory: Option<u64>,
    /// Partitions under way at once: each has its memory reserved from its first stage to its last.
    pub partition_workers: usize,
    /// Partitions beyond these that may be under way if they are critical.
    pub express_workers: usize,
    /// How often a partition is passed by: while its key is not in memory and another's would have to be
    /// evicted for it, so many partitions of the same priority whose keys are there go first. 0 is
    /// strictly by arrival.
    pub batch: u32,
    /// Threads of the pool that all stages share, and devices that have none of their own; 0 is one
    /// for each processor.
    pub threads: usize,
    /// What computes the multi-scalar products; at least one, and of processors. Where there are
    /// accelerators, processors take what those failed at, or everything once all of them broke.
    pub devices: Vec<DeviceOptions>,
    /// Partitions in each other stage at once.
    pub stage_workers: StageWorkers,
    /// How hot keys are held.
    pub key_form: KeyForm,
    /// How often a partition is tried, the first time included.
    pub attempts: u32,
    /// What is taken.
    pub limits: Limits,
    /// How long a job's result is kept.
    pub result_ttl: Duration,
    /// Jobs at their end in [`Status::recent`](crate::Status::recent).
    pub recent: usize,
    /// Programs and functions that make witnesses, by name.
    pub generators: BTreeMap<String, Generator>,
    /// Where it is remembered which keys' points were checked; without it, `checked-keys` in the
    /// state directory, or nowhere.
    pub checked_keys: Option<PathBuf>,
    /// Whether keys are taken under which proofs prove nothing
    /// ([`VerifyingKey::weaknesses`](proofmill_groth16::VerifyingKey::weaknesses)), for tests. Otherwise
    /// they are refused when they are registered and when they are loaded.
    pub allow_insecure_keys: bool,
    /// What tests break; nothing otherwise.
    pub interference: Option<Arc<dyn Interference>>,
}

/// A device.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// Its name in events, errors and the status.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
}

/// What a device is.
#[derive(Clone, Debug)]
pub enum DeviceKind {
    /// A part of this machine's processors.
    Processors {
        /// Threads of a pool of its own; none uses the pool that all stages share.
        threads: Option<usize>,
    },
    /// Something that products and transforms are submitted to.
    Accelerator(AcceleratorOptions),
}

/// A device that products and transforms are submitted to, while the processors work on other stages:
/// a card, a pool of cards.
///
/// The bases of the keys that were used last are kept in its memory. Hot keys are in the host's memory
/// as well, for the processors and for a pool that loses a card; what the device keeps there for
/// itself is taken off the budget. A device without memory of its own, as tests use, takes of the
/// host's what nothing counts.
#[derive(Clone)]
pub struct AcceleratorOptions {
    /// The device.
    pub device: Arc<dyn Device>,
    /// What it computes.
    pub offload: OffloadRule,
    /// Partitions that submit to it at once, at least 1; with 2 it has work while one of them takes
    /// its results.
    pub partitions: usize,
}

/// What an accelerator computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffloadRule {
    /// What it is done with sooner than the processors, by what both were measured to take for little
    /// work of that sort, when the first key is brought to it.
    WhenItPays,
    /// All that it can.
    Always,
}

/// Partitions that a stage works on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageWorkers {
    /// Reading or generating witnesses.
    pub witness: usize,
    /// Matrices and transforms.
    pub evaluate: usize,
    /// The second group, and assembling.
    pub finish: usize,
    /// Verifying.
    pub verify: usize,
}

/// How hot keys are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// Points as they are in the file.
    Plain,
    /// Points in the kernels' layout, with multiples of them, in about so many times the bytes that
    /// they take as they are.
    Prepared {
        /// In percent: 100 keeps about one copy.
        percent: u32,
    },
    /// Points as they are in the file, shared with accelerators; more is reserved for what is on its
    /// way to and from them. An engine with accelerators has this instead of
    /// [`Plain`](Self::Plain), and cannot have prepared keys.
    Shared,
}

/// What is taken, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Jobs that are not at their end.
    pub jobs: usize,
    /// Those of one client.
    pub jobs_per_client: usize,
    /// Partitions of one job.
    pub partitions: usize,
    /// Bytes of one witness.
    pub witness_bytes: u64,
    /// Bytes of one generator's inputs.
    pub json_bytes: u64,
    /// Bytes of all inputs on disk, those being uploaded included.
    pub input_bytes: u64,
    /// Uploads open at once.
    pub uploads: usize,
    /// Circuits registered at once.
    pub circuits: usize,
    /// Results that are kept, whatever their time to live.
    pub results: usize,
}

/// What a test may break, to see that it is noticed. It is asked on the threads that work.
pub trait Interference: Send + Sync + std::fmt::Debug {
    /// What goes wrong with this attempt's products.
    fn with_products(&self, device: &str, partition: u32, attempt: u32) -> Fault;
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// A product is not what it should be.
    WrongProduct,
    /// The device's code panics.
    Panic,
}

// === impl DeviceOptions ===

impl DeviceOptions {
    /// This machine's processors, for so many partitions' products at once on the pool that all stages
    /// share.
    pub fn processors(products: usize) -> Vec<Self> {
        let name = |number: usize| match number {
            0 => "cpu".to_owned(),
            _ => format!("cpu-{}", number + 1),
        };
        let device = |number| Self {
            name: name(number),
            kind: DeviceKind::Processors { threads: None },
        };
        (0..products).map(device).collect()
    }
}

// === impl Options ===

impl Options {
    /// Partitions that are in a stage at once, at most.
    pub(crate) fn workers(&self, stage: Stage) -> usize {
        match stage {
            Stage::Witness => self.stage_workers.witness,
            Stage::Evaluate => self.stage_workers.evaluate,
            Stage::Prove => self.devices.iter().map(DeviceOptions::partitions).sum(),
            Stage::Finish => self.stage_workers.finish,
            Stage::Verify => self.stage_workers.verify,
        }
    }
}

// === impl DeviceOptions ===

impl DeviceOptions {
    /// The accelerator, if it is one.
    pub(crate) fn accelerator(&self) -> Option<&AcceleratorOptions> {
        match &self.kind {
            DeviceKind::Processors { .. } => None,
            DeviceKind::Accelerator(accelerator) => Some(accelerator),
        }
    }

    /// Partitions on it at once.
    pub(crate) fn partitions(&self) -> usize {
        self.accelerator().map_or(1, |it| it.partitions)
    }
}

impl fmt::Debug for AcceleratorOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcceleratorOptions")
            .field("device", &self.device.caps().name)
            .field("offload", &self.offload)
            .field("partitions", &self.partitions)
            .finish()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            state_dir: None,
            accept_loss: false,
            memory: None,
            partition_workers: 2,
            express_workers: 1,
            batch: 0,
            threads: 0,
            devices: DeviceOptions::processors(1),
            stage_workers: StageWorkers::default(),
            key_form: KeyForm::Plain,
            attempts: 2,
            limits: Limits::default(),
            result_ttl: Duration::from_secs(3600),
            recent: 100,
            generators: BTreeMap::new(),
            checked_keys: None,
            allow_insecure_keys: false,
            interference: None,
        }
    }
}

impl Default for StageWorkers {
    fn default() -> Self {
        Self {
            witness: 1,
            evaluate: 1,
            finish: 1,
            verify: 1,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            jobs: 10_000,
            jobs_per_client: 1_000,
            partitions: 1_024,
            witness_bytes: 4 << 30,
            json_bytes: 16 << 20,
            input_bytes: 64 << 30,
            uploads: 64,
            circuits: 1_024,
            results: 100_000,
        }
    }
}
