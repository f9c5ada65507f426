//! Untrusted `.wtns` files: `cargo +nightly fuzz run wtns`.
#![no_main]

use std::io::Cursor;

use ark_ff::PrimeField;
use libfuzzer_sys::fuzz_target;
use proofmill_r1cs::iden3::{ScalarField, Witness, WtnsFile, write_wtns};
use proofmill_r1cs_fuzz::{Counting, reading};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn read<F: PrimeField>(file: &WtnsFile<'_>, bytes: &[u8]) {
    if let Ok(witness) = reading(bytes.len(), || file.read::<F>()) {
        let again = write_wtns(Cursor::new(Vec::new()), witness.values())
            .unwrap()
            .into_inner();
        let twice: Witness<F> = WtnsFile::parse(&again).unwrap().read().unwrap();
        assert_eq!(twice, witness);
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(file) = reading(bytes.len(), || WtnsFile::parse(bytes)) {
        match file.header().prime {
            ScalarField::Bn254 => read::<ark_bn254::Fr>(&file, bytes),
            ScalarField::Bls12_381 => read::<ark_bls12_381::Fr>(&file, bytes),
            ScalarField::Bls12_377 => read::<ark_bls12_377::Fr>(&file, bytes),
        }
    }
});
