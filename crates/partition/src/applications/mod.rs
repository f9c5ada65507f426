//! Circuits in parts that come with the crate.

mod big_merkle_tree;
mod squarings;

pub use big_merkle_tree::{BigMerkleTree, MAX_LOG_LEAVES};
pub use squarings::Squarings;

/// Sizes that a circuit cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} {what}: there must be {expected}")]
pub struct SizeError {
    what: &'static str,
    expected: String,
    found: usize,
}

// === impl SizeError ===

impl SizeError {
    fn check(what: &'static str, found: usize, least: usize, most: usize) -> Result<(), Self> {
        if (least..=most).contains(&found) {
            return Ok(());
        }
        let expected = format!("{least} to {most}");
        Err(Self {
            what,
            expected,
            found,
        })
    }
}
