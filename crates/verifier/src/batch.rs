//! One batch of claims of one kind: checked together, the false ones found.

use ark_ff::Zero;

use crate::isolation::{Suspicion, isolate};
use crate::kind::{Invalid, Kind, NoRandomness};

/// What a batch came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// For each claim, in their order.
    pub verdicts: Vec<Result<(), Invalid>>,
    /// What it took.
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

/// Checks claims whose proofs nobody can change any more.
///
/// # Errors
///
/// [`NoRandomness`]: nothing can be said of any of them.
///
/// # Panics
///
/// If there are more than [`MAX_BATCH`].
pub fn check<K: Kind>(
    kind: &K,
    claims: &[&K::Claim],
    suspicion: Suspicion,
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
        _ => {
            batch.weights = kind.draw_weights(claims.len())?;
            batch.verdicts(suspicion)
        }
    };
    Ok(Outcome {
        verdicts,
        checks: batch.checks,
    })
}

struct Batch<'a, K: Kind> {
    kind: &'a K,
    claims: &'a [&'a K::Claim],
    weights: Vec<K::Weight>,
    checks: Checks,
}

// === impl Batch ===

impl<K: Kind> Batch<'_, K> {
    fn verdicts(&mut self, suspicion: Suspicion) -> Vec<Result<(), Invalid>> {
        let mut verdicts = vec![Ok(()); self.claims.len()];
        let everyone: Vec<_> = (0..self.claims.len()).collect();
        let mut total = self.sum(&everyone, 0);
        if total.is_zero() {
            return verdicts;
        }
        let suspects = self.screen(&mut verdicts);
        if suspects.is_empty() {
            return verdicts;
        }
        if suspects.len() < everyone.len() {
            total = self.sum(&suspects, 0);
        }
        let costs = self.kind.costs();
        let false_ones = isolate(suspects.len(), total, costs, suspicion, |places, power| {
            let members: Vec<_> = places
                .iter()
                .map(|place| (suspects[*place], *place))
                .collect();
            self.power_sum(&members, power)
        });
        for place in false_ones {
            verdicts[suspects[place]] = Err(Invalid("the final check fails".into()));
        }
        verdicts
    }

    /// Settles what the kind can tell cheaply, and returns the rest.
    fn screen(&mut self, verdicts: &mut [Result<(), Invalid>]) -> Vec<usize> {
        let mut rest = Vec::with_capacity(self.claims.len());
        for (index, claim) in self.claims.iter().enumerate() {
            match self.kind.screen(claim) {
                None => rest.push(index),
                Some(result) => {
                    self.checks.screens += 1;
                    match result {
                        Ok(()) => rest.push(index),
                        refused => verdicts[index] = refused,
                    }
                }
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
