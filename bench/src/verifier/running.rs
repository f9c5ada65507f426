//! A running verification service, and the times of a stream of proofs.

use std::time::{Duration, Instant};

use proofmill_shutdown::Trigger;
use proofmill_verifier::{Handle, KeyDigest, KindFigures, Options, Request, Service, Status};
use tokio::task::JoinHandle;

use super::proofs::{Item, Subject};
use proofmill_verifier::Kind;

/// A running service, which ends when this is dropped.
pub(super) struct RunningService {
    pub(super) handle: Handle,
    kind: String,
    /// Digests of the keys, as the service knows them.
    keys: Vec<KeyDigest>,
    _trigger: Trigger,
    task: JoinHandle<()>,
}

/// Times and counts of a stream.
pub(super) struct Streamed {
    /// Time from the submission of the first proof to the last verdict.
    pub(super) wall: Duration,
    /// Milliseconds from the acceptance of each proof to its verdict.
    pub(super) latencies_ms: Vec<f64>,
    /// Counts of the service for the kind.
    pub(super) figures: KindFigures,
}

// === impl RunningService ===

impl RunningService {
    /// Starts a service and registers the subject's keys for each source. The service has no history
    /// of the sources.
    pub(super) async fn open<K: Kind>(
        subject: &Subject<K>,
        threads: usize,
        batch: usize,
        sources: &[&str],
    ) -> anyhow::Result<Self> {
        let mut options = Options::of(subject.kinds.clone());
        options.threads = threads;
        options.limits.batch = batch;
        let (service, handle) = Service::open(options)?;
        let (trigger, shutdown) = proofmill_shutdown::channel();
        let task = tokio::spawn(service.run(shutdown));
        let kind = Kind::name(&subject.kind).to_owned();
        let mut keys = Vec::new();
        for source in sources {
            keys.clear();
            for (bytes, _) in &subject.keys {
                keys.push(handle.add_key(source, &kind, bytes.clone()).await?);
            }
        }
        Ok(Self {
            handle,
            kind,
            keys,
            _trigger: trigger,
            task,
        })
    }

    /// A proof as a request.
    pub(super) fn request(&self, source: &str, id: &str, item: &Item) -> Request {
        let mut request = Request::new(source, id, &self.kind, item.proof.clone());
        request.statement = item.statement.clone();
        request.key = item.key.map(|key| self.keys[key]);
        request
    }

    /// Submits all proofs as fast as the service takes them, and waits for the verdicts. Fails if one
    /// is not the expected one.
    pub(super) async fn stream(&self, source: &str, items: &[Item]) -> anyhow::Result<Streamed> {
        let requests: Vec<_> = items
            .iter()
            .enumerate()
            .map(|(number, item)| self.request(source, &number.to_string(), item))
            .collect();
        let mut pending = Vec::with_capacity(items.len());
        let began = Instant::now();
        for request in requests {
            pending.push(self.handle.submit(request).await?);
        }
        let mut latencies_ms = Vec::with_capacity(items.len());
        for (number, (item, pending)) in items.iter().zip(pending).enumerate() {
            let verdict = pending.await;
            require(number, item, &verdict.status)?;
            let stats = verdict.stats;
            latencies_ms.push((stats.queue_us + stats.verify_us) as f64 / 1e3);
        }
        Ok(Streamed {
            wall: began.elapsed(),
            latencies_ms,
            figures: self.figures(),
        })
    }

    /// The service's counts for the kind so far.
    pub(super) fn figures(&self) -> KindFigures {
        let mut report = self.handle.report();
        report.kinds.remove(&self.kind).unwrap_or_default()
    }
}

impl Drop for RunningService {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Fails unless the verdict is the expected one.
pub(super) fn require(number: usize, item: &Item, status: &Status) -> anyhow::Result<()> {
    let is_expected = match status {
        Status::Valid => item.is_valid,
        Status::Invalid(_) => !item.is_valid,
        Status::Unavailable(reason) => anyhow::bail!("proof {number} has no verdict: {reason}"),
    };
    let is = if item.is_valid { "valid" } else { "false" };
    anyhow::ensure!(
        is_expected,
        "proof {number} is {is}, and the verdict is {}",
        status.name()
    );
    Ok(())
}
