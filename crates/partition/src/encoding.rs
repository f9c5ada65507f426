//! The bytes of paths and of a part's committed values, which travel between processes: field
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
    /// The number of accesses, 4 bytes, little-endian, and the committed values in order, which are secret: those by
    /// part, as many by address, and those of transfers.
    pub fn to_bytes(&self) -> Vec<u8> {
        // There are no more accesses than 32 bits count.
        let mut bytes = (self.by_part.len() as u32).to_le_bytes().to_vec();
        let values = self.by_part.iter().chain(&self.by_address);
        bytes.extend(write(values.chain(&self.transfers)));
        bytes
    }

    /// Decodes an untrusted trace. The caller must limit the bytes; the right numbers of entries and of transfers
    /// follow from the partition.
    ///
    /// # Errors
    ///
    /// [`EncodingError`] for a number of bytes that no trace has, and for elements not below the prime.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EncodingError> {
        let (what, found) = ("share of the traces", bytes.len());
        let length = EncodingError::Length { what, found };
        let (accesses, values) = bytes.split_first_chunk().ok_or(length)?;
        let accesses = u32::from_le_bytes(*accesses) as usize;
        let is_whole = values.len().is_multiple_of(width::<F>());
        if !is_whole || accesses > values.len() / width::<F>() / 2 {
            return Err(length);
        }
        let mut by_part = read::<F>(what, values)?;
        let transfers = by_part.split_off(2 * accesses);
        let by_address = by_part.split_off(accesses);
        Ok(Self {
            by_part,
            by_address,
            transfers,
        })
    }
}

pub(crate) fn write<'a, F: PrimeField>(elements: impl Iterator<Item = &'a F>) -> Vec<u8> {
    let numbers = elements.map(|element| element.into_bigint().to_bytes_le());
    numbers.flatten().collect()
}

/// Reads elements from bytes whose number is a multiple of an element's.
pub(crate) fn read<F: PrimeField>(
    what: &'static str,
    bytes: &[u8],
) -> Result<Vec<F>, EncodingError> {
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
        for (entries, transfers) in [(0u64, 0), (1, 0), (5, 3), (0, 1)] {
            let trace = PartTrace {
                by_part: (0..entries).map(Fr::from).collect(),
                by_address: (0..entries).map(|i| Fr::from(100 + i)).collect(),
                transfers: (0..transfers).map(|i| Fr::from(200 + i)).collect(),
            };
            let bytes = trace.to_bytes();
            assert_eq!(bytes.len() as u64, 4 + 64 * entries + 32 * transfers);
            assert_eq!(PartTrace::from_bytes(&bytes), Ok(trace));
        }
        let what = "share of the traces";
        for (found, accesses) in [(0, 0), (3, 0), (5, 0), (32, 0), (35, 0), (67, 0), (67, 1)] {
            let mut bytes = vec![0; found];
            if let Some(first) = bytes.first_mut() {
                *first = accesses;
            }
            let refused = PartTrace::<Fr>::from_bytes(&bytes);
            assert_eq!(refused, Err(EncodingError::Length { what, found }));
        }
        for accesses in [2, u32::MAX] {
            let bytes = [&accesses.to_le_bytes()[..], &[0; 96]].concat();
            let refused = PartTrace::<Fr>::from_bytes(&bytes);
            let found = bytes.len();
            assert_eq!(refused, Err(EncodingError::Length { what, found }));
        }
        let bytes = [&[1, 0, 0, 0][..], &[0; 32], PRIME].concat();
        assert!(PartTrace::<Fr>::from_bytes(&bytes).is_err());
    }
}
