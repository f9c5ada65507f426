//! Generation of `.zkey` files. From an `.r1cs` and a `.ptau`, the key is byte for byte that of `snarkjs groth16 setup`,
//! with a contribution as by `snarkjs zkey contribute` if asked for. For development, a key is made from fresh
//! randomness.

mod coefficients;
mod columns;
mod contribution;
mod error;
mod new_key;
mod zkey_hash;

pub use error::ZkeySetupError;
pub use new_key::{setup_zkey, setup_zkey_from_ptau};
