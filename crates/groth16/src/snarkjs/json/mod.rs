//! snarkjs's JSON files.
//!
//! Field elements are strings of decimal digits; a point is its projective coordinates with z = 1,
//! or 0, 1, 0 for infinity; an element of a quadratic extension is a list of its two coefficients.
//!
//! The readers accept untrusted bytes. Numbers must be canonical, points on their curve and in their
//! subgroup, and lists of the right length. Only the elements themselves are kept; unknown fields are
//! skipped. Errors name the field, the line and the column.

mod document;
mod element;
mod error;
mod inputs;
mod path;
mod proof;
mod verifying_key;

pub use document::{MAX_JSON_BYTES, curve_of_json, read_json};
pub use error::JsonError;
pub use inputs::{MAX_INPUTS, inputs_from_json, inputs_to_json};
pub use proof::{proof_from_json, proof_to_json};
pub use verifying_key::{verifying_key_from_json, verifying_key_to_json};
