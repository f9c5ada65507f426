//! Running work on the number of threads given by `--threads`.

use crate::args::circuits::Threads;
use crate::failure::Failure;

// === impl Threads ===

impl Threads {
    /// Runs `work` in a thread pool of `self.threads` threads; without a number, rayon's default.
    pub(crate) fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
        let mut pool = rayon::ThreadPoolBuilder::new();
        if let Some(threads) = self.threads {
            pool = pool.num_threads(threads.into());
        }
        let pool = pool
            .build()
            .map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
        Ok(pool.install(work))
    }
}
