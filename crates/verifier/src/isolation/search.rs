//! The search itself.

use ark_ec::PrimeGroup;

use super::costs::Step;
use super::locate::{BatchPlace, locate, remove, solve};
use super::{Costs, LoneCosts};

/// The share of claims that is expected to be false, from 0 to 1, before anything is known of the
/// batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedFalseShare(pub f64);

/// Claims that the expected share of false ones counts as.
const EXPECTED_SHARE_WEIGHT: f64 = 8.0;

/// Source of the claims' values and power sums that a search needs.
pub trait Values<V> {
    /// Σ xᵏ·Dₓ over the places x.
    fn sum(&mut self, places: &[BatchPlace], k: u32) -> V;

    /// Dₓ for each of the places.
    fn each(&mut self, places: &[BatchPlace]) -> Vec<V>;
}

/// The places of the false claims among `count`, ascending, whose values add up to `total`. `alone` is what claims'
/// own values cost.
///
/// The search computes at most `count − 1` sums and values in any case, and each sum is over at most the claims
/// that remain in doubt. A claim is reported false only if its own value is known not to be zero: it was
/// computed, or follows from a sum and the values of all other claims in it.
pub fn isolate<V: PrimeGroup>(
    count: usize,
    total: V,
    costs: Costs,
    alone: LoneCosts,
    expected_false_share: ExpectedFalseShare,
    values: impl Values<V>,
) -> Vec<BatchPlace> {
    let places: Vec<_> = (0..count).collect();
    let mut search = Search {
        values,
        costs,
        alone,
        cleared: (1.0 - expected_false_share.0.clamp(0.0, 1.0)) * EXPECTED_SHARE_WEIGHT,
        convicted: expected_false_share.0.clamp(0.0, 1.0) * EXPECTED_SHARE_WEIGHT,
        found: Vec::new(),
    };
    search.among(&places, vec![total], 0);
    let mut found: Vec<_> = search.found.iter().map(|(place, _)| *place).collect();
    found.sort_unstable();
    found
}

struct Search<V, F> {
    values: F,
    costs: Costs,
    alone: LoneCosts,
    /// Claims known to hold, and those that were expected to before.
    cleared: f64,
    /// Claims known to be false, and those that were expected to be before.
    convicted: f64,
    found: Vec<(BatchPlace, V)>,
}

// === impl Search ===

impl<V: PrimeGroup, F: Values<V>> Search<V, F> {
    /// Finds the false claims among `places`, whose first power sums are known; more than `excluded` of them
    /// are false, or none.
    fn among(&mut self, places: &[BatchPlace], mut sums: Vec<V>, mut excluded: usize) {
        if sums[0].is_zero() {
            self.cleared += places.len() as f64;
            return;
        }
        loop {
            if places.len() <= sums.len() {
                return self.conclude(places, &sums);
            }
            if let Some(set) = locate(places, &sums, excluded) {
                return self.confirm(places, &set, sums);
            }
            excluded = sums.len() - 1;
            let share = self.convicted / (self.convicted + self.cleared);
            let expected = share * places.len() as f64;
            let step = self
                .costs
                .next_step(places.len(), sums.len(), expected, self.alone);
            match step {
                Step::PowerSum => sums.push(self.values.sum(places, sums.len() as u32)),
                Step::Halve => return self.halve(places, sums, excluded),
                Step::Alone => return self.alone(places, sums),
            }
        }
    }

    /// Asks for each of the places that a fit names; the rest then sums to zero.
    fn confirm(&mut self, places: &[BatchPlace], set: &[BatchPlace], mut sums: Vec<V>) {
        // The other values then follow from the sums.
        let asked = &set[..set.len().min(places.len() - sums.len())];
        self.ask(asked, &mut sums);
        let rest: Vec<_> = places
            .iter()
            .filter(|place| !asked.contains(place))
            .copied()
            .collect();
        // Unless the fit was a coincidence, that is the end.
        self.among(&rest, sums, 0);
    }

    fn halve(&mut self, places: &[BatchPlace], mut sums: Vec<V>, excluded: usize) {
        let (left, right) = places.split_at(places.len() / 2);
        let first = self.values.sum(left, 0);
        let before = self.found.len();
        self.among(left, vec![first], 0);
        for (place, value) in &self.found[before..] {
            remove(&mut sums, *place, *value);
        }
        let none_left = self.found.len() == before;
        self.among(right, sums, if none_left { excluded } else { 0 });
    }

    /// Computes each claim's value, except for those that then follow from the sums.
    fn alone(&mut self, places: &[BatchPlace], mut sums: Vec<V>) {
        let (asked, rest) = places.split_at(places.len() - sums.len());
        self.ask(asked, &mut sums);
        if sums[0].is_zero() {
            self.cleared += rest.len() as f64;
        } else {
            self.conclude(rest, &sums);
        }
    }

    /// Asks for the values of these places, and takes them from the sums.
    fn ask(&mut self, places: &[BatchPlace], sums: &mut [V]) {
        let values = self.values.each(places);
        for (place, value) in places.iter().zip(values) {
            self.settle(*place, value);
            remove(sums, *place, value);
        }
    }

    /// Computes the values of at most as many places as there are sums.
    fn conclude(&mut self, places: &[BatchPlace], sums: &[V]) {
        for (place, value) in places.iter().zip(solve(places, sums)) {
            self.settle(*place, value);
        }
    }

    fn settle(&mut self, place: BatchPlace, value: V) {
        if value.is_zero() {
            self.cleared += 1.0;
        } else {
            self.convicted += 1.0;
            self.found.push((place, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{UniformRand, Zero};
    use ark_grumpkin::Projective as Point;
    use proptest::prelude::*;

    const COSTS: [Costs; 3] = [
        // An IPA's, a pairing's, and one by one as cheap as together.
        Costs {
            fixed: 50.0,
            each: 1.0,
        },
        Costs {
            fixed: 8.0,
            each: 1.0,
        },
        Costs {
            fixed: 0.0,
            each: 1.0,
        },
    ];

    /// Values, with counts of those computed for one claim and of sums over several.
    struct Counted {
        points: Vec<Point>,
        alone: usize,
        together: usize,
    }

    impl Values<Point> for &mut Counted {
        fn sum(&mut self, places: &[BatchPlace], k: u32) -> Point {
            *if places.len() == 1 {
                &mut self.alone
            } else {
                &mut self.together
            } += 1;
            let power = |place: BatchPlace| {
                <Point as PrimeGroup>::ScalarField::from((place as u128).pow(k))
            };
            let terms = places
                .iter()
                .map(|place| self.points[*place] * power(*place));
            terms.sum()
        }

        fn each(&mut self, places: &[BatchPlace]) -> Vec<Point> {
            self.alone += places.len();
            places.iter().map(|place| self.points[*place]).collect()
        }
    }

    /// Searches for the bad claims. Returns those found, the number of sums of one claim, and that of sums of several.
    fn run(
        count: usize,
        bad: &[usize],
        costs: Costs,
        expected_false_share: f64,
    ) -> (Vec<usize>, usize, usize) {
        let rng = &mut ark_std::test_rng();
        let mut points = vec![Point::zero(); count];
        for place in bad {
            points[*place] = Point::rand(rng);
        }
        let total = points.iter().sum::<Point>();
        let mut counted = Counted {
            points,
            alone: 0,
            together: 0,
        };
        let alone = LoneCosts::one_by_one(costs.fixed + costs.each);
        let expected_false_share = ExpectedFalseShare(expected_false_share);
        let found = isolate(
            count,
            total,
            costs,
            alone,
            expected_false_share,
            &mut counted,
        );
        (found, counted.alone, counted.together)
    }

    #[test]
    fn one_in_sixteen_takes_one_more_sum() {
        for place in 0..16 {
            let (found, alone, together) = run(16, &[place], COSTS[0], 0.0);
            assert_eq!((found, alone, together), (vec![place], 1, 1));
        }
    }

    #[test]
    fn two_in_sixteen_take_two_more_sums() {
        let (found, alone, together) = run(16, &[3, 12], COSTS[0], 0.0);
        assert_eq!((found, alone, together), (vec![3, 12], 2, 2));
    }

    #[test]
    fn all_take_fewer_sums_than_there_are_claims() {
        for costs in COSTS {
            for count in [2, 3, 16, 33, 64] {
                for expected_false_share in [0.0, 0.1, 1.0] {
                    let all: Vec<_> = (0..count).collect();
                    let (found, alone, together) = run(count, &all, costs, expected_false_share);
                    assert_eq!(found, all);
                    assert!(alone + together < count, "{count}: {alone} and {together}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn finds_exactly_the_false_ones(
            count in 1_usize..65,
            seed in prop::collection::vec(any::<prop::sample::Index>(), 1..65),
            costs in 0..COSTS.len(),
            expected_false_share in 0.0..1.0_f64,
        ) {
            let mut bad: Vec<_> = seed.iter().map(|index| index.index(count)).collect();
            bad.sort_unstable();
            bad.dedup();
            let (found, alone, together) = run(count, &bad, COSTS[costs], expected_false_share);
            prop_assert_eq!(found, bad);
            prop_assert!(alone + together < count.max(2), "{} and {}", alone, together);
        }
    }
}
