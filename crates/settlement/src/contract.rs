//! Calls that settle emissions, as a contract expects them.

use bytes::Bytes;

/// Message of the sequencer that is to be settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emission {
    /// First block.
    pub first: u64,
    /// Last block, inclusive.
    pub last: u64,
    /// The payload.
    pub bytes: Bytes,
}

/// The calls of one contract.
///
/// The contract must accept emissions in the order of their blocks only, and each once: this is what makes a call that was sent
/// twice harmless.
pub trait Contract: Send + Sync {
    /// Maximum number of emissions in one call; at least 1.
    fn batch_max(&self) -> usize;

    /// Calldata that settles these emissions, in order.
    ///
    /// # Errors
    /// A text for people: an emission is not what the contract takes.
    fn settle(&self, emissions: &[Emission]) -> Result<Bytes, String>;

    /// Calldata of the question whether an emission was settled. The answer is a word that is zero if it was not.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    fn is_settled(&self, emission: &Emission) -> Result<Bytes, String>;

    /// Explanation of the data with which a call reverted.
    fn explain(&self, revert: &[u8]) -> String;
}
