//! Proofs with products and transforms computed by a device.

mod key;
mod placement;
mod products;

pub use key::DeviceKey;
pub use placement::{Offload, Placement};
pub use products::{PartialProducts, PendingProducts, QuotientInput};
