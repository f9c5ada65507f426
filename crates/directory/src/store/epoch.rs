//! The file of an epoch: after magic (`PMILLVKE`) and version the epoch's number (8 bytes); the roots before and after
//! it (32 each); the number of updates (4); for each update the lengths of key (2) and value (4), the key and the
//! value; the SHA-256 of all that. Numbers are little-endian.

use crate::Digest;
use crate::frame::{Fields, Format, FormatError};
use crate::updates::{KeyUpdate, UPDATE_BYTES_MAX, UPDATES_MAX};

/// The most bytes of an epoch's file.
pub const EPOCH_BYTES_MAX: u64 = (UPDATE_BYTES_MAX + UPDATES_MAX * UPDATE_BYTES_MIN + 200) as u64;

/// The bytes of an update without key and value.
const UPDATE_BYTES_MIN: usize = 2 + 4;

const FORMAT: Format = Format {
    magic: b"PMILLVKE",
    what: "epoch of a directory",
};

/// The updates of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// The number, from 1.
    pub number: u64,
    /// The root before the first update.
    pub root_before: Digest,
    /// The root after the last update.
    pub root_after: Digest,
    /// The updates, in order.
    pub updates: Vec<KeyUpdate>,
}

// === impl Epoch ===

impl Epoch {
    /// The content of the epoch's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = FORMAT.begin();
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.root_before.0);
        bytes.extend(self.root_after.0);
        bytes.extend((self.updates.len() as u32).to_le_bytes());
        for update in &self.updates {
            write_update(update, &mut bytes);
        }
        FORMAT.end(bytes)
    }

    /// Decodes an untrusted epoch.
    ///
    /// # Errors
    ///
    /// [`FormatError`] for any bytes that [`to_bytes`](Self::to_bytes) does not make.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut fields = FORMAT.open(bytes)?;
        let number = fields.u64("number")?;
        let (root_before, root_after) =
            (fields.digest("root before")?, fields.digest("root after")?);
        let count = fields.count("number of updates", UPDATE_BYTES_MIN)?;
        let mut updates = Vec::with_capacity(count);
        for _ in 0..count {
            updates.push(read_update(&mut fields)?);
        }
        fields.end()?;
        Ok(Self {
            number,
            root_before,
            root_after,
            updates,
        })
    }
}

/// Writes the lengths of key and value, the key and the value.
pub(super) fn write_update(update: &KeyUpdate, bytes: &mut Vec<u8>) {
    bytes.extend((update.key().len() as u16).to_le_bytes());
    bytes.extend((update.value().len() as u32).to_le_bytes());
    bytes.extend(update.key());
    bytes.extend(update.value());
}

pub(super) fn read_update(fields: &mut Fields<'_>) -> Result<KeyUpdate, FormatError> {
    let key = usize::from(fields.u16("key's length")?);
    let value = fields.u32("value's length")? as usize;
    let (key, value) = (fields.take("key", key)?, fields.take("value", value)?);
    KeyUpdate::new(key, value).map_err(|_| fields.impossible("length of key or value"))
}
