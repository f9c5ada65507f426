//! The leader of an aggregation in shards.

use ark_ec::CurveGroup;
use ark_ec::pairing::PairingOutput;
use ark_ff::AdditiveGroup;

use crate::aggregate::{Aggregate, AggregateKind};
use crate::commitment::{Commitment, add_each};
use crate::groth16::Groth16Index;
use crate::index::{AggregateProveError, AggregateVerifyError, check_count};
use crate::mirage::{MirageStatement, MirageVerifyingKey, proofs_challenge};
use crate::mpp::{MppProof, combination_challenge};
use crate::tipp::{Challenges, Round, TippProof, Vectors};
use crate::torus::AggregationCurve;
use crate::transcript::Transcript;

use super::message::{LeaderMessage, ShardMessage};
use super::shard::Shard;
use super::sharding::{Sharding, ShardingError};

/// The leader: multiplies the shards' answers, draws the challenges, and verifies the aggregate.
///
/// Give [`message`](Self::message) to every shard and each answer to [`receive`](Self::receive), in any order, until it
/// returns the aggregate:
///
/// ```
/// # use proofmill_aggregation::{Aggregate, AggregationCurve};
/// # use proofmill_aggregation::sharded::{Leader, LeaderError, Progress, Shard};
/// fn aggregate<E: AggregationCurve>(
///     mut leader: Leader<'_, E>,
///     mut shards: Vec<Shard<'_, E>>,
/// ) -> Result<Aggregate<E>, LeaderError> {
///     loop {
///         let (step, message) = (leader.step(), leader.message().clone());
///         for (number, shard) in shards.iter_mut().enumerate() {
///             let answer = shard.receive(&message).expect("shards of the same aggregate");
///             if let Progress::Finished(aggregate) = leader.receive(number, step, answer)? {
///                 return Ok(*aggregate);
///             }
///         }
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Leader<'a, E: AggregationCurve> {
    claim: Claim<'a, E>,
    sharding: Sharding,
    inputs: Vec<E::ScalarField>,
    transcript: Transcript,
    phase: Phase,
    /// The aggregate, as far as it is known.
    draft: Aggregate<E>,
    sent: Vec<LeaderMessage<E>>,
    /// The answers of each shard, one to each message.
    received: Vec<Vec<ShardMessage<E>>>,
}

/// The state of an aggregation after an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<E: AggregationCurve> {
    /// Other shards have not answered yet.
    Waiting,
    /// All have answered: [`Leader::message`] is the next message.
    Next,
    /// All have answered the last message. The aggregate is verified.
    Finished(Box<Aggregate<E>>),
}

/// The reason why there is no leader, or why it does not accept an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaderError {
    /// The proofs cannot be divided over so many shards.
    #[error(transparent)]
    Sharding(#[from] ShardingError),
    /// The statement is of another number of public inputs than the key.
    #[error(transparent)]
    Statement(#[from] AggregateProveError),
    /// There is no such shard.
    #[error("an answer of shard {shard}: there are {shards}, numbered from 0")]
    Shard {
        /// The shard.
        shard: usize,
        /// The number of shards.
        shards: usize,
    },
    /// The shard has answered already, or the aggregation has ended. The leader is as it was.
    #[error("a second answer of shard {shard}")]
    Repeated {
        /// The shard.
        shard: usize,
    },
    /// The answer is to another message, or not of the kind that the message asks for. The leader is as it was, and waits
    /// for the right one.
    #[error("an answer of shard {shard} that is not to the leader's message")]
    Unexpected {
        /// The shard.
        shard: usize,
    },
    /// The aggregate does not verify: a shard's answers are false ([`Leader::first_false_answer`]), a proof does not hold,
    /// or the commitment of the statement is not that of the parts.
    #[error("the aggregate of the shards does not verify: {0}")]
    Invalid(#[source] AggregateVerifyError),
}

/// Statement of the aggregate: key and public inputs.
#[derive(Clone, Copy, Debug)]
enum Claim<'a, E: AggregationCurve> {
    Mirage(&'a MirageVerifyingKey<E>, MirageStatement<'a, E>),
    Groth16(&'a Groth16Index<E>, &'a [Vec<E::ScalarField>]),
}

/// The answers that are awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Commitments,
    CrossProducts,
    /// The number of rounds that shards have before them.
    Rounds(usize),
    Folded,
    Openings,
    Ended,
}

// === impl Leader ===

impl<'a, E: AggregationCurve> Leader<'a, E> {
    /// The leader of an aggregation of Mirage proofs over `shards` shards (Agg.P of figure 6 of the Hekaton paper).
    ///
    /// # Errors
    ///
    /// [`LeaderError::Sharding`], [`LeaderError::Statement`].
    pub fn mirage(
        key: &'a MirageVerifyingKey<E>,
        statement: MirageStatement<'a, E>,
        shards: usize,
    ) -> Result<Self, LeaderError> {
        let (expected, found) = (key.shared_inputs(), statement.inputs.len());
        check_count("shared public inputs", expected, found)?;
        let sharding = Sharding::new(key.count(), shards)?;
        let claim = Claim::Mirage(key, statement);
        let transcript = key.transcript(statement);
        Ok(Self::new(
            claim,
            sharding,
            statement.inputs.to_vec(),
            transcript,
        ))
    }

    /// The leader of an aggregation of Groth16 proofs of these public inputs, given without the leading one, over
    /// `shards` shards.
    ///
    /// # Errors
    ///
    /// [`LeaderError::Sharding`], [`LeaderError::Statement`].
    pub fn groth16(
        index: &'a Groth16Index<E>,
        inputs: &'a [Vec<E::ScalarField>],
        shards: usize,
    ) -> Result<Self, LeaderError> {
        index.check_inputs(inputs)?;
        let sharding = Sharding::new(index.count(), shards)?;
        let claim = Claim::Groth16(index, inputs);
        let transcript = index.transcript(inputs);
        Ok(Self::new(claim, sharding, Vec::new(), transcript))
    }

    fn new(
        claim: Claim<'a, E>,
        sharding: Sharding,
        inputs: Vec<E::ScalarField>,
        transcript: Transcript,
    ) -> Self {
        let kind = claim.kind();
        let none = Commitment([PairingOutput::ZERO; 2]);
        Self {
            claim,
            sharding,
            inputs,
            transcript,
            phase: Phase::Commitments,
            draft: Aggregate {
                kind,
                both: none,
                c: none,
                products: MppProof {
                    cross: Vec::new(),
                    tipp: TippProof::new(),
                },
            },
            sent: vec![LeaderMessage::Start { kind, sharding }],
            received: vec![Vec::new(); sharding.shards()],
        }
    }

    /// The division.
    pub const fn sharding(&self) -> Sharding {
        self.sharding
    }

    /// The message that every shard has to answer now.
    pub fn message(&self) -> &LeaderMessage<E> {
        self.sent.last().expect("one was sent at the beginning")
    }

    /// The number of [`message`](Self::message), from 0: its index among those [`sent`](Self::sent).
    pub const fn step(&self) -> usize {
        self.sent.len() - 1
    }

    /// All messages so far, the last of which is [`message`](Self::message). A shard that takes the place of a lost one
    /// is given all of them, and answers the last.
    pub fn sent(&self) -> &[LeaderMessage<E>] {
        &self.sent
    }

    /// Whether the answer of a shard to [`message`](Self::message) is awaited; false for a number that no shard has.
    pub fn awaits(&self, shard: usize) -> bool {
        let received = self.received.get(shard);
        self.phase != Phase::Ended && received.is_some_and(|of| of.len() < self.sent.len())
    }

    /// Takes the answer of a shard to the message of a [step](Self::step). Its points must be in their groups, as those of
    /// decoded messages are. Whoever carries messages keeps the step with each, so that the late answer of a shard that was
    /// replaced is not taken for one to a later message.
    ///
    /// # Errors
    ///
    /// [`LeaderError`] if it is not an answer that is awaited, or if it is the last and the aggregate does not verify.
    pub fn receive(
        &mut self,
        shard: usize,
        step: usize,
        answer: ShardMessage<E>,
    ) -> Result<Progress<E>, LeaderError> {
        let shards = self.sharding.shards();
        if shard >= shards {
            return Err(LeaderError::Shard { shard, shards });
        }
        if !self.awaits(shard) {
            return Err(LeaderError::Repeated { shard });
        }
        if step != self.step() || !self.is_answer(&answer) {
            return Err(LeaderError::Unexpected { shard });
        }
        self.received[shard].push(answer);
        if (0..shards).any(|shard| self.awaits(shard)) {
            return Ok(Progress::Waiting);
        }
        self.advance()
    }

    /// The number of the first of a shard's answers, from 0, that differs from those of `replay`, a shard that has not
    /// been given a message: one with the same key, proofs and commitments. `None` if all that were received are the
    /// same. This takes the time of the shard's part of the aggregation.
    pub fn first_false_answer(&self, mut replay: Shard<'_, E>) -> Option<usize> {
        let received = self.received.get(replay.number())?;
        let mut answers = received.iter().zip(&self.sent);
        answers.position(|(answer, message)| replay.receive(message).as_ref() != Ok(answer))
    }

    /// Whether the answer is of the kind that is awaited, and of as many elements.
    fn is_answer(&self, answer: &ShardMessage<E>) -> bool {
        match (self.phase, answer) {
            (Phase::Commitments, ShardMessage::Commitments { .. })
            | (Phase::Rounds(_), ShardMessage::Round { .. })
            | (Phase::Folded, ShardMessage::Folded { .. })
            | (Phase::Openings, ShardMessage::Openings { .. }) => true,
            (Phase::CrossProducts, ShardMessage::CrossProducts(elements)) => {
                elements.len() == 2 * self.draft.kind.terms()
            }
            _ => false,
        }
    }

    /// The answers of all shards to the message, in the order of the shards.
    fn answers(&self) -> Vec<ShardMessage<E>> {
        let received = self.received.iter();
        received.filter_map(|of| of.last().cloned()).collect()
    }

    /// Takes the next step, after the answers of all.
    fn advance(&mut self) -> Result<Progress<E>, LeaderError> {
        let message = match self.phase {
            Phase::Commitments => self.multiply_commitments(),
            Phase::CrossProducts => self.multiply_cross_products(),
            Phase::Rounds(before) => self.multiply_round(before),
            Phase::Folded => self.fold_last(),
            Phase::Openings => return self.finish(),
            Phase::Ended => return Ok(Progress::Waiting),
        };
        self.sent.push(message);
        Ok(Progress::Next)
    }

    fn multiply_commitments(&mut self) -> LeaderMessage<E> {
        let parts = self.answers();
        let parts = parts.iter().filter_map(|answer| match answer {
            ShardMessage::Commitments { both, c } => Some((*both, *c)),
            _ => None,
        });
        let (both, c): (Vec<_>, Vec<_>) = parts.unzip();
        self.draft.both = both.into_iter().sum();
        self.draft.c = c.into_iter().sum();
        let r = proofs_challenge(&self.draft.both, &self.draft.c, &mut self.transcript);
        self.phase = Phase::CrossProducts;
        let inputs = std::mem::take(&mut self.inputs);
        LeaderMessage::Proofs { r, inputs }
    }

    fn multiply_cross_products(&mut self) -> LeaderMessage<E> {
        let mut cross = vec![PairingOutput::ZERO; 2 * self.draft.kind.terms()];
        for answer in self.answers() {
            if let ShardMessage::CrossProducts(elements) = answer {
                add_each(&mut cross, &elements);
            }
        }
        let s = combination_challenge(&cross, &mut self.transcript);
        self.draft.products.cross = cross;
        self.phase = Phase::of_rounds(self.sharding.shard_rounds());
        LeaderMessage::Combine { s }
    }

    fn multiply_round(&mut self, before: usize) -> LeaderMessage<E> {
        let mut round = Round {
            with_challenge: [PairingOutput::ZERO; 3],
            with_inverse: [PairingOutput::ZERO; 3],
        };
        for answer in self.answers() {
            if let ShardMessage::Round {
                with_challenge,
                with_inverse,
            } = answer
            {
                add_each(&mut round.with_challenge, &with_challenge);
                add_each(&mut round.with_inverse, &with_inverse);
            }
        }
        let (x, _) = round.challenge(&mut self.transcript);
        self.draft.products.tipp.rounds.push(round);
        self.phase = Phase::of_rounds(before - 1);
        LeaderMessage::Fold { x }
    }

    /// The last log₂ k rounds.
    fn fold_last(&mut self) -> LeaderMessage<E> {
        let mut vectors = Vectors::<E> {
            left: Vec::new(),
            right: Vec::new(),
            v: Default::default(),
            w: Default::default(),
        };
        for (shard, answer) in self.answers().into_iter().enumerate() {
            let ShardMessage::Folded { left, right, v, w } = answer else {
                continue;
            };
            // Shards without proofs are the last ones: their points, infinity, are left out as one prover does.
            if shard < self.sharding.count() {
                vectors.left.push(left);
                vectors.right.push(right);
            }
            for side in 0..2 {
                vectors.v[side].push(v[side]);
                vectors.w[side].push(w[side]);
            }
        }
        let mut challenges = Challenges::default();
        let tipp = &mut self.draft.products.tipp;
        tipp.fold_all(&mut vectors, &mut challenges, &mut self.transcript);
        let z = tipp.opening_challenge(&mut self.transcript);
        self.phase = Phase::Openings;
        let last = challenges.x;
        LeaderMessage::Open { z, last }
    }

    fn finish(&mut self) -> Result<Progress<E>, LeaderError> {
        let (mut of_v, mut of_w) = ([E::G2::ZERO; 2], [E::G1::ZERO; 2]);
        for answer in self.answers() {
            if let ShardMessage::Openings { v, w } = answer {
                for side in 0..2 {
                    of_v[side] += v[side];
                    of_w[side] += w[side];
                }
            }
        }
        let tipp = &mut self.draft.products.tipp;
        tipp.v_openings = of_v.map(CurveGroup::into_affine);
        tipp.w_openings = of_w.map(CurveGroup::into_affine);
        self.phase = Phase::Ended;
        self.claim
            .verify(&self.draft)
            .map_err(LeaderError::Invalid)?;
        Ok(Progress::Finished(Box::new(self.draft.clone())))
    }
}

// === impl Phase ===

impl Phase {
    /// The phase when shards have so many rounds before them.
    const fn of_rounds(count: usize) -> Self {
        match count {
            0 => Self::Folded,
            _ => Self::Rounds(count),
        }
    }
}

// === impl Claim ===

impl<E: AggregationCurve> Claim<'_, E> {
    const fn kind(&self) -> AggregateKind {
        match self {
            Self::Mirage(..) => AggregateKind::Mirage,
            Self::Groth16(..) => AggregateKind::Groth16,
        }
    }

    fn verify(&self, aggregate: &Aggregate<E>) -> Result<(), AggregateVerifyError> {
        match self {
            Self::Mirage(key, statement) => key.verify(*statement, aggregate),
            Self::Groth16(index, inputs) => index.verify(inputs, aggregate),
        }
    }
}
