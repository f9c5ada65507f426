//! What computes the products of the first group.

use std::sync::Arc;

use crate::interface::{DeviceStatus, Error};
use crate::options::DeviceOptions;

/// A device, and what it did.
pub(crate) struct Device {
    pub(super) name: Arc<str>,
    /// Its threads.
    pub(super) pool: Arc<rayon::ThreadPool>,
    pub(super) busy: bool,
    busy_us: u64,
    products: u64,
    pub(super) failures: u64,
    pub(super) suspected: u64,
}

// === impl Device ===

impl Device {
    /// Makes a device; without threads of its own it uses `shared`.
    pub(crate) fn new(
        options: &DeviceOptions,
        shared: &Arc<rayon::ThreadPool>,
    ) -> Result<Self, Error> {
        let pool = match options.threads {
            None => shared.clone(),
            Some(threads) => pool(&options.name, threads)?,
        };
        Ok(Self {
            name: options.name.as_str().into(),
            pool,
            busy: false,
            busy_us: 0,
            products: 0,
            failures: 0,
            suspected: 0,
        })
    }

    /// It worked on a partition for so long.
    pub(super) fn worked(&mut self, us: u64, done: bool) {
        self.busy = false;
        self.busy_us += us;
        self.products += u64::from(done);
    }

    pub(super) fn status(&self) -> DeviceStatus {
        DeviceStatus {
            name: self.name.to_string(),
            busy: self.busy,
            busy_us: self.busy_us,
            products: self.products,
            failures: self.failures,
            suspected: self.suspected,
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
