//! Key files: round trips, and clear errors for all other content.

use std::os::unix::fs::PermissionsExt;

use ark_bls12_381::{Bls12_381, Fr, G1Affine};
use ark_ff::One;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_groth16::{
    Bn254, Curve, KeyError, PointCheck, ProvingKey, ProvingKeyInfo, VerifyingKey, setup,
};
use proofmill_r1cs::R1cs;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use crate::points::outside_subgroup;

type Key = ProvingKey<Bls12_381>;

/// A key for the circuit x² = y with y public.
fn key() -> Key {
    let row = |column| vec![vec![(Fr::one(), column)]];
    let system = R1cs::from_rows(2, 1, [row(2), row(2), row(1)]).unwrap();
    setup(&system, &mut StdRng::seed_from_u64(1)).unwrap()
}

/// Replaces the checksum by the right one, as an attacker would.
fn reseal(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 32;
    let checksum = Sha256::digest(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum);
    bytes
}

/// Arkworks does not compare the flags of an uncompressed point, for the larger y and for infinity, with its
/// coordinates, so that the key file's decoder must.
#[test]
fn a_point_has_one_encoding() {
    let one = ark_bn254::Fr::one();
    let row = |column| vec![vec![(one, column)]];
    let system = R1cs::from_rows(2, 1, [row(2), row(2), row(1)]).unwrap();
    let key = setup::<Bn254>(&system, &mut StdRng::seed_from_u64(1)).unwrap();
    let bytes = key.vk.to_bytes();
    // Last bytes of alpha, beta, and the second of the instance's points.
    for (place, section) in [
        (64, "alpha"),
        (64 + 128, "beta"),
        (64 + 3 * 128 + 2 * 64, "instance"),
    ] {
        for flag in [0x40, 0x80] {
            let mut changed = bytes.clone();
            changed[112 + place - 1] ^= flag;
            let error = VerifyingKey::<Bn254>::from_bytes(&reseal(changed)).unwrap_err();
            assert!(
                matches!(error, KeyError::Point { section: found } if found == section),
                "{error}"
            );
        }
    }
}

#[test]
fn keys_round_trip_through_files() {
    let key = key();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.pk");
    key.save(&path).unwrap();
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    for check in [PointCheck::Skip, PointCheck::Full] {
        assert_eq!(Key::load(&path, check).unwrap(), key);
    }
    let info = ProvingKeyInfo::of(&path).unwrap();
    assert_eq!(
        (info.curve, info.circuit),
        (Curve::Bls12_381, key.vk.circuit)
    );
    assert_eq!(
        (info.variables, info.instance, info.domain),
        (3, 2, key.h.len())
    );
    assert!(std::fs::read(&path).unwrap().ends_with(&info.checksum));
    key.save(&path).unwrap();
    key.vk.save(&directory.path().join("a.vk")).unwrap();
    assert_eq!(
        VerifyingKey::load(&directory.path().join("a.vk")).unwrap(),
        key.vk
    );
    assert_eq!(
        std::fs::read_dir(&directory).unwrap().count(),
        2,
        "no temporary file is left"
    );

    let error = Key::load(&directory.path().join("none.pk"), PointCheck::Full).unwrap_err();
    assert!(matches!(error, KeyError::Io { .. }) && error.to_string().contains("none.pk"));
    let error = ProvingKeyInfo::of(&directory.path().join("a.vk")).unwrap_err();
    assert!(matches!(error, KeyError::Kind { .. }), "{error}");
    let error = Key::load(&directory.path().join("a.vk"), PointCheck::Full).unwrap_err();
    assert!(
        matches!(
            error,
            KeyError::Kind {
                expected: 1,
                found: 2
            }
        ),
        "{error}"
    );
}

#[test]
fn cut_and_corrupt_files_are_refused() {
    let key = key();
    let bytes = key.to_bytes();
    for length in 0..bytes.len() {
        let error = Key::from_bytes(&bytes[..length], PointCheck::Skip).unwrap_err();
        assert!(
            matches!(error, KeyError::Length { .. }),
            "{length}: {error}"
        );
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(
        Key::from_bytes(&longer, PointCheck::Skip),
        Err(KeyError::Length { .. })
    ));
    for index in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[index] ^= 0x10;
        assert!(
            Key::from_bytes(&wrong, PointCheck::Skip).is_err(),
            "byte {index}"
        );
    }
    // The same on disk, where the size is known before the content is read.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cut.pk");
    for length in [0, 50, 111, 112, 200, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let error = Key::load(&path, PointCheck::Skip).unwrap_err();
        assert!(
            matches!(error, KeyError::Length { .. }),
            "{length}: {error}"
        );
    }
}

#[test]
fn heads_are_checked_before_anything_is_allocated() {
    let bytes = key().to_bytes();
    let with = |range: std::ops::Range<usize>, value: &[u8]| {
        let mut wrong = bytes.clone();
        wrong[range].copy_from_slice(value);
        Key::from_bytes(&reseal(wrong), PointCheck::Full).unwrap_err()
    };
    assert!(matches!(with(0..4, b"NOPE"), KeyError::Magic));
    assert!(matches!(
        with(8..12, &[9, 0, 0, 0]),
        KeyError::Version { found: 9 }
    ));
    assert!(matches!(with(12..16, &[2, 0, 0, 0]), KeyError::Kind { .. }));
    assert!(matches!(with(16..20, b"bn25"), KeyError::Curve { .. }));
    for length in 0..6 {
        let at = 64 + 8 * length;
        for value in [0u64, 1 << 31, u64::from(u32::MAX), 1 << 40, u64::MAX] {
            // The number of variables sizes nothing: a larger one than the indices need is read,
            // and the prover refuses the key for its circuit.
            if length == 1 && (1..=u64::from(u32::MAX)).contains(&value) {
                continue;
            }
            let error = with(at..at + 8, &value.to_le_bytes());
            assert!(
                matches!(error, KeyError::Length { .. } | KeyError::Lengths),
                "length {length} = {value}: {error}"
            );
        }
    }
}

/// Files with a right checksum but wrong content: a full check refuses content that a checksum alone
/// lets through.
#[test]
fn a_full_check_finds_points_outside_their_group() {
    let key = key();
    let outside = outside_subgroup::<ark_bls12_381::g1::Config>();
    let off_curve = G1Affine::new_unchecked(key.delta_g1.x, key.delta_g1.y + key.delta_g1.x);
    for point in [outside, off_curve] {
        let mut wrong = key.clone();
        wrong.h[0] = point;
        let bytes = wrong.to_bytes();
        assert!(Key::from_bytes(&bytes, PointCheck::Skip).is_ok());
        let error = Key::from_bytes(&bytes, PointCheck::Full).unwrap_err();
        assert!(
            matches!(error, KeyError::Point { section: "H query" }),
            "{error}"
        );

        let mut wrong = key.vk.clone();
        wrong.instance[1] = point;
        let error = VerifyingKey::<Bls12_381>::from_bytes(&wrong.to_bytes()).unwrap_err();
        assert!(
            matches!(
                error,
                KeyError::Point {
                    section: "instance"
                }
            ),
            "{error}"
        );
    }
    let mut wrong = key;
    wrong.a.indices[0] = 77;
    let error = Key::from_bytes(&wrong.to_bytes(), PointCheck::Skip).unwrap_err();
    assert!(
        matches!(error, KeyError::Index { section: "A query" }),
        "{error}"
    );
}

proptest! {
    /// Mutations with a right checksum reach the code behind it: no panic, and what is accepted
    /// encodes to the same bytes.
    #[test]
    fn mutated_keys_are_refused_or_read(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        verifying: bool,
    ) {
        let key = key();
        let mut bytes = if verifying { key.vk.to_bytes() } else { key.to_bytes() };
        for (index, value) in edits {
            let index = index.index(bytes.len());
            bytes[index] = value;
        }
        let bytes = reseal(bytes);
        if verifying {
            if let Ok(vk) = VerifyingKey::<Bls12_381>::from_bytes(&bytes) {
                prop_assert_eq!(vk.to_bytes(), bytes);
            }
        } else if let Ok(key) = Key::from_bytes(&bytes, PointCheck::Full) {
            prop_assert_eq!(key.to_bytes(), bytes);
        }
    }
}
