//! Groth16 (Jens Groth, "On the Size of Pairing-based Non-interactive Arguments", EUROCRYPT 2016,
//! section 3.2) with resident keys, a staged prover and a batch verifier.
//!
//! * [`setup`](fn@setup) makes keys for an [`R1cs`](proofmill_r1cs::R1cs). **For development
//!   only**: whoever runs it could forge proofs. A deployment needs a multi-party ceremony.
//! * [`prove`](fn@prove) makes a [`Proof`]. A [`ResidentKey`] holds a key for many, one of ours or
//!   one from a `.zkey`; its [`Prover`] also has the proof's [`stages`] one by one, for callers that
//!   pipeline them. A [`DeviceKey`] has a resident key's points on a
//!   [`Device`](proofmill_accelerator::Device), such as a CUDA card, too.
//! * [`mirage`] is Groth16 with a part of the witness that is committed to before the proof is made.
//! * [`snarkjs`] reads and writes snarkjs's keys, proofs and public inputs.
//! * [`verify`](fn@verify), [`verify_each`] and [`verify_batch`] check proofs. None panics, whatever the bytes
//!   the proofs and keys were decoded from. [`VerifyingKey::require_secure`] refuses keys under which
//!   anybody can make a proof of anything; whoever takes a key from elsewhere asks it first.
//! * [`header_chain`] puts it together for chunks of Bitcoin headers: keys cached on disk, proofs,
//!   verdicts. It lives here, beside the proof system and above the circuit, because it is the one
//!   place that needs both.
//!
//! The verification equation is the standard one, so any Groth16 verifier accepts our proofs with
//! our verifying key. The proving key differs: see [`ProvingKey`].

mod bases;
mod device;
mod encoding;
mod engine;
pub mod header_chain;
mod key_file;
mod keys;
mod mapped_points;
pub mod mirage;
mod products;
mod proof;
mod prove;
mod resident;
mod setup;
pub mod snarkjs;
pub mod stages;
mod subgroup;
mod verify;
mod weakness;

pub use ark_bls12_381::Bls12_381;
pub use ark_bn254::Bn254;
pub use device::{DeviceKey, Evaluated, Offload, PartialProducts, Placement, Started};
pub use encoding::{READING_WINDOW, read_compressed_points};
pub use engine::{Curve, Engine, PointGroup};
pub use key_file::{Check, KeyError, MAX_KEY_BYTES, ProvingKeyInfo};
pub use keys::{ProvingKey, QueryPoints, SparseQuery, VerifyingKey};
pub use mapped_points::MAPPED_WINDOW;
pub use proof::{Proof, ProofError};
pub use prove::{ProveError, Timings, prove};
pub use resident::{Residency, ResidentKey};
pub use setup::{SetupError, setup, setup_with_progress};
pub use stages::{Prover, Stage, StageReport};
pub use subgroup::TESTED_TOGETHER;
pub use verify::{
    KeyedProof, Multiples, PreparedVerifyingKey, VerifyError, Weight, WeightedProof, verify,
    verify_batch, verify_each, weighted_product, weighted_product_each,
};
pub use weakness::{InsecureKey, KeyElement, Weakness};
