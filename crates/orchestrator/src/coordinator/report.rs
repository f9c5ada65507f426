//! Log lines about tasks, from the core's reports. Each has the identifier of the task's trace.

use crate::core::{TaskReport, TaskReportKind};
use crate::plan::Late;

/// Logs a report: as a warning if an operator must decide about a late message, else as information.
pub(super) fn log(report: &TaskReport) {
    let TaskReport { task, trace, kind } = report;
    let trace_id = trace;
    match kind {
        TaskReportKind::Failed {
            worker,
            attempt,
            why,
        } => {
            tracing::info!(%task, %trace_id, %worker, attempt, why, "an attempt has failed");
        }
        TaskReportKind::Dead { why } => {
            tracing::info!(%task, %trace_id, why, "a task is in the dead-letter queue");
        }
        TaskReportKind::Late { why, became } => match became {
            Late::Dead => {
                tracing::warn!(%task, %trace_id, why, "a late message is in the dead-letter queue");
            }
            Late::Emit => {
                tracing::info!(%task, %trace_id, why, "a late message is passed on alone")
            }
            Late::Skip => tracing::info!(%task, %trace_id, why, "a late message is skipped"),
        },
    }
}
