//! `.zkey` files made here: byte for byte what `snarkjs groth16 setup` makes of the same `.r1cs` and
//! `.ptau`, with a contribution as `snarkjs zkey contribute` makes it; and, for development, from
//! randomness of our own.

mod coefficients;
mod columns;
mod contribution;
mod error;
mod new_key;
mod zkey_hash;

pub use error::ZkeySetupError;
pub use new_key::{setup_zkey, setup_zkey_from_ptau};
