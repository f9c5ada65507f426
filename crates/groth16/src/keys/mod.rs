//! Proving and verifying keys: how they are made, stored, held in memory and checked.

pub(crate) mod bases;
pub(crate) mod encoding;
pub(crate) mod file;
pub(crate) mod key;
pub(crate) mod mapped_points;
mod point_check;
pub(crate) mod resident;
pub(crate) mod setup;
pub(crate) mod subgroup;
mod weakness;

pub use encoding::{READING_WINDOW_BYTES, read_compressed_points};
pub use file::{KeyError, MAX_KEY_BYTES, ProvingKeyInfo};
pub use key::{ProvingKey, QueryPoints, SparseQuery, VerifyingKey};
pub use mapped_points::MAPPED_WINDOW_POINTS;
pub use point_check::PointCheck;
pub use resident::{ResidentForm, ResidentKey};
pub use setup::{SetupError, setup, setup_with_progress};
pub use subgroup::SUBGROUP_CHUNK_POINTS;
pub use weakness::{InsecureKey, KeyElement, Weakness};
