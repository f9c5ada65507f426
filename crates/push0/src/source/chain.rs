//! The record of emitted blocks, which decides the next block and detects forks.

use std::collections::VecDeque;

use crate::environment::Start;

/// Most blocks whose hashes are remembered, which is the depth to which a fork is found exactly.
pub(crate) const REMEMBERED: usize = 256;

/// The emitted blocks, and the next one.
#[derive(Debug, Default)]
pub(super) struct Chain {
    next: Option<u64>,
    /// The last emitted blocks, without a gap.
    known: VecDeque<(u64, String)>,
    begun: bool,
}

/// The decision about the next block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Emit,
    /// The parent of the block is not the last emitted block.
    Forked,
}

// === impl Chain ===

impl Chain {
    /// Sets the first block if nothing was emitted. A start beyond the emitted blocks skips ahead.
    pub(super) fn begin(&mut self, start: Start, head: u64) {
        if self.begun {
            return;
        }
        self.begun = true;
        match (start, self.next) {
            (Start::At(block), next) if next.is_none_or(|next| next < block) => {
                self.known.clear();
                self.next = Some(block);
            }
            (Start::Behind(blocks), None) => self.next = Some(head.saturating_sub(blocks)),
            _ => {}
        }
    }

    /// The next block to emit; `None` before [`begin`](Self::begin), and after the largest block number.
    pub(super) fn next(&self) -> Option<u64> {
        self.next
    }

    /// The last emitted block, with its hash.
    pub(super) fn last(&self) -> Option<(u64, String)> {
        self.known.back().cloned()
    }

    /// Whether a block with this parent follows the last emitted block.
    pub(super) fn check(&self, parent: &str) -> Next {
        match self.known.back() {
            Some((_, hash)) if hash != parent => Next::Forked,
            _ => Next::Emit,
        }
    }

    /// Records an emitted block.
    pub(super) fn emitted(&mut self, number: u64, hash: Option<String>) {
        // After a fork block numbers repeat.
        while self.known.back().is_some_and(|(last, _)| *last >= number) {
            self.known.pop_back();
        }
        if self
            .known
            .back()
            .is_some_and(|(last, _)| last + 1 != number)
            || hash.is_none()
        {
            self.known.clear();
        }
        if let Some(hash) = hash {
            self.known.push_back((number, hash));
        }
        if self.known.len() > REMEMBERED {
            self.known.pop_front();
        }
        self.next = number.checked_add(1);
    }

    /// Forgets the last block, which is no longer in the chain, so that its number is next again.
    pub(super) fn forget_last(&mut self) {
        if let Some((number, _)) = self.known.pop_back() {
            self.next = Some(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_begins_at_the_given_block_unless_it_has_begun_before() {
        for (start, emitted, expected) in [
            (Start::At(5), None, 5),
            (Start::At(5), Some(7), 8),
            (Start::At(50), Some(7), 50),
            (Start::Behind(0), None, 100),
            (Start::Behind(10), None, 90),
            (Start::Behind(1000), None, 0),
            (Start::Behind(10), Some(7), 8),
        ] {
            let mut chain = Chain::default();
            if let Some(number) = emitted {
                chain.emitted(number, None);
            }
            chain.begin(start, 100);
            assert_eq!(chain.next(), Some(expected), "{start:?} {emitted:?}");
            chain.begin(Start::At(1_000), 100);
            assert_eq!(chain.next(), Some(expected), "only the first time");
        }
    }

    #[test]
    fn a_fork_is_seen_and_walked_back() {
        let mut chain = Chain::default();
        for number in 0..1000 {
            assert_eq!(chain.check(&format!("a{}", number - 1)), Next::Emit);
            chain.emitted(number as u64, Some(format!("a{number}")));
        }
        assert_eq!(chain.known.len(), REMEMBERED);
        assert_eq!(chain.check("b999"), Next::Forked);
        chain.forget_last();
        chain.forget_last();
        assert_eq!(chain.next(), Some(998));
        assert_eq!(chain.check("a997"), Next::Emit);
        chain.emitted(998, Some("b998".into()));
        assert_eq!(chain.last(), Some((998, "b998".into())));
        // As read back at start: a repeated number replaces the blocks after it.
        chain.emitted(990, Some("c990".into()));
        assert_eq!(
            (chain.last(), chain.next()),
            (Some((990, "c990".into())), Some(991))
        );
        chain.emitted(u64::MAX, None);
        assert_eq!((chain.last(), chain.next()), (None, None));
    }
}
