//! Which block is next, and whether it follows the last.

use std::collections::VecDeque;

use crate::environment::Start;

/// Blocks whose hashes are remembered: how deep a fork is found exactly.
pub(crate) const REMEMBERED: usize = 256;

/// What was emitted, and what is next.
#[derive(Debug, Default)]
pub(super) struct Chain {
    next: Option<u64>,
    /// The last blocks that were emitted, without a gap.
    known: VecDeque<(u64, String)>,
    begun: bool,
}

/// What to do with the next block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Emit,
    /// Its parent is not the last block that was emitted.
    Forked,
}

// === impl Chain ===

impl Chain {
    /// Where to begin, if nothing was emitted; a block further on is obeyed all the same.
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

    /// The block that is emitted next; `None` before [`begin`](Self::begin), and after the last
    /// number there is.
    pub(super) fn next(&self) -> Option<u64> {
        self.next
    }

    /// The last block that was emitted, with its hash.
    pub(super) fn last(&self) -> Option<(u64, String)> {
        self.known.back().cloned()
    }

    /// Whether a block with this parent follows what was emitted.
    pub(super) fn check(&self, parent: &str) -> Next {
        match self.known.back() {
            Some((_, hash)) if hash != parent => Next::Forked,
            _ => Next::Emit,
        }
    }

    /// Takes note of a block that was emitted.
    pub(super) fn emitted(&mut self, number: u64, hash: Option<String>) {
        // After a fork numbers come again.
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

    /// The last block is no longer in the chain: it is next again.
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
    fn it_begins_where_it_is_told_unless_it_had_begun() {
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
        // As it is read back: numbers that come again replace those after them.
        chain.emitted(990, Some("c990".into()));
        assert_eq!(
            (chain.last(), chain.next()),
            (Some((990, "c990".into())), Some(991))
        );
        chain.emitted(u64::MAX, None);
        assert_eq!((chain.last(), chain.next()), (None, None));
    }
}
