//! The file of a batch's witness, from which another process makes the batch's proof.
//!
//! After magic (`PMILLVKW`) and version: the levels of the tree, the most updates of a batch, the levels of a part (4
//! bytes each); for each of these updates, idle ones at the end, the update without siblings as in `encoding.rs`, and
//! its siblings (32 bytes each), the leaf's neighbour first; the SHA-256 of all that. So all witnesses for the same keys
//! have the same length. The file is secret: it shows which keys were updated.

use super::encoding::{TRANSITION_BYTES, read_siblings, read_transition, write_transition};
use super::{BatchShape, UpdateBatch};
use crate::frame::{FRAME_BYTES, Fields, Format, FormatError};
use crate::{DIGEST_BYTES, Digest, Transition, ValueDigest};

const FORMAT: Format = Format {
    magic: b"PMILLVKW",
    what: "witness of a batch of updates",
};

/// Bytes of the sizes.
const SHAPE_BYTES: usize = 3 * 4;

/// A witness from which no batch can be made. Updates are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WitnessError {
    /// The bytes are no witness.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The witness is for other keys.
    #[error("the witness is for {found}, where the keys are for {expected}")]
    Shape {
        /// The sizes that the keys are for.
        expected: BatchShape,
        /// The sizes that the witness is for.
        found: BatchShape,
    },
    /// An update that does not keep the rules.
    #[error("update {0}: the version after it is not the one that must follow")]
    Version(usize),
    /// An update that does not begin with the root that the one before ended with.
    #[error(
        "update {update} begins with the root {found}, but the one before ended with {expected}"
    )]
    Root {
        /// The update.
        update: usize,
        /// The root after the update before.
        expected: Digest,
        /// The root that the update begins with.
        found: Digest,
    },
    /// An update after an idle one, or an idle one that is not like the others.
    #[error("update {0}: idle updates are all the same, and the last of a batch")]
    Idle(usize),
}

/// Untrusted updates of a batch, checked one after the other.
struct WitnessReader {
    batch: UpdateBatch,
    /// The root after the updates so far.
    root: Option<Digest>,
    has_idle: bool,
}

// === impl UpdateBatch ===

impl UpdateBatch {
    /// The length of the witness of a batch, in bytes.
    pub const fn witness_bytes(shape: BatchShape) -> usize {
        let of_update = TRANSITION_BYTES + shape.depth() as usize * DIGEST_BYTES;
        FRAME_BYTES + SHAPE_BYTES + shape.updates() * of_update
    }

    /// The witness of the batch, as a file for another process.
    pub fn to_witness(&self) -> Vec<u8> {
        let mut bytes = FORMAT.begin();
        bytes.reserve_exact(Self::witness_bytes(self.shape).saturating_sub(bytes.len()));
        for size in sizes(self.shape) {
            bytes.extend(size.to_le_bytes());
        }
        for update in 0..self.shape.updates() {
            let (transition, is_idle) = self.transition(update);
            write_transition(transition, is_idle, &mut bytes);
            for sibling in &transition.siblings {
                bytes.extend(sibling.0);
            }
        }
        FORMAT.end(bytes)
    }

    /// The batch of an untrusted witness. Its updates keep the rules, and each begins with the root that the one before
    /// ended with.
    ///
    /// # Errors
    ///
    /// [`WitnessError`] for any bytes that [`to_witness`](Self::to_witness) does not make for a batch of this shape.
    pub fn from_witness(shape: BatchShape, bytes: &[u8]) -> Result<Self, WitnessError> {
        let mut fields = FORMAT.open(bytes)?;
        check_shape(shape, &mut fields)?;
        let mut reader = WitnessReader {
            batch: Self::blank(shape),
            root: None,
            has_idle: false,
        };
        for update in 0..shape.updates() {
            let (mut transition, is_idle) = read_transition(&mut fields)?;
            transition.siblings = read_siblings(&mut fields, shape.depth() as usize)?;
            reader.take(update, transition, is_idle)?;
        }
        fields.end()?;
        Ok(reader.batch)
    }
}

/// The sizes as they stand in a witness. None exceeds 2²⁰.
const fn sizes(shape: BatchShape) -> [u32; 3] {
    let updates = shape.updates() as u32;
    [shape.depth(), updates, shape.levels_per_part()]
}

fn check_shape(expected: BatchShape, fields: &mut Fields<'_>) -> Result<(), WitnessError> {
    let field = "sizes";
    let [depth, updates, levels] = [fields.u32(field)?, fields.u32(field)?, fields.u32(field)?];
    let found = BatchShape::with_depth(depth, updates as usize, levels);
    let found = found.map_err(|_| fields.impossible(field))?;
    match found == expected {
        true => Ok(()),
        false => Err(WitnessError::Shape { expected, found }),
    }
}

// === impl WitnessReader ===

impl WitnessReader {
    fn take(
        &mut self,
        update: usize,
        transition: Transition,
        is_idle: bool,
    ) -> Result<(), WitnessError> {
        if self.has_idle {
            // Its roots were checked with the first idle update.
            let is_same = is_idle && transition == self.batch.idle;
            return is_same.then_some(()).ok_or(WitnessError::Idle(update));
        }
        let before = transition.before;
        let version = before.map_or(Some(0), |record| record.version.checked_add(1));
        if version != Some(transition.after.version) {
            return Err(WitnessError::Version(update));
        }
        // Of an idle update the state after is not hashed into a root: it has one encoding.
        if is_idle && transition.after.value != ValueDigest::default() {
            return Err(WitnessError::Idle(update));
        }
        let [before, after] = transition.roots();
        let expected = *self.root.get_or_insert(before);
        if before != expected {
            let found = before;
            return Err(WitnessError::Root {
                update,
                expected,
                found,
            });
        }
        if update == 0 {
            self.batch.root_before = before;
        }
        if is_idle {
            self.has_idle = true;
            self.batch.idle = transition;
            self.batch.root_after = before;
        } else {
            self.batch.updates.push(transition);
            self.batch.root_after = after;
            self.root = Some(after);
        }
        Ok(())
    }
}
