//! The targets: functions that no bytes may make panic.

use std::sync::LazyLock;

use proofmill_directory::chain::EpochRecord;
use proofmill_directory::circuit::UpdateBatch;
use proofmill_directory::inclusion::InclusionProof;
use proofmill_directory::store::{Epoch, Snapshot};
use proofmill_directory::{DEPTH, KeyDigest, KeyUpdate, Tree};
use sha2::{Digest, Sha256};

use super::seeds;

static TREE: LazyLock<Tree> = LazyLock::new(seeds::tree);

/// The bytes with a checksum that fits, so that what is behind it is read too.
fn with_checksum(bytes: &[u8]) -> Vec<u8> {
    let content = &bytes[..bytes.len().saturating_sub(32)];
    [content, &Sha256::digest(content)].concat()
}

/// A proof that decodes has one encoding, and shows nothing that is not so in the tree.
pub fn inclusion(bytes: &[u8]) {
    for bytes in [bytes, &with_checksum(bytes)] {
        if let Ok(proof) = InclusionProof::from_bytes(bytes) {
            assert_eq!(proof.to_bytes(), bytes);
            shows_what_is_so(&proof);
        }
    }
    let text = std::str::from_utf8(bytes);
    if let Some(proof) = text.ok().and_then(|it| InclusionProof::from_json(it).ok()) {
        let again = InclusionProof::from_json(&proof.to_json());
        assert_eq!(again.expect("it was written"), proof);
        shows_what_is_so(&proof);
    }
}

fn shows_what_is_so(proof: &InclusionProof) {
    for key in seeds::KEYS.map(KeyDigest::of) {
        if let Ok(state) = proof.verify(&TREE.root(), &key) {
            assert_eq!(state, TREE.get(&key));
        }
        for depth in [0, 1, DEPTH - 1, DEPTH + 1, u32::MAX] {
            assert!(proof.verify_at_depth(depth, &TREE.root(), &key).is_err());
        }
    }
}

/// A file that decodes has one encoding.
pub fn store(bytes: &[u8]) {
    for bytes in [bytes, &with_checksum(bytes)] {
        if let Ok(epoch) = Epoch::from_bytes(bytes) {
            assert_eq!(epoch.to_bytes(), bytes);
        }
        if let Ok(snapshot) = Snapshot::from_bytes(bytes) {
            assert_eq!(snapshot.to_bytes(), bytes);
        }
    }
}

/// A record that decodes has one binary encoding.
pub fn record(bytes: &[u8]) {
    for bytes in [bytes, &with_checksum(bytes)] {
        if let Ok(record) = EpochRecord::from_bytes(bytes) {
            assert_eq!(record.to_bytes(), bytes);
        }
    }
    if let Ok(record) = serde_json::from_slice::<EpochRecord>(bytes) {
        let again = EpochRecord::from_bytes(&record.to_bytes());
        assert_eq!(again.expect("it was written"), record);
    }
}

/// A witness that is read has one encoding.
pub fn witness(bytes: &[u8]) {
    for bytes in [bytes, &with_checksum(bytes)] {
        if let Ok(batch) = UpdateBatch::from_witness(seeds::shape(), bytes) {
            assert_eq!(batch.to_witness(), bytes);
        }
    }
}

/// Updates are read without a panic.
pub fn updates(bytes: &[u8]) {
    if let Ok(updates) = KeyUpdate::read_lines(bytes) {
        let lines = bytes.split(|byte| *byte == b'\n').count();
        assert!(updates.len() <= lines);
    }
}
