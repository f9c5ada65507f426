//! Sources: where each goes on, and the blocks that it takes back (rewinds).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::record::RewindRecord;

/// The positions of sources, and their rewinds, by name.
#[derive(Default)]
pub(super) struct Sources {
    positions: BTreeMap<Arc<str>, u64>,
    /// Rewinds that are under way, as the log has them.
    recorded: BTreeMap<Arc<str>, RewindRecord>,
    /// The same as this coordinator has them.
    rewinding: BTreeMap<Arc<str>, UnderWay>,
}

/// The rewinds of one source.
struct UnderWay {
    count: usize,
    /// The lowest block that they go back to.
    from: u64,
}

// === impl Sources ===

impl Sources {
    /// The block that a source brings next, as the log has it.
    pub(super) fn position(&self, source: &str) -> Option<u64> {
        self.positions.get(source).copied()
    }

    /// The positions of all, by name.
    pub(super) fn positions(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        self.positions.iter().map(|(name, next)| (name, *next))
    }

    /// The log has this position.
    pub(super) fn put_position(&mut self, source: Arc<str>, next: u64) {
        self.positions.insert(source, next);
    }

    /// The log has this rewind.
    pub(super) fn put_rewind(&mut self, source: Arc<str>, rewind: RewindRecord) {
        self.recorded.insert(source, rewind);
    }

    /// The log has no rewind of this source any more.
    pub(super) fn delete_rewind(&mut self, source: &str) {
        self.recorded.remove(source);
    }

    pub(super) fn has_recorded_rewind(&self, source: &str) -> bool {
        self.recorded.contains_key(source)
    }

    /// The rewinds that the log has.
    pub(super) fn recorded_rewinds(&self) -> Vec<(Arc<str>, RewindRecord)> {
        let recorded = self.recorded.iter();
        let recorded = recorded.map(|(source, rewind)| (source.clone(), rewind.clone()));
        recorded.collect()
    }

    /// A rewind of a source to a block begins, perhaps beside others of it.
    pub(super) fn begin_rewind(&mut self, source: &Arc<str>, from: u64) {
        let under_way = self.rewinding.entry(source.clone());
        let under_way = under_way.or_insert(UnderWay { count: 0, from });
        under_way.count += 1;
        under_way.from = from.min(under_way.from);
    }

    /// A rewind that is under way goes back to this block. Returns the lowest of those of its source.
    pub(super) fn lower_rewind(&mut self, source: &Arc<str>, from: u64) -> u64 {
        let under_way = self.rewinding.entry(source.clone());
        let under_way = under_way.or_insert(UnderWay { count: 1, from });
        under_way.from = from.min(under_way.from);
        under_way.from
    }

    /// A rewind ends. Returns whether it was the last of its source.
    pub(super) fn end_rewind(&mut self, source: &str) -> bool {
        if let Some(under_way) = self.rewinding.get_mut(source) {
            under_way.count -= 1;
            if under_way.count == 0 {
                self.rewinding.remove(source);
            }
        }
        !self.rewinding.contains_key(source)
    }

    /// Whether a message of a source that ends with block `last` is of blocks that are being taken back.
    pub(super) fn is_rewound(&self, source: &str, last: u64) -> bool {
        let under_way = self.rewinding.get(source);
        under_way.is_some_and(|under_way| last >= under_way.from)
    }

    #[cfg(debug_assertions)]
    pub(super) fn check(&self) -> Result<(), String> {
        let ended = self.rewinding.iter().find(|(_, of)| of.count == 0);
        match ended {
            Some((source, _)) => Err(format!("source {source}: no rewind of it is under way")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_taken_back_until_the_last_rewind_ends() {
        let (mut sources, source) = (Sources::default(), Arc::from("chain"));
        sources.begin_rewind(&source, 10);
        sources.begin_rewind(&source, 12);
        assert!(sources.is_rewound("chain", 10) && !sources.is_rewound("chain", 9));
        assert_eq!(sources.lower_rewind(&source, 8), 8);
        assert!(sources.is_rewound("chain", 8) && !sources.is_rewound("other", 8));
        assert!(!sources.end_rewind("chain"));
        assert_eq!(sources.check(), Ok(()));
        assert!(sources.is_rewound("chain", 8));
        assert!(sources.end_rewind("chain") && !sources.is_rewound("chain", 8));
    }
}
