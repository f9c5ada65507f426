//! snarkjs's formats: its JSON files, `.zkey` and `.ptau`.
//!
//! * [`proof_from_json`], [`verifying_key_from_json`] and [`inputs_from_json`] read `proof.json`,
//!   untrusted `verification_key.json` and `public.json`; the corresponding writers produce the same
//!   bytes as snarkjs 0.7.
//! * [`Ptau`] reads a ceremony's powers of tau; [`setup_zkey_from_ptau`] and, for development,
//!   [`setup_zkey`] make a `.zkey` for a circuit.
//! * [`curve_of_json`] and [`with_curve!`](crate::with_curve) dispatch on the curve that a file's
//!   content names.

mod json;
mod point_bytes;
mod ptau;
mod setup;
mod zkey;

pub use json::{
    JsonError, MAX_INPUTS, MAX_JSON_BYTES, curve_of_json, inputs_from_json, inputs_to_json,
    proof_from_json, proof_to_json, read_json, verifying_key_from_json, verifying_key_to_json,
};
pub use ptau::{MAX_POWER, PTAU_FORMAT, Powers, Ptau, PtauHeader};
pub use setup::{ZkeySetupError, setup_zkey, setup_zkey_from_ptau};
pub use zkey::{
    Checked, CheckedKeyStore, Coefficient, CoefficientMatrix, Contribution, ContributionHash,
    ContributionInfo, Contributions, SNARKJS_NEW_ORDER, SectionInfo, Trust, ZKEY_FORMAT, Zkey,
    ZkeyFile, ZkeyHeader, ZkeyInfo,
};
