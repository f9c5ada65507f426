//! Chains of Bitcoin headers, proved with Groth16 over BLS12-381: the native rules, the circuit, its keys and its proofs.
//! An author of another chain copies this crate.
//!
//! ```no_run
//! use proofmill_bitcoin::{HeaderChainKeys, mainnet_headers, prove_chunk, verify_chunks};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let keys = HeaderChainKeys::load_or_generate("keys".as_ref(), 5, &|step| println!("{step}"))?;
//! let chunk = prove_chunk(&keys, &mainnet_headers()[..5])?;
//! let verdicts = verify_chunks(keys.verifier(), &[(chunk.statement, chunk.proof)]);
//! assert!(verdicts[0].is_ok());
//! # Ok(())
//! # }
//! ```
//!
//! * Native rules: [`parse_headers`] reads headers, [`check_chain`] checks a run of them ([`CompactTarget`], [`Difficulty`]).
//! * Statement and circuit: a [`ChunkStatement`] is what one proof states of consecutive headers, [`HeaderChain`] the circuit
//!   that proves it, and a [`RangeStatement`] what consecutive chunks state together.
//! * Keys and proofs: [`HeaderChainKeys`] on disk, [`prove_chunk`], [`verify_chunks`].

mod chain;
mod circuit;
mod header;
mod mainnet;
mod parse;
mod proofs;
mod range;
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
pub use proofs::{
    ChunkProof, ChunkProofError, ChunkTimings, DEFAULT_SLOTS, HeaderChainKeys, HeaderChainVerifier,
    KeysError, Proof, ProveError, chunk_statement, chunk_witness, prove_chunk, verify_chunks,
};
pub use range::{RangeError, RangeStatement};
pub use retarget::{Difficulty, INTERVAL, POW_LIMIT, RetargetError};
pub use statement::{ChunkStatement, MAX_SLOTS, StatementError};
pub use target::{CompactTarget, TargetError};
pub use u256::U256;
