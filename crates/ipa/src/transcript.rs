//! The Fiat-Shamir transcript: each challenge of the verifier is a hash of all messages before it.

use ark_ff::{BigInt, PrimeField};

use crate::elements::LOW_LIMB_BITS;
use crate::opening::coordinates;
use crate::poseidon2::{hash, hash_each};
use crate::{Base, Opening, OpeningClaim, Round, Scalar};

/// Bits of a hash that make a challenge.
const CHALLENGE_BITS: u32 = 127;

/// Barretenberg's transcript: each hash begins with the one before.
#[derive(Clone, Copy)]
pub(crate) struct Transcript {
    last: Base,
}

/// The challenges of one opening.
pub(crate) struct Challenges {
    /// u, for the generator.
    pub(crate) generator: Scalar,
    /// One for each round.
    pub(crate) rounds: Vec<Scalar>,
}

// === impl Transcript ===

impl Transcript {
    /// Starts a transcript with the claim and returns the challenge for the generator.
    pub(crate) fn begin(claim: &OpeningClaim) -> (Self, Scalar) {
        Self::after(hash(&beginning(claim)))
    }

    /// Absorbs the prover's message of a round and returns the round's challenge.
    pub(crate) fn round(&mut self, round: &Round) -> Scalar {
        let drawn;
        (*self, drawn) = Self::after(hash(&self.next(round)));
        drawn
    }

    fn after(hash: Base) -> (Self, Scalar) {
        (Self { last: hash }, challenge(hash))
    }

    /// The hash input of a round: the hash before it and the coordinates of L and R.
    fn next(self, round: &Round) -> [Base; 5] {
        let [left_x, left_y] = coordinates(&round.left);
        let [right_x, right_y] = coordinates(&round.right);
        [self.last, left_x, left_y, right_x, right_y]
    }
}

/// The challenges of several openings. Hashes of the same round are computed side by side.
pub(crate) fn challenges(openings: &[&Opening]) -> Vec<Challenges> {
    let beginnings: Vec<_> = openings.iter().map(|of| beginning(&of.claim)).collect();
    let mut transcripts = Vec::with_capacity(openings.len());
    let mut all = Vec::with_capacity(openings.len());
    for (opening, hash) in openings.iter().zip(hash_each(&beginnings)) {
        let (transcript, generator) = Transcript::after(hash);
        transcripts.push(transcript);
        all.push(Challenges {
            generator,
            rounds: Vec::with_capacity(opening.rounds.len()),
        });
    }
    let longest = openings.iter().map(|of| of.rounds.len()).max();
    for number in 0..longest.unwrap_or(0) {
        let (places, inputs): (Vec<usize>, Vec<_>) = openings
            .iter()
            .enumerate()
            .filter_map(|(place, of)| {
                let round = of.rounds.get(number)?;
                Some((place, transcripts[place].next(round)))
            })
            .unzip();
        for (place, hash) in places.into_iter().zip(hash_each(&inputs)) {
            let (transcript, drawn) = Transcript::after(hash);
            transcripts[place] = transcript;
            all[place].rounds.push(drawn);
        }
    }
    all
}

/// The hash input that starts a transcript: commitment, point and value.
fn beginning(claim: &OpeningClaim) -> [Base; 6] {
    let [x, y] = coordinates(&claim.commitment);
    let [point_low, point_high] = limbs(claim.point);
    let [value_low, value_high] = limbs(claim.value);
    [x, y, point_low, point_high, value_low, value_high]
}

/// The lower bits of a hash.
fn challenge(hash: Base) -> Scalar {
    let [low, high, ..] = hash.into_bigint().0;
    let bits = u128::from(high) << 64 | u128::from(low);
    Scalar::from(bits & ((1 << CHALLENGE_BITS) - 1))
}

/// A scalar, which may be larger than the base field's modulus, as two elements of that field.
fn limbs(scalar: Scalar) -> [Base; 2] {
    let number = scalar.into_bigint();
    let high = number >> LOW_LIMB_BITS;
    let [w0, w1, w2, _] = number.0;
    let low = BigInt::new([w0, w1, w2 & ((1 << (LOW_LIMB_BITS - 128)) - 1), 0]);
    [low, high].map(|limb| Base::from_bigint(limb).expect("at most 136 bits"))
}
