//! The conformance suite of devices: cases that every [`Device`](crate::Device) must pass, as data, so that tests and
//! the command line run the same ones. Points and scalars come from fixed seeds; every result is compared with the
//! product by this crate's CPU kernels.
//!
//! ```
//! use proofmill_accelerator::{conformance, cpu};
//!
//! let device = cpu()?;
//! for case in conformance::jobs::<ark_bn254::G1Projective>() {
//!     case.run(&device).unwrap_or_else(|why| panic!("{}: {why}", case.name()));
//! }
//! # Ok::<(), proofmill_accelerator::Error>(())
//! ```

mod case;
mod jobs;
mod products;
mod samples;

pub use case::Case;
pub use jobs::jobs;
pub use products::{products, sized_products};
