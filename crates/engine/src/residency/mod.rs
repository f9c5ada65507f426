//! Residency of keys: on disk, mapped, or ready to prove. Keys are loaded when they are needed, stay while
//! they are used, and are evicted, least recently used first, when their memory is needed.

mod acquire;
mod checked;
mod figures;
mod load;
mod reclaim;
mod table;
mod tiers;

pub(crate) use acquire::{AcquireError, KeyUse};
pub(crate) use checked::CheckedMemory;
pub(crate) use figures::KeySizes;
pub(crate) use table::{ResidencyTable, StoredFacts};
