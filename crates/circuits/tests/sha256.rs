//! The SHA-256 gadget against the `sha2` crate and NIST's vectors.

use ark_bls12_381::Fr;
use ark_relations::gr1cs::ConstraintSystem;
use proofmill_circuits::gadgets::{Bit, Builder, Word};
use proofmill_circuits::sha256::{compress, hash_bytes, hash_words};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

fn digest(words: &[Word; 8]) -> Vec<u8> {
    words
        .iter()
        .flat_map(|word| word.value().to_be_bytes())
        .collect()
}

/// Hashes in a circuit whose message is private; returns the digest and the number of constraints.
fn in_circuit(message: &[u8]) -> (Vec<u8>, usize) {
    let cs = ConstraintSystem::<Fr>::new_ref();
    let mut b = Builder::new(cs.clone()).unwrap();
    let bytes: Vec<[Bit; 8]> = message
        .iter()
        .map(|byte| std::array::from_fn(|i| b.bit(byte >> i & 1 == 1).unwrap()))
        .collect();
    let before = cs.num_constraints();
    let out = hash_bytes(&mut b, &bytes).unwrap();
    b.finish().unwrap();
    assert!(
        cs.is_satisfied().unwrap(),
        "unsatisfied for {} bytes",
        message.len()
    );
    (digest(&out), cs.num_constraints() - before)
}

/// NIST's examples for SHA-256 (FIPS 180-2 appendix B, and the CAVS short-message vectors).
#[test]
fn nist_vectors() {
    let vectors: [(&[u8], &str); 5] = [
        (
            b"",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ),
        (
            b"abc",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        (
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        ),
        (
            &[0xd3],
            "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1",
        ),
        (
            &[0xc9, 0x8c, 0x8e, 0x55],
            "7abc22c0ae5af26ce93dbb94433a0e0b2e119d014f8e7f65bd56c61ccccd9504",
        ),
    ];
    for (message, expected) in vectors {
        assert_eq!(hex::encode(in_circuit(message).0), expected);
    }
}

#[test]
fn every_padding_boundary() {
    for length in [1, 3, 54, 55, 56, 57, 63, 64, 65, 80, 119, 120, 128] {
        let message: Vec<u8> = (0..length).map(|i| (i * 37 + length) as u8).collect();
        assert_eq!(
            in_circuit(&message).0,
            Sha256::digest(&message).to_vec(),
            "{length} bytes"
        );
    }
}

/// A compression of a private block from a private state: nothing folds.
#[test]
fn a_full_compression_stays_small() {
    let cs = ConstraintSystem::<Fr>::new_ref();
    let mut b = Builder::new(cs.clone()).unwrap();
    let state = std::array::from_fn(|i| {
        Word::witness(&mut b, 0x9e37_79b9_u32.wrapping_mul(i as u32)).unwrap()
    });
    let block = std::array::from_fn(|i| {
        Word::witness(&mut b, 0x85eb_ca6b_u32.wrapping_mul(i as u32)).unwrap()
    });
    let before = cs.num_constraints();
    compress(&mut b, &state, &block).unwrap();
    b.finish().unwrap();
    assert!(cs.is_satisfied().unwrap());
    assert_eq!(cs.num_constraints() - before, 17_471);
}

/// A compression whose message schedule or state is changed after the fact is not satisfied.
#[test]
fn every_witness_is_constrained() {
    let cs = ConstraintSystem::<Fr>::new_ref();
    let mut b = Builder::new(cs.clone()).unwrap();
    let words: Vec<Word> = (0..4u32)
        .map(|i| Word::witness(&mut b, 0x1234_5678 ^ i).unwrap())
        .collect();
    hash_words(&mut b, &words).unwrap();
    b.finish().unwrap();
    let inner = cs.borrow().unwrap();
    let matrices = inner.to_matrices().unwrap();
    let matrices = &matrices[ark_relations::gr1cs::R1CS_PREDICATE_LABEL];
    let mut z = inner.assignments.instance_assignment.clone();
    z.extend_from_slice(&inner.assignments.witness_assignment);
    // The rows each variable occurs in: flipping a variable can only break those.
    let mut rows = vec![Vec::new(); z.len()];
    for matrix in matrices {
        for (row, terms) in matrix.iter().enumerate() {
            for (_, column) in terms {
                rows[*column].push(row);
            }
        }
    }
    let eval = |m: usize, row: usize, z: &[Fr]| -> Fr {
        matrices[m][row].iter().map(|(c, i)| *c * z[*i]).sum()
    };
    for column in 1..z.len() {
        let good = z[column];
        z[column] = Fr::from(1u64) - good;
        let broken = rows[column]
            .iter()
            .any(|row| eval(0, *row, &z) * eval(1, *row, &z) != eval(2, *row, &z));
        assert!(broken, "variable {column} can be flipped");
        z[column] = good;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn agrees_with_sha2(message in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(in_circuit(&message).0, Sha256::digest(&message).to_vec());
    }

    #[test]
    fn words_and_bytes_agree(words in proptest::collection::vec(any::<u32>(), 0..40)) {
        let cs = ConstraintSystem::<Fr>::new_ref();
        let mut b = Builder::new(cs.clone()).unwrap();
        let inputs: Vec<Word> = words.iter().map(|w| Word::witness(&mut b, *w).unwrap()).collect();
        let out = hash_words(&mut b, &inputs).unwrap();
        b.finish().unwrap();
        prop_assert!(cs.is_satisfied().unwrap());
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
        prop_assert_eq!(digest(&out), Sha256::digest(&bytes).to_vec());
    }
}
