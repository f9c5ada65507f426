//! The time that blocks take from their submission to their emission.

use std::collections::BTreeMap;
use std::time::Duration;

use proofmill_orchestrator::record::TaskRecord;
use proofmill_orchestrator::traces::Cause;

/// Most spans of blocks whose submission is remembered; then the lowest is forgotten.
const SPANS_MAX: usize = 65_536;

/// Submitted blocks that are not emitted yet: by the first block of a message, its last and the time of its acceptance,
/// milliseconds since 1970-01-01 UTC.
#[derive(Debug, Default)]
pub(super) struct BlocksUnderWay(BTreeMap<u64, (u64, u64)>);

// === impl BlocksUnderWay ===

impl BlocksUnderWay {
    /// Notes a task that has ended. Returns how long its blocks took, if that emitted them and their submission is
    /// known: not if their first tasks ended under an earlier leader.
    pub(super) fn note(
        &mut self,
        task: &TaskRecord,
        is_emitted: bool,
        now_ms: u64,
    ) -> Option<Duration> {
        let (first, last) = (task.id.block, task.last);
        if matches!(task.trace.cause, Cause::Submission(_)) {
            let known = self.0.entry(first).or_insert((last, task.at_ms));
            *known = (known.0.max(last), known.1.min(task.at_ms));
            if self.0.len() > SPANS_MAX {
                self.0.pop_first();
            }
        }
        if !is_emitted {
            return None;
        }
        // Emission is in order: whatever ends before these blocks has left, or never will.
        let spans = self.0.range(..=last);
        let of_blocks = spans.filter(|(_, (end, _))| *end >= first);
        let submitted_ms = of_blocks.map(|(_, (_, at_ms))| *at_ms).min();
        let spans = self.0.range(..=last);
        let ended = spans.filter(|(_, (end, _))| *end <= last);
        let ended: Vec<u64> = ended.map(|(start, _)| *start).collect();
        for start in ended {
            self.0.remove(&start);
        }
        submitted_ms.map(|at_ms| Duration::from_millis(now_ms.saturating_sub(at_ms)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proofmill_orchestrator::id::{Part, TaskId};
    use proofmill_orchestrator::payload::Payload;
    use proofmill_orchestrator::traces::TaskTrace;
    use proofmill_trace::{SpanId, TraceId};

    use super::*;

    fn task(blocks: (u64, u64), at_ms: u64, is_submitted: bool) -> TaskRecord {
        let trace = TraceId::of_block("w", blocks.0);
        let span = SpanId::derive(trace, "test", []);
        TaskRecord {
            id: TaskId {
                stage: "prove".into(),
                block: blocks.0,
                part: Part::whole(),
            },
            queue: Arc::from("in"),
            last: blocks.1,
            group: None,
            needs: None,
            payload: Payload::json("1"),
            at_ms,
            origins: Default::default(),
            trace: TaskTrace {
                trace,
                cause: match is_submitted {
                    true => Cause::Submission(span),
                    false => Cause::Task(span),
                },
                ..TaskTrace::default()
            },
        }
    }

    #[test]
    fn a_block_takes_from_its_first_submission_to_its_emission() {
        let mut blocks = BlocksUnderWay::default();
        let submitted = |at_ms| task((7, 7), at_ms, true);
        assert_eq!(blocks.note(&submitted(1_500), false, 2_000), None);
        assert_eq!(blocks.note(&submitted(1_000), false, 2_000), None);
        assert_eq!(blocks.note(&task((7, 7), 500, false), false, 2_000), None);
        let took = blocks.note(&task((7, 7), 4_000, false), true, 5_000);
        assert_eq!(took, Some(Duration::from_secs(4)));
        assert!(blocks.0.is_empty());
        // Nobody has seen the next one begin.
        assert_eq!(blocks.note(&task((8, 8), 4_000, false), true, 5_000), None);
        // A message that is emitted as it was submitted; a clock that was set back.
        let took = blocks.note(&task((9, 9), 4_000, true), true, 3_000);
        assert_eq!(took, Some(Duration::ZERO));
    }

    #[test]
    fn spans_that_are_split_or_joined_on_the_way_are_found() {
        let mut blocks = BlocksUnderWay::default();
        blocks.note(&task((0, 9), 1_000, true), false, 0);
        for (first, last) in [(0, 4), (5, 9)] {
            let took = blocks.note(&task((first, last), 0, false), true, 3_000);
            assert_eq!(took, Some(Duration::from_secs(2)), "{first}");
        }
        assert!(blocks.0.is_empty());
        for block in 10..14 {
            blocks.note(&task((block, block), 1_000 + block, true), false, 0);
        }
        let took = blocks.note(&task((10, 13), 0, false), true, 2_010);
        assert_eq!(took, Some(Duration::from_secs(1)));
        assert!(blocks.0.is_empty());
    }

    #[test]
    fn any_number_of_blocks_takes_bounded_memory() {
        let mut blocks = BlocksUnderWay::default();
        for block in 0..=SPANS_MAX as u64 {
            blocks.note(&task((block, u64::MAX), 1, true), false, 0);
        }
        assert_eq!(blocks.0.len(), SPANS_MAX);
        assert_eq!(blocks.note(&task((0, 0), 0, false), true, 9), None);
    }
}
