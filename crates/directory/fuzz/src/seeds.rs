//! Valid inputs to start from.

use proofmill_directory::chain::{BatchRecord, EpochRecord};
use proofmill_directory::circuit::{BatchShape, UpdateBatch};
use proofmill_directory::inclusion::InclusionProof;
use proofmill_directory::store::{Epoch, Snapshot};
use proofmill_directory::{KeyDigest, KeyUpdate, Tree, ValueDigest};

/// The keys of [`tree`]; the last is absent.
pub const KEYS: [&[u8]; 5] = [b"alice", b"bob", b"carol", b"", b"nobody"];

/// A tree in which one key was updated.
pub fn tree() -> Tree {
    let mut tree = Tree::new();
    for key in KEYS[..4].iter().chain(&KEYS[..1]) {
        let set = tree.set(KeyDigest::of(key), ValueDigest::of(b"value"));
        set.expect("keys of different paths");
    }
    tree
}

/// Proofs of keys' states, in both encodings.
pub fn inclusion() -> Vec<Vec<u8>> {
    let tree = tree();
    let proofs = KEYS.map(|key| InclusionProof::new(&tree, &KeyDigest::of(key)));
    let bytes = proofs.iter().map(InclusionProof::to_bytes);
    let json = proofs.iter().map(|proof| proof.to_json().into_bytes());
    bytes.chain(json).collect()
}

/// Files of a directory.
pub fn store() -> Vec<Vec<u8>> {
    let update = |key: &[u8]| KeyUpdate::new(key, "value").expect("it is short");
    let updates = KEYS.map(update);
    let epoch = Epoch {
        number: 7,
        root_before: Tree::new().root(),
        root_after: tree().root(),
        updates: updates.to_vec(),
    };
    let snapshot = Snapshot {
        depth: 128,
        epoch: 7,
        root: tree().root(),
        keys: updates.into_iter().map(|update| (3, update)).collect(),
    };
    vec![epoch.to_bytes(), snapshot.to_bytes()]
}

/// Records of epochs, in both encodings. Their proofs are not valid.
pub fn record() -> Vec<Vec<u8>> {
    let mut record = EpochRecord::new(7, Tree::new().root());
    let empty = record.to_bytes();
    let batch = BatchRecord {
        root_after: tree().root(),
        updates: 5,
        proof: vec![1; 40],
    };
    record.batches = vec![batch.clone(), batch];
    let json = serde_json::to_vec(&record).expect("a record is JSON");
    vec![empty, record.to_bytes(), json]
}

/// Sizes of the batches of [`witness`].
pub fn shape() -> BatchShape {
    BatchShape::with_depth(8, 3, 4).expect("small sizes")
}

/// Witnesses of batches: of three updates, of one, of none.
pub fn witness() -> Vec<Vec<u8>> {
    let batch = |updates: usize| {
        let mut tree = Tree::with_depth(8).expect("a depth");
        let value = ValueDigest::of(b"value");
        let key = KeyDigest::of(KEYS[0]);
        tree.set(key, value).expect("an empty tree");
        let updates = vec![(key, value); updates];
        UpdateBatch::apply(shape(), &mut tree, &updates).expect("versions do not end")
    };
    [3, 1, 0].map(|updates| batch(updates).to_witness()).into()
}

/// Lines of updates.
pub fn updates() -> Vec<Vec<u8>> {
    let lines = [
        "{\"key\": \"alice\", \"value\": \"1\"}\n",
        "{\"key_hex\": \"00ff\", \"value_hex\": \"\"}\n\n",
    ];
    vec![lines.concat().into_bytes(), Vec::new()]
}
