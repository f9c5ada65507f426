//! The bytes of paths and of a part's share of the traces, which travel between processes: field
//! elements, each its number in little-endian.

use ark_ff::{BigInteger, PrimeField};
use proofmill_kernels::Poseidon2Field;
use proofmill_r1cs::iden3::{canonical_from_le, width};

use crate::PartTrace;
use crate::partition::MAX_PARTS;
use crate::tree::{ARITY, Path, depth};

/// The reason why bytes do not decode to the expected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodingError {
    /// The number of bytes is not possible.
    #[error("{found} bytes are no {what}")]
    Length {
        /// Name of the expected value, for the message.
        what: &'static str,
        /// The bytes there are.
        found: usize,
    },
    /// An element that is not below the prime.
    #[error("element {index} of the {what} is not below the field's prime")]
    NotCanonical {
        /// Name of the expected value, for the message.
        what: &'static str,
        /// The element, from 0.
        index: usize,
    },
}

// === impl Path ===

impl<F: Poseidon2Field> Path<F> {
    /// The four children of each node, from the leaves upwards.
    pub fn to_bytes(&self) -> Vec<u8> {
        write(self.children().iter().flatten())
    }

    /// Decodes an untrusted path; its number of levels follows from the bytes. Whether it leads from a leaf to a
    /// root is checked by [`leads`](Path::leads), not here.
    ///
    /// # Errors
    ///
    /// [`EncodingError`] for a number of bytes that no path has, and for elements not below the prime.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EncodingError> {
        let (what, found) = ("path", bytes.len());
        let level = ARITY * width::<F>();
        if !found.is_multiple_of(level) || found / level > depth(MAX_PARTS + 1) {
            return Err(EncodingError::Length { what, found });
        }
        let elements = read::<F>(what, bytes)?;
        Ok(Self::new(elements.as_chunks::<ARITY>().0.to_vec()))
    }
}

// === impl PartTrace ===

impl<F: PrimeField> PartTrace<F> {
    /// The committed values in order, which are secret: those by part, and as many by address.
    pub fn to_bytes(&self) -> Vec<u8> {
        write(self.by_part.iter().chain(&self.by_address))
    }

    /// Decodes an untrusted trace. The caller must limit the bytes; the right number of entries follows from the
    /// partition.
    ///
    /// # Errors
    ///
    /// [`EncodingError`] for a number of bytes that no trace has, and for elements not below the prime.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EncodingError> {
        let (what, found) = ("share of the traces", bytes.len());
        if !found.is_multiple_of(2 * width::<F>()) {
            return Err(EncodingError::Length { what, found });
        }
        let mut by_part = read::<F>(what, bytes)?;
        let by_address = by_part.split_off(by_part.len() / 2);
        Ok(Self {
            by_part,
            by_address,
        })
    }
}

fn write<'a, F: PrimeField>(elements: impl Iterator<Item = &'a F>) -> Vec<u8> {
    let numbers = elements.map(|element| element.into_bigint().to_bytes_le());
    numbers.flatten().collect()
}

/// Reads elements from bytes whose number is a multiple of an element's.
fn read<F: PrimeField>(what: &'static str, bytes: &[u8]) -> Result<Vec<F>, EncodingError> {
    let elements = bytes.chunks_exact(width::<F>()).enumerate();
    let elements = elements.map(|(index, bytes)| {
        canonical_from_le(bytes).ok_or(EncodingError::NotCanonical { what, index })
    });
    elements.collect()
}

#[cfg(test)]
mod tests {
    use ark_bn254::Fr;

    use super::*;

    const PRIME: &[u8; 32] = proofmill_r1cs::iden3::ScalarField::Bn254.modulus_le();

    #[test]
    fn paths_come_back_and_other_bytes_do_not() {
        for levels in [0, 1, 2, 13] {
            let four = |level: u64| [1, 2, 3, 4].map(|i| Fr::from(10 * level + i));
            let path = Path::new((0..levels).map(four).collect());
            let bytes = path.to_bytes();
            assert_eq!(bytes.len() as u64, 128 * levels);
            assert_eq!(Path::from_bytes(&bytes), Ok(path));
        }
        for found in [1, 32, 127, 129, 14 * 128] {
            let what = "path";
            let refused = Path::<Fr>::from_bytes(&vec![0; found]);
            assert_eq!(refused, Err(EncodingError::Length { what, found }));
        }
        let mut bytes = vec![0; 256];
        bytes[160..192].copy_from_slice(PRIME);
        let refused = Path::<Fr>::from_bytes(&bytes).unwrap_err();
        let expected = "element 5 of the path is not below the field's prime";
        assert_eq!(refused.to_string(), expected);
    }

    #[test]
    fn traces_come_back_and_other_bytes_do_not() {
        for entries in [0u64, 1, 5] {
            let trace = PartTrace {
                by_part: (0..entries).map(Fr::from).collect(),
                by_address: (0..entries).map(|i| Fr::from(100 + i)).collect(),
            };
            let bytes = trace.to_bytes();
            assert_eq!(bytes.len() as u64, 64 * entries);
            assert_eq!(PartTrace::from_bytes(&bytes), Ok(trace));
        }
        for found in [1, 32, 96] {
            let what = "share of the traces";
            let refused = PartTrace::<Fr>::from_bytes(&vec![0; found]);
            assert_eq!(refused, Err(EncodingError::Length { what, found }));
        }
        assert!(PartTrace::<Fr>::from_bytes(&[[0; 32], *PRIME].concat()).is_err());
    }
}
