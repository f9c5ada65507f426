//! Proofs for clients: that a key has a version and a value under a root, or that it is absent.

mod answer;
mod encoding;
mod json;
mod proof;

pub use answer::{ANSWER_BYTES_MAX, AnswerError, KeyAnswer, KeyState};
pub use json::JSON_BYTES_MAX;
pub use proof::{InclusionError, InclusionProof, ProvedLeaf};
