//! Epochs from the store to a client: real proofs of a small tree.

use std::ops::ControlFlow;

use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_aggregation::Srs;
use proofmill_groth16::mirage::{ProvingKey, Setup};
use proofmill_groth16::{Bn254, ResidentForm};
use proofmill_partition::Partition;
use proofmill_partition::proof::{ClassKeys, Index, Journal, PartitionProof, Prover};

use super::store::update;
use crate::chain::{ChainError, Checkpoint, EpochRecord, verify_chain};
use crate::circuit::{BatchShape, EpochBatches, UpdateBatch};
use crate::store::{DirectoryWriter, KeyDirectory};
use crate::{KeyDigest, KeyUpdate, Tree};

/// Keys for batches of a shape.
struct Keys {
    shape: BatchShape,
    index: Index<Bn254>,
    srs: Srs<Bn254>,
    held: ClassKeys<Bn254>,
}

// === impl Keys ===

impl Keys {
    fn new(shape: BatchShape) -> Self {
        let rng = &mut StdRng::seed_from_u64(1);
        let partition = Partition::new(&UpdateBatch::blank(shape)).unwrap();
        let capacity = partition.num_parts().next_power_of_two().max(2);
        let srs = Srs::setup(capacity, rng).unwrap();
        let setup = Setup::new(rng);
        let keys = partition.classes().iter().map(|class| {
            let system = class.committed_system().unwrap();
            setup.key(system, rng).unwrap()
        });
        let keys: Vec<ProvingKey<Bn254>> = keys.collect();
        let of_classes = keys.iter().map(ProvingKey::vk).collect();
        let held = ClassKeys::hold(&partition, keys, ResidentForm::Plain).unwrap();
        let index = Index::new(partition, of_classes, &srs).unwrap();
        Self {
            shape,
            index,
            srs,
            held,
        }
    }

    fn prove(&self, batch: &UpdateBatch) -> PartitionProof<Bn254> {
        let prover = Prover {
            index: &self.index,
            srs: &self.srs,
            keys: &self.held,
        };
        let rng = &mut StdRng::seed_from_u64(2);
        let mut journal = Journal::in_memory(rng);
        let go_on = |_| ControlFlow::Continue(());
        prover.prove(batch, &mut journal, rng, go_on).unwrap()
    }

    /// The record of an epoch of a directory.
    fn record(&self, directory: &KeyDirectory, number: u64) -> EpochRecord {
        let epoch = directory.epoch_updates(number).unwrap();
        let updates: Vec<_> = epoch.updates.iter().map(KeyUpdate::digests).collect();
        let tree = directory.tree_before(number).unwrap();
        let mut record = EpochRecord::new(number, epoch.root_before);
        for batch in EpochBatches::new(self.shape, tree, &updates).unwrap() {
            let batch = batch.unwrap();
            record.push(batch.root_after(), batch.len(), &self.prove(&batch));
        }
        record
    }
}

/// Names of keys with different paths of two bits.
fn names() -> Vec<String> {
    let mut tree = Tree::with_depth(2).unwrap();
    let names = (0..).map(|number: u32| number.to_string());
    let free = names.filter(|name| {
        let (key, value) = update(name, "").digests();
        tree.set(key, value).is_ok()
    });
    free.take(4).collect()
}

/// Two epochs, of three updates and of one, in batches of two: three proofs. A client that saw a key's version before
/// and after knows whether its value changed.
#[test]
fn a_client_follows_epochs_by_their_proofs() {
    let shape = BatchShape::with_depth(2, 2, 1).unwrap();
    let keys = Keys::new(shape);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("directory");
    let mut writer = DirectoryWriter::create_with_depth(&path, 2).unwrap();
    let start = writer.directory().checkpoint();
    let names = names();
    let first = [0, 1, 0].map(|name| update(&names[name], "first"));
    writer.append(first.into()).unwrap();
    let seen = writer.directory().prove(names[0].as_bytes());
    let seen_root = writer.directory().root();
    writer.append(vec![update(&names[1], "second")]).unwrap();
    let directory = writer.directory();
    for number in [1, 2] {
        directory.publish(&keys.record(directory, number)).unwrap();
    }

    let records = [1, 2].map(|number| directory.record(number).unwrap().unwrap());
    assert_eq!(
        records.each_ref().map(|record| record.batches.len()),
        [2, 1]
    );
    assert_eq!(records.each_ref().map(EpochRecord::updates), [3, 1]);
    let key = keys.index.verifying_key();
    let verified = verify_chain(key, start, &records).unwrap();
    assert_eq!(verified, directory.checkpoint());
    let first = verify_chain(key, start, &records[..1]).unwrap();
    assert_eq!(verify_chain(key, first, &records[1..]).unwrap(), verified);
    assert_eq!(verify_chain(key, first, &[]).unwrap(), first);
    let name = KeyDigest::of(names[0].as_bytes());
    let before = seen.verify_at_depth(2, &seen_root, &name).unwrap();
    let now = directory.prove(names[0].as_bytes());
    let after = now.verify_at_depth(2, &verified.root, &name).unwrap();
    assert_eq!(before.unwrap().version, 1);
    assert_eq!(before, after);
    false_chains_are_refused(&keys, start, &records);
}

fn false_chains_are_refused(keys: &Keys, start: Checkpoint, records: &[EpochRecord; 2]) {
    let key = keys.index.verifying_key();
    let refused = |records: &[EpochRecord]| verify_chain(key, start, records).unwrap_err();
    assert!(matches!(
        refused(&records[1..]),
        ChainError::Number {
            expected: 1,
            found: 2
        }
    ));
    let twice = [records[0].clone(), records[0].clone()];
    assert!(matches!(
        refused(&twice),
        ChainError::Number {
            expected: 2,
            found: 1
        }
    ));
    let changed = |change: &dyn Fn(&mut EpochRecord)| {
        let mut record = records[0].clone();
        change(&mut record);
        refused(&[record])
    };
    let other = records[1].root_after();
    assert!(matches!(
        changed(&|record| record.root_before = other),
        ChainError::Root { number: 1, .. }
    ));
    assert!(matches!(
        changed(&|record| record.batches.clear()),
        ChainError::Empty(1)
    ));
    for batch in [0, 1] {
        let error = changed(&|record| record.batches[batch].root_after = other);
        assert!(matches!(error, ChainError::Invalid { batch: found, .. } if found == batch));
    }
    assert!(matches!(
        changed(&|record| record.batches.swap(0, 1)),
        ChainError::Invalid { batch: 0, .. }
    ));
    assert!(matches!(
        changed(&|record| drop(record.batches.remove(0))),
        ChainError::Invalid { batch: 0, .. }
    ));
    assert!(matches!(
        changed(&|record| record.batches[1].proof[40] ^= 1),
        ChainError::Proof { batch: 1, .. }
    ));
    let last = Checkpoint {
        number: u64::MAX,
        root: records[0].root_before,
    };
    for number in [0, 1, u64::MAX] {
        let mut record = records[0].clone();
        record.number = number;
        assert!(verify_chain(key, last, &[record]).is_err());
    }
    let bytes = records[0].to_bytes();
    assert_eq!(EpochRecord::from_bytes(&bytes).as_ref(), Ok(&records[0]));
    let json = serde_json::to_string(&records[0]).unwrap();
    assert_eq!(
        serde_json::from_str::<EpochRecord>(&json).unwrap(),
        records[0]
    );
    for length in (0..bytes.len()).step_by(97) {
        assert!(EpochRecord::from_bytes(&bytes[..length]).is_err());
    }
}
