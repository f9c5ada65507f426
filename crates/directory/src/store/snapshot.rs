//! The file of a directory's state: after magic (`PMILLVKS`) and version the tree's depth (4 bytes); the last epoch's
//! number (8); the root (32); the number of keys (4); for each key its version (8), the lengths of key (2) and value
//! (4), the key and the value; the SHA-256 of all that. Numbers are little-endian.

use super::epoch::{read_update, write_update};
use crate::frame::{Format, FormatError};
use crate::updates::KeyUpdate;
use crate::{DEPTH, Digest};

/// The most bytes of a snapshot's file.
pub const SNAPSHOT_BYTES_MAX: u64 = 1 << 36;

/// The bytes of a key's state without key and value.
const STATE_BYTES_MIN: usize = 8 + 2 + 4;

const FORMAT: Format = Format {
    magic: b"PMILLVKS",
    what: "snapshot of a directory",
};

/// The state of a directory after an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The levels of the tree.
    pub depth: u32,
    /// The epoch's number; 0 before the first.
    pub epoch: u64,
    /// The root.
    pub root: Digest,
    /// The present keys: version, key and value of each.
    pub keys: Vec<(u64, KeyUpdate)>,
}

// === impl Snapshot ===

impl Snapshot {
    /// The content of the snapshot's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let keys = self.keys.iter().map(|(version, key)| (*version, key));
        encode(self.depth, self.epoch, self.root, keys)
    }

    /// Decodes an untrusted snapshot. Whether the root is that of the keys is not checked here.
    ///
    /// # Errors
    ///
    /// [`FormatError`] for any bytes that [`to_bytes`](Self::to_bytes) does not make.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut fields = FORMAT.open(bytes)?;
        let depth = fields.u32("depth")?;
        if !(1..=DEPTH).contains(&depth) {
            return Err(fields.impossible("depth"));
        }
        let epoch = fields.u64("epoch")?;
        let root = fields.digest("root")?;
        let count = fields.count("number of keys", STATE_BYTES_MIN)?;
        let mut keys = Vec::with_capacity(count);
        for _ in 0..count {
            let version = fields.u64("version")?;
            keys.push((version, read_update(&mut fields)?));
        }
        fields.end()?;
        Ok(Self {
            depth,
            epoch,
            root,
            keys,
        })
    }
}

/// The bytes of a snapshot of these keys.
pub(super) fn encode<'a>(
    depth: u32,
    epoch: u64,
    root: Digest,
    keys: impl ExactSizeIterator<Item = (u64, &'a KeyUpdate)>,
) -> Vec<u8> {
    let mut bytes = FORMAT.begin();
    bytes.extend(depth.to_le_bytes());
    bytes.extend(epoch.to_le_bytes());
    bytes.extend(root.0);
    bytes.extend((keys.len() as u32).to_le_bytes());
    for (version, key) in keys {
        bytes.extend(version.to_le_bytes());
        write_update(key, &mut bytes);
    }
    FORMAT.end(bytes)
}
