//! Sources: their positions, and the blocks that they take back (rewinds).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::record::RewindRecord;

/// The positions of sources, and their rewinds, by name.
#[derive(Default)]
pub(super) struct Sources {
    positions: BTreeMap<Arc<str>, u64>,
    /// Rewinds that are under way, from the log's records.
    recorded: BTreeMap<Arc<str>, RewindRecord>,
    /// Rewinds that this coordinator carries out.
    rewinding: BTreeMap<Arc<str>, UnderWay>,
}

/// Rewinds of one source that are under way.
struct UnderWay {
    count: usize,
    /// Lowest block that they go back to.
    from: u64,
}

// === impl Sources ===

impl Sources {
    /// Next block that a source will bring, according to the log.
    pub(super) fn position(&self, source: &str) -> Option<u64> {
        self.positions.get(source).copied()
    }

    /// Positions of all sources, by name.
    pub(super) fn positions(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        self.positions.iter().map(|(name, next)| (name, *next))
    }

    /// Takes over a position from the log.
    pub(super) fn put_position(&mut self, source: Arc<str>, next: u64) {
        self.positions.insert(source, next);
    }

    /// Takes over a rewind from the log.
    pub(super) fn put_rewind(&mut self, source: Arc<str>, rewind: RewindRecord) {
        self.recorded.insert(source, rewind);
    }

    /// Notes that the log has no rewind of this source any more.
    pub(super) fn delete_rewind(&mut self, source: &str) {
        self.recorded.remove(source);
    }

    pub(super) fn has_recorded_rewind(&self, source: &str) -> bool {
        self.recorded.contains_key(source)
    }

    /// Rewinds that the log has.
    pub(super) fn recorded_rewinds(&self) -> Vec<(Arc<str>, RewindRecord)> {
        let recorded = self.recorded.iter();
        let recorded = recorded.map(|(source, rewind)| (source.clone(), rewind.clone()));
        recorded.collect()
    }

    /// Begins a rewind of a source to a block; others of the same source may be under way.
    pub(super) fn begin_rewind(&mut self, source: &Arc<str>, from: u64) {
        let under_way = self.rewinding.entry(source.clone());
        let under_way = under_way.or_insert(UnderWay { count: 0, from });
        under_way.count += 1;
        under_way.from = from.min(under_way.from);
    }

    /// Lowers the first block of a rewind that is under way. Returns the lowest one of the source's rewinds.
    pub(super) fn lower_rewind(&mut self, source: &Arc<str>, from: u64) -> u64 {
        let under_way = self.rewinding.entry(source.clone());
        let under_way = under_way.or_insert(UnderWay { count: 1, from });
        under_way.from = from.min(under_way.from);
        under_way.from
    }

    /// Ends a rewind. Returns whether it was the source's last.
    pub(super) fn end_rewind(&mut self, source: &str) -> bool {
        if let Some(under_way) = self.rewinding.get_mut(source) {
            under_way.count -= 1;
            if under_way.count == 0 {
                self.rewinding.remove(source);
            }
        }
        !self.rewinding.contains_key(source)
    }

    /// Whether a message that ends with block `last` contains blocks that its source is taking back.
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
