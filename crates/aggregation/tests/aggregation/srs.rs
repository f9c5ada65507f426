//! Tests of the reference string: contributions, its file, and invalid strings.

use ark_ec::{AffineRepr, CurveGroup};
use proofmill_aggregation::{AggregationCurve, AggregationFileError, Srs, SrsError};
use proofmill_groth16::{Bls12_381, Bn254};
use sha2::{Digest, Sha256};

use crate::case::{Case, rng, srs};

fn strings_are_extended_saved_and_loaded<E: AggregationCurve>() {
    let rng = &mut rng(1);
    let mut string = srs::<E>(4);
    assert_eq!(string.check(), Ok(()));
    let first = string.digest();
    string.contribute(rng);
    string.contribute(rng);
    assert_eq!(string.check(), Ok(()));
    assert_ne!(string.digest(), first);
    assert_eq!(string.digest(), string.verifier().digest());
    let digests: Vec<_> = string
        .contributions()
        .iter()
        .map(|contribution| contribution.digest())
        .collect();
    assert_eq!(digests.len(), 3);
    assert!(digests[0] != digests[1] && digests[1] != digests[2]);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("aggregation.srs");
    string.save(&path).unwrap();
    assert_eq!(Srs::<E>::load(&path).unwrap(), string);
    let small = string.truncated(2).unwrap();
    assert_eq!(small.digest(), string.digest());
    assert_eq!(Srs::<E>::from_bytes(&small.to_bytes()).unwrap(), small);

    // The extended string can prove and verify.
    let case = Case::<E>::random(rng, 3, 1, 1);
    assert!(case.prove(&string).verifies(&case.inputs));
}

#[test]
fn strings_are_extended_saved_and_loaded_on_both_curves() {
    strings_are_extended_saved_and_loaded::<Bls12_381>();
    strings_are_extended_saved_and_loaded::<Bn254>();
}

#[test]
fn impossible_capacities_are_refused() {
    let rng = &mut rng(2);
    for capacity in [0, 1, 3, 6, (1 << 20) + 1, 1 << 21] {
        let refused = Srs::<Bn254>::setup(capacity, rng).unwrap_err();
        assert_eq!(refused, SrsError::Capacity(capacity));
    }
    let string = srs::<Bn254>(4);
    for capacity in [0, 1, 3, 8] {
        let refused = string.truncated(capacity).unwrap_err();
        assert_eq!(refused, SrsError::Capacity(capacity));
    }
}

fn with_checksum(mut content: Vec<u8>) -> Vec<u8> {
    let length = content.len() - 32;
    let checksum = Sha256::digest(&content[..length]);
    content[length..].copy_from_slice(&checksum);
    content
}

/// Over BN254 with capacity 4 and two contributions: a head of 36 bytes, 192 for each contribution, then
/// 8 powers of 64 bytes and 4 of 128 bytes for each secret.
#[test]
fn changed_strings_are_refused() {
    let mut string = srs::<Bn254>(4);
    string.contribute(&mut rng(3));
    let bytes = string.to_bytes();
    let powers = 36 + 2 * 192;
    assert_eq!(bytes.len(), powers + 2 * (8 * 64 + 4 * 128) + 32);

    let error = |bytes: Vec<u8>| Srs::<Bn254>::from_bytes(&bytes).unwrap_err().to_string();
    let changed = |place: usize, from: &[u8]| {
        let mut changed = bytes.clone();
        changed[place..place + from.len()].copy_from_slice(from);
        error(with_checksum(changed))
    };
    let copied =
        |place: usize, from: usize, length: usize| changed(place, &bytes[from..from + length]);
    // A power in place of another, in each list.
    let b = powers + 8 * 64 + 4 * 128;
    for (list, secret) in [(powers, 'a'), (b, 'b')] {
        let expected = format!("powers of {secret} are inconsistent");
        for i in 2..8 {
            assert!(copied(list + i * 64, list + (i - 1) * 64, 64).contains(&expected));
        }
        for i in 0..4 {
            let at = list + 8 * 64 + i * 128;
            let from = list + 8 * 64 + (i + 1) % 4 * 128;
            assert!(copied(at, from, 128).contains(&expected));
        }
    }
    // The powers of the other secret, which are consistent by themselves.
    let length = 8 * 64 + 4 * 128;
    assert!(copied(powers, b, length).contains("trivial secret"));
    let ark = |point: ark_bn254::G1Affine| {
        use ark_serialize::CanonicalSerialize;
        let mut bytes = Vec::new();
        point.serialize_compressed(&mut bytes).unwrap();
        bytes
    };
    // Contributions: each of its fields.
    let generator = ark(ark_bn254::G1Affine::generator());
    let doubled =
        ark((ark_bn254::G1Affine::generator() + ark_bn254::G1Affine::generator()).into_affine());
    for contribution in 0..2 {
        let at = 36 + contribution * 192;
        for field in [0, 32, 64, 128] {
            for point in [&generator, &doubled] {
                let expected =
                    format!("contribution {contribution} of the reference string is false");
                assert!(changed(at + field, point).contains(&expected));
            }
        }
        for response in [96, 160] {
            let expected = format!("contribution {contribution} of the reference string is false");
            assert!(
                copied(at + response, 36 + 96 + (1 - contribution) * 192, 32).contains(&expected)
            );
        }
    }
    let mut one = bytes.clone();
    one.drain(36 + 192..36 + 2 * 192);
    one[32] = 1;
    let expected = "contribution 0 of the reference string is false";
    assert!(error(with_checksum(one)).contains(expected));

    // The file itself.
    assert!(error(Vec::new()).contains("not a reference string"));
    assert!(changed(8, &[2]).contains("version 2"));
    assert!(changed(12, b"bls12-381").contains("another curve"));
    assert!(changed(28, &[3]).contains("bytes, whose head asks for"));
    assert!(changed(28, &[200]).contains("the head of"));
    assert!(changed(32, &[0]).contains("the head of"));
    assert!(changed(powers + 64, &[7]).contains("not a point"));
    for place in [20, 40, powers + 100, bytes.len() - 1] {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        assert!(Srs::<Bn254>::from_bytes(&changed).is_err());
    }
    let mut changed = bytes.clone();
    changed[powers + 100] ^= 1;
    assert!(error(changed).contains("checksum"));
}

#[test]
fn points_outside_of_the_subgroup_are_refused() {
    type E = Bls12_381;
    let bytes = srs::<E>(2).to_bytes();
    let outside = (1u64..)
        .find_map(|x| ark_bls12_381::G1Affine::get_point_from_x_unchecked(x.into(), false))
        .unwrap();
    assert!(outside.is_on_curve() && !outside.is_in_correct_subgroup_assuming_on_curve());
    use ark_serialize::CanonicalSerialize;
    let mut point = Vec::new();
    outside.serialize_uncompressed(&mut point).unwrap();
    let powers = 36 + 4 * 48 + 2 * 32;
    let mut changed = bytes.clone();
    changed[powers + 2 * 96..powers + 3 * 96].copy_from_slice(&point);
    let error = Srs::<E>::from_bytes(&with_checksum(changed)).unwrap_err();
    assert!(
        matches!(error, AggregationFileError::Point { .. }),
        "{error}"
    );
}

#[test]
fn a_missing_file_is_named() {
    let error = Srs::<Bn254>::load(std::path::Path::new("nowhere.srs")).unwrap_err();
    assert!(error.to_string().contains("nowhere.srs"));
}
