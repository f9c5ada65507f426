//! The inner-product argument in barretenberg's `noir-rollup` proofs.

use crate::elements::{ELEMENT_BYTES, Elements, expect_length};
use crate::{DecodeError, Opening, OpeningClaim, ROLLUP_LOG_SIZE};

/// Elements of a proof, without the circuit's public inputs.
const PROOF_ELEMENTS: usize = 480;
/// Index of the claim's first element: after the points of the deferred pairing.
const CLAIM: usize = 8;
/// Elements of the argument, which ends the proof: L and R of each round, G₀, and a₀ in two halves.
const ARGUMENT_ELEMENTS: usize = 4 * ROLLUP_LOG_SIZE as usize + 2 + 2;

impl Opening {
    /// Bytes of a `noir-rollup` proof.
    pub const ROLLUP_PROOF_BYTES: usize = PROOF_ELEMENTS * ELEMENT_BYTES;

    /// Takes the opening claim and its argument out of a `noir-rollup` proof as `bb prove` writes it:
    /// 480 elements of 32 big-endian bytes (barretenberg 5.0).
    ///
    /// The rest of the proof, for the circuit and over BN254, is only checked to be canonical: a valid opening
    /// does not show that the circuit is satisfied.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if an element is not canonical, or one of the opening's elements is not a scalar or point.
    pub fn from_rollup_proof(bytes: &[u8]) -> Result<Self, DecodeError> {
        expect_length(bytes, Self::ROLLUP_PROOF_BYTES)?;
        let mut all = Elements::new(bytes, 0);
        for _ in 0..PROOF_ELEMENTS {
            all.base()?;
        }
        let from = |index: usize| Elements::new(&bytes[index * ELEMENT_BYTES..], index);

        let mut claim = from(CLAIM);
        let (point, value) = (claim.split_scalar()?, claim.split_scalar()?);
        let commitment = claim.point()?;
        let mut argument = from(PROOF_ELEMENTS - ARGUMENT_ELEMENTS);
        Ok(Self {
            claim: OpeningClaim {
                commitment,
                point,
                value,
            },
            rounds: argument.rounds(ROLLUP_LOG_SIZE as usize)?,
            folded_base: argument.point()?,
            folded_coefficient: argument.split_scalar()?,
        })
    }
}
