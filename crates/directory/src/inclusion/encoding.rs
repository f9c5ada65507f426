//! The binary encoding of a proof, the only one: after magic (`PMILLVKI`) and version a byte for the leaf: 0 absent, 1
//! present, 2 occupied by another key; of another key its digest; of a present key the version (8 bytes) and the
//! value's digest; the bitmap (16 bytes); the given siblings (32 bytes each); the SHA-256 of all that.

use super::proof::{InclusionProof, ProvedLeaf};
use crate::frame::{Fields, Format, FormatError};
use crate::{Entry, KeyDigest, Record, ValueDigest};

const FORMAT: Format = Format {
    magic: b"PMILLVKI",
    what: "proof of a key's state",
};

const ABSENT: u8 = 0;
const PRESENT: u8 = 1;
const OCCUPIED: u8 = 2;

// === impl InclusionProof ===

impl InclusionProof {
    /// The proof's only binary encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = FORMAT.begin();
        match self.leaf() {
            ProvedLeaf::Absent => bytes.push(ABSENT),
            ProvedLeaf::Present(record) => {
                bytes.push(PRESENT);
                write_record(record, &mut bytes);
            }
            ProvedLeaf::Occupied(entry) => {
                bytes.push(OCCUPIED);
                bytes.extend(entry.key.0.0);
                write_record(&entry.record, &mut bytes);
            }
        }
        bytes.extend(self.bitmap().to_le_bytes());
        for sibling in self.siblings() {
            bytes.extend(sibling.0);
        }
        FORMAT.end(bytes)
    }

    /// Decodes an untrusted proof.
    ///
    /// # Errors
    ///
    /// [`FormatError`] for any bytes that [`to_bytes`](Self::to_bytes) does not make.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut fields = FORMAT.open(bytes)?;
        let leaf = match fields.byte("kind of leaf")? {
            ABSENT => ProvedLeaf::Absent,
            PRESENT => ProvedLeaf::Present(read_record(&mut fields)?),
            OCCUPIED => ProvedLeaf::Occupied(Entry {
                key: KeyDigest(fields.digest("other key")?),
                record: read_record(&mut fields)?,
            }),
            _ => return Err(fields.impossible("kind of leaf")),
        };
        let bitmap = fields.u128("bitmap")?;
        let mut siblings = Vec::with_capacity(bitmap.count_ones() as usize);
        for _ in 0..bitmap.count_ones() {
            siblings.push(fields.digest("siblings")?);
        }
        let impossible = fields.impossible("sibling");
        fields.end()?;
        Self::from_parts(leaf, bitmap, siblings).map_err(|_| impossible)
    }
}

fn write_record(record: &Record, bytes: &mut Vec<u8>) {
    bytes.extend(record.version.to_le_bytes());
    bytes.extend(record.value.0.0);
}

fn read_record(fields: &mut Fields<'_>) -> Result<Record, FormatError> {
    Ok(Record {
        version: fields.u64("version")?,
        value: ValueDigest(fields.digest("value")?),
    })
}
