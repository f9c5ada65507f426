//! Circuits in parts.

mod big_merkle_tree;

pub use big_merkle_tree::{BigMerkleTree, MAX_LOG_LEAVES, SizeError};
