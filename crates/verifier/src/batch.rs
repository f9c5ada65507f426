//! The check of one batch of claims of one kind: all together, then a search for the false ones.

use ark_ff::Zero;
use proofmill_kernels::NoRandomness;
use rayon::prelude::*;

use crate::isolation::{ExpectedFalseShare, Values, isolate};
use crate::kind::{Invalid, Kind};

/// The outcome of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The verdict of each claim, in their order.
    pub verdicts: Vec<Result<(), Invalid>>,
    /// The checks that it took.
    pub checks: Checks,
}

/// Checks by their kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Final checks of several claims together, the first of a batch included.
    pub together: u64,
    /// Final checks of one claim.
    pub alone: u64,
    /// Cheap checks of one claim ([`Kind::screen`]).
    pub screens: u64,
}

/// The most claims of a batch. Weights are multiplied by powers of a claim's place, up to the tenth.
pub const MAX_BATCH: usize = 1 << 10;

/// Checks claims together. The proofs must be fixed before the call, since it draws random weights.
///
/// # Errors
///
/// [`NoRandomness`] if the operating system gives no random numbers; no claim has a verdict then.
///
/// # Panics
///
/// If there are more claims than [`MAX_BATCH`].
pub fn check<K: Kind>(
    kind: &K,
    claims: &[&K::Claim],
    expected_false_share: ExpectedFalseShare,
) -> Result<Outcome, NoRandomness> {
    assert!(claims.len() <= MAX_BATCH, "a batch beyond the limit");
    let mut batch = Batch {
        kind,
        claims,
        weights: Vec::new(),
        checks: Checks::default(),
    };
    let verdicts = match claims {
        [] => Vec::new(),
        // Alone there is nothing to weigh, and the kind can say more.
        [claim] => {
            batch.checks.alone = 1;
            vec![kind.check(claim)]
        }
        _ if !kind.costs().favors_together(
            claims.len(),
            kind.costs_alone(),
            expected_false_share.0,
        ) =>
        {
            batch.checks.alone = claims.len() as u64;
            check_each(kind, claims)
        }
        _ => {
            batch.weights = kind.draw_weights(claims.len())?;
            batch.verdicts(expected_false_share)
        }
    };
    Ok(Outcome {
        verdicts,
        checks: batch.checks,
    })
}

fn check_each<K: Kind>(kind: &K, claims: &[&K::Claim]) -> Vec<Result<(), Invalid>> {
    let verdicts = kind.check_each(claims);
    assert_eq!(verdicts.len(), claims.len(), "a verdict for each claim");
    verdicts
}

struct Batch<'a, K: Kind> {
    kind: &'a K,
    claims: &'a [&'a K::Claim],
    weights: Vec<K::Weight>,
    checks: Checks,
}

/// A batch's claims among which the false ones are searched, by their places in the search.
struct CandidateValues<'a, 'b, K: Kind> {
    batch: &'a mut Batch<'b, K>,
    indices: &'a [usize],
}

// === impl CandidateValues ===

impl<K: Kind> Values<K::Value> for CandidateValues<'_, '_, K> {
    fn sum(&mut self, places: &[usize], k: u32) -> K::Value {
        let members: Vec<_> = places
            .iter()
            .map(|place| (self.indices[*place], *place))
            .collect();
        self.batch.power_sum(&members, k)
    }

    fn each(&mut self, places: &[usize]) -> Vec<K::Value> {
        self.batch.checks.alone += places.len() as u64;
        let Batch {
            kind,
            claims,
            weights,
            ..
        } = &*self.batch;
        let weighted = |place: &usize| {
            let index = self.indices[*place];
            (claims[index], kind.times(&weights[index], 1))
        };
        let weighted: Vec<_> = places.iter().map(weighted).collect();
        let values = kind.value_each(&weighted);
        assert_eq!(values.len(), places.len(), "a value for each claim");
        values
    }
}

// === impl Batch ===

impl<K: Kind> Batch<'_, K> {
    fn verdicts(&mut self, expected_false_share: ExpectedFalseShare) -> Vec<Result<(), Invalid>> {
        let mut verdicts = vec![Ok(()); self.claims.len()];
        let mut suspects: Vec<_> = (0..self.claims.len()).collect();
        let is_screened = self.screens_first(expected_false_share);
        if is_screened {
            suspects = self.screen(&mut verdicts);
        }
        if suspects.is_empty() {
            return verdicts;
        }
        let mut total = self.sum(&suspects, 0);
        if total.is_zero() {
            return verdicts;
        }
        if !is_screened {
            let rest = self.screen(&mut verdicts);
            if rest.is_empty() {
                return verdicts;
            }
            if rest.len() < suspects.len() {
                total = self.sum(&rest, 0);
                suspects = rest;
            }
        }
        let (count, costs, alone) = (suspects.len(), self.kind.costs(), self.kind.costs_alone());
        let values = CandidateValues {
            batch: self,
            indices: &suspects,
        };
        for place in isolate(count, total, costs, alone, expected_false_share, values) {
            verdicts[suspects[place]] = Err(Invalid("the final check fails".into()));
        }
        verdicts
    }

    /// Whether to screen before the first sum, which is then over fewer claims: if a false one is expected,
    /// or the first claim is one. A batch of false ones alone takes no sum then.
    fn screens_first(&mut self, expected_false_share: ExpectedFalseShare) -> bool {
        if expected_false_share.0 * self.claims.len() as f64 >= 0.5 {
            return true;
        }
        let probe = self.kind.screen(self.claims[0]);
        self.checks.screens += u64::from(probe.is_some());
        matches!(probe, Some(Err(_)))
    }

    /// Applies the kind's cheap check, sets the verdicts of claims that fail it, and returns the other claims' indices.
    fn screen(&mut self, verdicts: &mut [Result<(), Invalid>]) -> Vec<usize> {
        let kind = self.kind;
        let results: Vec<_> = self
            .claims
            .par_iter()
            .map(|claim| kind.screen(claim))
            .collect();
        let mut rest = Vec::with_capacity(self.claims.len());
        for (index, result) in results.into_iter().enumerate() {
            self.checks.screens += u64::from(result.is_some());
            match result {
                Some(Err(reason)) => verdicts[index] = Err(reason),
                Some(Ok(())) | None => rest.push(index),
            }
        }
        rest
    }

    fn sum(&mut self, indices: &[usize], power: u32) -> K::Value {
        let members: Vec<_> = indices.iter().map(|index| (*index, *index)).collect();
        self.power_sum(&members, power)
    }

    /// The values of claims by their index, each times a power of its place.
    fn power_sum(&mut self, members: &[(usize, usize)], power: u32) -> K::Value {
        match members {
            [_] => self.checks.alone += 1,
            _ => self.checks.together += 1,
        }
        let weighted: Vec<_> = members
            .iter()
            .map(|(index, place)| {
                let mut weight = self.kind.times(&self.weights[*index], 1);
                for _ in 0..power {
                    weight = self.kind.times(&weight, *place as u64);
                }
                (self.claims[*index], weight)
            })
            .collect();
        self.kind.value(&weighted)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ark_ff::UniformRand;
    use ark_grumpkin::{Fr, Projective};

    use super::*;
    use crate::isolation::{Costs, LoneCosts};
    use crate::kind::UnusableKey;

    /// Claims are points that hold if they are zero.
    struct Points {
        costs: Costs,
        alone: LoneCosts,
        has_screen: bool,
    }

    impl Kind for Points {
        type Key = ();
        type Claim = Projective;
        type Weight = Fr;
        type Value = Projective;

        fn name(&self) -> &str {
            "points"
        }
        fn has_keys(&self) -> bool {
            false
        }
        fn read_key(&self, _: &[u8]) -> Result<(), UnusableKey> {
            Ok(())
        }
        fn reduce(&self, _: Option<&Arc<()>>, _: &[u8], _: &[u8]) -> Result<Projective, Invalid> {
            Ok(Projective::zero())
        }
        fn draw_weights(&self, count: usize) -> Result<Vec<Fr>, NoRandomness> {
            let rng = &mut ark_std::test_rng();
            Ok((0..count).map(|_| Fr::rand(rng)).collect())
        }
        fn times(&self, weight: &Fr, factor: u64) -> Fr {
            *weight * Fr::from(factor)
        }
        fn value(&self, claims: &[(&Projective, Fr)]) -> Projective {
            claims.iter().map(|(claim, weight)| **claim * weight).sum()
        }
        fn check(&self, claim: &Projective) -> Result<(), Invalid> {
            match claim.is_zero() {
                true => Ok(()),
                false => Err(Invalid("not zero".into())),
            }
        }
        fn screen(&self, claim: &Projective) -> Option<Result<(), Invalid>> {
            self.has_screen.then(|| self.check(claim))
        }
        fn costs(&self) -> Costs {
            self.costs
        }
        fn costs_alone(&self) -> LoneCosts {
            self.alone
        }
    }

    const IPA: Points = Points {
        costs: Costs {
            fixed: 50.0,
            each: 1.0,
        },
        alone: LoneCosts::one_by_one(51.0),
        has_screen: true,
    };
    const PAIRING: Points = Points {
        costs: Costs {
            fixed: 18.0,
            each: 1.0,
        },
        alone: LoneCosts::one_by_one(3.5),
        has_screen: false,
    };

    /// Costs like those of Groth16: eight single checks side by side take the time of three.
    const SIDE_BY_SIDE: Points = Points {
        costs: Costs {
            fixed: 14.0,
            each: 1.0,
        },
        alone: LoneCosts {
            one: 7.5,
            lanes: 8,
            of_lanes: 21.5,
        },
        has_screen: false,
    };

    /// Checks a batch with these false claims and asserts that the verdicts are right.
    fn run(kind: &Points, count: usize, bad: &[usize], expected_false_share: f64) -> Checks {
        let rng = &mut ark_std::test_rng();
        let claims: Vec<_> = (0..count)
            .map(|place| match bad.contains(&place) {
                true => Projective::rand(rng),
                false => Projective::zero(),
            })
            .collect();
        let references: Vec<_> = claims.iter().collect();
        let outcome = check(kind, &references, ExpectedFalseShare(expected_false_share)).unwrap();
        for (place, verdict) in outcome.verdicts.iter().enumerate() {
            assert_eq!(verdict.is_err(), bad.contains(&place), "{place} of {bad:?}");
        }
        outcome.checks
    }

    fn checks(together: u64, alone: u64, screens: u64) -> Checks {
        Checks {
            together,
            alone,
            screens,
        }
    }

    #[test]
    fn one_false_claim_of_sixteen_takes_one_more_sum() {
        for place in 0..16 {
            assert_eq!(run(&PAIRING, 16, &[place], 0.01), checks(2, 1, 0));
            assert_eq!(run(&SIDE_BY_SIDE, 16, &[place], 0.01), checks(2, 1, 0));
        }
    }

    #[test]
    fn a_batch_of_false_claims_takes_at_most_one_more_check_for_each() {
        for count in [2, 5, 16, 64] {
            let all: Vec<_> = (0..count).collect();
            for expected_false_share in [0.0, 0.01, 0.1, 1.0] {
                for kind in [&PAIRING, &SIDE_BY_SIDE] {
                    let made = run(kind, count, &all, expected_false_share);
                    assert!(made.together + made.alone <= 1 + count as u64, "{made:?}");
                }
            }
        }
    }

    #[test]
    fn each_claim_is_checked_alone_where_many_false_ones_are_expected() {
        assert_eq!(run(&PAIRING, 6, &[2], 0.1), checks(0, 6, 0));
        assert_eq!(run(&PAIRING, 3, &[], 0.01), checks(0, 3, 0));
        assert_eq!(run(&PAIRING, 32, &[], 0.01), checks(1, 0, 0));
        assert_eq!(run(&SIDE_BY_SIDE, 64, &[], 0.01), checks(1, 0, 0));
        assert_eq!(run(&SIDE_BY_SIDE, 16, &[], 0.01), checks(1, 0, 0));
        assert_eq!(run(&SIDE_BY_SIDE, 8, &[5], 0.01), checks(0, 8, 0));
        assert_eq!(run(&SIDE_BY_SIDE, 64, &[5], 0.1), checks(0, 64, 0));
    }

    #[test]
    fn screened_claims_take_no_sum() {
        let all: Vec<_> = (0..16).collect();
        assert_eq!(run(&IPA, 16, &all, 0.01), checks(0, 0, 17));
        assert_eq!(run(&IPA, 6, &[1, 4], 0.1), checks(1, 0, 6));
        assert_eq!(run(&IPA, 16, &[], 0.01), checks(1, 0, 1));
        // A false claim among claims that were expected to be valid.
        assert_eq!(run(&IPA, 16, &[3], 0.01), checks(2, 0, 17));
    }
}
