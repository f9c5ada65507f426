//! Blocks that were accepted and are not emitted yet, with the times of their beginning.

use std::collections::BTreeMap;

/// Most blocks that are remembered; then the lowest is forgotten.
const BLOCKS_MAX: usize = 65_536;

/// Times of a block, milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    accepted_ms: Option<u64>,
    begun_ms: Option<u64>,
}

/// The blocks under way.
#[derive(Debug, Default)]
pub(crate) struct UnderWay(BTreeMap<u64, Times>);

// === impl UnderWay ===

impl UnderWay {
    /// Notes that a block was accepted. Returns whether that is new, and nothing later is known of the block.
    pub(crate) fn accepted(&mut self, block: u64, at_ms: u64) -> bool {
        let times = self.0.entry(block).or_default();
        let is_new = times.accepted_ms.is_none() && times.begun_ms.is_none();
        times.accepted_ms = Some(times.accepted_ms.map_or(at_ms, |known| known.min(at_ms)));
        self.shrink();
        is_new
    }

    /// Notes that proving a block began. Returns whether that is new.
    pub(crate) fn begun(&mut self, block: u64, at_ms: u64) -> bool {
        let times = self.0.entry(block).or_default();
        let is_new = times.begun_ms.is_none();
        times.begun_ms = Some(times.begun_ms.map_or(at_ms, |known| known.min(at_ms)));
        self.shrink();
        is_new
    }

    /// Forgets a block that is emitted, and those below: they will not be. Returns the time at which proving it began,
    /// or else its acceptance, which was not later; `None` if neither is known.
    pub(crate) fn emitted(&mut self, block: u64) -> Option<u64> {
        let times = self.0.get(&block).copied().unwrap_or_default();
        self.0 = match block.checked_add(1) {
            Some(next) => self.0.split_off(&next),
            None => BTreeMap::new(),
        };
        times.begun_ms.or(times.accepted_ms)
    }

    fn shrink(&mut self) {
        while self.0.len() > BLOCKS_MAX {
            self.0.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_beginning_counts() {
        let mut blocks = UnderWay::default();
        assert!(blocks.accepted(7, 100));
        assert!(!blocks.accepted(7, 90));
        assert!(blocks.begun(7, 120));
        assert!(!blocks.begun(7, 150));
        assert!(blocks.accepted(6, 100) && blocks.accepted(8, 100));
        assert_eq!(blocks.emitted(7), Some(120));
        assert_eq!(blocks.emitted(7), None);
        assert_eq!(blocks.emitted(8), Some(100));
        // The beginning was seen before the acceptance.
        assert!(blocks.begun(9, 100));
        assert!(!blocks.accepted(9, 90));
        assert!(blocks.accepted(u64::MAX, 1));
        assert_eq!(blocks.emitted(u64::MAX), Some(1));
        assert!(blocks.0.is_empty());
    }

    #[test]
    fn any_number_of_blocks_takes_bounded_memory() {
        let mut blocks = UnderWay::default();
        for block in 0..=BLOCKS_MAX as u64 {
            blocks.accepted(block, 1);
        }
        assert_eq!(blocks.0.len(), BLOCKS_MAX);
        assert_eq!(blocks.emitted(0), None);
    }
}
