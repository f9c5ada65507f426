//! The messages between the leader and the shards.

use ark_ec::pairing::PairingOutput;
use ark_ff::AdditiveGroup;

use crate::aggregate::AggregateKind;
use crate::commitment::Commitment;
use crate::torus::AggregationCurve;

use super::sharding::Sharding;

/// A message of the leader: the same for all shards, in the order of the variants, [`Fold`](Self::Fold) once for
/// each of the log₂(N/k) rounds on the shards' vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaderMessage<E: AggregationCurve> {
    /// The beginning: which aggregate is made.
    Start {
        /// The proof system of the proofs.
        kind: AggregateKind,
        /// The division.
        sharding: Sharding,
    },
    /// The commitments to the proofs are known.
    Proofs {
        /// r, not zero.
        r: E::ScalarField,
        /// The public inputs x₁ … x_u that all parts share; none for Groth16.
        inputs: Vec<E::ScalarField>,
    },
    /// The cross products are known.
    Combine {
        /// s, not zero.
        s: E::ScalarField,
    },
    /// A round is known.
    Fold {
        /// x, not zero.
        x: E::ScalarField,
    },
    /// The folded points are known.
    Open {
        /// z.
        z: E::ScalarField,
        /// x of each of the last log₂ k rounds, not zero.
        last: Vec<E::ScalarField>,
    },
}

/// A shard's answer to a message of the leader: what it adds to the prover's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardMessage<E: AggregationCurve> {
    /// To [`LeaderMessage::Start`].
    Commitments {
        /// Of CM_D(A, B).
        both: Commitment<E>,
        /// Of CM₁(C).
        c: Commitment<E>,
    },
    /// To [`LeaderMessage::Proofs`]: six for Mirage, two for Groth16.
    CrossProducts(Vec<PairingOutput<E>>),
    /// To [`LeaderMessage::Combine`] and [`LeaderMessage::Fold`], while the shard's vectors have more than one element:
    /// of T, U and Z the terms with x, then those with 1/x.
    Round {
        /// With x.
        with_challenge: [PairingOutput<E>; 3],
        /// With 1/x.
        with_inverse: [PairingOutput<E>; 3],
    },
    /// To the same, when they have one element: this element.
    Folded {
        /// Of the left vector; infinity if the shard has no proofs.
        left: E::G1Affine,
        /// Of the right vector; infinity if the shard has no proofs.
        right: E::G2Affine,
        /// Of v₁ and v₂.
        v: [E::G2Affine; 2],
        /// Of w₁ and w₂.
        w: [E::G1Affine; 2],
    },
    /// To [`LeaderMessage::Open`]: of the openings of the folded keys.
    Openings {
        /// Of v₁ and v₂.
        v: [E::G2Affine; 2],
        /// Of w₁ and w₂.
        w: [E::G1Affine; 2],
    },
}

// === impl LeaderMessage ===

impl<E: AggregationCurve> LeaderMessage<E> {
    /// Whether no challenge is zero that has to have an inverse.
    pub(super) fn has_inverses(&self) -> bool {
        match self {
            Self::Start { .. } => true,
            Self::Proofs { r: challenge, .. }
            | Self::Combine { s: challenge }
            | Self::Fold { x: challenge } => *challenge != E::ScalarField::ZERO,
            Self::Open { last, .. } => !last.contains(&E::ScalarField::ZERO),
        }
    }
}
