//! The bounded queue between services and the exporter.
//!
//! Recording never waits: a span for which the queue has no room is dropped and counted. One recorder serves a
//! process, as one logger does: spans are made deep inside services whose settings have nothing to do with
//! where traces go.

use std::collections::VecDeque;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use crate::context::TraceContext;
use crate::id::TraceId;
use crate::sampler::Sampler;
use crate::span::Span;

static RECORDER: OnceLock<Recorder> = OnceLock::new();

static PAUSED: AtomicBool = AtomicBool::new(false);

/// Counters of a process's traces, since it began.
#[derive(Debug)]
pub struct Counts {
    /// Spans that a collector has accepted.
    pub exported: AtomicU64,
    /// Spans that were dropped because the queue was full.
    pub dropped: AtomicU64,
    /// Spans that were given up because no collector accepted them in time.
    pub failed: AtomicU64,
}

static COUNTS: Counts = Counts {
    exported: AtomicU64::new(0),
    dropped: AtomicU64::new(0),
    failed: AtomicU64::new(0),
};

/// The sending end of the queue of ended spans, and the choice of traces.
#[derive(Debug)]
pub struct Recorder {
    queue: mpsc::Sender<Queued>,
    sampler: Sampler,
}

/// The receiving end of the queue of ended spans, for the exporter.
#[derive(Debug)]
pub struct Ended {
    queue: mpsc::Receiver<Queued>,
    /// Spans of a [`Queued::Later`] that were not asked for yet.
    made: VecDeque<Span>,
}

/// An entry of the queue.
enum Queued {
    Span(Span),
    /// Closure that makes spans, on the exporter's thread.
    Later(Box<dyn FnOnce() -> Vec<Span> + Send>),
}

/// The error of a second recorder in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the process has a recorder of traces already")]
pub struct AlreadyInstalled;

/// Makes `recorder` the one of this process.
///
/// # Errors
/// [`AlreadyInstalled`].
pub fn install(recorder: Recorder) -> Result<(), AlreadyInstalled> {
    RECORDER.set(recorder).map_err(|_| AlreadyInstalled)
}

/// The recorder of this process; `None` if traces are not exported, which is the default.
pub fn recorder() -> Option<&'static Recorder> {
    match PAUSED.load(Ordering::Relaxed) {
        true => None,
        false => RECORDER.get(),
    }
}

/// Makes the process behave as if it had no recorder, or as before: for comparing the two.
pub fn pause(is_paused: bool) {
    PAUSED.store(is_paused, Ordering::Relaxed);
}

// === impl Counts ===

impl Counts {
    /// The counters of this process; all zero if traces are not exported.
    pub fn of_process() -> &'static Self {
        &COUNTS
    }

    /// Adds to one of the counters.
    pub fn add(counter: &AtomicU64, spans: usize) {
        counter.fetch_add(spans as u64, Ordering::Relaxed);
    }
}

// === impl Recorder ===

impl Recorder {
    /// A recorder whose queue has room for `capacity` entries, at least one.
    pub fn new(capacity: usize, sampler: Sampler) -> (Self, Ended) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        let recorder = Self {
            queue: sender,
            sampler,
        };
        let ended = Ended {
            queue: receiver,
            made: VecDeque::new(),
        };
        (recorder, ended)
    }

    /// Whether a trace is recorded; `caller` is the context that it came with.
    pub fn is_sampled(&self, trace: TraceId, caller: Option<&TraceContext>) -> bool {
        self.sampler.is_sampled(trace, caller)
    }

    /// Queues an ended span of a sampled trace; drops and counts it if the queue is full.
    pub fn record(&self, span: Span) {
        self.queue(Queued::Span(span));
    }

    /// Queues what makes ended spans of a sampled trace when the exporter takes it, so that whoever has other work to do
    /// does not make them. Spans that are dropped with it count as one.
    pub fn record_later(&self, make: impl FnOnce() -> Vec<Span> + Send + 'static) {
        self.queue(Queued::Later(Box::new(make)));
    }

    fn queue(&self, entry: Queued) {
        if self.queue.try_send(entry).is_err() {
            Counts::add(&COUNTS.dropped, 1);
        }
    }
}

// === impl Ended ===

impl Ended {
    /// The next span; `None` if there will be none. May be cancelled: no span is lost.
    pub async fn recv(&mut self) -> Option<Span> {
        while self.made.is_empty() {
            let entry = self.queue.recv().await?;
            self.make(entry);
        }
        self.made.pop_front()
    }

    /// The next span, if there is one now.
    ///
    /// # Errors
    /// There is none now, or there will be none.
    pub fn try_recv(&mut self) -> Result<Span, TryRecvError> {
        loop {
            match self.made.pop_front() {
                Some(span) => return Ok(span),
                None => {
                    let entry = self.queue.try_recv()?;
                    self.make(entry);
                }
            }
        }
    }

    fn make(&mut self, entry: Queued) {
        match entry {
            Queued::Span(span) => self.made.push_back(span),
            Queued::Later(make) => self.made.extend(make()),
        }
    }
}

// === impl Queued ===

impl fmt::Debug for Queued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Span(span) => span.fmt(f),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SpanId;

    #[test]
    fn a_full_queue_drops_and_counts() {
        let (recorder, mut ended) = Recorder::new(2, Sampler::default());
        let trace = TraceId::of_block("w", 1);
        let dropped = || Counts::of_process().dropped.load(Ordering::Relaxed);
        let before = dropped();
        for number in 0_u8..5 {
            let id = SpanId::derive(trace, "task", [&[number][..]]);
            recorder.record(Span::new(trace, id, None, "x", (0, 1)));
        }
        assert_eq!(dropped() - before, 3);
        let first = ended.try_recv().expect("one is queued");
        assert_eq!(first.id, SpanId::derive(trace, "task", [&[0][..]]));
        assert!(ended.try_recv().is_ok() && ended.try_recv().is_err());
    }

    #[tokio::test]
    async fn spans_that_are_made_later_keep_their_place() {
        let (recorder, mut ended) = Recorder::new(4, Sampler::default());
        let trace = TraceId::of_block("w", 1);
        let span = move |name: &'static str| {
            let id = SpanId::derive(trace, "task", [name.as_bytes()]);
            Span::new(trace, id, None, name, (0, 1))
        };
        recorder.record(span("a"));
        recorder.record_later(move || vec![span("b"), span("c")]);
        recorder.record_later(Vec::new);
        recorder.record(span("d"));
        let mut names = Vec::new();
        for _ in 0..2 {
            names.push(ended.recv().await.expect("one").name);
        }
        while let Ok(span) = ended.try_recv() {
            names.push(span.name);
        }
        assert_eq!(names, ["a", "b", "c", "d"]);
        drop(recorder);
        assert!(ended.recv().await.is_none());
    }
}
