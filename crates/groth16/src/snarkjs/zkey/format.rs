//! The sections of a `.zkey` file, and its container format.

use proofmill_r1cs::iden3::Format;

pub(super) const HEADER: u32 = 1;
pub(super) const GROTH16_HEADER: u32 = 2;
pub(super) const IC: u32 = 3;
pub(super) const COEFFICIENTS: u32 = 4;
pub(super) const A: u32 = 5;
pub(super) const B_G1: u32 = 6;
pub(super) const B_G2: u32 = 7;
pub(super) const C: u32 = 8;
pub(super) const H: u32 = 9;
pub(super) const CONTRIBUTIONS: u32 = 10;

/// The number of the Groth16 protocol in the header.
pub(super) const GROTH16: u32 = 1;

/// The container of `.zkey` files.
pub static ZKEY_FORMAT: Format = Format {
    name: ".zkey",
    magic: *b"zkey",
    version: 1,
    sections: &[
        (HEADER, "header"),
        (GROTH16_HEADER, "Groth16 header"),
        (IC, "IC"),
        (COEFFICIENTS, "coefficients"),
        (A, "A"),
        (B_G1, "B in G1"),
        (B_G2, "B in G2"),
        (C, "C"),
        (H, "H"),
        (CONTRIBUTIONS, "contributions"),
    ],
};
