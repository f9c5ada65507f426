//! A ZKPU as a device of `proofmill-accelerator`: products over BLS12-377 G1.

mod memory;
mod resident;
mod worker;

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use proofmill_accelerator::{
    BasesId, Capabilities, Device, DeviceJob, Error, Group, Points, Ticket, Work, ticket,
};

use crate::device::worker::{Message, Worker};
use crate::host::{HostOptions, Zkpu};
use crate::nvme::zkpu::TABLE_ENTRY_BYTES;

/// Settings of a ZKPU as a device.
#[derive(Clone, Debug)]
pub struct ZkpuOptions {
    /// Settings of the connection.
    pub host: HostOptions,
    /// Attempts to connect again when the connection is lost, before the device counts as failed.
    pub reconnects: u32,
    /// Limit for one job, transfers not counted.
    pub job_timeout: Duration,
    /// Every so manieth result is computed again on the CPU, and a wrong one fences the device. All results are checked
    /// to be points of the subgroup.
    pub recompute_every: Option<NonZeroU32>,
}

/// A device that a thread drives.
#[derive(Debug)]
struct ZkpuDevice {
    caps: Capabilities,
    messages: Mutex<Sender<Message>>,
    state: Arc<SharedState>,
    thread: Option<JoinHandle<()>>,
}

/// State that the thread writes and callers read.
#[derive(Debug, Default)]
struct SharedState {
    failure: OnceLock<Error>,
    busy_us: AtomicU64,
    measured: OnceLock<Measured>,
}

/// A measured product, which predicts others by the cycle model.
#[derive(Clone, Copy, Debug)]
struct Measured {
    seconds: f64,
    points: u64,
    adders: u8,
}

impl ZkpuOptions {
    /// The defaults: eight attempts within about five seconds, two minutes a job, no results computed again.
    pub fn new(host: HostOptions) -> Self {
        Self {
            host,
            reconnects: 8,
            job_timeout: Duration::from_secs(120),
            recompute_every: None,
        }
    }
}

/// Connects to a ZKPU and takes it as a device.
///
/// # Errors
///
/// [`Error::NoDevice`] with the reason.
pub fn zkpu(options: ZkpuOptions) -> Result<impl Device, Error> {
    let no_device = |reason: String| Error::NoDevice { reason };
    let driver = Zkpu::connect(&options.host).map_err(|error| no_device(error.to_string()))?;
    let capability = *driver.capability();
    let identity = driver.identity();
    let most = capability.memory_bytes / TABLE_ENTRY_BYTES;
    let caps = Capabilities {
        name: format!(
            "{} {} at {}",
            identity.model, identity.serial, options.host.address
        ),
        groups: vec![Group::Bls12_377G1],
        fields: Vec::new(),
        max_bases: usize::try_from(most.min(capability.count_max.into())).unwrap_or(usize::MAX),
        max_transform_log: 0,
        memory: Some(capability.memory_bytes),
        host_memory: resident::STAGING_BYTES,
    };
    let (messages, received) = channel();
    let state = Arc::new(SharedState::default());
    let worker = Worker::new(
        driver,
        options,
        caps.name.clone(),
        Arc::clone(&state),
        messages.clone(),
    );
    let thread = std::thread::Builder::new()
        .name("proofmill-zkpu".into())
        .spawn(move || worker.run(&received))
        .map_err(|error| no_device(format!("its thread does not start: {error}")))?;
    Ok(ZkpuDevice {
        caps,
        messages: Mutex::new(messages),
        state,
        thread: Some(thread),
    })
}

// === impl ZkpuDevice ===

impl ZkpuDevice {
    fn send(&self, message: Message) -> Result<(), Error> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.send(message).map_err(|_| self.gone())
    }

    fn ask<T>(
        &self,
        message: impl FnOnce(Sender<Result<T, Error>>) -> Message,
    ) -> Result<T, Error> {
        let (reply, answer) = channel();
        self.send(message(reply))?;
        answer.recv().unwrap_or_else(|_| Err(self.gone()))
    }

    fn gone(&self) -> Error {
        self.failure().unwrap_or_else(|| Error::Failed {
            device: self.caps.name.clone(),
            reason: "its thread ended".into(),
        })
    }
}

impl Device for ZkpuDevice {
    fn caps(&self) -> &Capabilities {
        &self.caps
    }

    fn cost(&self, work: Work) -> Result<Duration, Error> {
        work.check(&self.caps)?;
        let points = match work {
            Work::Msm { points, .. } => points as u64,
            Work::Transform { .. } => 0,
        };
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let measured = match self.state.measured.get() {
            Some(measured) => *measured,
            None => {
                let measured = self.ask(Message::Measure)?;
                *self.state.measured.get_or_init(|| measured)
            }
        };
        Ok(measured.predict(points))
    }

    fn load_bases(&self, points: Points, memory_limit: usize) -> Result<BasesId, Error> {
        let Points::Bls12_377G1(points) = points else {
            return Err(Error::BadJob(format!(
                "{} does not work in {}",
                self.caps.name,
                points.group()
            )));
        };
        if points.len() > self.caps.max_bases {
            return Err(Error::BadJob(format!(
                "{} bases: {} takes at most {}",
                points.len(),
                self.caps.name,
                self.caps.max_bases
            )));
        }
        let id = BasesId::fresh();
        self.ask(|reply| Message::Load(id, points, memory_limit, reply))?;
        Ok(id)
    }

    fn submit(&self, job: DeviceJob) -> Result<Ticket, Error> {
        let (ticket, answer) = ticket(&self.caps.name);
        self.send(Message::Run(job, answer))?;
        Ok(ticket)
    }

    fn evict(&self, bases: BasesId) -> Result<(), Error> {
        self.ask(|reply| Message::Evict(bases, reply))
    }

    fn busy(&self) -> Duration {
        Duration::from_micros(self.state.busy_us.load(Ordering::Relaxed))
    }

    fn failure(&self) -> Option<Error> {
        self.state.failure.get().cloned()
    }
}

/// Dropping the device blocks until the jobs that were submitted have run.
impl Drop for ZkpuDevice {
    fn drop(&mut self) {
        let messages = self
            .messages
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // The thread may have ended; its panic was reported to those that waited.
        let _ = messages.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
