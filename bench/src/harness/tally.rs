//! Counts of received blocks: distinct, repeated, missing and out of order.

/// Received blocks, counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    seen: Vec<u32>,
    distinct: u64,
    next: u64,
    out_of_order: usize,
}

// === impl Tally ===

impl Tally {
    /// Adds a received block.
    pub(crate) fn add(&mut self, block: u64) {
        self.out_of_order += usize::from(block != self.next);
        self.next = block + 1;
        let at = usize::try_from(block).expect("as many blocks as fit in memory");
        if self.seen.len() <= at {
            self.seen.resize(at + 1, 0);
        }
        self.seen[at] += 1;
        self.distinct += u64::from(self.seen[at] == 1);
    }

    /// Number of distinct blocks.
    pub(crate) fn distinct(&self) -> u64 {
        self.distinct
    }

    /// Number of repetitions.
    pub(crate) fn duplicated(&self) -> usize {
        let again = |count: &u32| count.saturating_sub(1) as usize;
        self.seen.iter().map(again).sum()
    }

    /// Number of blocks below `end` that are missing.
    pub(crate) fn lost(&self, end: u64) -> usize {
        let came = self
            .seen
            .iter()
            .zip(0..end)
            .filter(|(count, _)| **count > 0);
        usize::try_from(end).unwrap_or(usize::MAX) - came.count()
    }

    /// Number of blocks that did not follow the one before, counting from 0.
    pub(crate) fn out_of_order(&self) -> usize {
        self.out_of_order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_repeats_and_disorder_are_counted() {
        let mut tally = Tally::default();
        for block in [0, 1, 3, 3, 2] {
            tally.add(block);
        }
        assert_eq!(tally.distinct(), 4);
        assert_eq!(tally.duplicated(), 1);
        assert_eq!(tally.lost(6), 2);
        assert_eq!(tally.out_of_order(), 3);
    }
}
