//! The costs of checks, and the choice of the next one.

/// The cost of a sum over n claims, in any unit: `fixed + each·n`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Cost of a sum, however few its claims.
    pub fixed: f64,
    /// Cost of each claim in it.
    pub each: f64,
}

/// The next question about claims whose sum is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// One more power sum over all of them.
    PowerSum,
    /// The sum over a half of them.
    Halve,
    /// Each for itself.
    Alone,
}

/// Most sets of places that are tried for a fit: some hundred microseconds to a millisecond.
const MAX_SETS: usize = 600;

// === impl Costs ===

impl Costs {
    pub(super) fn of(&self, claims: usize) -> f64 {
        self.fixed + self.each * claims as f64
    }

    /// Whether checking so many claims together is expected to cost less than checking each for itself at
    /// a price of `alone`, where each is false with the probability `share`.
    pub(crate) fn pays(&self, claims: usize, alone: f64, share: f64) -> bool {
        let share = share.clamp(0.0, 1.0);
        let each_alone = alone * claims as f64;
        let all_hold = (1.0 - share).powf(claims as f64);
        let expected = (share * claims as f64).clamp(1.0, claims as f64);
        let search = self
            .power_sums(claims, 1, expected, alone)
            .min(self.halving(claims, expected))
            .min(alone * (claims - 1) as f64);
        self.of(claims) + (1.0 - all_hold) * search < each_alone
    }

    /// The cheapest way on, with so many claims, `known` sums of them, so many false ones expected, which
    /// are at least as many as there are sums, and a price of `alone` for the value of one claim.
    pub(super) fn next_step(&self, claims: usize, known: usize, expected: f64, alone: f64) -> Step {
        let expected = expected.clamp(known as f64, claims as f64);
        let each_alone = alone * (claims - known) as f64;
        let halve = self.halving(claims, expected);
        let power_sum = self.power_sums(claims, known, expected, alone);
        if power_sum <= halve && power_sum <= each_alone {
            Step::PowerSum
        } else if halve <= each_alone {
            Step::Halve
        } else {
            Step::Alone
        }
    }

    /// Power sums until the false claims are located, and each of them checked for itself.
    fn power_sums(&self, claims: usize, known: usize, expected: f64, alone: f64) -> f64 {
        let bad = expected.ceil() as usize;
        if sets(claims, bad).is_none_or(|sets| sets > MAX_SETS) {
            return f64::INFINITY;
        }
        // k false claims take S₀ … Sₖ.
        (bad + 1 - known) as f64 * self.of(claims) + bad as f64 * alone
    }

    /// A sum for each left half of the tree that has a false claim below it.
    fn halving(&self, claims: usize, expected: f64) -> f64 {
        let mut cost = 0.0;
        let (mut nodes, mut size) = (1.0_f64, claims);
        while size > 1 {
            let half = size.div_ceil(2);
            cost += nodes.min(expected) * self.of(half);
            nodes *= 2.0;
            size = half;
        }
        cost
    }
}

/// The number of sets of `size` out of so many; none if it is beyond all use.
fn sets(claims: usize, size: usize) -> Option<usize> {
    (0..size).try_fold(1_usize, |sets, taken| {
        Some(sets.checked_mul(claims.checked_sub(taken)?)? / (taken + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_binomials() {
        assert_eq!(sets(16, 0), Some(1));
        assert_eq!(sets(16, 3), Some(560));
        assert_eq!(sets(64, 2), Some(2016));
        assert_eq!(sets(3, 4), Some(0));
        assert_eq!(sets(1024, 200), None);
    }

    #[test]
    fn together_pays_as_long_as_few_are_expected_to_be_false() {
        // A pairing's: one of a batch costs a fourth of a check, and the batch's own cost is five checks'.
        let pairing = Costs {
            fixed: 18.0,
            each: 1.0,
        };
        assert!(pairing.pays(64, 3.5, 0.01));
        assert!(!pairing.pays(6, 3.5, 0.1));
        assert!(!pairing.pays(4, 3.5, 0.0));
        // An IPA's, where a batch costs hardly more than a check.
        let ipa = Costs {
            fixed: 50.0,
            each: 1.0,
        };
        assert!(ipa.pays(2, 51.0, 0.01));
        assert!(ipa.pays(6, 51.0, 0.1));
        assert!(!ipa.pays(16, 51.0, 1.0));
    }

    #[test]
    fn where_one_claim_is_cheap_each_has_its_own_check_sooner() {
        let pairing = Costs {
            fixed: 30.0,
            each: 1.0,
        };
        assert_eq!(pairing.next_step(64, 1, 1.0, 7.0), Step::PowerSum);
        assert_eq!(pairing.next_step(20, 3, 3.0, 7.0), Step::Alone);
        assert_eq!(pairing.next_step(20, 3, 3.0, 31.0), Step::Halve);
    }

    #[test]
    fn where_a_check_costs_what_a_batch_does_one_bad_proof_is_located() {
        let costs = Costs {
            fixed: 50.0,
            each: 1.0,
        };
        assert_eq!(costs.next_step(16, 1, 1.0, 51.0), Step::PowerSum);
        assert_eq!(costs.next_step(16, 1, 16.0, 51.0), Step::Alone);
        // Of a thousand, one by one is never right while few are expected, at this price.
        assert_eq!(costs.next_step(1000, 3, 3.0, 51.0), Step::Halve);
    }
}
