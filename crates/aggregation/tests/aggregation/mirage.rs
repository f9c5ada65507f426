//! Aggregates of Mirage-shaped statements.

use ark_ff::UniformRand;
use ark_std::rand::Rng;
use proofmill_aggregation::{
    Aggregate, AggregateKind, AggregateVerifyError, AggregationCurve, Commitment, IndexError,
    MirageIndex, MirageStatement, MirageVerifyingKey, Srs, SrsError,
};
use proofmill_groth16::{Bls12_381, Bn254};

use crate::case::{CONTEXT, Case, Proved, first, rng, second, srs, statement};
use crate::naive::verify_mirage;

/// Verdicts of both verifiers about the same bytes, which must be one.
fn verdict<E: AggregationCurve>(
    key: &[u8],
    inputs: &[E::ScalarField],
    commitment: &[u8],
    aggregate: &[u8],
) -> bool {
    let fast = || {
        let key = MirageVerifyingKey::<E>::from_bytes(key).ok()?;
        let commitment = Commitment::<E>::from_bytes(commitment).ok()?;
        let aggregate = Aggregate::<E>::from_bytes(aggregate).ok()?;
        Some(
            key.verify(statement(inputs, &commitment), &aggregate)
                .is_ok(),
        )
    };
    let fast = fast().unwrap_or(false);
    let name = E::CURVE.name();
    let naive =
        verify_mirage::<E>(name, key, CONTEXT, inputs, commitment, aggregate).unwrap_or(false);
    assert_eq!(fast, naive, "both verifiers agree");
    fast
}

fn any_number_is_proved<E: AggregationCurve>() {
    let srs = srs::<E>(64);
    for (number, count) in [1, 2, 3, 5, 7, 32, 33].into_iter().enumerate() {
        let case = Case::<E>::random(&mut rng(count as u64), count, 1 + number % 3, number % 4);
        assert!(case.holds());
        let proved = case.prove(&srs);
        assert!(proved.verifies(&case.inputs), "{count} proofs");

        let bytes = proved.aggregate.to_bytes();
        let size = Aggregate::<E>::encoded_size(AggregateKind::Mirage, count);
        assert_eq!(bytes.len(), size);
        assert_eq!(
            Aggregate::from_bytes(&bytes).as_ref(),
            Ok(&proved.aggregate)
        );
        let key = proved.index.verifying_key().to_bytes();
        let commitment = proved.commitment.to_bytes();
        assert!(verdict::<E>(&key, &case.inputs, &commitment, &bytes));

        // A string of another capacity with the same secrets is as good.
        let truncated = srs.truncated(count.next_power_of_two().max(2)).unwrap();
        assert_eq!(case.prove(&truncated).aggregate, proved.aggregate);
    }
}

#[test]
fn any_number_is_proved_on_bls12_381() {
    any_number_is_proved::<Bls12_381>();
}

#[test]
fn any_number_is_proved_on_bn254() {
    any_number_is_proved::<Bn254>();
}

/// Makes one of a cheating prover's possible changes to a valid case.
fn change<E: AggregationCurve>(case: &mut Case<E>, what: usize, at: usize, rng: &mut impl Rng) {
    let count = case.proofs.len();
    let other = (at + 1) % count;
    let random = E::ScalarField::rand(rng);
    match what {
        0 => {}
        1 => case.proofs[at].a = first::<E>(random),
        2 => case.proofs[at].b = second::<E>(random),
        3 => case.proofs[at].c = first::<E>(random),
        4 => case.d[at] = first::<E>(random),
        5 => case.proofs.swap(at, other),
        6 => case.d.swap(at, other),
        7 => case.proofs[at] = case.proofs[other],
        8 => case.inputs.iter_mut().for_each(|input| *input += random),
        _ => case.parts.inputs[0][at] = first::<E>(random),
    }
}

fn aggregates_hold_as_their_parts_do<E: AggregationCurve>(cases: u64) {
    let srs = srs::<E>(16);
    let (mut true_ones, mut false_ones) = (0, 0);
    for seed in 0..cases {
        let rng = &mut rng(1000 + seed);
        let (count, classes) = (rng.gen_range(1..13), rng.gen_range(1..4));
        let shared = rng.gen_range(0..3);
        let mut case = Case::<E>::random(rng, count, classes, shared);
        let (what, at) = (seed as usize % 10, rng.gen_range(0..count));
        change(&mut case, what, at, rng);
        let holds = case.holds();
        let proved = case.prove(&srs);
        assert_eq!(
            proved.verifies(&case.inputs),
            holds,
            "change {what} of {count}"
        );
        match holds {
            true => true_ones += 1,
            false => false_ones += 1,
        }
    }
    assert!(true_ones >= cases / 10 && false_ones >= cases / 2);
}

#[test]
fn aggregates_hold_as_their_parts_do_on_bls12_381() {
    aggregates_hold_as_their_parts_do::<Bls12_381>(60);
}

#[test]
fn aggregates_hold_as_their_parts_do_on_bn254() {
    aggregates_hold_as_their_parts_do::<Bn254>(60);
}

/// Changes every element and every point of the aggregate: flips one bit, and replaces the value by another one of its
/// group.
fn every_field_is_bound<E: AggregationCurve>() {
    let srs = srs::<E>(8);
    let case = Case::<E>::random(&mut rng(7), 5, 2, 2);
    let Proved {
        index,
        commitment,
        aggregate,
    } = case.prove(&srs);
    let key = index.verifying_key().to_bytes();
    let (commitment, bytes) = (commitment.to_bytes(), aggregate.to_bytes());
    let refused = |commitment: &[u8], bytes: &[u8]| {
        assert!(!verdict::<E>(&key, &case.inputs, commitment, bytes));
    };
    let [g1, g2, element] = match E::CURVE {
        proofmill_groth16::Curve::Bn254 => [32, 64, 192],
        proofmill_groth16::Curve::Bls12_381 | proofmill_groth16::Curve::Bls12_377 => [48, 96, 288],
    };
    // As the head of `aggregate.rs` lists them, for three rounds.
    let mut sizes = vec![element; 2 + 2 + 6 + 3 * 6];
    sizes.extend([g1, g2, g2, g2, g1, g1, g2, g2, g1, g1]);
    let mut at = 44;
    for (number, size) in sizes.iter().enumerate() {
        let place = [at, at + size / 2, at + size - 1][number % 3];
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        refused(&commitment, &changed);
        at += size;
    }
    assert_eq!(at, bytes.len());

    // Valid elements in the places of others, so that decoding succeeds.
    let mut at = 44;
    for pair in sizes.windows(2) {
        let [size, next] = [pair[0], pair[1]];
        if size == next {
            let mut changed = bytes.clone();
            changed.copy_within(at + size..at + 2 * size, at);
            assert!(Aggregate::<E>::from_bytes(&changed).is_ok());
            refused(&commitment, &changed);
        }
        at += size;
    }
    for place in [0, element] {
        let mut changed = commitment.clone();
        changed[place..place + element].fill(0);
        assert!(Commitment::<E>::from_bytes(&changed).is_ok());
        refused(&changed, &bytes);
    }
}

#[test]
fn every_field_is_bound_on_bls12_381() {
    every_field_is_bound::<Bls12_381>();
}

#[test]
fn every_field_is_bound_on_bn254() {
    every_field_is_bound::<Bn254>();
}

/// Changes each field of the verifying key, and adjusts the checksum.
#[test]
fn every_field_of_the_key_is_bound() {
    type E = Bls12_381;
    let srs = srs::<E>(8);
    let case = Case::<E>::random(&mut rng(8), 6, 2, 1);
    let proved = case.prove(&srs);
    let key = proved.index.verifying_key().to_bytes();
    let [commitment, aggregate] = [proved.commitment.to_bytes(), proved.aggregate.to_bytes()];
    assert!(verdict::<E>(&key, &case.inputs, &commitment, &aggregate));
    let with_checksum = |mut bytes: Vec<u8>| {
        use sha2::Digest;
        let content = bytes.len() - 32;
        let checksum = sha2::Sha256::digest(&bytes[..content]);
        bytes[content..].copy_from_slice(&checksum);
        bytes
    };
    // The number of parts: of the same size after padding, and of another.
    for count in [5, 7, 8, 3] {
        let mut changed = key.clone();
        changed[28] = count;
        let changed = with_checksum(changed);
        assert!(MirageVerifyingKey::<E>::from_bytes(&changed).is_ok());
        assert!(!verdict::<E>(
            &changed,
            &case.inputs,
            &commitment,
            &aggregate
        ));
    }
    // Neighbours in place of points and elements.
    let mut at = 36;
    let mut sizes = vec![48, 48, 96, 96];
    sizes.extend(vec![288; 1 + 2 * (2 + 3)]);
    for pair in sizes.windows(2) {
        if pair[0] == pair[1] {
            let mut changed = key.clone();
            changed.copy_within(at + pair[0]..at + 2 * pair[0], at);
            let changed = with_checksum(changed);
            assert!(MirageVerifyingKey::<E>::from_bytes(&changed).is_ok());
            assert!(!verdict::<E>(
                &changed,
                &case.inputs,
                &commitment,
                &aggregate
            ));
        }
        at += pair[0];
    }
    // The last element has no neighbour after it.
    assert_eq!(at + 288 + 32, key.len());
}

#[test]
fn statements_are_bound() {
    type E = Bls12_381;
    let small = srs::<E>(8);
    let case = Case::<E>::random(&mut rng(9), 6, 2, 2);
    let proved = case.prove(&small);
    let key = proved.index.verifying_key();
    let Proved {
        commitment,
        aggregate,
        ..
    } = &proved;
    assert_eq!(key.verify(case.statement(commitment), aggregate), Ok(()));

    let swapped: Vec<_> = case.inputs.iter().rev().copied().collect();
    let invalid = Err(AggregateVerifyError::Invalid);
    assert_eq!(
        key.verify(statement(&swapped, commitment), aggregate),
        invalid
    );
    let count = AggregateVerifyError::Count {
        what: "shared public inputs",
        expected: 2,
        found: 1,
    };
    assert_eq!(
        key.verify(statement(&case.inputs[..1], commitment), aggregate),
        Err(count)
    );

    let elsewhere = MirageStatement {
        context: b"what was said elsewhere",
        ..case.statement(commitment)
    };
    assert_eq!(key.verify(elsewhere, aggregate), invalid);

    // Another statement's proof, and another's commitment.
    let other = Case::<E>::random(&mut rng(10), 6, 2, 2);
    let other_key = MirageIndex::new(&small, case.parts.clone()).unwrap();
    let other_commitment = other_key.commit(&small, &other.d).unwrap();
    assert_eq!(
        key.verify(case.statement(&other_commitment), aggregate),
        invalid
    );

    // Parts in another order, other classes, and another reference string.
    let mut turned = case.parts.clone();
    turned.inputs.iter_mut().for_each(|points| points.reverse());
    turned.class_of.reverse();
    let mut classes = case.parts.clone();
    classes.classes.reverse();
    let elsewhere = srs::<E>(16);
    for (srs, parts) in [
        (&small, turned),
        (&small, classes),
        (&elsewhere, case.parts.clone()),
    ] {
        let key = MirageIndex::new(srs, parts).unwrap();
        let key = key.verifying_key();
        assert_eq!(key.verify(case.statement(commitment), aggregate), invalid);
    }
}

#[test]
fn impossible_keys_and_numbers_are_refused() {
    type E = Bn254;
    let srs = srs::<E>(4);
    let case = Case::<E>::random(&mut rng(11), 4, 2, 1);
    let refusal = |change: fn(&mut Case<E>)| {
        let mut case = case.clone();
        change(&mut case);
        MirageIndex::new(&srs, case.parts).map(|_| ()).unwrap_err()
    };
    assert!(matches!(
        refusal(|case| case.parts.class_of[2] = 2),
        IndexError::Class {
            proof: 2,
            class: 2,
            classes: 2
        }
    ));
    assert!(matches!(
        refusal(|case| case.parts.inputs[1].truncate(3)),
        IndexError::InputPoints {
            input: 1,
            expected: 4,
            found: 3
        }
    ));
    assert!(matches!(
        refusal(|case| case.parts.inputs.clear()),
        IndexError::Inputs(0)
    ));
    assert!(matches!(
        refusal(|case| case.parts.class_of.clear()),
        IndexError::Srs(SrsError::Count {
            count: 0,
            capacity: 4
        })
    ));
    assert!(matches!(
        refusal(|case| case.parts.class_of.push(0)),
        IndexError::Srs(SrsError::Count {
            count: 5,
            capacity: 4
        })
    ));
    assert!(matches!(
        refusal(|case| case.parts.classes[1].eta = case.parts.classes[1].delta),
        IndexError::Insecure { key: 1, .. }
    ));
    assert!(matches!(
        refusal(|case| case.parts.classes[0].gamma = case.parts.beta),
        IndexError::Insecure { key: 0, .. }
    ));
    let index = MirageIndex::new(&srs, case.parts.clone()).unwrap();
    let commitment = index.commit(&srs, &case.d).unwrap();
    let refused = |srs: &Srs<E>, inputs: usize, proofs: usize, d: usize| {
        let aggregate = index.aggregate(
            srs,
            statement(&case.inputs[..inputs], &commitment),
            &case.proofs[..proofs],
            &case.d[..d],
        );
        aggregate.map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(refused(&srs, 1, 3, 4), "3 proofs: the key is for 4");
    assert_eq!(refused(&srs, 1, 4, 3), "3 commitments: the key is for 4");
    assert_eq!(
        refused(&srs, 0, 4, 4),
        "0 shared public inputs: the key is for 1"
    );
    let other = crate::case::srs::<E>(8);
    let expected = "the key was made with another reference string";
    assert_eq!(refused(&other, 1, 4, 4), expected);
}

/// The sizes that are promised for the largest benchmark.
#[test]
fn sizes_are_logarithmic() {
    let size = |count| Aggregate::<Bls12_381>::encoded_size(AggregateKind::Mirage, count);
    assert_eq!(size(1), 44 + 10 * 288 + 5 * 48 + 5 * 96);
    assert_eq!(size(1024) - size(512), 6 * 288);
    assert_eq!(size(1000), size(1024));
    let with_commitment = size(1024) + Commitment::<Bls12_381>::encoded_size();
    assert_eq!(with_commitment, 21_500);
}
