//! A source that follows an Ethereum chain by JSON-RPC, and the JSON-RPC client.

mod chain;
mod follow;
mod rpc;

pub use follow::{Ethereum, Options};
pub use rpc::{Block, Rpc, RpcError};
