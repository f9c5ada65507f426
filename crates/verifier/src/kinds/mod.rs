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

use rand::TryRngCore;
use rand::rngs::OsRng;

use crate::kind::NoRandomness;

/// Numbers of 128 bits from the operating system.
fn random_numbers(count: usize) -> Result<Vec<u128>, NoRandomness> {
    let mut bytes = vec![0; 16 * count];
    let drawn = OsRng.try_fill_bytes(&mut bytes);
    drawn.map_err(|error| NoRandomness(error.to_string()))?;
    let numbers = bytes.as_chunks::<16>().0.iter();
    Ok(numbers.map(|bytes| u128::from_le_bytes(*bytes)).collect())
}
