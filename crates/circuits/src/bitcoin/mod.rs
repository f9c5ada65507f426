//! Bitcoin block headers: natively, and as a circuit over a chain of them.

mod chain;
mod circuit;
mod header;
mod mainnet;
mod parse;
mod retarget;
mod statement;
mod target;
mod target_circuit;
mod u256;

pub use chain::{ChainError, ChainFault, check_chain, total_work};
pub use circuit::{HeaderChain, HeaderChainError};
pub use header::{BlockHash, HEADER_BYTES, Header};
pub use mainnet::{MAINNET_0_31, mainnet_headers};
pub use parse::{MAX_HEADERS, ParseError, parse_headers};
pub use retarget::{Difficulty, INTERVAL, POW_LIMIT, RetargetError};
pub use statement::{ChunkStatement, MAX_SLOTS, StatementError};
pub use target::{CompactTarget, TargetError};
pub use u256::U256;
