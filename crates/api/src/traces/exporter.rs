//! The exporter: gathers spans, and sends them.

use std::sync::atomic::Ordering;
use std::sync::mpsc as thread;
use std::time::Duration;

use proofmill_trace::{Counts, Ended, Recorder, Span, install};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::encode::request;
use super::proto::ExportTraceServiceRequest;
use super::settings::{Settings, SettingsError};
use super::transport::{NotSent, Transport};

/// Time from one look at the queue to the next while a batch gathers. The queue must have room for the spans of that time.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Longest time for which a batch that no collector takes is sent again. Later spans wait meanwhile, and are
/// dropped when the queue is full.
const RETRY_TIME_MAX: Duration = Duration::from_secs(30);

/// Wait after the first failed request of a batch; each later one is twice as long, up to [`WAIT_MAX`].
const WAIT_MIN: Duration = Duration::from_millis(500);

/// Longest wait between two requests of a batch.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Longest time in which the spans that are left at the end are sent.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(3);

/// Shortest time between two log lines about a collector that takes nothing.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// A running exporter. Dropping it leaves it running until the process ends.
#[derive(Debug)]
pub struct Exporting {
    stop: oneshot::Sender<()>,
    stopped: thread::Receiver<()>,
}

/// The exporter, on its own thread.
struct Exporter {
    settings: Settings,
    transport: Transport,
    ended: Ended,
    warned: Option<Instant>,
    /// Number of dropped spans that were logged.
    dropped: u64,
}

/// Starts to export the spans of this process.
///
/// # Errors
/// The settings cannot be used: an address, a header or a file.
pub fn start(settings: Settings) -> Result<Exporting, SettingsError> {
    let (recorder, ended) = Recorder::new(settings.queue, settings.sampler);
    let (stop, stopping) = oneshot::channel();
    let (report_open, opened) = thread::channel();
    let (report_stop, stopped) = thread::channel();
    let run = move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build();
        let Ok(runtime) = runtime else {
            let why = "the system gives no thread for the exporter".to_owned();
            let _ = report_open.send(Err(SettingsError::of_endpoint(why)));
            return;
        };
        runtime.block_on(async {
            let transport = match Transport::open(&settings) {
                Ok(transport) => transport,
                Err(error) => {
                    // The caller waits for it.
                    let _ = report_open.send(Err(error));
                    return;
                }
            };
            // As above.
            let _ = report_open.send(Ok(()));
            let exporter = Exporter {
                settings,
                transport,
                ended,
                warned: None,
                dropped: 0,
            };
            exporter.run(stopping).await;
        });
        // The process may be ending without waiting.
        let _ = report_stop.send(());
    };
    let spawned = std::thread::Builder::new()
        .name("traces".to_owned())
        .spawn(run);
    spawned.map_err(|error| SettingsError::of_endpoint(error.to_string()))?;
    let gone = |_| SettingsError::of_endpoint("the exporter has ended".to_owned());
    opened.recv().map_err(gone)??;
    install(recorder).map_err(|error| SettingsError::of_endpoint(error.to_string()))?;
    Ok(Exporting { stop, stopped })
}

// === impl Exporting ===

impl Exporting {
    /// Sends what is left, for at most 3 s.
    pub fn finish(self) {
        // An exporter that has ended has nothing left.
        let _ = self.stop.send(());
        let _ = self.stopped.recv_timeout(FLUSH_TIME_MAX + WAIT_MIN);
    }
}

// === impl Exporter ===

impl Exporter {
    async fn run(mut self, mut stopping: oneshot::Receiver<()>) {
        let mut batch: Vec<Span> = Vec::new();
        loop {
            tokio::select! {
                goes_on = self.gather(&mut batch) => if !goes_on {
                    break;
                },
                _ = &mut stopping => break,
            }
            let spans = std::mem::take(&mut batch);
            let count = spans.len();
            let mut exporting = std::pin::pin!(self.export(spans));
            let stopped = tokio::select! {
                () = &mut exporting => continue,
                _ = &mut stopping => timeout_at(Instant::now() + FLUSH_TIME_MAX, exporting).await,
            };
            if stopped.is_err() {
                Counts::add(&Counts::of_process().failed, count);
                return;
            }
            break;
        }
        self.flush(batch).await;
    }

    /// Waits until there is a batch: of as many spans as a request may have, or of those that came within the delay after the
    /// first. Returns false if no more will come. May be cancelled: spans stay in `batch`.
    ///
    /// Only the first span of a batch wakes this thread. If each did, the tasks that make them would pay for it with a system
    /// call and a change of threads.
    async fn gather(&mut self, batch: &mut Vec<Span>) -> bool {
        let Some(first) = self.ended.recv().await else {
            return false;
        };
        batch.push(first);
        let due = Instant::now() + self.settings.delay;
        while batch.len() < self.settings.batch {
            match self.ended.try_recv() {
                Ok(span) => batch.push(span),
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) if Instant::now() >= due => break,
                Err(TryRecvError::Empty) => {
                    sleep_until(due.min(Instant::now() + LOOK_INTERVAL)).await
                }
            }
        }
        true
    }

    /// Sends a batch in the time until `until`. Returns whether that was long enough.
    async fn export_until(&mut self, until: Instant, spans: Vec<Span>) -> bool {
        let count = spans.len();
        let exported = timeout_at(until, self.export(spans)).await;
        if exported.is_err() {
            Counts::add(&Counts::of_process().failed, count);
        }
        exported.is_ok()
    }

    /// Sends what is left, within the time for it.
    async fn flush(&mut self, mut batch: Vec<Span>) {
        let until = Instant::now() + FLUSH_TIME_MAX;
        loop {
            while batch.len() < self.settings.batch
                && let Ok(span) = self.ended.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() {
                return;
            }
            let spans = std::mem::take(&mut batch);
            if !self.export_until(until, spans).await {
                return;
            }
        }
    }

    /// Sends a batch, again and again for a while if the collector takes nothing now.
    async fn export(&mut self, spans: Vec<Span>) {
        let count = spans.len();
        let request = request(&self.settings.resource, spans);
        let counts = Counts::of_process();
        match self.send(&request).await {
            Ok(refused) => {
                let refused = usize::try_from(refused).unwrap_or(count).min(count);
                Counts::add(&counts.exported, count - refused);
                Counts::add(&counts.failed, refused);
            }
            Err(NotSent { why, .. }) => {
                Counts::add(&counts.failed, count);
                self.warn(&why, count);
            }
        }
        // A dispatcher has no page of metrics.
        let dropped = counts.dropped.load(Ordering::Relaxed);
        if dropped > self.dropped {
            self.warn("the queue was full", 0);
            self.dropped = dropped;
        }
    }

    async fn send(&mut self, request: &ExportTraceServiceRequest) -> Result<u64, NotSent> {
        let give_up = Instant::now() + RETRY_TIME_MAX;
        let mut wait = WAIT_MIN;
        loop {
            match self.transport.send(request, self.settings.timeout).await {
                Err(not_sent) if not_sent.is_temporary && Instant::now() + wait < give_up => {
                    self.warn(&not_sent.why, 0);
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(WAIT_MAX);
                }
                answer => return answer,
            }
        }
    }

    /// Logs, not too often, that the collector takes nothing.
    fn warn(&mut self, why: &str, given_up: usize) {
        let now = Instant::now();
        let is_recent = |warned: Instant| now.duration_since(warned) < WARNING_INTERVAL;
        if self.warned.is_some_and(is_recent) {
            return;
        }
        self.warned = Some(now);
        let endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let dropped = Counts::of_process().dropped.load(Ordering::Relaxed);
        tracing::warn!(
            why,
            given_up,
            dropped,
            "spans of traces are lost or late; see {endpoint}, and the metrics proofmill_trace_spans_…"
        );
    }
}
