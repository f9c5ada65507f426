//! The fields circom compiles for.

use std::borrow::Cow;
use std::fmt;

use ark_ff::{BigInteger, PrimeField};

use super::{Cursor, FormatError, Reason};

/// The supported scalar fields. A file's header names its field by the prime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarField {
    /// The scalar field of BN254, which circom calls `bn128`.
    Bn254,
    /// The scalar field of BLS12-381.
    Bls12_381,
    /// The scalar field of BLS12-377, which circom calls `bls12377`. snarkjs does not know it.
    Bls12_377,
}

const BN254: [u8; 32] = [
    0x01, 0x00, 0x00, 0xf0, 0x93, 0xf5, 0xe1, 0x43, 0x91, 0x70, 0xb9, 0x79, 0x48, 0xe8, 0x33, 0x28,
    0x5d, 0x58, 0x81, 0x81, 0xb6, 0x45, 0x50, 0xb8, 0x29, 0xa0, 0x31, 0xe1, 0x72, 0x4e, 0x64, 0x30,
];
const BLS12_381: [u8; 32] = [
    0x01, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x5b, 0xfe, 0xff, 0x02, 0xa4, 0xbd, 0x53,
    0x05, 0xd8, 0xa1, 0x09, 0x08, 0xd8, 0x39, 0x33, 0x48, 0x7d, 0x9d, 0x29, 0x53, 0xa7, 0xed, 0x73,
];
const BLS12_377: [u8; 32] = [
    0x01, 0x00, 0x00, 0x00, 0x00, 0x80, 0x11, 0x0a, 0x01, 0x00, 0x00, 0xd0, 0xfe, 0x76, 0xaa, 0x59,
    0x01, 0xb0, 0x37, 0x5c, 0x1e, 0x4d, 0xb4, 0x60, 0x56, 0xa5, 0x2c, 0x9a, 0x5e, 0x65, 0xab, 0x12,
];

/// The widest prime, in bytes, that is read from a header and shown in an error message.
const MAX_BYTES: u32 = 64;

// === impl ScalarField ===

impl ScalarField {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Bn254, Self::Bls12_381, Self::Bls12_377];

    /// The prime, little-endian.
    pub const fn modulus_le(self) -> &'static [u8; 32] {
        match self {
            Self::Bn254 => &BN254,
            Self::Bls12_381 => &BLS12_381,
            Self::Bls12_377 => &BLS12_377,
        }
    }

    /// The field with this prime, little-endian; `None` if it is not supported.
    pub fn from_modulus_le(bytes: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|field| field.modulus_le() == bytes)
    }

    /// The field with the modulus of `F`; `None` if it is not one of these.
    pub fn of<F: PrimeField>() -> Option<Self> {
        Self::from_modulus_le(&F::MODULUS.to_bytes_le())
    }

    /// Reads a prime as all headers have it: its length in bytes (u32), then its bytes.
    ///
    /// # Errors
    ///
    /// [`Reason::Field`] for any other prime; [`Reason::Truncated`].
    pub fn read(header: &mut Cursor<'_>) -> Result<Self, FormatError> {
        let offset = header.offset();
        let length = header.u32()?;
        if length > MAX_BYTES {
            let reason = format!("a prime of {length} bytes");
            return Err(header.error_at(offset, Reason::Unsupported(reason.into())));
        }
        let bytes = header.bytes(length as usize)?;
        Self::from_modulus_le(bytes).ok_or_else(|| {
            let reason = Reason::Field {
                found: describe(bytes),
                expected: "BN254, BLS12-381 or BLS12-377".into(),
            };
            header.error_at(offset, reason)
        })
    }

    /// Checks that `F` is this field.
    ///
    /// # Errors
    ///
    /// [`Reason::Field`].
    pub fn expect<F: PrimeField>(self) -> Result<(), Reason> {
        let expected = Self::of::<F>();
        if expected == Some(self) {
            return Ok(());
        }
        Err(Reason::Field {
            found: self.name().into(),
            expected: match expected {
                Some(field) => field.name().into(),
                None => describe(&F::MODULUS.to_bytes_le()),
            },
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Bn254 => "BN254",
            Self::Bls12_381 => "BLS12-381",
            Self::Bls12_377 => "BLS12-377",
        }
    }
}

impl fmt::Display for ScalarField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A prime as a message shows it: Goldilocks, circom's other popular field, by name.
fn describe(little_endian: &[u8]) -> Cow<'static, str> {
    if little_endian == 0xffff_ffff_0000_0001u64.to_le_bytes() {
        return "Goldilocks".into();
    }
    let digits: String = little_endian
        .iter()
        .rev()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("of the prime 0x{digits}").into()
}
