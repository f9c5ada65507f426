//! Parts of a settlement, as its owner puts them together.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::Address;
use proofmill_ethereum::Signer;

use crate::chain::Chain;
use crate::contract::Contract;
use crate::event::Observer;
use crate::step::Rules;

/// Parts of a settlement: chain, contract, account, rules.
pub struct Options {
    /// The chain.
    pub chain: Arc<dyn Chain>,
    /// Identifier of the chain (EIP-155).
    pub chain_id: u64,
    /// The contract's calls.
    pub contract: Arc<dyn Contract>,
    /// Address of the contract.
    pub to: Address,
    /// Signer of the account, which no other program may use.
    pub signer: Arc<Signer>,
    /// Rules for confirmations and fees.
    pub rules: Rules,
    /// Time between two looks at the chain.
    pub poll: Duration,
    /// Receiver of events, beside the log.
    pub observer: Option<Observer>,
    /// The time, in milliseconds since 1970-01-01 UTC.
    pub clock: Arc<dyn Fn() -> u64 + Send + Sync>,
}
