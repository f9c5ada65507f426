//! The tree against a model that hashes every node of a subtree with keys.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::tree::climb;
use crate::{
    DEPTH, Digest, Entry, KeyDigest, Record, Tree, TreeError, ValueDigest, empty_digest, hash_node,
};

/// A directory without a tree: the state of each key.
#[derive(Clone, Default)]
struct Model(BTreeMap<KeyDigest, Record>);

// === impl Model ===

impl Model {
    fn update(&mut self, key: KeyDigest, value: ValueDigest) -> Record {
        let version = self.0.get(&key).map_or(0, |record| record.version + 1);
        let record = Record { version, value };
        self.0.insert(key, record);
        record
    }

    fn root(&self, depth: u32) -> Digest {
        let leaves: Vec<Entry> = self
            .0
            .iter()
            .map(|(key, record)| Entry {
                key: *key,
                record: *record,
            })
            .collect();
        root(&leaves, depth, 0)
    }
}

/// The digest of the subtree at distance `at` from the root that has these keys.
fn root(leaves: &[Entry], depth: u32, at: u32) -> Digest {
    if leaves.is_empty() {
        return empty_digest(depth - at);
    }
    if at == depth {
        return leaves[0].leaf();
    }
    let is_right = |entry: &Entry| {
        let byte = entry.key.0.0[at as usize / 8];
        byte >> (7 - at % 8) & 1 == 1
    };
    let middle = leaves.partition_point(|entry| !is_right(entry));
    let (left, right) = leaves.split_at(middle);
    hash_node(&root(left, depth, at + 1), &root(right, depth, at + 1))
}

/// A key with a path near others': few first bits, then all equal ones, then few last ones.
fn near_key(number: u8) -> KeyDigest {
    let mut digest = [0; 32];
    digest[0] = number & 0xc0;
    digest[7] = number & 0x0c;
    digest[15] = number & 0x03;
    KeyDigest(Digest(digest))
}

fn value(number: u8) -> ValueDigest {
    ValueDigest::of(&[number])
}

/// Updates one after the other: roots, witnesses and states are the model's.
fn check(depth: u32, updates: &[(KeyDigest, u8)]) {
    let mut tree = Tree::with_depth(depth).unwrap();
    let mut plain = tree.clone();
    let mut model = Model::default();
    assert_eq!(tree.root(), model.root(depth));
    for (key, number) in updates {
        let before = tree.root();
        let expected = model.0.get(key).copied();
        assert_eq!(tree.get(key), expected);
        let transition = tree.update(*key, value(*number)).unwrap();
        let after = model.update(*key, value(*number));
        assert_eq!((transition.before, transition.after), (expected, after));
        assert_eq!(transition.siblings.len(), depth as usize);
        assert_eq!(transition.roots(), [before, tree.root()]);
        assert_eq!(tree.root(), model.root(depth));
        assert_eq!(plain.set(*key, value(*number)), Ok(after.version));
        assert_eq!(plain.root(), tree.root());
    }
    assert_eq!(tree.len(), model.0.len());
    let rebuilt = Tree::from_entries(depth, tree.entries().to_vec()).unwrap();
    assert_eq!(rebuilt.root(), tree.root());
    for (number, _) in updates {
        assert_eq!(rebuilt.siblings(number), tree.siblings(number));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_updates_are_the_models(
        updates in proptest::collection::vec((any::<u8>(), any::<u8>()), 0..12),
    ) {
        let near: Vec<_> = updates.iter().map(|(key, value)| (near_key(*key), *value)).collect();
        check(DEPTH, &near);
        let far: Vec<_> = updates
            .iter()
            .map(|(key, value)| (KeyDigest::of(&[key % 6]), *value))
            .collect();
        check(DEPTH, &far);
    }

    #[test]
    fn any_updates_of_a_small_tree_are_the_models(
        updates in proptest::collection::vec((0..32u8, any::<u8>()), 0..40),
    ) {
        let key = |number: u8| KeyDigest(Digest([number << 3; 32]));
        let updates: Vec<_> = updates.iter().map(|(path, value)| (key(*path), *value)).collect();
        check(5, &updates);
    }

    /// The siblings of an absent key lead from the empty leaf to the root.
    #[test]
    fn absent_keys_have_siblings(keys in proptest::collection::vec(any::<u8>(), 0..8), absent: u8) {
        let mut tree = Tree::new();
        for key in keys {
            tree.set(near_key(key), value(key)).unwrap();
        }
        let absent = near_key(absent);
        if tree.get(&absent).is_none() {
            prop_assert_eq!(climb(&absent, Digest::ZERO, &tree.siblings(&absent)), tree.root());
        }
    }
}

#[test]
fn an_empty_tree_has_the_empty_root() {
    let tree = Tree::new();
    assert!(tree.is_empty());
    let expected = (0..DEPTH).fold(Digest::ZERO, |digest, _| hash_node(&digest, &digest));
    assert_eq!(tree.root(), expected);
    assert_eq!(tree.root(), empty_digest(DEPTH));
}

/// Two keys of one path: the second is refused, and the tree is as before.
#[test]
fn the_second_key_of_a_path_is_refused() {
    let mut other = near_key(7);
    other.0.0[31] = 1;
    let mut tree = Tree::new();
    tree.set(near_key(7), value(1)).unwrap();
    let before = tree.root();
    let refused = TreeError::Collision {
        key: other,
        present: near_key(7),
    };
    assert_eq!(tree.check(&other), Err(refused));
    assert_eq!(tree.update(other, value(2)), Err(refused));
    assert_eq!(tree.set(other, value(2)), Err(refused));
    assert_eq!((tree.root(), tree.len()), (before, 1));
    assert_eq!(tree.get(&other), None);
    assert_eq!(tree.occupant(&other).map(|it| it.key), Some(near_key(7)));
    let entry = |key| Entry {
        key,
        record: Record::default(),
    };
    let entries = [near_key(7), other].map(entry);
    assert_eq!(
        Tree::from_entries(DEPTH, entries.into()).unwrap_err(),
        refused
    );
    let twice = [near_key(7), near_key(7)].map(entry);
    assert_eq!(
        Tree::from_entries(DEPTH, twice.into()).unwrap_err(),
        TreeError::Twice(near_key(7))
    );
}

#[test]
fn the_last_version_stays() {
    let record = Record {
        version: u64::MAX,
        value: value(1),
    };
    let key = near_key(1);
    let mut tree = Tree::from_entries(DEPTH, vec![Entry { key, record }]).unwrap();
    let refused = TreeError::LastVersion(key);
    assert_eq!(tree.update(key, value(2)), Err(refused));
    assert_eq!(tree.set(key, value(2)), Err(refused));
    assert_eq!(tree.get(&key), Some(record));
}

#[test]
fn a_tree_has_1_to_128_levels() {
    for depth in [0, DEPTH + 1, u32::MAX] {
        let expected = TreeError::Depth(depth);
        assert_eq!(Tree::with_depth(depth).unwrap_err(), expected);
        assert_eq!(Tree::from_entries(depth, Vec::new()).unwrap_err(), expected);
    }
}
