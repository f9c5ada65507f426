//! What the verifier answers: hashes of all that was said before.

use ark_ff::{BigInt, PrimeField};

use crate::elements::LOW_LIMB_BITS;
use crate::opening::coordinates;
use crate::poseidon2::hash;
use crate::{Base, OpeningClaim, Round, Scalar};

/// Bits of a hash that make a challenge.
const CHALLENGE_BITS: u32 = 127;

/// Barretenberg's transcript: each hash begins with the one before.
pub(crate) struct Transcript {
    last: Base,
}

// === impl Transcript ===

impl Transcript {
    /// Begins with the claim, and gives the challenge for the generator.
    pub(crate) fn begin(claim: &OpeningClaim) -> (Self, Scalar) {
        let [x, y] = coordinates(&claim.commitment);
        let [point_low, point_high] = limbs(claim.point);
        let [value_low, value_high] = limbs(claim.value);
        let last = hash(&[x, y, point_low, point_high, value_low, value_high]);
        (Self { last }, challenge(last))
    }

    /// Takes what the prover sent, and gives the challenge of the round.
    pub(crate) fn round(&mut self, round: &Round) -> Scalar {
        let [left_x, left_y] = coordinates(&round.left);
        let [right_x, right_y] = coordinates(&round.right);
        self.last = hash(&[self.last, left_x, left_y, right_x, right_y]);
        challenge(self.last)
    }
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
