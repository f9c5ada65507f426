//! The costs of checks, and the choice of the next one.

/// The cost of a sum over n claims, in any unit: `fixed + each·n`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Cost of a sum, independent of the number of claims.
    pub fixed: f64,
    /// Cost of each claim in the sum.
    pub each: f64,
}

/// The cost of checks of claims each for itself, in the unit of [`Costs`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoneCosts {
    /// Cost of one claim.
    pub one: f64,
    /// Claims that are checked side by side in less time than one after the other: at least 1.
    pub lanes: usize,
    /// Cost of `lanes` claims side by side.
    pub of_lanes: f64,
}

/// The next step of the search among claims whose sum is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Compute one more power sum over all the claims.
    PowerSum,
    /// Compute the sum over a half of the claims.
    Halve,
    /// Check each claim for itself.
    Alone,
}

/// Most sets of places that are tried for a fit, which takes between 100 µs and 1 ms.
const MAX_SETS: usize = 600;

// === impl LoneCosts ===

impl LoneCosts {
    /// Costs of a kind that checks one claim after the other.
    pub const fn one_by_one(one: f64) -> Self {
        Self {
            one,
            lanes: 1,
            of_lanes: one,
        }
    }

    /// Cost of `claims` claims: full vectors of lanes, and for the rest the cheaper of one more vector and single
    /// checks.
    pub(super) fn of(&self, claims: usize) -> f64 {
        let rest = self.one * (claims % self.lanes) as f64;
        self.of_lanes * (claims / self.lanes) as f64 + rest.min(self.of_lanes)
    }
}

// === impl Costs ===

impl Costs {
    pub(super) fn of(&self, claims: usize) -> f64 {
        self.fixed + self.each * claims as f64
    }

    /// Whether checking `claims` claims together is expected to cost less than checking each alone, if each is false
    /// with probability `share`.
    pub(crate) fn favors_together(&self, claims: usize, alone: LoneCosts, share: f64) -> bool {
        let share = share.clamp(0.0, 1.0);
        let each_alone = alone.of(claims);
        let all_hold = (1.0 - share).powf(claims as f64);
        let expected = (share * claims as f64).clamp(1.0, claims as f64);
        let search = self
            .power_sums(claims, 1, expected, alone)
            .min(self.halving(claims, expected))
            .min(alone.of(claims - 1));
        self.of(claims) + (1.0 - all_hold) * search < each_alone
    }

    /// The cheapest next step, given the number of claims, `known` sums over them, and the expected number of false
    /// ones, at least the number of sums. `alone` is the cost of claims' own values.
    pub(super) fn next_step(
        &self,
        claims: usize,
        known: usize,
        expected: f64,
        alone: LoneCosts,
    ) -> Step {
        let expected = expected.clamp(known as f64, claims as f64);
        let each_alone = alone.of(claims - known);
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
    fn power_sums(&self, claims: usize, known: usize, expected: f64, alone: LoneCosts) -> f64 {
        let bad = expected.ceil() as usize;
        if sets(claims, bad).is_none_or(|sets| sets > MAX_SETS) {
            return f64::INFINITY;
        }
        // k false claims take S₀ … Sₖ.
        (bad + 1 - known) as f64 * self.of(claims) + alone.of(bad)
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

/// The number of sets of `size` out of `claims` claims; `None` if it is too large to try them.
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

    /// Eight at a price of about three.
    const SIDE_BY_SIDE: LoneCosts = LoneCosts {
        one: 7.0,
        lanes: 8,
        of_lanes: 23.0,
    };

    #[test]
    fn lanes_are_filled() {
        let costs = [0, 1, 2, 3, 8, 9, 15, 16].map(|claims| SIDE_BY_SIDE.of(claims));
        assert_eq!(costs, [0.0, 7.0, 14.0, 21.0, 23.0, 30.0, 46.0, 46.0]);
        assert_eq!(LoneCosts::one_by_one(3.0).of(5), 15.0);
    }

    #[test]
    fn side_by_side_each_has_its_own_check_sooner() {
        let pairing = Costs {
            fixed: 20.0,
            each: 1.0,
        };
        // A tenth of these claims is expected to be false.
        assert!(!pairing.favors_together(64, SIDE_BY_SIDE, 0.1));
        assert!(pairing.favors_together(16, LoneCosts::one_by_one(7.0), 0.1));
        assert!(pairing.favors_together(64, SIDE_BY_SIDE, 0.01));
        assert_eq!(pairing.next_step(16, 2, 2.0, SIDE_BY_SIDE), Step::Alone);
    }

    #[test]
    fn claims_are_checked_together_while_few_false_ones_are_expected() {
        // A pairing's: one of a batch costs a fourth of a check, and the batch's own cost is five checks'.
        let pairing = Costs {
            fixed: 18.0,
            each: 1.0,
        };
        assert!(pairing.favors_together(64, LoneCosts::one_by_one(3.5), 0.01));
        assert!(!pairing.favors_together(6, LoneCosts::one_by_one(3.5), 0.1));
        assert!(!pairing.favors_together(4, LoneCosts::one_by_one(3.5), 0.0));
        // An IPA's, where a batch costs hardly more than a check.
        let ipa = Costs {
            fixed: 50.0,
            each: 1.0,
        };
        assert!(ipa.favors_together(2, LoneCosts::one_by_one(51.0), 0.01));
        assert!(ipa.favors_together(6, LoneCosts::one_by_one(51.0), 0.1));
        assert!(!ipa.favors_together(16, LoneCosts::one_by_one(51.0), 1.0));
    }

    #[test]
    fn where_one_claim_is_cheap_each_has_its_own_check_sooner() {
        let pairing = Costs {
            fixed: 30.0,
            each: 1.0,
        };
        assert_eq!(
            pairing.next_step(64, 1, 1.0, LoneCosts::one_by_one(7.0)),
            Step::PowerSum
        );
        assert_eq!(
            pairing.next_step(20, 3, 3.0, LoneCosts::one_by_one(7.0)),
            Step::Alone
        );
        assert_eq!(
            pairing.next_step(20, 3, 3.0, LoneCosts::one_by_one(31.0)),
            Step::Halve
        );
    }

    #[test]
    fn where_a_check_costs_what_a_batch_does_one_bad_proof_is_located() {
        let costs = Costs {
            fixed: 50.0,
            each: 1.0,
        };
        assert_eq!(
            costs.next_step(16, 1, 1.0, LoneCosts::one_by_one(51.0)),
            Step::PowerSum
        );
        assert_eq!(
            costs.next_step(16, 1, 16.0, LoneCosts::one_by_one(51.0)),
            Step::Alone
        );
        // For a thousand claims with few false ones expected, single checks are never the cheapest at
        // these costs.
        assert_eq!(
            costs.next_step(1000, 3, 3.0, LoneCosts::one_by_one(51.0)),
            Step::Halve
        );
    }
}
