//! Places of false claims, and values of the last ones, from power sums.

use ark_ec::PrimeGroup;
use ark_ff::{Field, Zero};

/// A place in its batch: the x of the power sums.
pub(super) type BatchPlace = usize;

/// The smallest set of places, of a size above `excluded`, such that false claims at these places explain the
/// sums S₀ … Sₘ. `None` if more than m claims are false.
pub(super) fn locate<V: PrimeGroup>(
    places: &[BatchPlace],
    sums: &[V],
    excluded: usize,
) -> Option<Vec<BatchPlace>> {
    (excluded + 1..sums.len()).find_map(|size| {
        let mut set = Vec::with_capacity(size);
        fits(places, sums, size, &mut set).then_some(set)
    })
}

/// Whether `size` of the places explain the sums. The search is depth first, and removes one place from
/// the sums at each level.
fn fits<V: PrimeGroup>(
    places: &[BatchPlace],
    sums: &[V],
    size: usize,
    set: &mut Vec<BatchPlace>,
) -> bool {
    if size == 0 {
        return sums.iter().all(Zero::is_zero);
    }
    places.iter().enumerate().any(|(number, place)| {
        // The sums without the terms of this place: S'ₖ = Sₖ₊₁ − x·Sₖ.
        let without: Vec<V> = match size {
            // The last place must make all sums zero, so one sum that it does not make zero rules it out.
            1 if sums[1] != times(sums[0], *place) => return false,
            _ => sums
                .windows(2)
                .map(|pair| pair[1] - times(pair[0], *place))
                .collect(),
        };
        set.push(*place);
        if fits(&places[number + 1..], &without, size - 1, set) {
            return true;
        }
        set.pop();
        false
    })
}

/// The values at as many places as there are sums, if all other values are zero: by Lagrange polynomials,
/// Dᵢ = Σₖ cᵢₖ·Sₖ, where Σₖ cᵢₖ·xᵏ is one at i and zero at the other places.
pub(super) fn solve<V: PrimeGroup>(places: &[BatchPlace], sums: &[V]) -> Vec<V> {
    places
        .iter()
        .map(|place| {
            let mut numerator = sums[..places.len()].to_vec();
            let mut denominator = V::ScalarField::from(1_u64);
            for other in places.iter().filter(|other| *other != place) {
                numerator = numerator
                    .windows(2)
                    .map(|pair| pair[1] - times(pair[0], *other))
                    .collect();
                denominator *= V::ScalarField::from(*place as u64) - scalar::<V>(*other);
            }
            let inverse = denominator.inverse().unwrap_or_default();
            numerator[0] * inverse
        })
        .collect()
}

/// Takes a claim's value out of the sums it is in.
pub(super) fn remove<V: PrimeGroup>(sums: &mut [V], place: BatchPlace, value: V) {
    let mut term = value;
    for sum in sums {
        *sum -= term;
        term = times(term, place);
    }
}

fn scalar<V: PrimeGroup>(place: BatchPlace) -> V::ScalarField {
    V::ScalarField::from(place as u64)
}

/// A small multiple.
fn times<V: PrimeGroup>(value: V, factor: BatchPlace) -> V {
    match factor {
        0 => V::zero(),
        1 => value,
        factor => value.mul_bigint([factor as u64]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_grumpkin::Projective as Point;
    use ark_std::UniformRand;

    fn sums(values: &[(BatchPlace, Point)], count: usize) -> Vec<Point> {
        let mut sums = vec![Point::zero(); count];
        for (place, value) in values {
            remove(&mut sums, *place, -*value);
        }
        sums
    }

    fn values(places: &[BatchPlace]) -> Vec<(BatchPlace, Point)> {
        let rng = &mut ark_std::test_rng();
        let draw = |place: &BatchPlace| (*place, Point::rand(rng));
        places.iter().map(draw).collect()
    }

    #[test]
    fn sums_locate_one_false_claim_less_than_their_number() {
        let all: Vec<_> = (0..12).collect();
        for set in [vec![0], vec![11], vec![3, 4], vec![0, 5, 11]] {
            let values = values(&set);
            for count in 1..=set.len() {
                assert_eq!(locate(&all, &sums(&values, count), 0), None, "{set:?}");
            }
            for count in set.len() + 1..set.len() + 3 {
                let found = locate(&all, &sums(&values, count), 0);
                assert_eq!(found.as_deref(), Some(&set[..]), "{count} sums");
            }
        }
    }

    #[test]
    fn sums_give_the_values_of_as_many_claims() {
        for set in [vec![7], vec![0, 1], vec![2, 9, 4], vec![5, 0, 63, 17]] {
            let values = values(&set);
            let expected: Vec<_> = values.iter().map(|(_, value)| *value).collect();
            assert_eq!(solve(&set, &sums(&values, set.len())), expected);
        }
    }
}
