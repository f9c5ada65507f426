//! One aggregate made by k provers, in other processes or on other machines.
//!
//! Hekaton proves parts on many machines and aggregates their proofs on one (sections 2.3 and 8.2). Here the aggregation is
//! divided too: the places of all vectors over k shards, a power of two, and a leader with little work draws the
//! challenges. The aggregate is the same, byte for byte, as that of one prover.
//!
//! **The division.** Shard j has the places i ≡ j (mod k) of the proofs, of the commitment key and of the reference
//! string. A round of the argument (`tipp`) folds place i with place i + N/2, then i + N/4, and so on: k divides these
//! distances in all but the last log₂ k rounds, so each shard folds vectors of its own, and no vector is sent. What a
//! prover commits to or sends is a product over all places, hence a product of the shards' products:
//!
//! | message of the leader | answer of each shard | the leader |
//! |---|---|---|
//! | [`Start`](LeaderMessage::Start) | its part of CM_D(A, B) and of CM₁(C) | multiplies, draws r |
//! | [`Proofs`](LeaderMessage::Proofs): r, shared public inputs | its part of the cross products | multiplies, draws s |
//! | [`Combine`](LeaderMessage::Combine): s | its part of the first round | multiplies, draws x |
//! | [`Fold`](LeaderMessage::Fold): x, in each round | its part of the next round; in the end one point of each vector | makes the last log₂ k rounds on k points, draws z |
//! | [`Open`](LeaderMessage::Open): the last challenges, z | its part of the sums that open the keys | adds, verifies the aggregate |
//!
//! A shard pairs with the constants of those classes only that it has places of, with its own sums over their places.
//! Every shard does the final exponentiations of its products, so the leader pairs in its last rounds and in the
//! verification only.
//!
//! **Use.** [`Leader`] and [`Shard`] are state machines without input and output; messages have encodings for
//! whatever carries them, [`MAX_MESSAGE_BYTES`] at most. The commitment to D of a Mirage statement is the sum of the
//! shards' [`ShardKey::commit`].
//!
//! **Failures.** A shard's answers are a function of its data and of the leader's messages. A shard that was lost is
//! replaced by one with the same data that is given all of [`Leader::sent`]. A shard that lies cannot make the leader
//! return a false aggregate, as it verifies what it returns. If the verification fails,
//! [`Leader::first_false_answer`] compares the answers of one shard with those that its data yield: whoever has the
//! data can find the liar. The shards' parts of the commitment to D are not among these answers: keep them, and
//! compare each with [`ShardKey::commit`] of the same data. If all answers are as they should be, a proof does not hold, or a key is for other parts.
//! A liar can choose other proofs that hold, or another representative of an element (see [`torus`](crate::torus)):
//! the aggregate is then another one, and valid.

mod encoding;
mod leader;
mod message;
mod shard;
mod shard_key;
mod sharding;

pub use encoding::MAX_MESSAGE_BYTES;
pub use leader::{Leader, LeaderError, Progress};
pub use message::{LeaderMessage, ShardMessage};
pub use shard::{Shard, ShardError};
pub use shard_key::{ShardKey, ShardKeyError};
pub use sharding::{MAX_SHARDS, Sharding, ShardingError};
