//! The private values of an update as bytes: in the witness of a batch, and in that of a part.
//!
//! An update without its siblings: a byte that is 1 for an idle update, a byte that is 1 if the key is present before;
//! the key's digest (32 bytes); the state before and the state after, each a version (8) and a value's digest (32). Of an
//! absent key the state before is zero. Numbers are little-endian.

use crate::frame::{Fields, FormatError};
use crate::{DIGEST_BYTES, Digest, KeyDigest, Record, Transition, ValueDigest};

/// Bytes of an update without its siblings.
pub(super) const TRANSITION_BYTES: usize = 1 + 1 + DIGEST_BYTES + 2 * (8 + DIGEST_BYTES);

/// Writes an update without its siblings.
pub(super) fn write_transition(transition: &Transition, is_idle: bool, bytes: &mut Vec<u8>) {
    bytes.push(is_idle.into());
    bytes.push(transition.before.is_some().into());
    bytes.extend(transition.key.0.0);
    for record in [transition.before.unwrap_or_default(), transition.after] {
        bytes.extend(record.version.to_le_bytes());
        bytes.extend(record.value.0.0);
    }
}

/// Reads an untrusted update without siblings, and whether it is idle. It need not keep the rules of updates.
pub(super) fn read_transition(fields: &mut Fields<'_>) -> Result<(Transition, bool), FormatError> {
    let is_idle = fields.flag("mark of an idle update")?;
    let is_present = fields.flag("mark of a present key")?;
    let key = KeyDigest(fields.digest("key")?);
    let before = read_record(fields)?;
    if !is_present && before != Record::default() {
        return Err(fields.impossible("state of an absent key"));
    }
    let transition = Transition {
        key,
        before: is_present.then_some(before),
        after: read_record(fields)?,
        siblings: Vec::new(),
    };
    Ok((transition, is_idle))
}

/// Reads siblings, one after the other.
pub(super) fn read_siblings(
    fields: &mut Fields<'_>,
    count: usize,
) -> Result<Vec<Digest>, FormatError> {
    (0..count).map(|_| fields.digest("siblings")).collect()
}

fn read_record(fields: &mut Fields<'_>) -> Result<Record, FormatError> {
    Ok(Record {
        version: fields.u64("version")?,
        value: ValueDigest(fields.digest("value")?),
    })
}
