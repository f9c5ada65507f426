//! Untrusted `.r1cs` files: `cargo +nightly fuzz run r1cs`.
#![no_main]

use std::io::Cursor;

use ark_ff::PrimeField;
use libfuzzer_sys::fuzz_target;
use proofmill_r1cs::iden3::{R1csFile, ScalarField, write_r1cs};
use proofmill_r1cs_fuzz::{Counting, reading};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn read<F: PrimeField>(file: &R1csFile<'_>, bytes: &[u8]) {
    let Ok(circuit) = reading(bytes.len(), || file.read::<F>()) else {
        return;
    };
    // Terms may have been out of order, so the file need not be the same; the circuit must be.
    let again = write_r1cs(Cursor::new(Vec::new()), &circuit)
        .unwrap()
        .into_inner();
    let twice: proofmill_r1cs::iden3::LabelledR1cs<F> =
        R1csFile::parse(&again).unwrap().read().unwrap();
    assert_eq!(twice.labels, circuit.labels);
    assert_eq!(
        write_r1cs(Cursor::new(Vec::new()), &twice)
            .unwrap()
            .into_inner(),
        again
    );
    let z = vec![F::one(); circuit.system.num_variables()];
    let _ = circuit.system.is_satisfied(&z);
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(file) = reading(bytes.len(), || R1csFile::parse(bytes)) {
        match file.header().prime {
            ScalarField::Bn254 => read::<ark_bn254::Fr>(&file, bytes),
            ScalarField::Bls12_381 => read::<ark_bls12_381::Fr>(&file, bytes),
            ScalarField::Bls12_377 => read::<ark_bls12_377::Fr>(&file, bytes),
        }
    }
});
