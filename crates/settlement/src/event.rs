//! Events of settlement, for logs, metrics and displays.

use alloy_primitives::B256;

use crate::chain::Inclusion;
use crate::fees::Fees;

/// First and last block of the emissions of a transaction.
pub type Blocks = (u64, u64);

/// Something that happened to a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It was signed and written to the journal, and is offered to the chain.
    Signed {
        /// Its nonce.
        nonce: u64,
        /// The blocks of its emissions.
        blocks: Blocks,
        /// Its hash.
        hash: B256,
    },
    /// It was replaced by one that offers more.
    Replaced {
        /// Its nonce.
        nonce: u64,
        /// The blocks of its emissions.
        blocks: Blocks,
        /// The new offer.
        fees: Fees,
    },
    /// It has as many confirmations as are asked for.
    Settled {
        /// Its nonce.
        nonce: u64,
        /// The blocks of its emissions.
        blocks: Blocks,
        /// Its place in the chain, and its price.
        inclusion: Inclusion,
        /// Number of transactions that were signed for this nonce.
        attempts: usize,
    },
    /// It is in a block, and the contract reverted.
    Reverted {
        /// Its nonce.
        nonce: u64,
        /// The blocks of its emissions.
        blocks: Blocks,
        /// The contract's reason.
        reason: String,
        /// Its place in the chain, and its price.
        inclusion: Inclusion,
    },
    /// A reorganisation took it out of the chain; it is offered again.
    Undone {
        /// Its nonce.
        nonce: u64,
        /// The blocks of its emissions.
        blocks: Blocks,
    },
    /// Another transaction of the account has its nonce; the call is sent again under another one if it had no effect.
    Lost {
        /// Its nonce.
        nonce: u64,
        /// The blocks of its emissions.
        blocks: Blocks,
    },
}

/// Receives events. Called by the task that settles: it must not block.
pub type Observer = std::sync::Arc<dyn Fn(&Event) + Send + Sync>;

// === impl Event ===

impl Event {
    /// Logs the event.
    pub(crate) fn log(&self) {
        match self {
            Self::Signed {
                nonce,
                blocks,
                hash,
            } => {
                tracing::info!(nonce, first = blocks.0, last = blocks.1, %hash, "settlement sent");
            }
            Self::Replaced { nonce, fees, .. } => {
                let Fees {
                    max_fee,
                    priority_fee,
                } = fees;
                tracing::info!(
                    nonce,
                    max_fee,
                    priority_fee,
                    "settlement replaced by a higher offer"
                );
            }
            Self::Settled {
                nonce,
                blocks,
                inclusion,
                attempts,
            } => {
                let Inclusion {
                    block,
                    gas_used,
                    gas_price,
                    ..
                } = inclusion;
                tracing::info!(
                    nonce,
                    first = blocks.0,
                    last = blocks.1,
                    block,
                    gas_used,
                    gas_price,
                    attempts,
                    "settled"
                );
            }
            Self::Reverted {
                nonce,
                blocks,
                reason,
                ..
            } => {
                let (first, last) = blocks;
                tracing::error!(nonce, first, last, "settlement reverted: {reason}");
            }
            Self::Undone { nonce, blocks } => {
                let (first, last) = blocks;
                tracing::warn!(
                    nonce,
                    first,
                    last,
                    "undone by a reorganisation: offered again"
                );
            }
            Self::Lost { nonce, blocks } => {
                let (first, last) = blocks;
                tracing::warn!(
                    nonce,
                    first,
                    last,
                    "another transaction has the nonce: does another program use this account?"
                );
            }
        }
    }
}
