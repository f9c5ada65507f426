//! Proofs whose products and transforms a device computes.

mod key;
mod placement;
mod products;

pub use key::DeviceKey;
pub use placement::{Offload, Placement};
pub use products::{Evaluated, PartialProducts, Started};
