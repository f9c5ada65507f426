//! A sparse Merkle tree over all paths of 128 bits, of which only the branches above present keys are stored.

mod error;
mod transition;
mod trie;

pub use error::TreeError;
pub(crate) use transition::climb;
pub use transition::{Entry, Record, Transition};
pub use trie::{KEYS_MAX, Tree};
