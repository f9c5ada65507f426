//! The file of a batch's witness: what was written comes back, and anything else is refused.

use sha2::{Digest as _, Sha256};

use super::case::{LEVELS, PARTITION, key, refusals, shape, tree, value};
use crate::circuit::{BatchShape, UpdateBatch, WitnessError};
use crate::{Digest, FormatError, KeyDigest, ValueDigest};

/// Bytes before the first update, of an update, and of the checksum.
const HEAD: usize = 12 + 12;
const UPDATE: usize = 114 + 32 * LEVELS as usize;
const CHECKSUM: usize = 32;

fn batch(updates: &[(KeyDigest, ValueDigest)]) -> UpdateBatch {
    UpdateBatch::apply(shape(), &mut tree(), updates).unwrap()
}

fn batches() -> [UpdateBatch; 3] {
    let updates = [(key(1, 1), value(9)), (key(0, 1), value(8))];
    [batch(&updates), batch(&updates[..1]), batch(&[])]
}

/// The bytes after a change, with the checksum that fits.
fn changed(batch: &UpdateBatch, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = batch.to_witness();
    let end = bytes.len() - CHECKSUM;
    change(&mut bytes[..end]);
    let checksum = Sha256::digest(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum);
    bytes
}

fn refused(bytes: &[u8]) -> WitnessError {
    UpdateBatch::from_witness(shape(), bytes).unwrap_err()
}

#[test]
fn a_batch_comes_back_from_its_witness() {
    for batch in batches() {
        let bytes = batch.to_witness();
        assert_eq!(bytes.len(), UpdateBatch::witness_bytes(shape()));
        let read = UpdateBatch::from_witness(shape(), &bytes).unwrap();
        assert_eq!(read.len(), batch.len());
        assert_eq!(read.root_before(), batch.root_before());
        assert_eq!(read.root_after(), batch.root_after());
        assert_eq!(read.to_witness(), bytes);
        assert!(refusals(&PARTITION, &read).is_empty());
    }
}

#[test]
fn damaged_witnesses_and_those_for_other_keys_are_refused() {
    let [batch, ..] = batches();
    let bytes = batch.to_witness();
    for length in 0..bytes.len() {
        assert!(UpdateBatch::from_witness(shape(), &bytes[..length]).is_err());
    }
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1;
        let error = refused(&damaged);
        assert!(matches!(error, WitnessError::Format(_)), "{error}");
    }
    // With a checksum that fits.
    let longer = {
        let content = [&bytes[..bytes.len() - CHECKSUM], &[0]].concat();
        [&content[..], &Sha256::digest(&content)].concat()
    };
    assert!(matches!(
        refused(&longer),
        WitnessError::Format(FormatError::Length { .. })
    ));
    for (place, to) in [(12, 0), (15, 1), (16, 0), (20, 2)] {
        let error = refused(&changed(&batch, |bytes| bytes[place] = to));
        assert!(matches!(
            error,
            WitnessError::Format(FormatError::Field { field: "sizes", .. })
        ));
    }
    let expected = BatchShape::with_depth(LEVELS, 2, LEVELS).unwrap();
    let error = UpdateBatch::from_witness(expected, &bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the witness is for batches of 2 at most, a tree of 3 levels, 1 in each part, where the keys are for batches of 2 at \
         most, a tree of 3 levels, 3 in each part"
    );
}

/// Every byte of an update counts: with a checksum that fits, a witness with any other byte is refused, or is of another
/// statement.
#[test]
fn changed_updates_are_refused() {
    for batch in batches() {
        let end = batch.to_witness().len() - CHECKSUM;
        // Of the absent key of an idle update only the path counts, in the first byte.
        let idle_key = HEAD + UPDATE + 2..HEAD + UPDATE + 34;
        let is_free = |place: &usize| batch.len() == 1 && idle_key.contains(place);
        for place in (HEAD..end).filter(|place| !is_free(place)) {
            let bytes = changed(&batch, |bytes| bytes[place] ^= 1);
            if let Ok(read) = UpdateBatch::from_witness(shape(), &bytes) {
                assert_eq!(read.to_witness(), bytes);
                let roots = |batch: &UpdateBatch| (batch.root_before(), batch.root_after());
                assert_ne!(roots(&read), roots(&batch), "byte {place}");
            }
        }
    }
}

#[test]
fn broken_rules_are_named() {
    let [full, short, _] = batches();
    // The version after the first update, which is 8: byte 74 of it.
    let version = HEAD + 74;
    for to in [0, 7, 9] {
        let error = refused(&changed(&full, |bytes| bytes[version] = to));
        assert_eq!(error, WitnessError::Version(0));
    }
    let swapped = changed(&full, |bytes| {
        let (first, second) = bytes[HEAD..].split_at_mut(UPDATE);
        first.swap_with_slice(second);
    });
    assert!(matches!(
        refused(&swapped),
        WitnessError::Root { update: 1, .. }
    ));
    let idle_first = changed(&short, |bytes| {
        let (first, second) = bytes[HEAD..].split_at_mut(UPDATE);
        first.swap_with_slice(second);
    });
    assert_eq!(refused(&idle_first), WitnessError::Idle(1));
    // An idle update with a value of its own.
    let with_value = changed(&short, |bytes| bytes[HEAD + UPDATE + 113] = 1);
    assert_eq!(refused(&with_value), WitnessError::Idle(1));
    let other_idle = {
        let shape = BatchShape::with_depth(LEVELS, 3, 1).unwrap();
        let batch = UpdateBatch::apply(shape, &mut tree(), &[]).unwrap();
        let bytes = changed(&batch, |bytes| bytes[HEAD + 2 * UPDATE + 113] = 1);
        UpdateBatch::from_witness(shape, &bytes).unwrap_err()
    };
    assert_eq!(other_idle, WitnessError::Idle(2));
    assert_ne!(full.root_before(), Digest::ZERO);
}
