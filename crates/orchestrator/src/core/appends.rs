//! Appends on their way to the log, and the tasks in them.

use std::collections::BTreeMap;

use super::block_count::BlockCount;
use super::change::Change;
use super::event::Token;
use crate::id::TaskId;
use crate::plan::StageIx;
use crate::record::RecordKey;

/// Appends on their way to the log, by token, each with the work that its acceptance triggers (`T`).
pub(super) struct Appends<T> {
    next_token: u64,
    pending: BTreeMap<Token, Append<T>>,
    /// Tasks on their way to the log, by stage.
    incoming: Vec<BlockCount>,
}

struct Append<T> {
    changes: Vec<(RecordKey, Change)>,
    then: T,
    /// Stage and first block of each task in the append.
    brings: Vec<(StageIx, u64)>,
}

// === impl Appends ===

impl<T> Appends<T> {
    /// No appends, for `stages` stages.
    pub(super) fn new(stages: usize) -> Self {
        Self {
            next_token: 1,
            pending: BTreeMap::new(),
            incoming: BlockCount::each(stages),
        }
    }

    /// A token for a new append.
    pub(super) fn draw_token(&mut self) -> Token {
        let token = Token(self.next_token);
        self.next_token += 1;
        token
    }

    /// Registers an append; `stage_of` maps a task to its stage.
    pub(super) fn send(
        &mut self,
        token: Token,
        changes: Vec<(RecordKey, Change)>,
        then: T,
        stage_of: impl Fn(&TaskId) -> Option<StageIx>,
    ) {
        let brings = changes.iter().filter_map(|(key, change)| {
            let (RecordKey::Task(id), Change::Put { .. }) = (key, change) else {
                return None;
            };
            Some((stage_of(id)?, id.block))
        });
        let brings: Vec<(StageIx, u64)> = brings.collect();
        for (stage, block) in &brings {
            self.incoming[stage.0].add(*block);
        }
        let append = Append {
            changes,
            then,
            brings,
        };
        self.pending.insert(token, append);
    }

    /// Removes an append that the log has accepted or refused. Returns its changes and the work that its
    /// acceptance triggers.
    pub(super) fn answered(&mut self, token: Token) -> Option<(Vec<(RecordKey, Change)>, T)> {
        let append = self.pending.remove(&token)?;
        for (stage, block) in &append.brings {
            self.incoming[stage.0].remove(*block);
        }
        Some((append.changes, append.then))
    }

    /// Whether every append has been answered.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Tasks of a stage that are on their way to the log.
    pub(super) fn incoming(&self, stage: StageIx) -> &BlockCount {
        &self.incoming[stage.0]
    }

    /// Changes on their way to the log, in the order of sending.
    pub(super) fn changes(&self) -> impl Iterator<Item = &(RecordKey, Change)> {
        self.pending.values().flat_map(|append| &append.changes)
    }

    #[cfg(debug_assertions)]
    pub(super) fn check(&self) -> Result<(), String> {
        for (ix, count) in self.incoming.iter().enumerate() {
            let brings = self.pending.values().flat_map(|append| &append.brings);
            let of_stage = brings.filter(|(stage, _)| stage.0 == ix);
            let blocks: Vec<u64> = of_stage.map(|(_, block)| *block).collect();
            if count.total() != blocks.len() || count.lowest() != blocks.iter().min().copied() {
                return Err(format!(
                    "stage {ix}: the index of tasks on their way is off"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Part;
    use crate::record::{Record, TaskRecord};

    fn put(block: u64) -> (RecordKey, Change) {
        let id = TaskId {
            stage: "prove".into(),
            block,
            part: Part::whole(),
        };
        let record = TaskRecord::for_tests(id.clone());
        let change = Change::put_new(Record::Task(record));
        (RecordKey::Task(id), change)
    }

    #[test]
    fn tasks_are_on_their_way_until_their_append_is_answered() {
        let (mut appends, stage) = (Appends::new(1), StageIx(0));
        let token = appends.draw_token();
        let changes = vec![put(4), put(2), (RecordKey::Cursor, Change::Delete)];
        appends.send(token, changes, "then", |_| Some(stage));
        assert_eq!(appends.incoming(stage).lowest(), Some(2));
        assert_eq!(
            (appends.incoming(stage).total(), appends.check()),
            (2, Ok(()))
        );
        let (changes, then) = appends.answered(token).unwrap();
        assert_eq!((changes.len(), then), (3, "then"));
        assert_eq!(appends.incoming(stage).total(), 0);
        assert!(appends.is_empty() && appends.answered(token).is_none());
    }
}
