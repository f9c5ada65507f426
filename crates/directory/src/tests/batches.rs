//! Honest batches satisfy their circuit, at the documented cost.

use ark_bn254::Fr;
use proofmill_partition::{Partition, PartitionError, PartitionedCircuit};

use super::case::{LEVELS, PARTITION, key, refusals, shape, tree, value};
use crate::circuit::{BatchError, BatchShape, EpochBatches, LEVELS_PER_PART, UpdateBatch};
use crate::{KeyDigest, Tree, TreeError, ValueDigest};

/// Batches of all kinds of updates: each leads from the tree's root before to the tree's root after.
#[test]
fn honest_batches_are_satisfied() {
    let batches: [&[(KeyDigest, ValueDigest)]; 6] = [
        &[(key(1, 1), value(9)), (key(0, 1), value(8))],
        &[(key(4, 1), value(9)), (key(5, 1), value(8))],
        &[(key(2, 1), value(1)), (key(2, 1), value(1))],
        &[(key(7, 1), value(9))],
        &[(key(0, 1), value(9))],
        &[],
    ];
    for updates in batches {
        let mut tree = tree();
        let before = tree.root();
        let batch = UpdateBatch::apply(shape(), &mut tree, updates).unwrap();
        assert_eq!(batch.len(), updates.len());
        assert_eq!(batch.root_before(), before);
        assert_eq!(batch.root_after(), tree.root());
        assert!(refusals(&PARTITION, &batch).is_empty(), "{updates:?}");
    }
}

/// A key with a path of its own, even of two levels.
fn key_of(number: u8, depth: u32) -> KeyDigest {
    let mut digest = KeyDigest::of(&[number]);
    digest.0.0[0] = number << (8 - depth.min(8));
    digest
}

/// Eight levels in two parts, and an update in one part.
#[test]
fn parts_may_have_any_number_of_levels() {
    for (depth, levels) in [(8, 4), (2, 2)] {
        let shape = BatchShape::with_depth(depth, 1, levels).unwrap();
        let partition = Partition::<Fr>::new(&UpdateBatch::blank(shape)).unwrap();
        let mut tree = Tree::with_depth(depth).unwrap();
        for number in [1, 2, 3] {
            let key = key_of(number, depth);
            tree.set(key, value(number)).unwrap();
        }
        let updates = [(key_of(2, depth), value(5))];
        let batch = UpdateBatch::apply(shape, &mut tree, &updates).unwrap();
        assert!(refusals(&partition, &batch).is_empty(), "{depth} levels");
    }
}

/// The circuit is the same over the other curve.
#[test]
fn batches_are_satisfied_over_bls12_381() {
    let partition = Partition::<ark_bls12_381::Fr>::new(&UpdateBatch::blank(shape())).unwrap();
    let updates = [(key(1, 1), value(9)), (key(0, 1), value(8))];
    let mut batch = UpdateBatch::apply(shape(), &mut tree(), &updates).unwrap();
    assert!(refusals(&partition, &batch).is_empty());
    batch.root_after.0[0] ^= 1;
    assert_eq!(refusals(&partition, &batch).len(), 1);
}

#[test]
fn three_classes_serve_any_number_of_updates() {
    let names: Vec<&str> = PARTITION.classes().iter().map(|it| it.name()).collect();
    assert_eq!(names, ["leaf", "path", "root"]);
    assert_eq!(PARTITION.num_parts(), 6);
    let one = BatchShape::with_depth(LEVELS, 1, 1).unwrap();
    let circuit = UpdateBatch::blank(one);
    let classes = |part| PartitionedCircuit::<Fr>::class(&circuit, part);
    assert_eq!([0, 1, 2].map(classes), names[..]);
    let whole = UpdateBatch::blank(BatchShape::with_depth(LEVELS, 1, LEVELS).unwrap());
    assert_eq!(PartitionedCircuit::<Fr>::class(&whole, 0), "update");
}

/// A circuit of other levels or updates is not the partition's, even with as many parts.
#[test]
fn another_shape_is_refused() {
    let other = |depth, updates, levels| {
        let shape = BatchShape::with_depth(depth, updates, levels).unwrap();
        let mut tree = Tree::with_depth(depth).unwrap();
        UpdateBatch::apply(shape, &mut tree, &[]).unwrap()
    };
    for (depth, updates, levels) in [(2, 3, 1), (LEVELS, 1, 1)] {
        let refused = PARTITION.trace(&other(depth, updates, levels)).unwrap_err();
        let is_expected = matches!(
            refused,
            PartitionError::Length { .. } | PartitionError::AccessesChanged { .. }
        );
        assert!(is_expected, "{refused}");
    }
    // Its parts share as many wires, but have twice the constraints.
    assert_eq!(refusals(&PARTITION, &other(6, 2, 2)).len(), 6);
}

#[test]
fn impossible_shapes_and_updates_are_refused() {
    let levels = |levels| BatchShape::new(1, levels).unwrap_err().to_string();
    for number in [0, 3, 7, 129, 256] {
        let expected =
            format!("{number} levels in each part: it must be a divisor of the tree's 128");
        assert_eq!(levels(number), expected);
    }
    let error = BatchShape::new(0, 8).unwrap_err().to_string();
    assert_eq!(error, "a batch of 0 updates: there must be 1 to 1048576");
    assert!(BatchShape::new((1 << 20) + 1, 8).is_err());
    assert!(BatchShape::with_depth(0, 1, 1).is_err());

    let mut small = tree();
    let deep = BatchShape::new(1, 8).unwrap();
    let (expected, found) = (128, LEVELS);
    assert_eq!(
        UpdateBatch::apply(deep, &mut small, &[]).unwrap_err(),
        BatchError::Depth { expected, found }
    );
    let updates = [(key(1, 1), value(1)), (key(6, 1), value(1))];
    let refused = UpdateBatch::apply(shape(), &mut small, &updates).unwrap_err();
    let source = TreeError::LastVersion(key(6, 1));
    assert_eq!(refused, BatchError::Tree { update: 1, source });
    let (found, most) = (3, 2);
    assert_eq!(
        UpdateBatch::apply(shape(), &mut tree(), &[updates[0]; 3]).unwrap_err(),
        BatchError::Updates { found, most }
    );
}

#[test]
fn an_epoch_is_cut_into_batches() {
    let updates: Vec<_> = (0..8).map(|path| (key(path, 1), value(path))).collect();
    let updates = &updates[..5];
    let empty = Tree::with_depth(LEVELS).unwrap();
    let mut batches = EpochBatches::new(shape(), empty.clone(), updates).unwrap();
    let mut root = empty.root();
    let mut sizes = Vec::new();
    for batch in batches.by_ref() {
        let batch = batch.unwrap();
        assert_eq!(batch.root_before(), root);
        root = batch.root_after();
        sizes.push(batch.len());
    }
    assert_eq!(sizes, [2, 2, 1]);
    assert_eq!(batches.tree().len(), 5);
    assert_eq!(batches.tree().root(), root);
}

/// The constraints of `docs/key-directory.md`, without those of the memory check: parts of eight levels.
#[test]
fn an_update_takes_the_documented_constraints() {
    let shape = BatchShape::with_depth(24, 1, LEVELS_PER_PART).unwrap();
    let partition = Partition::<Fr>::new(&UpdateBatch::blank(shape)).unwrap();
    let cost = UpdateBatch::cost(shape, &partition).unwrap();
    println!("{cost:#?}");
    let own = |class: usize| cost.classes[class].own_constraints;
    assert_eq!([0, 1, 2].map(own), [356_331, 287_197, 287_197]);
    // Of 128 levels: the first part hands their bits of the path to 13 more parts.
    let leaf = own(0) + 13;
    assert_eq!((leaf, leaf + 15 * own(1)), (356_344, 4_664_299));
}
