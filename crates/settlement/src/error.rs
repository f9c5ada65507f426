//! Reasons why emissions are not settled.

use crate::chain::ChainError;
use crate::journal::JournalError;

/// The reason why emissions are not settled. Asking again with the same emissions is always safe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettleError {
    /// The chain's node does not answer as it should.
    #[error("the chain cannot be asked: {0}")]
    Chain(#[from] ChainError),
    /// The contract would revert, or the emission is not what it takes. Nothing was sent.
    #[error("the contract would refuse blocks {first} to {last}: {reason}")]
    Refused {
        /// First block.
        first: u64,
        /// Last block.
        last: u64,
        /// The contract's reason.
        reason: String,
    },
    /// The contract reverted in a block: its gas was spent.
    #[error("the contract refused blocks {first} to {last}: {reason}")]
    Reverted {
        /// First block.
        first: u64,
        /// Last block.
        last: u64,
        /// The contract's reason.
        reason: String,
    },
    /// A transaction that settles an emission has its confirmations, and the contract says that it has not.
    #[error(
        "blocks {first} to {last} have been settled by a transaction, and the contract says that they are not: does its question \
         ask for the same fields as its settling function?"
    )]
    Denied {
        /// First block.
        first: u64,
        /// Last block.
        last: u64,
    },
    /// The chain's base fee is above the bound.
    #[error(
        "the base fee is {base_fee} wei and `max_fee` {max_fee} wei: nothing is sent until it falls"
    )]
    FeesTooHigh {
        /// Base fee of the next block.
        base_fee: u128,
        /// The bound.
        max_fee: u128,
    },
    /// The node does not take the transaction.
    #[error("the node does not take the transaction: {0}")]
    NotTaken(String),
    /// The transaction cannot be signed.
    #[error("no signature: {0}")]
    Signer(String),
    /// The journal cannot be written: nothing is sent that is not in it.
    #[error("{0}")]
    Journal(#[from] JournalError),
    /// The task that settles has ended.
    #[error("settlement has ended")]
    Ended,
}

// === impl SettleError ===

impl SettleError {
    /// Whether asking again helps only after a person has changed something.
    pub fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. } | Self::Reverted { .. } | Self::Denied { .. }
        )
    }
}
