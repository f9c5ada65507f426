//! Proofs of keys' states: every key, every change of a proof.

use proptest::prelude::*;

use super::case::{LEVELS, key, tree, value};
use crate::inclusion::{InclusionError, InclusionProof, ProvedLeaf};
use crate::{Digest, FormatError, KeyDigest, Record, Tree};

/// A tree of the full depth, and names of keys in it and not in it.
fn full_tree() -> (Tree, Vec<KeyDigest>) {
    let mut tree = Tree::new();
    let keys: Vec<_> = (0..40u8).map(|number| KeyDigest::of(&[number])).collect();
    for (number, key) in (0..).zip(&keys[..20]) {
        tree.set(*key, value(number)).unwrap();
        if number % 3 == 0 {
            tree.set(*key, value(number + 1)).unwrap();
        }
    }
    (tree, keys)
}

#[test]
fn every_key_has_a_proof_of_its_state() {
    let (tree, keys) = full_tree();
    for key in &keys {
        let proof = InclusionProof::new(&tree, key);
        assert_eq!(proof.verify(&tree.root(), key), Ok(tree.get(key)));
        assert!(proof.siblings().len() < 20, "most siblings are empty");
        assert_eq!(
            InclusionProof::from_bytes(&proof.to_bytes()),
            Ok(proof.clone())
        );
        let json = proof.to_json();
        assert_eq!(InclusionProof::from_json(&json).unwrap(), proof);
        // A proof that shows an empty subtree is a proof for all keys in it; no other proof serves two keys.
        for other in keys.iter().filter(|other| *other != key) {
            if let Ok(shown) = proof.verify(&tree.root(), other) {
                assert_eq!((shown, tree.get(other)), (None, None));
            }
        }
        let refused = proof.verify(&Digest::ZERO, key).unwrap_err();
        assert!(matches!(refused, InclusionError::Root { .. }));
    }
}

#[test]
fn a_key_on_an_occupied_path_is_absent() {
    let tree = tree();
    let other = key(1, 2);
    let proof = InclusionProof::new(&tree, &other);
    assert!(matches!(proof.leaf(), ProvedLeaf::Occupied(entry) if entry.key == key(1, 1)));
    let root = tree.root();
    assert_eq!(proof.verify_at_depth(LEVELS, &root, &other), Ok(None));
    // It does not show that the key that has the path is absent, nor one of another path.
    for wrong in [key(1, 1), key(2, 1)] {
        let refused = proof.verify_at_depth(LEVELS, &root, &wrong).unwrap_err();
        assert!(matches!(refused, InclusionError::Occupant { .. }));
    }
    let bytes = proof.to_bytes();
    assert_eq!(InclusionProof::from_bytes(&bytes).unwrap(), proof);
    let json = proof.to_json();
    assert!(json.starts_with("{\"leaf\":{\"occupied\":{\"key\":\""));
    assert_eq!(InclusionProof::from_json(&json).unwrap(), proof);
    // A proof of few levels is none for the full tree.
    let key = key(4, 1);
    let proof = InclusionProof::new(&tree, &key);
    assert!(proof.verify_at_depth(LEVELS, &root, &key).is_ok());
    assert!(proof.verify(&root, &key).is_err());
    let refused = proof.verify_at_depth(1, &root, &key).unwrap_err();
    assert!(matches!(refused, InclusionError::Height { depth: 1, .. }));
}

#[test]
fn every_changed_field_is_refused() {
    let (tree, keys) = full_tree();
    let (root, key) = (tree.root(), &keys[3]);
    let proof = InclusionProof::new(&tree, key);
    let record = tree.get(key).unwrap();
    let (bitmap, siblings) = (proof.bitmap(), proof.siblings().to_vec());
    let with = |record: Record| {
        let leaf = ProvedLeaf::Present(record);
        InclusionProof::from_parts(leaf, bitmap, siblings.clone()).unwrap()
    };
    assert_eq!(with(record).verify(&root, key), Ok(Some(record)));
    for version in [0, record.version + 1, u64::MAX] {
        assert!(
            with(Record { version, ..record })
                .verify(&root, key)
                .is_err()
        );
    }
    let value = value(77);
    assert!(with(Record { value, ..record }).verify(&root, key).is_err());
    let absent = InclusionProof::from_parts(ProvedLeaf::Absent, bitmap, siblings.clone());
    assert!(absent.unwrap().verify(&root, key).is_err());
    for changed in 0..siblings.len() {
        let mut siblings = siblings.clone();
        siblings[changed].0[7] ^= 1;
        let proof = InclusionProof::from_parts(*proof.leaf(), bitmap, siblings).unwrap();
        assert!(proof.verify(&root, key).is_err());
    }
    let (expected, found) = (siblings.len() + 1, siblings.len());
    assert_eq!(
        InclusionProof::from_parts(*proof.leaf(), bitmap | 1, siblings.clone()),
        Err(InclusionError::Siblings { expected, found })
    );
    let mut with_empty = vec![Digest::ZERO];
    with_empty.extend(&siblings);
    assert_eq!(
        InclusionProof::from_parts(*proof.leaf(), bitmap | 1, with_empty),
        Err(InclusionError::EmptySibling(0))
    );
}

#[test]
fn other_bytes_are_no_proof() {
    let (tree, keys) = full_tree();
    for key in [&keys[3], &keys[30]] {
        let bytes = InclusionProof::new(&tree, key).to_bytes();
        for length in 0..bytes.len() {
            assert!(InclusionProof::from_bytes(&bytes[..length]).is_err());
        }
        for changed in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[changed] ^= 4;
            assert!(
                InclusionProof::from_bytes(&bytes).is_err(),
                "byte {changed}"
            );
        }
        let mut bytes = bytes;
        bytes[8] = 2;
        let what = "proof of a key's state";
        let expected = FormatError::Version { what, found: 2 };
        assert_eq!(InclusionProof::from_bytes(&bytes), Err(expected));
    }
}

#[test]
fn other_json_is_no_proof() {
    let (tree, keys) = full_tree();
    let json = InclusionProof::new(&tree, &keys[3]).to_json();
    for (from, to, expected) in [
        ("\"bitmap\":\"", "\"bitmap\":\"0", "field \"bitmap\""),
        (
            "\"siblings\":[",
            "\"siblings\":[\"00\",",
            "64 lower-case hexadecimal",
        ),
        ("\"version\":1", "\"version\":-1", "invalid value"),
        ("{\"leaf\"", "{\"more\":0,\"leaf\"", "unknown field `more`"),
        ("\"present\"", "\"gone\"", "unknown variant `gone`"),
    ] {
        let changed = json.replacen(from, to, 1);
        assert_ne!(changed, json);
        let error = InclusionProof::from_json(&changed).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let long = format!("{json}{}", " ".repeat(crate::inclusion::JSON_BYTES_MAX));
    let error = InclusionProof::from_json(&long).unwrap_err().to_string();
    assert!(error.contains("16384 at most"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn proofs_of_any_tree_hold(keys in proptest::collection::vec(any::<u16>(), 0..30), asked: u16) {
        let mut tree = Tree::new();
        for number in &keys {
            tree.set(KeyDigest::of(&number.to_le_bytes()), value(0)).unwrap();
        }
        let key = KeyDigest::of(&asked.to_le_bytes());
        let proof = InclusionProof::new(&tree, &key);
        prop_assert_eq!(proof.verify(&tree.root(), &key), Ok(tree.get(&key)));
    }
}
