//! All the work that is for one opening: from its bytes to a combination of points that must be
//! zero.

use ark_ff::{Field, One, Zero, batch_inversion};
use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;

use crate::poseidon2::lanes;
use crate::transcript::{Challenges, challenges};
use crate::{Opening, OpeningClaim, Point, Round, Scalar};

/// An opening after its challenges are known. It holds if two combinations of points are zero:
/// the SRS folded by the challenges, less G₀; and the commitment folded by them, less a₀·G₀ and
/// a₀·b₀·U. The first is as long as the SRS: it is what many claims share.
#[derive(Clone, Debug)]
pub struct DeferredClaim {
    pub(crate) claim: OpeningClaim,
    pub(crate) rounds: Vec<Round>,
    pub(crate) folded_base: Point,
    pub(crate) folded_coefficient: Scalar,
    /// u, by which U = u·G.
    pub(crate) generator_challenge: Scalar,
    /// The rounds' challenges u_j, none of them zero.
    pub(crate) challenges: Vec<Scalar>,
    /// 1/u_j.
    pub(crate) inverses: Vec<Scalar>,
    /// b₀: the powers of x, folded by the rounds.
    pub(crate) folded_power: Scalar,
}

/// The reason why an opening is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// The argument is for an SRS of another size.
    #[error("an argument of {found} rounds: the SRS of 2^{expected} points takes {expected}")]
    Rounds {
        /// Rounds of an opening under this SRS.
        expected: u32,
        /// Rounds given.
        found: u32,
    },
    /// The lowest 127 bits of a hash are zero, which happens to no honest prover.
    #[error("a challenge of the transcript is zero")]
    ZeroChallenge,
    /// The prover's G₀ is another point than the SRS folded by the challenges.
    #[error("the folded base point G₀ is not the SRS folded by the challenges")]
    FoldedBase,
    /// The commitment is not to a polynomial with that value.
    #[error("the argument does not show that the commitment opens to the value")]
    Argument,
}

/// Reduces openings on all threads of the current rayon pool; all their challenges share one
/// inversion.
pub(crate) fn reduce_all(openings: &[&Opening]) -> Vec<Result<DeferredClaim, Invalid>> {
    let mut reduced: Vec<_> = openings
        .par_chunks(lanes())
        .flat_map_iter(|openings| {
            let challenges = challenges(openings).into_iter();
            openings
                .iter()
                .zip(challenges)
                .map(|(of, drawn)| deferred(of, drawn))
        })
        .collect();
    let mut inverses: Vec<Scalar> = reduced
        .iter()
        .flatten()
        .flat_map(|claim| claim.challenges.iter().copied())
        .collect();
    batch_inversion(&mut inverses);
    let mut rest = inverses.as_slice();
    for claim in reduced.iter_mut().flatten() {
        let (own, others) = rest.split_at(claim.challenges.len());
        claim.inverses = own.to_vec();
        claim.folded_power = folded_power(own, claim.claim.point);
        rest = others;
    }
    reduced
}

/// A claim with its challenges; values that depend on the challenges' inverses are not yet set.
fn deferred(opening: &Opening, challenges: Challenges) -> Result<DeferredClaim, Invalid> {
    let Challenges { generator, rounds } = challenges;
    if generator.is_zero() || rounds.iter().any(Zero::is_zero) {
        return Err(Invalid::ZeroChallenge);
    }
    Ok(DeferredClaim {
        claim: opening.claim,
        rounds: opening.rounds.clone(),
        folded_base: opening.folded_base,
        folded_coefficient: opening.folded_coefficient,
        generator_challenge: generator,
        challenges: rounds,
        inverses: Vec::new(),
        folded_power: Scalar::zero(),
    })
}

/// ∏(1 + u_j⁻¹·x^(2^i)): the last round folds neighbours, whose powers differ by x.
fn folded_power(inverses: &[Scalar], x: Scalar) -> Scalar {
    let mut power = x;
    let mut product = Scalar::one();
    for inverse in inverses.iter().rev() {
        product *= Scalar::one() + *inverse * power;
        power.square_in_place();
    }
    product
}

// === impl DeferredClaim ===

impl DeferredClaim {
    /// Binary logarithm of the SRS's size.
    pub fn log_size(&self) -> u32 {
        self.rounds.len() as u32
    }

    /// The number of the claim's own points: C, each L and R, and G₀.
    pub(crate) fn own_points(&self) -> usize {
        2 + 2 * self.rounds.len()
    }

    /// The coefficient of G: u·(v − a₀·b₀).
    pub(crate) fn generator_coefficient(&self) -> Scalar {
        self.generator_challenge * (self.claim.value - self.folded_coefficient * self.folded_power)
    }
}
