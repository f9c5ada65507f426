//! One device, and what it did.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::interface::{DeviceStatus, Error};
use crate::key::Accelerator;
use crate::options::{DeviceKind, DeviceOptions};

/// What computes the multi-scalar products of the stage [`Prove`](crate::interface::Stage::Prove): a pool of
/// threads, or an accelerator.
pub(crate) struct Device {
    name: Arc<str>,
    /// Its threads.
    pool: Arc<rayon::ThreadPool>,
    /// What is submitted to, if it is one.
    accelerator: Option<Arc<Accelerator>>,
    /// The partitions it works on, and the most.
    running: usize,
    slots: usize,
    /// Since when it works.
    since: Option<Instant>,
    busy: Duration,
    products: u64,
    failures: u64,
    suspected: u64,
    /// Why it gets no partitions any more.
    broken: Option<String>,
}

// === impl Device ===

impl Device {
    /// Makes a device, the one of that number; without threads of its own it uses `shared`.
    pub(crate) fn new(
        number: usize,
        options: &DeviceOptions,
        shared: &Arc<rayon::ThreadPool>,
    ) -> Result<Self, Error> {
        let name = &options.name;
        let pool = match &options.kind {
            DeviceKind::Processors {
                threads: Some(threads),
            } => pool(name, *threads)?,
            _ => shared.clone(),
        };
        let accelerator = options.accelerator().map(|accelerator| {
            let opened = Accelerator::new(number, name, accelerator);
            let failed = |error| Error::Invalid(format!("device {name}: {error}"));
            opened.map(Arc::new).map_err(failed)
        });
        Ok(Self {
            name: name.as_str().into(),
            pool,
            accelerator: accelerator.transpose()?,
            running: 0,
            slots: options.partitions(),
            since: None,
            busy: Duration::ZERO,
            products: 0,
            failures: 0,
            suspected: 0,
            broken: None,
        })
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn pool(&self) -> &Arc<rayon::ThreadPool> {
        &self.pool
    }

    pub(super) fn accelerator(&self) -> Option<&Arc<Accelerator>> {
        self.accelerator.as_ref()
    }

    /// Whether it takes another partition.
    pub(super) fn is_free(&self) -> bool {
        self.broken.is_none() && self.running < self.slots
    }

    /// Whether it is an accelerator that works.
    pub(super) fn accelerates(&self) -> bool {
        self.broken.is_none() && self.accelerator.is_some()
    }

    /// It has a partition.
    pub(super) fn begins(&mut self) {
        self.since.get_or_insert_with(Instant::now);
        self.running += 1;
    }

    /// A partition left it.
    pub(super) fn ends(&mut self, done: bool) {
        self.running -= 1;
        self.products += u64::from(done);
        if self.running == 0 {
            self.busy = self.worked();
            self.since = None;
        }
    }

    /// An attempt on it failed, or its proof did not verify.
    pub(super) fn failed(&mut self) {
        self.failures += 1;
    }

    /// It was to blame for a proof that did not verify.
    pub(super) fn suspect(&mut self) {
        self.suspected += 1;
    }

    /// It gets nothing any more.
    pub(super) fn fence(&mut self, why: &str) {
        if self.broken.is_none() {
            tracing::error!(device = &*self.name, why, "a device is not used any more");
            self.broken = Some(why.to_owned());
        }
    }

    /// How long partitions were on it; of an accelerator, how long it worked on their jobs.
    fn worked(&self) -> Duration {
        if let Some(accelerator) = &self.accelerator {
            return accelerator.busy();
        }
        self.busy + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    pub(super) fn status(&self) -> DeviceStatus {
        DeviceStatus {
            name: self.name.to_string(),
            busy: self.running > 0,
            busy_us: u64::try_from(self.worked().as_micros()).unwrap_or(u64::MAX),
            products: self.products,
            failures: self.failures,
            suspected: self.suspected,
            broken: self.broken.clone(),
        }
    }
}

/// A pool of threads; 0 is one for each processor.
pub(crate) fn pool(name: &str, threads: usize) -> Result<Arc<rayon::ThreadPool>, Error> {
    let name = name.to_owned();
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(move |thread| format!("{name}-{thread}"))
        .build()
        .map(Arc::new)
        .map_err(|error| Error::Invalid(format!("{threads} threads cannot be started: {error}")))
}
