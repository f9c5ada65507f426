//! Keys, proofs and files over every curve. One program: the prover is compiled into it once.

mod curves;
mod device;
mod each;
mod key_files;
mod mirage;
mod points;
mod proofs;
mod resident;
mod snarkjs_json;
mod weakness;
mod zkey;
mod zkey_setup;
