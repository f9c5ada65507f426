//! The place of a task in a trace.

use std::sync::Arc;

use proofmill_trace::{Link, Recorder, SpanId, TraceContext, TraceId};
use serde::{Deserialize, Serialize};

use crate::id::{Part, TaskId, WorkerId};

/// The place of a task in its block's trace. Recorded with the task, so that it is the same after a restart,
/// and passed on to the tasks that follow from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTrace {
    /// The trace; unknown if an earlier release recorded the task.
    pub trace: TraceId,
    /// The span that led to the task.
    pub cause: Cause,
    /// The context that came with the submission, if one did.
    pub caller: Option<Arc<TraceContext>>,
    /// Number of times that the task was put back from the dead-letter queue: each time it has a span anew.
    pub round: u32,
}

/// The span that led to a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// Not known: an earlier release recorded the task.
    #[default]
    Unknown,
    /// The task's message was submitted from outside.
    Submission(SpanId),
    /// The task follows from the end of another one.
    Task(SpanId),
}

// === impl TaskTrace ===

impl TaskTrace {
    /// The place of the tasks of a submitted message: in its caller's trace, or in that of its first block.
    pub(crate) fn submitted(
        workflow: &str,
        queue: &str,
        (block, part): (u64, &Part),
        caller: Option<Arc<TraceContext>>,
    ) -> Self {
        let trace = match &caller {
            Some(caller) => caller.trace(),
            None => TraceId::of_block(workflow, block),
        };
        let names = [workflow, queue, part.as_str()].map(str::as_bytes);
        let block = block.to_le_bytes();
        let names = names.into_iter().chain([&block[..]]);
        Self {
            trace,
            cause: Cause::Submission(SpanId::derive(trace, "submission", names)),
            caller,
            round: 0,
        }
    }

    /// The place of a task that an earlier release recorded.
    pub(crate) fn mended(workflow: &str, block: u64) -> Self {
        Self {
            trace: TraceId::of_block(workflow, block),
            ..Self::default()
        }
    }

    /// The place of the tasks that follow from the end of `task`, which is at this place.
    pub(crate) fn after(&self, task: &TaskId) -> Self {
        Self {
            trace: self.trace,
            cause: Cause::Task(self.task_span(task)),
            caller: self.caller.clone(),
            round: 0,
        }
    }

    /// The place of the task once it is put back from the dead-letter queue.
    pub(crate) fn again(&self) -> Self {
        Self {
            round: self.round.saturating_add(1),
            ..self.clone()
        }
    }

    /// The span that led to the task, if it is known.
    pub(super) fn parent(&self) -> Option<SpanId> {
        match self.cause {
            Cause::Unknown => None,
            Cause::Submission(span) | Cause::Task(span) => Some(span),
        }
    }

    /// Span of the task: from its acceptance to its end.
    pub(super) fn task_span(&self, task: &TaskId) -> SpanId {
        self.derive("task", task, [])
    }

    /// Span of an attempt at the task: from a worker's lease to its end.
    pub(super) fn attempt_span(&self, task: &TaskId, worker: &str, attempt: u32) -> SpanId {
        let attempt = attempt.to_le_bytes();
        self.derive("attempt", task, [worker.as_bytes(), &attempt])
    }

    /// Another span that belongs to the task, of this kind and with these names.
    pub(super) fn derive<const N: usize>(
        &self,
        kind: &str,
        task: &TaskId,
        names: [&[u8]; N],
    ) -> SpanId {
        let block = task.block.to_le_bytes();
        let round = self.round.to_le_bytes();
        let id = [
            task.stage.as_bytes(),
            &block[..],
            task.part.as_str().as_bytes(),
            &round,
        ];
        SpanId::derive(self.trace, kind, id.into_iter().chain(names))
    }

    /// Link to the span of the task.
    pub(crate) fn link(&self, task: &TaskId) -> Link {
        Link {
            trace: self.trace,
            span: self.task_span(task),
        }
    }

    /// Whether this process records the trace.
    pub(super) fn is_recorded(&self, recorder: &Recorder) -> bool {
        self.trace.is_known() && recorder.is_sampled(self.trace, self.caller.as_deref())
    }

    /// The trace, if this process records it.
    pub fn recorded(&self) -> Option<TraceId> {
        let recorder = proofmill_trace::recorder()?;
        self.is_recorded(recorder).then_some(self.trace)
    }

    /// The context to give to whatever works on an attempt. If this process does not export traces, the
    /// caller's context is passed on as it came.
    pub fn of_attempt(
        &self,
        task: &TaskId,
        worker: &WorkerId,
        attempt: u32,
    ) -> Option<TraceContext> {
        self.context(|| self.attempt_span(task, worker, attempt))
    }

    /// The context to give to a receiver of the task's message.
    pub fn of_delivery(&self, task: &TaskId) -> Option<TraceContext> {
        self.context(|| self.task_span(task))
    }

    fn context(&self, span: impl FnOnce() -> SpanId) -> Option<TraceContext> {
        let Some(recorder) = proofmill_trace::recorder().filter(|_| self.trace.is_known()) else {
            return self.caller.as_deref().cloned();
        };
        let state = self.caller.as_ref();
        let state = state.and_then(|caller| caller.tracestate().cloned());
        let is_sampled = self.is_recorded(recorder);
        Some(TraceContext::new(self.trace, span(), is_sampled, state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(stage: &str) -> TaskId {
        TaskId {
            stage: stage.into(),
            block: 7,
            part: Part::whole(),
        }
    }

    #[test]
    fn a_block_without_a_context_has_one_trace_through_all_stages() {
        let place = || TaskTrace::submitted("w", "blocks", (7, &Part::whole()), None);
        assert_eq!(place(), place());
        let next = place().after(&id("prove"));
        assert_eq!(next.trace, place().trace);
        assert_eq!(next.cause, Cause::Task(place().task_span(&id("prove"))));
        let other = TaskTrace::submitted("w", "blocks", (8, &Part::whole()), None);
        assert_ne!(other.trace, place().trace);
    }

    #[test]
    fn a_caller_s_trace_is_continued_and_passed_on_unchanged_if_nothing_is_exported() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let caller = TraceContext::parse(text, ["a=1"]).expect("valid");
        let place =
            TaskTrace::submitted("w", "q", (7, &Part::whole()), Some(caller.clone().into()));
        assert_eq!(place.trace, caller.trace());
        let place = place.after(&id("prove"));
        let given = place.of_attempt(&id("prove"), &"w".into(), 1);
        assert_eq!(given, Some(caller));
    }

    #[test]
    fn spans_of_different_workers_and_attempts_differ() {
        let place = TaskTrace::submitted("w", "q", (7, &Part::whole()), None);
        let task = id("prove");
        let mut spans = vec![
            place.task_span(&task),
            place.attempt_span(&task, "a", 1),
            place.attempt_span(&task, "a", 2),
            place.attempt_span(&task, "b", 1),
            place.attempt_span(&id("other"), "a", 1),
        ];
        spans.sort();
        spans.dedup();
        assert_eq!(spans.len(), 5);
    }
}
