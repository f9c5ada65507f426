//! The recent blocks of a chain that were submitted.

use std::collections::VecDeque;

/// The last blocks submitted, without a gap, with their hashes.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    known: VecDeque<(u64, String)>,
    depth: usize,
}

// === impl Chain ===

impl Chain {
    /// A record of up to `depth` blocks.
    pub(super) fn new(depth: usize) -> Self {
        Self {
            known: VecDeque::new(),
            depth,
        }
    }

    /// The last block.
    pub(super) fn last(&self) -> Option<&(u64, String)> {
        self.known.back()
    }

    /// Whether block `number` with this parent hash follows the recorded blocks, as far as is
    /// known.
    pub(super) fn is_followed_by(&self, number: u64, parent: &str) -> bool {
        match self.known.back() {
            Some((last, hash)) if last + 1 == number => hash == parent,
            _ => true,
        }
    }

    /// Records a block that was submitted.
    pub(super) fn push(&mut self, number: u64, hash: String) {
        if self
            .known
            .back()
            .is_some_and(|(last, _)| last + 1 != number)
        {
            self.known.clear();
        }
        self.known.push_back((number, hash));
        if self.known.len() > self.depth {
            self.known.pop_front();
        }
    }

    /// Removes the last block, which is no longer in the chain.
    pub(super) fn pop(&mut self) {
        self.known.pop_back();
    }

    /// Removes the blocks from `number` on.
    pub(super) fn truncate(&mut self, number: u64) {
        while self.known.back().is_some_and(|(last, _)| *last >= number) {
            self.known.pop_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_what_follows_as_far_back_as_it_remembers() {
        let mut chain = Chain::new(3);
        assert!(chain.is_followed_by(7, "anything"));
        for number in 7..12_u64 {
            assert!(chain.is_followed_by(number, &format!("a{}", number.wrapping_sub(1))));
            chain.push(number, format!("a{number}"));
        }
        assert!(!chain.is_followed_by(12, "b11"));
        assert_eq!(chain.known.len(), 3);
        chain.truncate(11);
        assert_eq!(chain.last(), Some(&(10, "a10".to_owned())));
        chain.pop();
        assert!(chain.is_followed_by(10, "a9") && !chain.is_followed_by(10, "b9"));
        // After a gap the earlier blocks no longer count.
        chain.push(20, "a20".to_owned());
        assert_eq!(chain.known.len(), 1);
    }
}
