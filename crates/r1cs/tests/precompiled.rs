//! Precompiled systems: the same as those that were synthesised, and no other bytes are one.

use std::io::Cursor;

use ark_ff::PrimeField;
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use proofmill_files::MappedFile;
use proofmill_r1cs::iden3::Reason;
use proofmill_r1cs::{PrecompiledFile, R1cs, load_precompiled, write_precompiled};
use proptest::prelude::*;

type Rows<F> = Vec<Vec<(F, usize)>>;

fn random_system<F: PrimeField>(seed: u64, rows: usize, variables: usize) -> R1cs<F> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut matrix = || -> Rows<F> {
        (0..rows)
            .map(|_| {
                (0..rng.gen_range(0..5))
                    .map(|_| {
                        let value = match rng.gen_range(0..4) {
                            0 => F::one(),
                            1 => -F::one(),
                            2 => F::from(rng.gen_range(2..400u64)),
                            _ => F::rand(&mut rng),
                        };
                        (value, rng.gen_range(0..variables))
                    })
                    .collect()
            })
            .collect()
    };
    let rows = [matrix(), matrix(), matrix()];
    R1cs::from_rows(2.min(variables), variables - 2.min(variables), rows).unwrap()
}

fn file_of<F: PrimeField>(system: &R1cs<F>) -> Vec<u8> {
    write_precompiled(Cursor::new(Vec::new()), system)
        .unwrap()
        .into_inner()
}

fn read<F: PrimeField>(bytes: &[u8]) -> Result<R1cs<F>, proofmill_r1cs::iden3::FormatError> {
    PrecompiledFile::parse(bytes)?.read()
}

#[test]
fn a_system_is_read_as_it_was_synthesised() {
    for (rows, variables) in [(0, 1), (1, 2), (300, 40), (3_000, 70_000)] {
        let system = random_system::<ark_bls12_381::Fr>(rows as u64, rows, variables);
        let bytes = file_of(&system);
        let again: R1cs<ark_bls12_381::Fr> = read(&bytes).unwrap();
        assert_eq!(again, system);
        assert_eq!(again.digest(), system.digest());
        assert_eq!(again.memory(), system.memory(), "as narrow as it was");
        let system = random_system::<ark_bn254::Fr>(rows as u64, rows, variables);
        assert_eq!(read::<ark_bn254::Fr>(&file_of(&system)).unwrap(), system);
    }
}

#[test]
fn a_system_is_saved_whole_and_loaded_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit.pmcs");
    let system = random_system::<ark_bn254::Fr>(7, 200_000, 1_000);
    system.save_precompiled(&path).unwrap();
    let file = MappedFile::open(&path).unwrap();
    assert_eq!(load_precompiled::<ark_bn254::Fr>(&file).unwrap(), system);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn no_byte_can_be_changed_or_cut_off() {
    let system = random_system::<ark_bn254::Fr>(1, 20, 9);
    let bytes = file_of(&system);
    for at in 0..bytes.len() {
        for bit in [1u8, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= bit;
            assert!(
                read::<ark_bn254::Fr>(&changed).is_err(),
                "byte {at}, bit {bit:#x}"
            );
        }
        assert!(read::<ark_bn254::Fr>(&bytes[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn another_field_another_version_and_another_circuit_are_told_apart() {
    let system = random_system::<ark_bn254::Fr>(1, 20, 9);
    let bytes = file_of(&system);
    let reason = |bytes: &[u8]| read::<ark_bls12_381::Fr>(bytes).unwrap_err().reason;
    assert!(matches!(reason(&bytes), Reason::Field { .. }));
    let mut version = bytes.clone();
    version[4] = 2;
    let expected = Reason::Version {
        found: 2,
        expected: 1,
    };
    assert_eq!(reason(&version), expected);
    // The head of one circuit before the matrices of another of the same sizes.
    let other = file_of(&random_system::<ark_bn254::Fr>(1, 20, 9));
    assert_eq!(other, bytes);
    let digest = PrecompiledFile::parse(&bytes).unwrap().header().digest;
    let at = bytes
        .windows(32)
        .position(|window| window == digest)
        .unwrap();
    let mut wrong = bytes;
    wrong[at..at + 32].copy_from_slice(&[7; 32]);
    let error = read::<ark_bn254::Fr>(&wrong).unwrap_err().to_string();
    assert!(error.contains("digest"), "{error}");
}

#[test]
fn counts_are_not_trusted() {
    let system = random_system::<ark_bn254::Fr>(3, 20, 9);
    let bytes = file_of(&system);
    // The four counts of the header follow the prime.
    let prime = 4 + 32;
    let header = 12 + 12;
    for count in 0..4 {
        let mut huge = bytes.clone();
        let at = header + prime + 4 * count;
        huge[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(read::<ark_bn254::Fr>(&huge).is_err());
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0..400usize) {
        let mut file = file_of(&random_system::<ark_bn254::Fr>(5, 6, 5));
        let _ = read::<ark_bn254::Fr>(&bytes);
        let at = at.min(file.len());
        file.splice(at..(at + bytes.len()).min(file.len()), bytes);
        let _ = read::<ark_bn254::Fr>(&file);
    }
}
