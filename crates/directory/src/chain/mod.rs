//! The published records of epochs, and the verification of a chain of them.

mod record;
mod verify;

pub use record::{BatchRecord, EpochRecord, RECORD_BYTES_MAX, RecordError};
pub use verify::{ChainError, Checkpoint, ROOT_INPUTS, public_inputs, verify_chain};
