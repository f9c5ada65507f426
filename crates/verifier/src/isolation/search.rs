//! The search itself.

use ark_ec::PrimeGroup;

use super::Costs;
use super::costs::Step;
use super::locate::{Place, locate, remove, solve};

/// The share of claims that is expected to be false, from 0 to 1, before anything is known of the
/// batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Suspicion(pub f64);

/// Claims that a suspicion counts as.
const SUSPICION_WEIGHT: f64 = 8.0;

/// The places of the false claims among `count`, ascending, whose values add up to `total`.
///
/// `sum(places, k)` is Σ xᵏ·Dₓ over the places x. It is asked at most `count − 1` times, whatever is
/// false, and each time over at most as many claims as remain in doubt. A claim is called false only
/// if its own value is known not to be zero: by a sum over it alone, or as what is left of a sum when all
/// the others' values are known.
pub fn isolate<V: PrimeGroup>(
    count: usize,
    total: V,
    costs: Costs,
    suspicion: Suspicion,
    sum: impl FnMut(&[Place], u32) -> V,
) -> Vec<Place> {
    let places: Vec<_> = (0..count).collect();
    let mut search = Search {
        sum,
        costs,
        cleared: (1.0 - suspicion.0.clamp(0.0, 1.0)) * SUSPICION_WEIGHT,
        convicted: suspicion.0.clamp(0.0, 1.0) * SUSPICION_WEIGHT,
        found: Vec::new(),
    };
    search.among(&places, vec![total], 0);
    let mut found: Vec<_> = search.found.iter().map(|(place, _)| *place).collect();
    found.sort_unstable();
    found
}

struct Search<V, F> {
    sum: F,
    costs: Costs,
    /// Claims known to hold, and those that were expected to before.
    cleared: f64,
    /// Claims known to be false, and those that were expected to be before.
    convicted: f64,
    found: Vec<(Place, V)>,
}

// === impl Search ===

impl<V: PrimeGroup, F: FnMut(&[Place], u32) -> V> Search<V, F> {
    /// Finds those among `places`, whose first power sums are known, and of which more than `excluded`
    /// are false if any is.
    fn among(&mut self, places: &[Place], mut sums: Vec<V>, mut excluded: usize) {
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
            match self.costs.next_step(places.len(), sums.len(), expected) {
                Step::PowerSum => sums.push((self.sum)(places, sums.len() as u32)),
                Step::Halve => return self.halve(places, sums, excluded),
                Step::Alone => return self.alone(places, sums),
            }
        }
    }

    /// Asks for each of the places that a fit names; the rest then sums to zero.
    fn confirm(&mut self, places: &[Place], set: &[Place], mut sums: Vec<V>) {
        let mut rest = places.to_vec();
        for place in set {
            if rest.len() <= sums.len() {
                break;
            }
            let value = (self.sum)(&[*place], 0);
            self.settle(*place, value);
            remove(&mut sums, *place, value);
            rest.retain(|other| other != place);
        }
        // Unless the fit was a coincidence, that is the end.
        self.among(&rest, sums, 0);
    }

    fn halve(&mut self, places: &[Place], mut sums: Vec<V>, excluded: usize) {
        let (left, right) = places.split_at(places.len() / 2);
        let first = (self.sum)(left, 0);
        let before = self.found.len();
        self.among(left, vec![first], 0);
        for (place, value) in &self.found[before..] {
            remove(&mut sums, *place, *value);
        }
        let none_left = self.found.len() == before;
        self.among(right, sums, if none_left { excluded } else { 0 });
    }

    /// Asks for one after the other, until the rest sums to zero or follows from the sums.
    fn alone(&mut self, places: &[Place], mut sums: Vec<V>) {
        let mut rest = places;
        while let [place, others @ ..] = rest
            && rest.len() > sums.len()
            && !sums[0].is_zero()
        {
            let value = (self.sum)(&[*place], 0);
            self.settle(*place, value);
            remove(&mut sums, *place, value);
            rest = others;
        }
        if sums[0].is_zero() {
            self.cleared += rest.len() as f64;
        } else {
            self.conclude(rest, &sums);
        }
    }

    /// No more places than sums: their values follow.
    fn conclude(&mut self, places: &[Place], sums: &[V]) {
        for (place, value) in places.iter().zip(solve(places, sums)) {
            self.settle(*place, value);
        }
    }

    fn settle(&mut self, place: Place, value: V) {
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

    /// What was found, and how many sums of one and of more claims it took.
    fn run(
        count: usize,
        bad: &[usize],
        costs: Costs,
        suspicion: f64,
    ) -> (Vec<usize>, usize, usize) {
        let rng = &mut ark_std::test_rng();
        let mut values = vec![Point::zero(); count];
        for place in bad {
            values[*place] = Point::rand(rng);
        }
        let (mut alone, mut together) = (0, 0);
        let found = isolate(
            count,
            values.iter().sum::<Point>(),
            costs,
            Suspicion(suspicion),
            |places, power| {
                *if places.len() == 1 {
                    &mut alone
                } else {
                    &mut together
                } += 1;
                let term = |place: &usize| {
                    values[*place]
                        * <Point as PrimeGroup>::ScalarField::from((*place as u128).pow(power))
                };
                places.iter().map(term).sum()
            },
        );
        (found, alone, together)
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
                for suspicion in [0.0, 0.1, 1.0] {
                    let all: Vec<_> = (0..count).collect();
                    let (found, alone, together) = run(count, &all, costs, suspicion);
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
            suspicion in 0.0..1.0_f64,
        ) {
            let mut bad: Vec<_> = seed.iter().map(|index| index.index(count)).collect();
            bad.sort_unstable();
            bad.dedup();
            let (found, alone, together) = run(count, &bad, COSTS[costs], suspicion);
            prop_assert_eq!(found, bad);
            prop_assert!(alone + together < count.max(2), "{} and {}", alone, together);
        }
    }
}
