//! The kinds of proofs that come with the program, and the list of those that a service takes.

mod groth16;
mod groth16_aggregate;
mod grumpkin_ipa;
mod halo2;
mod kzg;
mod list;
mod partition;
mod whole;

pub use groth16::{Groth16, Groth16Claim, Groth16Weight};
pub use groth16_aggregate::{Groth16Aggregate, Groth16AggregateVerifier};
pub use grumpkin_ipa::GrumpkinIpa;
pub use halo2::{Halo2, Orchard};
pub use kzg::Kzg;
pub use list::Kinds;
pub use partition::{Partition, PartitionVerifier};
pub use whole::{Unbatched, Verified, Verifier};
