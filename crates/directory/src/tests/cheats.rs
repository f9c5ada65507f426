//! Ways to cheat with a batch: each fills in everything else consistently, and is refused where it has to be.

use proofmill_partition::Check;

use super::case::{LEVELS, PARTITION, key, refusals, shape, tree, value};
use crate::circuit::UpdateBatch;
use crate::tree::climb;
use crate::{Digest, KeyDigest, Record, Transition, Tree, hash_node};

/// The parts of a batch of two updates.
const PARTS: usize = LEVELS as usize;
/// The `leaf` part of the second update.
const SECOND_LEAF: usize = PARTS;
/// The `root` parts of both updates.
const FIRST_ROOT: usize = PARTS - 1;
const SECOND_ROOT: usize = 2 * PARTS - 1;

/// An honest batch: an insertion at path 0, then an update of the key at path 1.
fn honest() -> UpdateBatch {
    let updates = [(key(0, 1), value(8)), (key(1, 1), value(9))];
    UpdateBatch::apply(shape(), &mut tree(), &updates).unwrap()
}

/// The tree of [`honest`] after its first update.
fn after_first() -> Tree {
    let mut tree = tree();
    tree.set(key(0, 1), value(8)).unwrap();
    tree
}

/// The honest batch with another second update, and the root that it leads to.
fn with_second(second: Transition) -> UpdateBatch {
    let mut batch = honest();
    batch.root_after = second.roots()[1];
    batch.updates[1] = second;
    batch
}

/// A second update of a key from one state to another, with the true siblings.
fn second(key: KeyDigest, before: Option<u64>, after: u64) -> Transition {
    let tree = after_first();
    let occupant = tree.occupant(&key).map_or(value(0), |it| it.record.value);
    Transition {
        key,
        before: before.map(|version| Record {
            version,
            value: occupant,
        }),
        after: Record {
            version: after,
            value: value(9),
        },
        siblings: tree.siblings(&key),
    }
}

fn refused_by(batch: &UpdateBatch) -> Vec<usize> {
    let refusals = refusals(&PARTITION, batch);
    let by_circuit = |(part, check)| {
        assert_eq!(check, Check::Circuit, "part {part}");
        part
    };
    refusals.into_iter().map(by_circuit).collect()
}

fn assert_accepted(batch: &UpdateBatch) {
    assert!(refused_by(batch).is_empty());
}

#[test]
fn true_transitions_are_accepted() {
    assert_accepted(&honest());
    assert_accepted(&with_second(second(key(1, 1), Some(7), 8)));
    assert_accepted(&with_second(second(key(2, 1), None, 0)));
    let last = second(key(4, 1), Some(u64::MAX - 1), u64::MAX);
    assert_accepted(&with_second(last));
}

/// A version that is kept, skipped, decremented, or wraps around; an insertion with another version than 0.
#[test]
fn a_version_is_the_next_one() {
    for (path, before, after) in [
        (1, Some(7), 7),
        (1, Some(7), 9),
        (1, Some(7), 6),
        (1, Some(7), 0),
        (1, Some(7), 8 + (1 << 32)),
        (6, Some(u64::MAX), 0),
        (6, Some(u64::MAX), u64::MAX),
        (2, None, 1),
        (2, None, u64::MAX),
    ] {
        let batch = with_second(second(key(path, 1), before, after));
        let refused = refused_by(&batch);
        assert_eq!(refused, [SECOND_LEAF], "{before:?} to {after}");
    }
}

/// Another version or value than the tree's, an insertion over a present key, an update of an absent one, and of a key
/// with the same path as a present one.
#[test]
fn the_state_before_is_the_trees() {
    let mut other_value = second(key(1, 1), Some(7), 8);
    other_value.before = Some(Record {
        version: 7,
        value: value(99),
    });
    for cheat in [
        second(key(1, 1), Some(6), 7),
        other_value,
        second(key(1, 1), None, 0),
        second(key(2, 1), Some(0), 1),
        second(key(1, 2), Some(7), 8),
        second(key(1, 2), None, 0),
    ] {
        let batch = with_second(cheat.clone());
        assert_eq!(refused_by(&batch), [SECOND_ROOT], "{cheat:?}");
    }
}

#[test]
fn every_sibling_counts() {
    for level in 0..PARTS {
        let mut cheat = second(key(1, 1), Some(7), 8);
        cheat.siblings[level].0[31] ^= 1;
        assert_eq!(refused_by(&with_second(cheat)), [SECOND_ROOT], "{level}");
    }
}

/// The path is the key's: with the siblings of one path, a key of another does not lead to the root.
#[test]
fn every_bit_of_the_path_counts() {
    let honest = second(key(1, 1), Some(7), 8);
    for path in [0, 3, 5] {
        let mut cheat = honest.clone();
        cheat.key = key(path, 1);
        assert_eq!(refused_by(&with_second(cheat)), [SECOND_ROOT], "{path}");
    }
}

#[test]
fn both_roots_are_the_trees() {
    for byte in [0, 15, 16, 31] {
        let mut batch = honest();
        batch.root_before.0[byte] ^= 1;
        assert_eq!(refused_by(&batch), [FIRST_ROOT]);
        let mut batch = honest();
        batch.root_after.0[byte] ^= 1;
        assert_eq!(refused_by(&batch), [SECOND_ROOT]);
    }
}

/// Updates in another order, one twice, one left out.
#[test]
fn updates_follow_each_other() {
    let mut batch = honest();
    batch.updates.swap(0, 1);
    assert_eq!(refused_by(&batch), [FIRST_ROOT, SECOND_ROOT]);
    let mut batch = honest();
    batch.updates[1] = batch.updates[0].clone();
    assert_eq!(refused_by(&batch), [SECOND_ROOT]);
    let mut batch = honest();
    batch.updates.remove(0);
    assert_eq!(refused_by(&batch), [FIRST_ROOT]);
}

/// An idle update leads from a root to the same root, whatever it claims.
#[test]
fn an_idle_update_changes_nothing() {
    let updates = [(key(0, 1), value(8))];
    let honest = UpdateBatch::apply(shape(), &mut tree(), &updates).unwrap();
    assert_accepted(&honest);
    for claimed in [
        second(key(1, 1), Some(7), 8),
        second(key(2, 1), None, 0),
        second(key(4, 1), Some(u64::MAX - 1), u64::MAX),
    ] {
        let mut batch = honest.clone();
        batch.idle = claimed;
        // An idle update of any true state is satisfied.
        assert_accepted(&batch);
        batch.root_after = batch.idle.roots()[1];
        assert_eq!(refused_by(&batch), [SECOND_ROOT]);
    }
    let mut batch = honest;
    batch.idle = second(key(1, 1), None, 0);
    assert_eq!(refused_by(&batch), [SECOND_ROOT], "of a false state");
}

/// A path that ends below the root: the subtree's root is no root, with whatever sibling above it.
#[test]
fn a_truncated_path_is_refused() {
    let (key, empty) = (key(1, 1), Digest::ZERO);
    let honest = second(key, Some(7), 8);
    let below = &honest.siblings[..PARTS - 1];
    let mut cheat = honest.clone();
    cheat.siblings[PARTS - 1] = empty;
    let mut batch = with_second(cheat);
    batch.root_after = climb_in(&key, &honest.after, below);
    assert_eq!(refused_by(&batch), [SECOND_ROOT]);
}

/// The root of a subtree, with the path that the key has in the whole tree.
fn climb_in(key: &KeyDigest, state: &Record, siblings: &[Digest]) -> Digest {
    let mut padded = siblings.to_vec();
    padded.push(Digest::ZERO);
    let whole = climb(key, state.leaf(key), &padded);
    // The key at path 1 is on the left of the root.
    let below = siblings.iter().zip([true, false]);
    let subtree = below.fold(state.leaf(key), |digest, (sibling, right)| match right {
        true => hash_node(sibling, &digest),
        false => hash_node(&digest, sibling),
    });
    assert_eq!(hash_node(&subtree, &Digest::ZERO), whole);
    subtree
}
