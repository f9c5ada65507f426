//! A proof whose parts are made by other processes, which may die or lie (section 6.2 of the paper).
//!
//! ```text
//!  Coordination ── CommitTask ▶ CommitmentKeys::commit ▶ Commitment ▶ CommitmentChecker::check
//!       │                                                                      │
//!  ChallengedProof ◀───────────────── commitments of all parts ◀───────────────┘
//!       │
//!       └───────── ProveTask ───▶ Worker::prove ───▶ Proof ───────▶ ProofChecker::check
//!                                                                      │
//!  ChallengedProof::aggregate ◀──── proofs of all parts ◀──────────────┘
//! ```
//!
//! A task has all that its part needs besides the keys: a worker synthesises one part, and no process holds all of
//! them. Results are small, and each can be checked by itself, in batches: a commitment by committing to a random
//! sum of the values of several parts, which costs one commitment for all of them; a proof by pairings. So a
//! coordinator knows whose result is false before anything is built on it.
//!
//! The aggregation can be divided too: [`ChallengedProof::aggregate_by`] takes an aggregate that workers make in
//! [shards](proofmill_aggregation::sharded), each from the [`ProvedParts`] at its places.
//!
//! Tasks are secret: they have the witness of their part and the randomness of its commitment. Workers are trusted
//! with them, as with the machines that they run on, but not to return what they were asked for.

mod check;
mod commit;
mod coordination;
mod proved;
mod task;
mod worker;

pub use check::{CommitmentChecker, ProofChecker, ResultError};
pub use commit::CommitmentKeys;
pub use coordination::{ChallengedProof, Coordination};
pub use proved::{ProvedParts, ProvedPartsError};
pub use task::{CommitTask, ProveTask, TaskError};
pub use worker::Worker;
