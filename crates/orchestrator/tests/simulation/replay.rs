//! Replay: the state is rebuilt from the log alone.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use proofmill_bus::{Op, Seq};
use proofmill_orchestrator::core::{Action, Core, TaskPhase, TaskView};
use proofmill_orchestrator::record::{HistoryEntry, PauseRecord, Record, TaskEnd};

use crate::world::{Checked, HISTORY, World};

fn is_orphaned((_, key, value): &(Seq, String, Bytes)) -> bool {
    match Record::decode(key, value) {
        Ok(Record::Run(run)) => run.attempts.iter().any(|attempt| attempt.orphaned),
        _ => false,
    }
}

impl World {
    /// (f) A core rebuilt from the log's records has the same state as this one.
    pub(crate) fn compare_with_replayed(&mut self) -> Checked {
        let Some(core) = &self.core else {
            return Ok(());
        };
        // The rebuilt core may complete at once what a host still owes.
        if self.unanswered > 0
            || core
                .status()
                .hosts
                .iter()
                .any(|host| host.pending_verdicts > 0)
        {
            return Ok(());
        }
        // Attempts from before an earlier restart that no worker has reported count as failed at the next
        // one.
        if self.log.replay().iter().any(is_orphaned) {
            return Ok(());
        }
        // Other attempts may still be reported.
        let mut other = self.replayed(Duration::from_secs(3_600))?;
        let actions = other.start(self.now());
        let (a, b) = (core.status(), other.status());
        let same = |what: &str, same: bool| match same {
            true => Ok(()),
            false => Err(format!("(f) a replayed core differs in its {what}")),
        };
        same("cursor", a.next_block == b.next_block)?;
        let by_name = |pauses: &[PauseRecord]| {
            let pauses = pauses.iter().map(|pause| (pause.kind, pause.clone()));
            let mut pauses: Vec<_> = pauses.map(|(kind, it)| (kind, it.name, it.by)).collect();
            pauses.sort();
            pauses
        };
        same("pauses", by_name(&a.pauses) == by_name(&b.pauses))?;
        same("counts", (a.live, a.dead) == (b.live, b.dead))?;
        same("dead letters", core.dead_letters().eq(other.dead_letters()))?;
        let (a, b) = (core.tasks(|_| true), other.tasks(|_| true));
        same(
            "tasks",
            a.iter().map(|t| &t.record).eq(b.iter().map(|t| &t.record)),
        )?;
        same(
            "attempts",
            a.iter()
                .map(|t| &t.attempts)
                .eq(b.iter().map(|t| &t.attempts)),
        )?;
        same(
            "results",
            a.iter()
                .map(|t| &t.results)
                .eq(b.iter().map(|t| &t.results)),
        )?;
        self.compare_history(core, &other)?;
        for source in &self.scene.sources {
            same(
                "sources",
                core.source_next(source.name) == other.source_next(source.name),
            )?;
        }
        for id in &self.monitor.seen {
            let of = |core: &Core| core.has_finished(id, id.block);
            same("finished tasks", of(core) == of(&other))?;
        }
        if self.scene.strict_restart {
            // No work was left undone: the rebuilt core records nothing except removals.
            for action in &actions {
                if let Action::Append { ops, .. } = action {
                    // Attempts that had begun before are recorded as such.
                    let is_run = |op: &Op| op.key().as_str().starts_with("run.");
                    let is_delete = |op: &Op| matches!(op, Op::Delete { .. });
                    // The content of marks is counted, and written to the history, before they are removed;
                    // to the history also when there are many.
                    let is_mark = |op: &Op| is_delete(op) && op.key().as_str().starts_with("done.");
                    let removes_marks = ops.iter().any(is_mark);
                    let is_auxiliary = |op: &Op| {
                        let key = op.key().as_str();
                        key.starts_with("past.") || (removes_marks && key.starts_with("count."))
                    };
                    let forgets = ops
                        .iter()
                        .all(|op| is_delete(op) || is_run(op) || is_auxiliary(op));
                    if !forgets {
                        return Err(format!("(f) a replayed core has more to record: {ops:?}"));
                    }
                }
            }
            let held = |views: &[TaskView]| {
                let held = TaskPhase::Held;
                views.iter().filter(|view| view.phase == held).count()
            };
            same("held messages", held(&a) == held(&b))?;
        }
        Ok(())
    }

    /// (q) Counters that follow from records are exact after a crash, the history is the same, and the log
    /// holds no more of it than the limit.
    fn compare_history(&self, core: &Core, other: &Core) -> Checked {
        let exact = |core: &Core| {
            let stages = core.status().stages.into_iter();
            let counted = stages.map(|stage| {
                let of = stage.counters;
                let ends = [of.completed, of.grouped, of.skipped, of.dropped, of.emitted];
                (stage.stage, of.accepted, ends, of.died)
            });
            counted.collect::<Vec<_>>()
        };
        let (a, b) = (exact(core), exact(other));
        if a != b {
            return Err(format!("(q) a replayed core counts {b:?}, not {a:?}"));
        }
        let blocks: BTreeSet<u64> = self.monitor.seen.iter().map(|id| id.block).collect();
        for block in blocks {
            let (a, b) = (core.block(block).history, other.block(block).history);
            let is_same = a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| is_same_past(a, b));
            if !is_same {
                return Err(format!(
                    "(q) a replayed core knows another past of block {block}: {b:#?}, not {a:#?}"
                ));
            }
        }
        let records = self.log.replay();
        let entries = records
            .iter()
            .map(|(_, key, value)| match Record::decode(key, value) {
                Ok(Record::History(past)) => past.entries.len(),
                _ => 0,
            });
        let entries: usize = entries.sum();
        match entries <= HISTORY.steps {
            true => Ok(()),
            false => Err(format!(
                "(q) the log holds {entries} entries of the history"
            )),
        }
    }
}

/// Whether a replayed core's entry is the core's. It may lack the time at which the log had a mark: the mark does not have it.
fn is_same_past(entry: &HistoryEntry, replayed: &HistoryEntry) -> bool {
    match (entry, replayed) {
        (HistoryEntry::TaskEnd(end), HistoryEntry::TaskEnd(replayed)) => {
            let recorded_ms = replayed.recorded_ms.and(end.recorded_ms);
            let end = TaskEnd {
                recorded_ms,
                ..end.clone()
            };
            end == *replayed
        }
        (entry, replayed) => entry == replayed,
    }
}
