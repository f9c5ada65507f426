//! Where keys are: on disk, mapped, or ready to prove. They come when they are needed, stay while they
//! are used, and go, least recently used first, when their memory is.

mod acquire;
mod checked;
mod figures;
mod load;
mod reclaim;
mod table;
mod tiers;

pub(crate) use acquire::{AcquireError, KeyUse};
pub(crate) use checked::CheckedMemory;
pub(crate) use figures::Figures;
pub(crate) use table::{Remembered, Residency};
