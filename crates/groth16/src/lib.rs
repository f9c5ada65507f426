//! Groth16 (Jens Groth, "On the Size of Pairing-based Non-interactive Arguments", EUROCRYPT 2016,
//! section 3.2) with resident keys, a staged prover and a batch verifier.
//!
//! * [`setup`](fn@setup) makes keys for an [`R1cs`](proofmill_r1cs::R1cs). **For development
//!   only**: the process that runs it learns secrets with which proofs can be forged. A deployment needs a
//!   multi-party ceremony.
//! * [`prove`](fn@prove) makes a [`Proof`]. A [`ResidentKey`] holds a key for many proofs, in this crate's
//!   format or from a `.zkey`; its [`Prover`] also has the proof's [`stages`] one by one, for callers that
//!   pipeline them. A [`DeviceKey`] has a resident key's points also on a
//!   [`Device`](proofmill_accelerator::Device), such as a CUDA card.
//! * [`mirage`] is Groth16 with a part of the witness that is committed to before the proof is made.
//! * [`snarkjs`] reads and writes snarkjs's keys, proofs and public inputs.
//! * [`verify`](fn@verify), [`verify_each`] and [`verify_batch`] check proofs. None panics, whatever the bytes
//!   the proofs and keys were decoded from. [`VerifyingKey::require_secure`] refuses keys under which
//!   anyone can prove false statements; call it on every key from an untrusted source.
//!
//! The verification equation is the standard one, so any Groth16 verifier accepts our proofs with
//! our verifying key. The proving key differs: see [`ProvingKey`].

#[cfg(debug_assertions)]
mod compiled_once;
mod device;
mod keys;
pub mod mirage;
mod proof;
mod prover;
mod snark_curve;
pub mod snarkjs;
mod verify;

pub use ark_bls12_377::Bls12_377;
pub use ark_bls12_381::Bls12_381;
pub use ark_bn254::Bn254;
#[cfg(debug_assertions)]
pub use compiled_once::compiled_once;
pub use device::{DeviceKey, Offload, PartialProducts, PendingProducts, Placement, QuotientInput};
pub use keys::{
    InsecureKey, KeyElement, KeyError, MAPPED_WINDOW_POINTS, MAX_KEY_BYTES, PointCheck, ProvingKey,
    ProvingKeyInfo, QueryPoints, READING_WINDOW_BYTES, ResidentForm, ResidentKey,
    SUBGROUP_CHUNK_POINTS, SetupError, SparseQuery, VerifyingKey, Weakness, read_compressed_points,
    setup, setup_with_progress,
};
pub use proof::{Proof, ProofError};
pub use prover::{ProveError, Prover, ProverStage, StageReport, Timings, prove, stages};
pub use snark_curve::{Curve, PointGroup, SnarkCurve};
pub use verify::{
    KeyedProof, MultiplesCache, PreparedVerifyingKey, VerifyError, Weight, WeightedProof, verify,
    verify_batch, verify_each, weighted_product, weighted_product_each,
};
