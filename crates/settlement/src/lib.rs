//! Settlement of a mill's emissions on an Ethereum chain: in order, each with exactly one effect.
//!
//! The sequencer hands emissions over in chain order. [`Settlement`] turns them into calls of a contract, several in one
//! transaction, and answers when the transaction has its confirmations. Each transaction is in the [`journal`] before it is
//! sent, so a crash at any step gives a nonce to one call only; replacements with higher fees keep the nonce; what a
//! reorganisation undoes is offered again, lowest nonce first. The contract accepts emissions in order and each once, and is
//! asked what it has settled, so that a lost journal costs a question and no double effect.
//!
//! * Ports: [`Chain`], which [`RpcChain`] implements over nodes; [`Contract`], which [`AbiContract`] implements by an ABI.
//! * Decisions: `step` for one transaction, [`FeePolicy`] for its price.
//! * State: `Settler` owns the journal and what is known of its transactions.

mod abi;
mod chain;
mod contract;
mod error;
mod event;
mod fees;
pub mod journal;
mod options;
mod rpc;
mod service;
mod settler;
mod step;

pub use abi::{AbiContract, AbiContractError, Arguments};
pub use chain::{CallFailure, Chain, ChainError, Head, Inclusion, Sent};
pub use contract::{Contract, Emission};
pub use error::SettleError;
pub use event::{Blocks, Event, Observer};
pub use fees::{FeePolicy, Fees, Market};
pub use options::Options;
pub use rpc::RpcChain;
pub use service::Settlement;
pub use step::Rules;
