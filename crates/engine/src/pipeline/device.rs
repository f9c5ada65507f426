//! One device, its state and its counters.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proofmill_groth16::Curve;

use crate::interface::{DeviceStatus, Error};
use crate::key::Accelerator;
use crate::options::{DeviceKind, DeviceOptions};

/// A device of the stage [`Prove`](crate::interface::PipelineStage::Prove), which computes multi-scalar products: a
/// pool of threads or an accelerator.
pub(crate) struct Device {
    name: Arc<str>,
    /// The pool that its products, or the host's part of them, run on.
    pool: Arc<rayon::ThreadPool>,
    /// The accelerator; none for processors.
    accelerator: Option<Arc<Accelerator>>,
    /// Partitions that it works on now, and the most that it may.
    running: usize,
    slots: usize,
    /// Time at which it last became busy; none while idle.
    since: Option<Instant>,
    busy: Duration,
    products: u64,
    failures: u64,
    suspected: u64,
    /// The reason that it gets no more partitions; none if it is in use.
    broken: Option<String>,
}

// === impl Device ===

impl Device {
    /// Makes the device of index `number`. Without threads of its own it uses the pool `shared`.
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

    /// Whether it can take another partition.
    pub(super) fn is_free(&self) -> bool {
        self.broken.is_none() && self.running < self.slots
    }

    /// Whether it is an accelerator in use that can do something for proofs over this curve.
    pub(super) fn accelerates(&self, curve: Curve) -> bool {
        let accelerator = self.accelerator.as_ref();
        self.broken.is_none() && accelerator.is_some_and(|it| it.serves(curve))
    }

    /// Records that a partition enters it.
    pub(super) fn begins(&mut self) {
        self.since.get_or_insert_with(Instant::now);
        self.running += 1;
    }

    /// Records that a partition leaves it.
    pub(super) fn ends(&mut self, done: bool) {
        self.running -= 1;
        self.products += u64::from(done);
        if self.running == 0 {
            self.busy = self.worked();
            self.since = None;
        }
    }

    /// Counts an attempt on it that failed or whose proof did not verify.
    pub(super) fn failed(&mut self) {
        self.failures += 1;
    }

    /// Counts a proof that did not verify through its fault.
    pub(super) fn record_suspicion(&mut self) {
        self.suspected += 1;
    }

    /// Takes an accelerator out of use whose results were wrong: a proof with them did not verify, and one that was
    /// made again from the same witness does. Processors have no substitute, and stay.
    pub(super) fn convict(&mut self) {
        if self.accelerator.is_some() {
            let name = self.name.clone();
            self.fence(&format!(
                "on device {name}: its results are wrong: a proof made with them does not verify, and \
                 one made again from the same witness does"
            ));
        }
    }

    /// Takes it out of use.
    pub(super) fn fence(&mut self, why: &str) {
        if self.broken.is_none() {
            tracing::error!(device = &*self.name, why, "a device is not used any more");
            self.broken = Some(why.to_owned());
        }
    }

    /// Time that it had a partition; for an accelerator, time that it worked on jobs.
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

/// Makes a pool of threads; 0 is one for each processor.
pub(crate) fn pool(name: &str, threads: usize) -> Result<Arc<rayon::ThreadPool>, Error> {
    let name = name.to_owned();
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(move |thread| format!("{name}-{thread}"))
        .build()
        .map(Arc::new)
        .map_err(|error| Error::Invalid(format!("{threads} threads cannot be started: {error}")))
}
