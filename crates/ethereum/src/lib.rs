//! A client of Ethereum's nodes: what a program needs to read a chain and to send transactions to it.
//!
//! [`Rpc`] asks one node; every byte of its answers is treated as hostile. [`Transaction`] is a transaction with a fee
//! market (EIP-1559), which a [`Signer`] signs. [`revert`] puts into words why a contract refused a call, [`units`]
//! reads and shows amounts.

pub mod revert;
mod rpc;
mod signer;
mod transaction;
pub mod units;

pub use alloy_primitives::{Address, B256, Bytes, U256};
pub use rpc::hostile;
pub use rpc::{
    Block, BlockId, Call, CallError, Header, Log, PlacedLog, Receipt, Rpc, RpcError, SendError,
    quantity,
};
pub use signer::{KeyError, Local, Remote, SignError, Signer};
pub use transaction::{DecodeError, RAW_MAX, Recovered, Signed, Transaction};
