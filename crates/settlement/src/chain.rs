//! Port to a chain: the questions of settlement and nothing else, so that the same code runs against nodes and against a simulated chain.

use std::fmt;

use alloy_primitives::B256;
use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::fees::Market;

/// A chain, for one account and one contract.
pub trait Chain: Send + Sync {
    /// The last block, and the prices of the next.
    fn head(&self) -> BoxFuture<'_, Result<Head, ChainError>>;

    /// Number of the account's transactions in the chain, which is the nonce of its next one.
    fn nonce(&self) -> BoxFuture<'_, Result<u64, ChainError>>;

    /// Result of a call of the contract on the state after block `block`, or after the last one.
    fn call(&self, data: Bytes, block: Option<u64>) -> BoxFuture<'_, Result<Bytes, CallFailure>>;

    /// Units of gas that a transaction with this calldata would take on the last block.
    fn estimate_gas(&self, data: Bytes) -> BoxFuture<'_, Result<u64, CallFailure>>;

    /// Data with which a call reverts on the state after block `block`; empty if it does not revert.
    fn revert_at(&self, data: Bytes, block: u64) -> BoxFuture<'_, Result<Bytes, ChainError>>;

    /// Offers a signed transaction to the node.
    fn send(&self, raw: Bytes) -> BoxFuture<'_, Result<Sent, ChainError>>;

    /// The place of a transaction in the chain; `None` if it is in no block.
    fn inclusion(&self, hash: B256) -> BoxFuture<'_, Result<Option<Inclusion>, ChainError>>;
}

/// The last block of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Number of the block.
    pub number: u64,
    /// Prices of the next block.
    pub market: Market,
}

/// The place of a transaction in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inclusion {
    /// Number of the block.
    pub block: u64,
    /// Whether the call had its effect; a call that reverted has none, and costs its gas.
    pub succeeded: bool,
    /// Units of gas that it took.
    pub gas_used: u64,
    /// Price of a unit of gas, in wei.
    pub gas_price: u128,
}

/// The answer of a node to a transaction that it was offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The node has it, now or from before.
    Taken,
    /// Its nonce is used by a transaction in a block.
    NonceUsed,
    /// Its offer is too low: for the node, or beside another transaction with its nonce.
    FeesTooLow(String),
    /// The node does not take it now: no funds, a full pool, or another reason.
    Refused(String),
}

/// No answer of a node that could be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ChainError(pub String);

/// The reason why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// The contract reverted, with this data.
    Reverted(Bytes),
    /// The call ended without a revert and without a result: it ran out of gas, or met an invalid instruction. The node's text.
    Halted(String),
    /// There is no contract at the address, on that state.
    NoContract,
    /// The node did not answer.
    Chain(ChainError),
}

// === impl ChainError ===

impl ChainError {
    /// An error with this text.
    pub fn new(why: impl fmt::Display) -> Self {
        Self(why.to_string())
    }
}

// === impl CallFailure ===

impl From<ChainError> for CallFailure {
    fn from(error: ChainError) -> Self {
        Self::Chain(error)
    }
}
