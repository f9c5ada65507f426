//! What computes the products.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::interface::{DeviceStatus, Error};
use crate::key::Accelerator;
use crate::options::{DeviceKind, DeviceOptions};

/// A device, and what it did.
pub(crate) struct Device {
    pub(super) name: Arc<str>,
    /// Its threads.
    pub(super) pool: Arc<rayon::ThreadPool>,
    /// What is submitted to, if it is one.
    pub(super) accelerator: Option<Arc<Accelerator>>,
    /// The partitions it works on, and the most.
    running: usize,
    slots: usize,
    /// Since when it works.
    since: Option<Instant>,
    busy: Duration,
    products: u64,
    pub(super) failures: u64,
    pub(super) suspected: u64,
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
