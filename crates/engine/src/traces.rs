//! Spans of the stages of jobs that came with a trace context.
//!
//! A caller repeats its context with every call about a job, so none is stored: after a restart of the engine
//! the caller asks for its job again, and the context is known again. Stages that ended before the caller came
//! are kept for a while, and recorded then. A context that is not recorded here is still kept, for the programs
//! that the engine runs.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use proofmill_trace::{Span, SpanId, TraceContext, recorder};

use crate::events::unix_ms;
use crate::interface::{Event, EventKind, JobId, PipelineStage, StageEnd};

/// Most jobs whose context is known; the one that came first is forgotten.
const JOBS_MAX: usize = 16_384;

/// Most ended stages that wait for their job's context.
const WAITING_MAX: usize = 4_096;

/// Ended stages, and contexts of jobs, until they meet.
#[derive(Debug)]
pub(crate) struct JobTraces {
    known: Mutex<Known>,
    /// Beginning of this process's work, which tells its spans from those of an engine before it.
    began_ms: u64,
}

#[derive(Debug, Default)]
struct Known {
    contexts: HashMap<JobId, TraceContext>,
    order: VecDeque<JobId>,
    waiting: VecDeque<StageRun>,
}

/// One stage of a partition of a job.
#[derive(Clone, Debug)]
struct StageRun {
    job: JobId,
    partition: u32,
    attempt: u32,
    circuit: String,
    stage: PipelineStage,
    worker: String,
    times_ms: (u64, u64),
    end: StageEnd,
}

// === impl JobTraces ===

impl Default for JobTraces {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            began_ms: unix_ms(SystemTime::now()),
        }
    }
}

impl JobTraces {
    /// Notes the context of a call about a job; the latest one counts.
    pub(crate) fn note(&self, job: JobId, context: TraceContext) {
        let spans = self.noted(job, context);
        if let Some(recorder) = recorder() {
            spans.into_iter().for_each(|span| recorder.record(span));
        }
    }

    /// The context of the latest call about a job.
    pub(crate) fn context(&self, job: JobId) -> Option<TraceContext> {
        self.known().contexts.get(&job).cloned()
    }

    /// Span of the log lines about a job: whatever is logged within it names the job and, if the job's caller sent a
    /// context, the trace. A filter that lets any line through lets the span through.
    pub(crate) fn log_span(&self, job: JobId) -> tracing::Span {
        let known = self.known();
        let trace_id = known.contexts.get(&job).map(TraceContext::trace);
        drop(known);
        tracing::error_span!("job", %job, trace_id = trace_id.map(tracing::field::display))
    }

    /// Notes a job's context. Returns the spans of the stages that have ended already, if it is sampled.
    fn noted(&self, job: JobId, context: TraceContext) -> Vec<Span> {
        let mut known = self.known();
        if known.contexts.insert(job, context.clone()).is_none() {
            known.order.push_back(job);
        }
        if known.order.len() > JOBS_MAX
            && let Some(oldest) = known.order.pop_front()
        {
            known.contexts.remove(&oldest);
        }
        let waiting = std::mem::take(&mut known.waiting).into_iter();
        let (of_job, others): (VecDeque<StageRun>, VecDeque<StageRun>) =
            waiting.partition(|run| run.job == job);
        known.waiting = others;
        if !context.is_sampled() {
            return Vec::new();
        }
        let spans = of_job.iter().map(|run| self.span(run, &context));
        spans.collect()
    }

    /// Records the span of the stage that an event ends, if its job's context is known, else keeps it.
    pub(crate) fn observe(&self, event: &Event) {
        if let Some(recorder) = recorder()
            && let Some(span) = self.observed(event, unix_ms(SystemTime::now()))
        {
            recorder.record(span);
        }
    }

    fn observed(&self, event: &Event, now_ms: u64) -> Option<Span> {
        let EventKind::Ended {
            span,
            stage,
            worker,
            began_us,
            end,
            ..
        } = &event.kind
        else {
            return None;
        };
        let took_ms = event.at_us.saturating_sub(*began_us) / 1000;
        let run = StageRun {
            job: span.job,
            partition: span.partition,
            attempt: span.attempt,
            circuit: span.circuit.to_string(),
            stage: *stage,
            worker: worker.to_string(),
            times_ms: (now_ms.saturating_sub(took_ms), now_ms),
            end: *end,
        };
        let mut known = self.known();
        if let Some(context) = known.contexts.get(&span.job) {
            return context.is_sampled().then(|| self.span(&run, context));
        }
        if known.waiting.len() == WAITING_MAX {
            known.waiting.pop_front();
        }
        known.waiting.push_back(run);
        None
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn span(&self, run: &StageRun, context: &TraceContext) -> Span {
        let (job, stage) = (run.job.to_string(), run.stage.name());
        let numbers = [
            u64::from(run.partition),
            u64::from(run.attempt),
            self.began_ms,
        ];
        let numbers: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        let parent = context.span().bytes();
        let names = [&parent[..], job.as_bytes(), &numbers, stage.as_bytes()];
        let id = SpanId::derive(context.trace(), "engine", names);
        let name = format!("engine.{stage}");
        let span = Span::new(
            context.trace(),
            id,
            Some(context.span()),
            name,
            run.times_ms,
        );
        let span = span
            .with_text("proofmill.engine.job", &job)
            .with_text("proofmill.engine.circuit", &run.circuit)
            .with_text("proofmill.engine.worker", &run.worker)
            .with_number("proofmill.engine.partition", run.partition)
            .with_number("proofmill.engine.attempt", run.attempt);
        let span = Span {
            state: context.tracestate().cloned(),
            ..span
        };
        match run.end {
            StageEnd::Done => span,
            StageEnd::Failed => span.failed("the stage failed"),
            StageEnd::Dropped => span.with_text("proofmill.outcome", "dropped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0";

    fn context(flag: &str) -> TraceContext {
        TraceContext::parse(&format!("{PARENT}{flag}"), []).expect("valid")
    }

    fn ended(job: JobId, stage: PipelineStage) -> Event {
        Event {
            at_us: 9_000,
            kind: EventKind::Ended {
                span: crate::interface::Span {
                    job,
                    partition: 0,
                    attempt: 1,
                    circuit: "mul".into(),
                },
                stage,
                worker: "cpu".into(),
                began_us: 4_000,
                end: StageEnd::Done,
                bytes: 0,
            },
        }
    }

    #[test]
    fn stages_join_the_trace_of_their_job_whether_the_context_comes_before_or_after() {
        let traces = JobTraces::default();
        let (job, other) = (JobId([1; 16]), JobId([2; 16]));
        assert_eq!(
            traces.observed(&ended(job, PipelineStage::Witness), 100),
            None
        );
        assert_eq!(
            traces.observed(&ended(other, PipelineStage::Witness), 100),
            None
        );
        let late = traces.noted(job, context("1"));
        assert_eq!(late.len(), 1);
        assert_eq!(late[0].parent, Some(context("1").span()));
        assert_eq!(
            (late[0].start_ns, late[0].end_ns),
            (95_000_000, 100_000_000)
        );
        let next = traces.observed(&ended(job, PipelineStage::Prove), 200);
        let next = next.expect("the context is known");
        assert_eq!(next.name, "engine.prove");
        assert_ne!(next.id, late[0].id);
        // Noted again, nothing is recorded twice.
        assert!(traces.noted(job, context("1")).is_empty());
    }

    #[test]
    fn a_context_that_is_not_sampled_makes_no_spans_and_is_kept_for_programs() {
        let traces = JobTraces::default();
        let job = JobId([3; 16]);
        assert_eq!(traces.context(job), None);
        assert_eq!(
            traces.observed(&ended(job, PipelineStage::Witness), 100),
            None
        );
        assert!(traces.noted(job, context("0")).is_empty());
        assert_eq!(
            traces.observed(&ended(job, PipelineStage::Prove), 300),
            None
        );
        assert!(traces.known().waiting.is_empty());
        assert_eq!(traces.context(job), Some(context("0")));
        assert!(traces.noted(job, context("1")).is_empty());
        assert_eq!(traces.context(job), Some(context("1")));
    }

    #[test]
    fn contexts_and_stages_of_any_number_of_jobs_take_bounded_memory() {
        let traces = JobTraces::default();
        let id = |number: usize| {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&number.to_le_bytes());
            JobId(id)
        };
        for number in 0..=JOBS_MAX {
            traces.noted(id(number), context("1"));
        }
        assert_eq!(traces.known().contexts.len(), JOBS_MAX);
        assert_eq!(traces.context(id(0)), None);
        assert!(traces.context(id(JOBS_MAX)).is_some());
        for number in 0..=WAITING_MAX {
            let event = ended(id(JOBS_MAX + 1 + number), PipelineStage::Verify);
            assert_eq!(traces.observed(&event, 1), None);
        }
        assert_eq!(traces.known().waiting.len(), WAITING_MAX);
    }
}
