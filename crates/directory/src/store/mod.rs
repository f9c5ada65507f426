//! A directory on disk.
//!
//! | file | holds |
//! |---|---|
//! | `lock` | the lock of the process that may write |
//! | `snapshot` | the state after some epoch: all keys with their versions and values |
//! | `epochs/0000000001`, … | the updates of an epoch, with the roots before and after it |
//! | `records/0000000001`, … | the [published record](crate::chain::EpochRecord) of a proved epoch |
//! | `proving/0000000001/`, … | a prover's unfinished work on an epoch, if there is any: this module only names it |
//!
//! Every file is written whole: under another name, flushed, then renamed. An epoch is there as soon as its file has
//! its name, and nothing else decides that; the snapshot is rewritten now and then, and the state is the snapshot with
//! the updates of all later epochs. So a crash at any moment leaves the state before or after an epoch, and a reader
//! needs no lock.
//!
//! Each format has a magic, a version and a checksum. A checksum detects damage; besides, every root is computed anew
//! from keys and values and compared.

mod directory;
mod epoch;
mod error;
mod file;
mod snapshot;
mod writer;

pub(crate) use file::read_limited;

pub use directory::{Found, KeyDirectory};
pub use epoch::{EPOCH_BYTES_MAX, Epoch};
pub use error::StoreError;
pub use snapshot::{SNAPSHOT_BYTES_MAX, Snapshot};
pub use writer::{DirectoryWriter, EpochSummary};
