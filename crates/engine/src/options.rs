//! Settings of an engine.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proofmill_accelerator::Device;

use crate::generator::Generator;
use crate::interface::PipelineStage;

/// Settings of an engine. The default suits the present machine, and keeps nothing on disk.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory for jobs, results, inputs and the list of circuits, so that they survive a restart. It is
    /// created (mode 0700) if it does not exist, and only one process at a time may open it. If `None`,
    /// inputs are in a private temporary directory, and everything is lost when the engine ends. Witnesses
    /// are removed when their jobs end but not overwritten: where that matters, use a directory on an
    /// encrypted disk or in memory.
    pub state_dir: Option<PathBuf>,
    /// Whether to open a log that holds less than was durable. Default: false, which refuses it.
    pub accept_loss: bool,
    /// Byte budget. Default: three quarters of the memory that this process may use.
    pub memory: Option<u64>,
    /// Partitions under way at once (default 2). Each has its memory reserved from its first stage to its
    /// last.
    pub partition_workers: usize,
    /// Critical partitions that may be under way beyond `partition_workers` (default 1).
    pub express_workers: usize,
    /// Partitions that may overtake one whose key is not loaded (default 0: strictly by arrival). If
    /// loading that key would evict another, up to `batch` partitions of the same priority whose keys are
    /// loaded go first.
    pub batch: u32,
    /// Threads of the pool that all stages share, as do devices without threads of their own. 0, the
    /// default, is one for each processor.
    pub threads: usize,
    /// Devices that compute the multi-scalar products. At least one must be processors: they take the work
    /// at which accelerators failed, or all work once every accelerator has broken.
    pub devices: Vec<DeviceOptions>,
    /// Partitions that each of the other stages works on at once.
    pub stage_workers: StageWorkers,
    /// Form in which hot keys are held in memory.
    pub key_form: KeyForm,
    /// Most attempts at a partition, including the first (default 2).
    pub attempts: u32,
    /// Limits of requests and of stored data.
    pub limits: Limits,
    /// Time to live of a job's result (default one hour).
    pub result_ttl: Duration,
    /// Most ended jobs in [`Status::recent`](crate::Status::recent) (default 100).
    pub recent: usize,
    /// Witness generators, by name.
    pub generators: BTreeMap<String, Generator>,
    /// Directory that records which keys' points have been checked. Default: `checked-keys` in the state
    /// directory; without a state directory nothing is recorded.
    pub checked_keys: Option<PathBuf>,
    /// Whether to accept insecure keys, under which proofs prove nothing
    /// ([`VerifyingKey::weaknesses`](proofmill_groth16::VerifyingKey::weaknesses)), for tests. Default:
    /// false, which refuses them at registration and at loading.
    pub allow_insecure_keys: bool,
    /// Faults that tests inject. Default: none.
    pub interference: Option<Arc<dyn Interference>>,
}

/// A device that computes products.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// The name of the device in events, errors and the status.
    pub name: String,
    /// The kind of the device.
    pub kind: DeviceKind,
}

/// The kind of a device.
#[derive(Clone, Debug)]
pub enum DeviceKind {
    /// A part of this machine's processors.
    Processors {
        /// Threads of the device's own pool; `None` for the pool that all stages share.
        threads: Option<usize>,
    },
    /// A device that products and transforms are submitted to.
    Accelerator(AcceleratorOptions),
}

/// A device that products and transforms are submitted to while the processors work on other stages: one
/// card or a pool of cards.
///
/// The bases of the most recently used keys are kept in its memory. Hot keys stay in the host's memory as
/// well, for the processors and for a pool that loses a card. Host memory that the device keeps for itself
/// is subtracted from the budget. A device without memory of its own, as used in tests, takes host memory
/// that is not counted.
#[derive(Clone)]
pub struct AcceleratorOptions {
    /// The device.
    pub device: Arc<dyn Device>,
    /// Choice of the work to offload.
    pub offload: OffloadRule,
    /// Partitions that submit to it at once, at least 1. With 2, the device has work while one of them
    /// collects its results.
    pub partitions: usize,
}

/// Choice of the work that an accelerator computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffloadRule {
    /// Only work that the accelerator finishes sooner than the processors. Both are measured with small
    /// samples of that work when the first key is loaded on the accelerator.
    WhenFaster,
    /// All work that the accelerator supports.
    Always,
}

/// Partitions that a stage works on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageWorkers {
    /// Witness stage: reading or generating witnesses.
    pub witness: usize,
    /// Evaluate stage: products with the matrices, and transforms.
    pub evaluate: usize,
    /// Finish stage: the product in the second group, and assembling the proof.
    pub finish: usize,
    /// Verify stage.
    pub verify: usize,
}

/// Form in which hot keys are held in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// Points as they are in the file.
    Plain,
    /// Points in the kernels' layout together with multiples of them.
    Prepared {
        /// Memory limit in percent of the size of the circuit's mapped files. Values below 150 count as
        /// 150: one copy is always kept, and takes up to 1.5 times its size in the file.
        percent: u32,
    },
    /// Points as they are in the file, shared with accelerators. More is reserved for data on its way to
    /// and from them. An engine with accelerators uses this form in place of [`Plain`](Self::Plain), and
    /// cannot hold prepared keys.
    Shared,
}

/// Limits of requests and of stored data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Unfinished jobs of all clients (default 10,000).
    pub jobs: usize,
    /// Unfinished jobs of one client (default 1,000).
    pub jobs_per_client: usize,
    /// Partitions of one job (default 1,024).
    pub partitions: usize,
    /// Bytes of one witness (default 4 GiB).
    pub witness_bytes: u64,
    /// Bytes of one generator's inputs (default 16 MiB).
    pub json_bytes: u64,
    /// Bytes of all inputs on disk, including open uploads (default 64 GiB).
    pub input_bytes: u64,
    /// Open uploads (default 64).
    pub uploads: usize,
    /// Registered circuits (default 1,024).
    pub circuits: usize,
    /// Results kept, even if their time to live has not passed (default 100,000).
    pub results: usize,
}

/// Fault injection, for tests of error handling. Called on the worker threads.
pub trait Interference: Send + Sync + std::fmt::Debug {
    /// The fault to inject into the products of this attempt.
    fn with_products(&self, device: &str, partition: u32, attempt: u32) -> Fault;
}

/// A fault in a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// One product is wrong.
    WrongProduct,
    /// The device's code panics.
    Panic,
}

// === impl DeviceOptions ===

impl DeviceOptions {
    /// The machine's processors as `products` devices, all on the pool that the stages share: so many
    /// partitions can be in the prove stage at once.
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
    /// Most partitions in a stage at once.
    pub(crate) fn workers(&self, stage: PipelineStage) -> usize {
        match stage {
            PipelineStage::Witness => self.stage_workers.witness,
            PipelineStage::Evaluate => self.stage_workers.evaluate,
            PipelineStage::Prove => self.devices.iter().map(DeviceOptions::partitions).sum(),
            PipelineStage::Finish => self.stage_workers.finish,
            PipelineStage::Verify => self.stage_workers.verify,
        }
    }
}

// === impl DeviceOptions ===

impl DeviceOptions {
    /// The accelerator; `None` for processors.
    pub(crate) fn accelerator(&self) -> Option<&AcceleratorOptions> {
        match &self.kind {
            DeviceKind::Processors { .. } => None,
            DeviceKind::Accelerator(accelerator) => Some(accelerator),
        }
    }

    /// Most partitions on the device at once.
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
