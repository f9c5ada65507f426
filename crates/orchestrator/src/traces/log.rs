//! The trace in log lines.

use tracing::{Span, error_span};

use crate::record::TaskRecord;

/// Span of the log lines about an attempt at a task: whatever is logged within it names the task, the attempt and the
/// trace. A filter that lets any line through lets the span through.
pub(crate) fn attempt_log_span(task: &TaskRecord, attempt: u32) -> Span {
    error_span!("attempt", task = %task.id, attempt, trace_id = %task.trace.trace)
}
