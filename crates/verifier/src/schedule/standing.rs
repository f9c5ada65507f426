//! The trust in a source to send valid proofs.

/// The record of a source's proofs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Standing {
    /// False proofs that have not been made up for; 0 is good standing.
    level: u8,
    /// Valid proofs since the last false one, or since the level last fell.
    streak: u32,
    /// The share of false proofs, as an average in which recent proofs count most.
    false_share: f64,
    /// Proofs seen so far, up to the maximum that is counted.
    seen: u8,
}

/// Valid proofs in a row that make up for a false one.
const STREAK_PROOFS: u32 = 16;
/// The most false proofs that are held against a source.
const MAX_LEVEL: u8 = 16;
/// The weight of the newest proof in the average of false proofs.
const SHARE_WEIGHT: f64 = 1.0 / 16.0;
/// Proofs of an unknown source that may be in work at a time until that many have been seen.
const FIRST_PROOFS: u8 = 4;
/// Number of proofs after which a source counts as known, so that its proofs in work are no longer limited.
const KNOWN_PROOFS: u8 = 16;
/// The share of false proofs from which on batches cost more than single checks.
const HOPELESS_SHARE: f64 = 0.3;
/// The fewest proofs of such a source in one job, which checks each alone unless the kind's screen refuses it. With
/// one proof for each job, handing it over would take as long as refusing it by a screen.
const HOPELESS_BATCH_MIN: usize = 4;

// === impl Standing ===

impl Standing {
    pub(super) fn record(&mut self, is_valid: bool) {
        let value = if is_valid { 0.0 } else { 1.0 };
        self.seen = self.seen.saturating_add(1);
        self.false_share += (value - self.false_share) * SHARE_WEIGHT;
        if !is_valid {
            self.level = (self.level + 1).min(MAX_LEVEL);
            self.streak = 0;
        } else if self.level > 0 {
            self.streak += 1;
            if self.streak == STREAK_PROOFS {
                self.level -= 1;
                self.streak = 0;
            }
        }
    }

    pub(super) fn is_good(&self) -> bool {
        self.level == 0
    }

    /// The most of the source's proofs in work at a time beside those of other sources: few in the trusted lane as
    /// long as few of its proofs have been seen. Searching a large batch of false proofs is expensive, and so is
    /// reducing a flood of them before the first verdict.
    pub(super) fn allowance(&self) -> usize {
        match self.seen {
            _ if !self.is_good() => usize::MAX,
            0..FIRST_PROOFS => usize::from(FIRST_PROOFS),
            FIRST_PROOFS..KNOWN_PROOFS => usize::from(KNOWN_PROOFS),
            KNOWN_PROOFS.. => usize::MAX,
        }
    }

    pub(super) fn false_share(&self) -> f64 {
        self.false_share
    }

    /// The number of the source's proofs to check together, at most `most`; it falls as the expected share p of
    /// false proofs rises. If each proof of a failed batch is then checked alone, a batch of 1/√p needs the fewest
    /// checks (Dorfman, "The Detection of Defective Members of Large Populations", 1943). Here false proofs are
    /// found by a search, which allows for twice as many. The number is not below `lanes`, the number of proofs that
    /// the kind checks alone side by side.
    pub(super) fn batch(&self, most: usize, lanes: usize) -> usize {
        let least = HOPELESS_BATCH_MIN.max(lanes);
        if self.false_share >= HOPELESS_SHARE {
            return most.min(least);
        }
        let best = 2.0 / self.false_share.sqrt();
        if best >= most as f64 {
            most
        } else {
            (best as usize).max(least).min(most)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_behaviour_makes_up_for_each_false_proof() {
        let mut standing = Standing::default();
        assert!(standing.is_good());
        assert_eq!(standing.batch(64, 1), 64);
        standing.record(false);
        standing.record(false);
        for _ in 0..2 * STREAK_PROOFS - 1 {
            standing.record(true);
            assert!(!standing.is_good());
        }
        standing.record(true);
        assert!(standing.is_good());
    }

    #[test]
    fn one_false_proof_in_each_streak_is_not_made_up_for() {
        let mut standing = Standing::default();
        standing.record(false);
        for number in 1..1000 {
            standing.record(number % STREAK_PROOFS != 0);
            assert!(!standing.is_good());
        }
    }

    #[test]
    fn a_source_is_known_by_its_first_proofs() {
        let mut standing = Standing::default();
        for number in 0..1000 {
            let expected = match number {
                0..4 => 4,
                4..16 => 16,
                _ => usize::MAX,
            };
            assert_eq!(standing.allowance(), expected);
            standing.record(true);
        }
    }

    #[test]
    fn batches_shrink_as_more_proofs_are_false() {
        let mut standing = Standing::default();
        let mut last = 64;
        for _ in 0..8 {
            standing.record(false);
            let batch = standing.batch(64, 1);
            assert!(batch <= last);
            last = batch;
        }
        assert_eq!(last, HOPELESS_BATCH_MIN);
        assert_eq!(standing.batch(2, 1), 2);
        assert_eq!(standing.batch(64, 8), 8);
        assert_eq!(standing.batch(2, 8), 2);
    }
}
