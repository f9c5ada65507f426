//! The prover of one shard.

use ark_ff::Field;
use proofmill_groth16::Proof;

use crate::aggregate::AggregateKind;
use crate::index::{AggregateProveError, check_count};
use crate::mirage::combined_inputs;
use crate::mpp::{self, combined_first};
use crate::srs::progression;
use crate::tipp::{Challenges, Vectors};
use crate::torus::AggregationCurve;

use super::message::{LeaderMessage, ShardMessage};
use super::shard_key::ShardKey;

/// The prover of one shard: answers the messages of the leader, each once and in their order. Its answers are a
/// function of the key, the proofs and these messages.
#[derive(Clone, Debug)]
pub struct Shard<'a, E: AggregationCurve> {
    key: &'a ShardKey<E>,
    a: Vec<E::G1Affine>,
    b: Vec<E::G2Affine>,
    c: Vec<E::G1Affine>,
    d: Vec<E::G1Affine>,
    state: State<E>,
}

/// The reason why a shard does not answer a message; it is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// Another message is next, or none.
    #[error("the leader's message is not the one that follows the messages before it")]
    Unexpected,
    /// The leader makes another aggregate than the shard's key is for, or its numbers of scalars are another's.
    #[error("the leader's message is for another kind of aggregate, division or key")]
    OtherAggregate,
    /// A challenge that needs an inverse is zero.
    #[error("a challenge of the leader's message is zero")]
    Zero,
}

/// State of a shard between two messages.
#[derive(Clone, Debug)]
enum State<E: AggregationCurve> {
    /// Before `Start`.
    Created,
    /// Before `Proofs`.
    Committed,
    /// Before `Combine`.
    Scaled {
        r: E::ScalarField,
        /// S; empty for Groth16.
        s_points: Vec<E::G1Affine>,
        /// X, scaled by powers of r.
        scaled: Vec<Vec<E::G1Affine>>,
    },
    /// Before `Fold`.
    Folding(Rounds<E>),
    /// Before `Open`.
    Folded(Rounds<E>),
    Ended,
}

/// The state of the rounds.
#[derive(Clone, Debug)]
struct Rounds<E: AggregationCurve> {
    r_inverse: E::ScalarField,
    vectors: Vectors<E>,
    challenges: Challenges<E::ScalarField>,
}

// === impl Shard ===

impl<'a, E: AggregationCurve> Shard<'a, E> {
    /// The prover for the proofs at the shard's places in their order ([`Sharding::places`](super::Sharding::places)),
    /// with the commitments `d` of Mirage proofs, none for Groth16. Points must be in their groups.
    ///
    /// # Errors
    ///
    /// [`AggregateProveError::Count`] for another number of proofs or commitments.
    pub fn new(
        key: &'a ShardKey<E>,
        proofs: &[Proof<E>],
        d: &[E::G1Affine],
    ) -> Result<Self, AggregateProveError> {
        let places = key.class_of.len();
        check_count("proofs of a shard", places, proofs.len())?;
        let commitments = match key.kind {
            AggregateKind::Mirage => places,
            AggregateKind::Groth16 => 0,
        };
        check_count("commitments of a shard", commitments, d.len())?;
        Ok(Self {
            key,
            a: proofs.iter().map(|proof| proof.a).collect(),
            b: proofs.iter().map(|proof| proof.b).collect(),
            c: proofs.iter().map(|proof| proof.c).collect(),
            d: d.to_vec(),
            state: State::Created,
        })
    }

    /// The number of the shard, from 0.
    pub const fn number(&self) -> usize {
        self.key.shard
    }

    /// Answers a message.
    ///
    /// # Errors
    ///
    /// [`ShardError`] if it is not the next message of an aggregation with this key.
    pub fn receive(&mut self, message: &LeaderMessage<E>) -> Result<ShardMessage<E>, ShardError> {
        self.check(message)?;
        match (
            std::mem::replace(&mut self.state, State::Ended),
            message.clone(),
        ) {
            (State::Created, LeaderMessage::Start { .. }) => Ok(self.commit()),
            (State::Committed, LeaderMessage::Proofs { r, inputs }) => Ok(self.scale(r, &inputs)),
            (
                State::Scaled {
                    r,
                    s_points,
                    scaled,
                },
                LeaderMessage::Combine { s },
            ) => Ok(self.combine(r, &s_points, scaled, s)),
            (State::Folding(mut rounds), LeaderMessage::Fold { x }) => {
                rounds.fold(x);
                Ok(self.next_round(rounds))
            }
            (State::Folded(rounds), LeaderMessage::Open { z, last }) => {
                Ok(self.open(rounds, z, &last))
            }
            (state, _) => {
                self.state = state;
                Err(ShardError::Unexpected)
            }
        }
    }

    /// Checks a message by itself.
    fn check(&self, message: &LeaderMessage<E>) -> Result<(), ShardError> {
        let key = self.key;
        let is_for_key = match message {
            LeaderMessage::Start { kind, sharding } => {
                *kind == key.kind && *sharding == key.sharding
            }
            LeaderMessage::Proofs { inputs, .. } => {
                inputs.len() == key.inputs.len().saturating_sub(1)
            }
            LeaderMessage::Combine { .. } | LeaderMessage::Fold { .. } => true,
            LeaderMessage::Open { last, .. } => last.len() == key.sharding.leader_rounds(),
        };
        if !is_for_key {
            return Err(ShardError::OtherAggregate);
        }
        if !message.has_inverses() {
            return Err(ShardError::Zero);
        }
        Ok(())
    }

    fn commit(&mut self) -> ShardMessage<E> {
        self.state = State::Committed;
        let key = self.key.commitment_key();
        ShardMessage::Commitments {
            both: key.commit_both(&self.a, &self.b),
            c: key.commit_first(&self.c),
        }
    }

    fn scale(&mut self, r: E::ScalarField, inputs: &[E::ScalarField]) -> ShardMessage<E> {
        let s_points = match self.key.kind {
            AggregateKind::Mirage => combined_inputs::<E>(&self.key.inputs, inputs),
            AggregateKind::Groth16 => Vec::new(),
        };
        let vectors = self.vectors(&s_points);
        let scaled = vectors.scaled(&self.powers(r, self.b.len()));
        let cross = vectors.cross_terms(&scaled);
        self.state = State::Scaled {
            r,
            s_points,
            scaled,
        };
        ShardMessage::CrossProducts(cross)
    }

    fn combine(
        &mut self,
        r: E::ScalarField,
        s_points: &[E::G1Affine],
        scaled: Vec<Vec<E::G1Affine>>,
        s: E::ScalarField,
    ) -> ShardMessage<E> {
        let right = self.vectors(s_points).combined_second(s);
        let left = combined_first::<E>(scaled, s);
        let r_inverse = r.inverse().expect("the message was checked");
        let key = self.key.commitment_key();
        let scale = self.powers(r_inverse, key.size);
        self.next_round(Rounds {
            r_inverse,
            vectors: Vectors::new(key, &scale, left, right),
            challenges: Challenges::default(),
        })
    }

    /// The answer about vectors as they are now.
    fn next_round(&mut self, rounds: Rounds<E>) -> ShardMessage<E> {
        if rounds.vectors.size() > 1 {
            let round = rounds.vectors.round();
            self.state = State::Folding(rounds);
            return ShardMessage::Round {
                with_challenge: round.with_challenge,
                with_inverse: round.with_inverse,
            };
        }
        let folded = rounds.vectors.folded();
        self.state = State::Folded(rounds);
        ShardMessage::Folded {
            left: folded.left,
            right: folded.right,
            v: folded.v,
            w: folded.w,
        }
    }

    fn open(
        &self,
        rounds: Rounds<E>,
        z: E::ScalarField,
        last: &[E::ScalarField],
    ) -> ShardMessage<E> {
        let mut challenges = rounds.challenges;
        for x in last {
            challenges.push(*x, x.inverse().expect("the message was checked"));
        }
        let sharding = self.key.sharding;
        let (v, w) = challenges.open::<E>(
            self.key.commitment_key().powers,
            sharding.size(),
            rounds.r_inverse,
            z,
            sharding.residue(self.key.shard),
        );
        ShardMessage::Openings { v, w }
    }

    /// The vectors X and Y at the shard's places.
    fn vectors<'v>(&'v self, s_points: &'v [E::G1Affine]) -> mpp::Vectors<'v, E> {
        let first: Vec<&[E::G1Affine]> = match self.key.kind {
            AggregateKind::Mirage => vec![&self.a, s_points, &self.c, &self.d],
            AggregateKind::Groth16 => vec![&self.a, &self.c],
        };
        mpp::Vectors {
            first,
            second: &self.b,
            class_of: &self.key.class_of,
            constants: self.key.constants.clone(),
        }
    }

    /// The powers of a scalar that the shard's first places have: xʲ, x^(j+k), x^(j+2k), ….
    fn powers(&self, x: E::ScalarField, count: usize) -> Vec<E::ScalarField> {
        let first = x.pow([self.key.shard as u64]);
        let ratio = x.pow([self.key.sharding.shards() as u64]);
        progression(first, ratio, count)
    }
}

// === impl Rounds ===

impl<E: AggregationCurve> Rounds<E> {
    fn fold(&mut self, x: E::ScalarField) {
        let x_inverse = x.inverse().expect("the message was checked");
        self.vectors.fold(x, x_inverse);
        self.challenges.push(x, x_inverse);
    }
}
