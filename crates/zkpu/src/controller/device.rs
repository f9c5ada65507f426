//! The device as a controller sees it: memory and one core.

use crate::nvme::zkpu::{RESULT_BYTES, SCALAR_BYTES, Shape};

/// Device memory and the core that multiplies. Every call returns in bounded time.
pub trait MsmDevice {
    /// The description of the device, which never changes.
    fn description(&self) -> &DeviceDescription;

    /// Clock cycles since power-on.
    fn cycles(&self) -> u64;

    /// Reads memory from byte `first` on.
    ///
    /// # Errors
    ///
    /// [`DeviceError`] if the range is not within memory, or memory cannot be read.
    fn read(&self, first: u64, to: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes memory from byte `first` on.
    ///
    /// # Errors
    ///
    /// [`DeviceError`] if the range is not within memory, or memory cannot be written.
    fn write(&mut self, first: u64, from: &[u8]) -> Result<(), DeviceError>;

    /// Fills `length` bytes with zero.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    fn fill(&mut self, first: u64, length: u64) -> Result<(), DeviceError>;

    /// Starts a job. The core is idle and the job's areas are within memory.
    fn start(&mut self, job: CoreJob);

    /// The core's state. An end is reported once; the core is idle after it.
    fn poll(&mut self) -> CoreState;

    /// Stops the running job, resets a core that does not obey, and leaves the core idle unless it is stuck.
    fn stop(&mut self) -> Stop;
}

/// The description of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceDescription {
    /// Serial number, at most 20 printable characters.
    pub serial: String,
    /// Model, at most 40 printable characters, beginning with `ZKPU`.
    pub model: String,
    /// Firmware revision, at most 8 printable characters.
    pub firmware: String,
    /// Bytes of memory: a multiple of 4,096, at most 2^40.
    pub memory_bytes: u64,
    /// Adders of the core.
    pub adders: u8,
    /// Narrowest window.
    pub window_min: u8,
    /// Widest window.
    pub window_max: u8,
    /// Most levels.
    pub levels_max: u8,
    /// Most points of a job.
    pub count_max: u32,
    /// Clock in kHz; 0 = unknown.
    pub clock_khz: u32,
    /// Identifier that differs after every loss of memory.
    pub power_on_id: u64,
    /// Whether it is a functional model, not the circuit.
    pub is_functional: bool,
}

/// The work of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A multi-scalar product.
    Product,
    /// A table of multiples from a plain table, one of a single level.
    Precompute,
}

/// A job as the core takes it. Addresses are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreJob {
    /// The work.
    pub work: Work,
    /// First byte of the scalars; 0 for a precompute.
    pub scalars: u64,
    /// First byte of the table; for a precompute, of the plain table.
    pub table: u64,
    /// First byte of the result; for a precompute, of the table to make.
    pub result: u64,
    /// Number of points.
    pub count: u32,
    /// Window and levels; for a precompute, of the table to make.
    pub shape: Shape,
}

/// A range of memory: its first byte and its length.
pub type Area = (u64, u64);

// === impl CoreJob ===

impl CoreJob {
    /// The areas that the core reads: the scalars, of which a precompute has none, and the table.
    pub fn reads(&self) -> [Area; 2] {
        let (scalars, shape) = match self.work {
            Work::Product => (u64::from(self.count) * SCALAR_BYTES, self.shape),
            Work::Precompute => (
                0,
                Shape {
                    levels: 1,
                    ..self.shape
                },
            ),
        };
        [
            (self.scalars, scalars),
            (self.table, shape.table_bytes(self.count)),
        ]
    }

    /// The area that the core writes.
    pub fn writes(&self) -> Area {
        let length = match self.work {
            Work::Product => RESULT_BYTES,
            Work::Precompute => self.shape.table_bytes(self.count),
        };
        (self.result, length)
    }
}

/// Counters of one job: busy cycles, operations, conflicts, replicas, stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounters(pub [u64; 5]);

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreEnd {
    /// 0 = the result is written; else the core's error code.
    pub error: u8,
    /// The job's counters.
    pub counters: CoreCounters,
}

/// State of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreState {
    /// No job.
    Idle,
    /// A job runs.
    Running,
    /// The job has just ended.
    Ended(CoreEnd),
}

/// Outcome of [`MsmDevice::stop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The core stopped when it was told to, or was idle.
    Obeyed(CoreCounters),
    /// The core stopped when it was reset.
    Reset(CoreCounters),
    /// The core is busy even after its reset.
    Stuck,
}

/// Memory that cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("device memory: {length} bytes at {first:#x} cannot be accessed")]
pub struct DeviceError {
    /// First byte.
    pub first: u64,
    /// Bytes.
    pub length: u64,
}
