//! The client of one endpoint, and what it returns.

mod answer;
mod block;
mod call;
mod client;
mod error;
pub mod hostile;
mod receipt;
mod send;

pub(crate) use answer::bytes;
pub use answer::quantity;
pub use block::{Block, BlockId, Header};
pub use call::{Call, CallError};
pub(crate) use client::Request;
pub use client::Rpc;
pub use error::RpcError;
pub use receipt::{Log, PlacedLog, Receipt};
pub use send::SendError;
