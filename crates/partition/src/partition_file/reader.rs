//! Reading within a partition's file: nothing beyond its end, no number beyond its bounds.

use ark_ff::{BigInteger, PrimeField};
use proofmill_r1cs::iden3::ScalarField;
use sha2::{Digest, Sha256};

use super::{
    ADDRESS_BYTES, CHECKSUM_BYTES, CLASS_BYTES_MIN, FIELD_BYTES, MAGIC, PART_BYTES_MIN,
    PartitionFileError, VERSION,
};
use crate::accesses::MAX_ACCESSES;
use crate::partition::MAX_PARTS;

/// The bytes of a file, and the place in them.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

/// The numbers at the beginning.
pub(super) struct Head {
    pub(super) parts: usize,
    pub(super) classes: usize,
    pub(super) public_inputs: usize,
    pub(super) accesses: usize,
}

// === impl Reader ===

impl<'a> Reader<'a> {
    /// Checks the head and the checksum of a file. Returns a reader of the content between them.
    pub(super) fn new<F: PrimeField>(bytes: &'a [u8]) -> Result<Self, PartitionFileError> {
        let mut reader = Self { bytes, offset: 0 };
        if !bytes.starts_with(MAGIC) {
            return Err(PartitionFileError::Magic);
        }
        reader.take(MAGIC.len() as u64, "first bytes")?;
        let found = reader.u32("bytes of the version")?;
        if found != VERSION {
            return Err(PartitionFileError::Version { found });
        }
        let modulus = reader.take(FIELD_BYTES as u64, "bytes of the modulus")?;
        if modulus != F::MODULUS.to_bytes_le() {
            let name = |field: Option<ScalarField>| field.map(|field| field.to_string());
            let found = name(ScalarField::from_modulus_le(modulus));
            return Err(PartitionFileError::Field {
                found: found.map_or_else(
                    || "an unknown field".to_owned(),
                    |curve| format!("the scalar field of {curve}"),
                ),
                expected: name(ScalarField::of::<F>())
                    .unwrap_or_else(|| "another curve".to_owned()),
            });
        }
        let left = reader.left();
        let Some(content) = left.checked_sub(CHECKSUM_BYTES) else {
            let (offset, needed) = (reader.offset, CHECKSUM_BYTES as u64);
            return Err(PartitionFileError::Truncated {
                what: "bytes of the checksum",
                offset,
                needed,
                left,
            });
        };
        let (content, checksum) = bytes.split_at(reader.offset + content);
        if Sha256::digest(content).as_slice() != checksum {
            return Err(PartitionFileError::Checksum);
        }
        reader.bytes = content;
        Ok(reader)
    }

    pub(super) const fn left(&self) -> usize {
        self.bytes.len() - self.offset
    }

    pub(super) fn take(
        &mut self,
        needed: u64,
        what: &'static str,
    ) -> Result<&'a [u8], PartitionFileError> {
        let (offset, left) = (self.offset, self.left());
        if needed > left as u64 {
            return Err(PartitionFileError::Truncated {
                what,
                offset,
                needed,
                left,
            });
        }
        // At most the number of bytes left, which is a usize.
        self.offset += needed as usize;
        Ok(&self.bytes[offset..self.offset])
    }

    pub(super) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], PartitionFileError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, PartitionFileError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, PartitionFileError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// A number of 4 bytes between bounds.
    pub(super) fn count(
        &mut self,
        what: &'static str,
        least: usize,
        most: usize,
    ) -> Result<usize, PartitionFileError> {
        let found = self.u32(what)? as usize;
        if (least..=most).contains(&found) {
            return Ok(found);
        }
        Err(PartitionFileError::Count {
            what,
            found: found as u64,
            least: least as u64,
            most: most as u64,
        })
    }
}

// === impl Head ===

impl Head {
    /// Reads the counts, and checks that the rest of the bytes can hold as many items.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, PartitionFileError> {
        let parts = reader.count("parts", 1, MAX_PARTS)?;
        let classes = reader.count("classes", 1, parts)?;
        let public_inputs = reader.count("public inputs", 0, MAX_ACCESSES)?;
        let accesses = reader.count("accesses", public_inputs, MAX_ACCESSES)?;
        let needed = classes as u64 * CLASS_BYTES_MIN
            + parts as u64 * PART_BYTES_MIN
            + accesses as u64 * ADDRESS_BYTES;
        let (offset, left) = (reader.offset, reader.left());
        if needed > left as u64 {
            return Err(PartitionFileError::Truncated {
                what: "classes, parts and addresses",
                offset,
                needed,
                left,
            });
        }
        Ok(Self {
            parts,
            classes,
            public_inputs,
            accesses,
        })
    }
}
