//! Solidity contracts that verify Groth16 proofs, and the calldata for them.
//!
//! * [`verifier_contract`] writes the contract for one verifying key over BN254 or BLS12-381, documented for auditors.
//! * [`Call`] is a call of such a contract with one proof or a batch: its function, its ABI encoding, and the text
//!   that snarkjs writes for it.
//! * [`encode_proof`] encodes a proof as the contracts and the EVM's precompiles read it (EIP-196, EIP-197, EIP-2537).
//!
//! ```
//! use proofmill_groth16::{Bls12_381, VerifyingKey};
//! use proofmill_solidity::{ContractError, ContractName, ContractOptions, verifier_contract};
//!
//! fn contract(key: &VerifyingKey<Bls12_381>) -> Result<String, ContractError> {
//!     let name = ContractName::new("HeaderVerifier")?;
//!     verifier_contract(key, &ContractOptions { name, batch: false })
//! }
//! ```
//!
//! The contracts' text is in `src/templates`: their code is the same for every key, and a key's constants are put in.

mod calldata;
mod contract;
mod encoding;
mod name;
mod template;

pub use calldata::{BatchEntry, Call, CallError};
pub use contract::{ContractError, ContractOptions, inputs_max, is_generated, verifier_contract};
pub use encoding::{
    UnsupportedCurve, encode_g1, encode_g2, encode_proof, encode_scalar, key_digest,
};
pub use name::{ContractName, NameError};
