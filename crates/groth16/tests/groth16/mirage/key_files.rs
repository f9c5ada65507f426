//! Key files: round trips, and a clear error for whatever else a file may hold.

use std::os::unix::fs::PermissionsExt;

use ark_bls12_381::{Bls12_381, Fr};
use ark_ff::One;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_groth16::mirage::{self, CommitmentKey, CommittedR1cs, ProvingKey, VerifyingKey};
use proofmill_groth16::{Bn254, Curve, KeyError, PointCheck, SnarkCurve, with_curve};
use proofmill_r1cs::R1cs;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::support::{Case, SMALL};
use crate::points::outside_subgroup;

type Key = ProvingKey<Bls12_381>;

/// The place of the number of committed variables, after the beginning of every key file.
const COUNT: usize = 32;
const HEAD: usize = COUNT + 8;

/// x² = y with y public and x committed to.
fn key() -> Key {
    let row = |column| vec![vec![(Fr::one(), column)]];
    let system = R1cs::from_rows(2, 1, [row(2), row(2), row(1)]).unwrap();
    let circuit = CommittedR1cs::new(&system, 1).unwrap();
    let mut keys = mirage::setup(&[circuit], &mut StdRng::seed_from_u64(1)).unwrap();
    keys.remove(0)
}

/// The bytes before the plain key.
fn own(verifying: bool) -> usize {
    HEAD + 192 + if verifying { 0 } else { 96 + 96 }
}

/// Replaces both checksums by the right ones, as an attacker would.
fn reseal(mut bytes: Vec<u8>, verifying: bool) -> Vec<u8> {
    let (own, end) = (own(verifying), bytes.len() - 32);
    let inner = Sha256::digest(&bytes[own..end - 32]);
    bytes[end - 32..end].copy_from_slice(&inner);
    let mut outer = Sha256::new();
    outer.update(&bytes[..own]);
    outer.update(inner);
    bytes[end..].copy_from_slice(&outer.finalize());
    bytes
}

fn round_trips<E: SnarkCurve>() {
    let case = Case::<E>::random(SMALL, &mut StdRng::seed_from_u64(2));
    let directory = tempfile::tempdir().unwrap();
    let [pk, vk] = ["a.pk", "a.vk"].map(|name| directory.path().join(name));
    case.key.save(&pk).unwrap();
    case.key.vk().save(&vk).unwrap();
    let mode = std::fs::metadata(&pk).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for check in [PointCheck::Skip, PointCheck::Full] {
        let read = ProvingKey::<E>::load(&pk, check).unwrap();
        assert!(read == case.key);
        let (proof, _) = mirage::prove(
            &read,
            &case.system,
            &case.assignment,
            &case.opening,
            &mut StdRng::seed_from_u64(3),
        )
        .unwrap();
        assert!(case.holds(case.inputs(), &case.commitment, &proof));
    }
    let to_commit = CommitmentKey::<E>::load(&pk).unwrap();
    assert!(to_commit == CommitmentKey::from(&case.key));
    assert_eq!(to_commit.circuit(), &case.key.plain.vk.circuit);
    let committed = to_commit.commit_with(case.committed(), &case.opening);
    assert_eq!(committed.unwrap(), case.commitment);
    assert_eq!(VerifyingKey::<E>::load(&vk).unwrap(), case.key.vk());
    assert_eq!(std::fs::read(&pk).unwrap(), case.key.to_bytes());
    assert_eq!(std::fs::read(&vk).unwrap(), case.key.vk().to_bytes());
    assert_eq!(
        std::fs::read_dir(&directory).unwrap().count(),
        2,
        "no temporary file is left"
    );
    let missing = VerifyingKey::<E>::load(&directory.path().join("none.vk")).unwrap_err();
    assert!(matches!(missing, KeyError::Io { .. }) && missing.to_string().contains("none.vk"));
}

#[test]
fn keys_round_trip_through_files() {
    for curve in Curve::ALL {
        with_curve!(curve, E => round_trips::<E>());
    }
}

/// Each kind of key is read as what it is alone.
#[test]
fn kinds_and_curves_are_told_apart() {
    let key = key();
    let (pk, vk) = (key.to_bytes(), key.vk().to_bytes());
    let (plain, plain_vk) = (key.plain.to_bytes(), key.plain.vk.to_bytes());
    let kind = |error: KeyError| match error {
        KeyError::Kind { expected, found } => (expected, found),
        other => panic!("{other}"),
    };
    let proving = |bytes: &[u8]| kind(Key::from_bytes(bytes, PointCheck::Full).unwrap_err());
    let verifying = |bytes: &[u8]| kind(VerifyingKey::<Bls12_381>::from_bytes(bytes).unwrap_err());
    assert_eq!(
        [&vk, &plain, &plain_vk].map(|bytes| proving(bytes)),
        [(3, 4), (3, 1), (3, 2)]
    );
    assert_eq!(
        [&pk, &plain, &plain_vk].map(|bytes| verifying(bytes)),
        [(4, 3), (4, 1), (4, 2)]
    );
    let as_plain = proofmill_groth16::ProvingKey::<Bls12_381>::from_bytes(&pk, PointCheck::Full);
    assert_eq!(kind(as_plain.unwrap_err()), (1, 3));
    let as_plain = proofmill_groth16::VerifyingKey::<Bls12_381>::from_bytes(&vk);
    assert_eq!(kind(as_plain.unwrap_err()), (2, 4));

    let refused = VerifyingKey::<Bn254>::from_bytes(&vk).unwrap_err();
    assert!(matches!(refused, KeyError::Curve { .. }), "{refused}");
    let refused = ProvingKey::<Bn254>::from_bytes(&pk, PointCheck::Full).unwrap_err();
    assert!(matches!(refused, KeyError::Curve { .. }), "{refused}");
}

#[test]
fn cut_and_corrupt_files_are_refused() {
    let key = key();
    let (pk, vk) = (key.to_bytes(), key.vk().to_bytes());
    let pk_refused = |bytes: &[u8]| Key::from_bytes(bytes, PointCheck::Skip).unwrap_err();
    let vk_refused = |bytes: &[u8]| VerifyingKey::<Bls12_381>::from_bytes(bytes).unwrap_err();
    for (bytes, refused) in [
        (&pk, &pk_refused as &dyn Fn(&[u8]) -> KeyError),
        (&vk, &vk_refused),
    ] {
        for length in 0..bytes.len() {
            let error = refused(&bytes[..length]);
            let cut = matches!(error, KeyError::Length { .. } | KeyError::Checksum);
            assert!(cut, "{length}: {error}");
        }
        refused(&[bytes, &[0][..]].concat());
        for index in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[index] ^= 0x10;
            refused(&wrong);
        }
    }
}

/// A commitment key is read without the plain key's content: what is read is right all the same, or refused.
#[test]
fn commitment_keys_of_corrupt_files_are_refused_or_right() {
    let key = key();
    let (bytes, right) = (key.to_bytes(), CommitmentKey::from(&key));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.pk");
    let load = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        CommitmentKey::<Bls12_381>::load(&path)
    };
    assert!(load(&bytes).unwrap() == right);
    // All of what is read, and samples of the rest, as each is a file.
    let places = || (0..bytes.len()).filter(|place| *place < own(false) || place % 5 == 0);
    for length in places() {
        let error = load(&bytes[..length]).unwrap_err();
        let cut = matches!(error, KeyError::Length { .. } | KeyError::Checksum);
        assert!(cut, "{length}: {error}");
    }
    let mut refused = 0;
    for index in places() {
        let mut wrong = bytes.clone();
        wrong[index] ^= 0x10;
        match load(&wrong) {
            Ok(read) => assert!(
                read == right || read.circuit() != right.circuit(),
                "{index}"
            ),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > own(false), "{refused}");
    let mut other = key;
    other.plain.delta_g1 = other.plain.beta_g1;
    let error = load(&other.to_bytes()).unwrap_err();
    let section = "delta in the first group";
    assert!(
        matches!(error, KeyError::Point { section: found } if found == section),
        "{error}"
    );
}

#[test]
fn counts_are_checked_before_anything_is_allocated() {
    for verifying in [false, true] {
        let key = key();
        let bytes = match verifying {
            true => key.vk().to_bytes(),
            false => key.to_bytes(),
        };
        let with = |value: u64| {
            let mut wrong = bytes.clone();
            wrong[COUNT..HEAD].copy_from_slice(&value.to_le_bytes());
            // As if the points were there: sealed where they would be, if the file is long enough.
            let wrong = reseal(wrong, verifying);
            match verifying {
                true => VerifyingKey::<Bls12_381>::from_bytes(&wrong).map(drop),
                false => Key::from_bytes(&wrong, PointCheck::Full).map(drop),
            }
        };
        for value in [1 << 32, 1 << 40, u64::MAX] {
            assert!(matches!(with(value), Err(KeyError::Lengths)), "{value}");
        }
        // A verifying key has no points for them: any number is read.
        for value in [1 << 20, u64::from(u32::MAX)] {
            let refused = matches!(with(value), Err(KeyError::Length { .. }));
            assert_eq!(refused, !verifying, "{value}");
        }
    }
}

/// More points for committed variables than there are witness variables, in an otherwise valid file.
#[test]
fn more_committed_variables_than_witness_are_refused() {
    let mut key = key();
    key.committed.push(key.committed[0]);
    let refused = Key::from_bytes(&key.to_bytes(), PointCheck::Full).unwrap_err();
    assert!(matches!(refused, KeyError::Lengths), "{refused}");
}

/// A file with a right checksum but a wrong content: what a checksum alone lets through, a full check
/// does not. A verifying key's points are always checked.
#[test]
fn a_full_check_finds_points_outside_their_group() {
    let key = key();
    let outside = outside_subgroup::<ark_bls12_381::g1::Config>();
    let in_g2 = outside_subgroup::<ark_bls12_381::g2::Config>();
    let refused = |key: &Key, section: &str| {
        let bytes = key.to_bytes();
        assert!(Key::from_bytes(&bytes, PointCheck::Skip).is_ok());
        match Key::from_bytes(&bytes, PointCheck::Full).unwrap_err() {
            KeyError::Point { section: found } => assert_eq!(found, section),
            other => panic!("{other}"),
        }
    };
    let mut wrong = key.clone();
    wrong.committed[0] = outside;
    refused(&wrong, "committed variables");
    let mut wrong = key.clone();
    wrong.eta_g1 = outside;
    refused(&wrong, "eta in the first group");
    let mut wrong = key.clone();
    wrong.eta_g2 = in_g2;
    refused(&wrong, "eta");
    let error = VerifyingKey::<Bls12_381>::from_bytes(&wrong.vk().to_bytes()).unwrap_err();
    assert!(
        matches!(error, KeyError::Point { section: "eta" }),
        "{error}"
    );
    let mut wrong = key;
    wrong.plain.h[0] = outside;
    refused(&wrong, "H query");
}

proptest! {
    /// Mutations with right checksums reach the code behind them: no panic, and what is accepted encodes
    /// to the same bytes.
    #[test]
    fn mutated_keys_are_refused_or_read(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        verifying: bool,
    ) {
        let key = key();
        let mut bytes = if verifying { key.vk().to_bytes() } else { key.to_bytes() };
        for (index, value) in edits {
            let index = index.index(bytes.len());
            bytes[index] = value;
        }
        let bytes = reseal(bytes, verifying);
        if verifying {
            if let Ok(vk) = VerifyingKey::<Bls12_381>::from_bytes(&bytes) {
                prop_assert_eq!(vk.to_bytes(), bytes);
            }
        } else if let Ok(key) = Key::from_bytes(&bytes, PointCheck::Full) {
            prop_assert_eq!(key.to_bytes(), bytes);
        }
    }
}
