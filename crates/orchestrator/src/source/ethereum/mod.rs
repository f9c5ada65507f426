//! A source that follows an Ethereum chain by JSON-RPC.

mod chain;
mod follow;

pub use follow::{Ethereum, Options};
