//! Directories on disk: epochs, snapshots, two writers, damage.

use std::path::Path;

use proofmill_mutation::SplitMix64;

use crate::chain::{Checkpoint, EpochRecord};
use crate::inclusion::InclusionProof;
use crate::store::{DirectoryWriter, Epoch, KeyDirectory, Snapshot, StoreError};
use crate::{Digest, FormatError, KeyDigest, KeyUpdate, Tree, TreeError};

pub(super) fn update(key: &str, value: &str) -> KeyUpdate {
    KeyUpdate::new(key, value).unwrap()
}

/// A directory with three epochs, of which the snapshot has the first `snapshot`.
pub(super) fn three_epochs(path: &Path, snapshot: u64) -> Vec<Checkpoint> {
    let mut writer = DirectoryWriter::create(path).unwrap();
    let mut checkpoints = vec![writer.directory().checkpoint()];
    for updates in [
        vec![
            update("alice", "a0"),
            update("bob", "b0"),
            update("alice", "a1"),
        ],
        vec![update("carol", "c0")],
        vec![update("bob", "b1"), update("dave", "d0")],
    ] {
        writer.append(updates).unwrap();
        checkpoints.push(writer.directory().checkpoint());
        if writer.directory().epoch() == snapshot {
            writer.write_snapshot().unwrap();
        }
    }
    checkpoints
}

#[test]
fn a_directory_comes_back_as_it_was() {
    for snapshot in 0..=3 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("directory");
        let checkpoints = three_epochs(&path, snapshot);
        assert_eq!(checkpoints[0], Checkpoint::genesis());
        let directory = KeyDirectory::load(&path).unwrap();
        assert_eq!(directory.checkpoint(), checkpoints[3]);
        assert_eq!(directory.tree().len(), 4);
        let state = |key: &str| {
            let found = directory.find(key.as_bytes())?;
            Some((found.version, std::str::from_utf8(found.value).unwrap()))
        };
        let expected = [Some((1, "a1")), Some((1, "b1")), Some((0, "c0")), None];
        assert_eq!(["alice", "bob", "carol", "eve"].map(state), expected);
        let proof = directory.prove(b"bob");
        let shown = proof.verify(&directory.root(), &KeyDigest::of(b"bob"));
        assert_eq!(shown.unwrap().unwrap().version, 1);

        // It goes on.
        let mut writer = DirectoryWriter::open(&path).unwrap();
        let summary = writer.append(vec![update("eve", "e0"), update("dave", "d1")]);
        let summary = summary.unwrap();
        assert_eq!(
            (summary.number, summary.updates, summary.inserted),
            (4, 2, 1)
        );
        assert_eq!(summary.root_before, checkpoints[3].root);
        assert_eq!(summary.root_after, writer.directory().root());
    }
}

#[test]
fn earlier_trees_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("directory");
    let checkpoints = three_epochs(&path, 2);
    let directory = KeyDirectory::load(&path).unwrap();
    for number in 1..=3u64 {
        let mut tree = directory.tree_before(number).unwrap();
        let epoch = directory.epoch_updates(number).unwrap();
        assert_eq!(tree.root(), checkpoints[number as usize - 1].root);
        for update in &epoch.updates {
            let (key, value) = update.digests();
            tree.set(key, value).unwrap();
        }
        assert_eq!(tree.root(), checkpoints[number as usize].root);
    }
    for number in [0, 4, u64::MAX] {
        let error = directory.tree_before(number).unwrap_err();
        assert!(matches!(error, StoreError::NoEpoch { last: 3, .. }));
    }
}

#[test]
fn records_are_of_the_directorys_epochs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("directory");
    let checkpoints = three_epochs(&path, 0);
    let directory = KeyDirectory::load(&path).unwrap();
    assert_eq!(directory.record(2).unwrap(), None);
    let mut record = EpochRecord::new(2, checkpoints[1].root);
    let refused = directory.publish(&record).unwrap_err();
    assert!(matches!(refused, StoreError::Record(2)));
    record.batches.push(crate::chain::BatchRecord {
        root_after: checkpoints[2].root,
        updates: 1,
        proof: vec![1, 2, 3],
    });
    directory.publish(&record).unwrap();
    assert_eq!(directory.record(2).unwrap(), Some(record.clone()));
    record.number = 9;
    assert!(directory.publish(&record).is_err());
}

#[test]
fn there_is_one_writer_and_any_number_of_readers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("directory");
    let mut writer = DirectoryWriter::create(&path).unwrap();
    writer.append(vec![update("alice", "a0")]).unwrap();
    let refused = DirectoryWriter::open(&path).unwrap_err();
    let expected = format!(
        "the directory {} is open in process {}: stop it, or use another directory",
        path.display(),
        std::process::id()
    );
    assert_eq!(refused.to_string(), expected);
    let mut reader = KeyDirectory::load(&path).unwrap();
    assert_eq!(reader.checkpoint(), writer.directory().checkpoint());
    assert_eq!(reader.refresh().unwrap(), 0);
    assert!(!reader.is_followed().unwrap());
    writer.append(vec![update("bob", "b0")]).unwrap();
    writer.append(vec![update("alice", "a1")]).unwrap();
    assert_eq!(reader.find(b"bob"), None);
    assert!(reader.is_followed().unwrap());
    assert_eq!(reader.refresh().unwrap(), 2);
    assert!(!reader.is_followed().unwrap());
    assert_eq!(reader.checkpoint(), writer.directory().checkpoint());
    assert_eq!(reader.find(b"alice").unwrap().value, b"a1");
    let third = path.join("epochs/0000000003");
    std::fs::rename(&third, path.join("epochs/0000000004")).unwrap();
    assert!(reader.refresh().is_err());
    assert_eq!(reader.epoch(), 3);
    std::fs::rename(path.join("epochs/0000000004"), &third).unwrap();
    let refused = DirectoryWriter::create(&path).unwrap_err();
    assert!(matches!(refused, StoreError::NotEmpty(_)), "{refused}");
    drop(writer);
    DirectoryWriter::open(&path).unwrap();
}

#[test]
fn a_refused_epoch_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("directory");
    let mut writer = DirectoryWriter::create_with_depth(&path, 1).unwrap();
    assert!(matches!(
        writer.append(Vec::new()).unwrap_err(),
        StoreError::Updates { found: 0, .. }
    ));
    // Three keys have no room on two paths.
    let updates = ["a", "b", "c"].map(|key| update(key, ""));
    let refused = writer.append(updates.into()).unwrap_err();
    let StoreError::Update { source, .. } = refused else {
        panic!("{refused}");
    };
    assert!(matches!(source, TreeError::Collision { .. }));
    assert_eq!(writer.directory().epoch(), 0);
    let empty = Tree::with_depth(1).unwrap();
    assert_eq!(writer.directory().root(), empty.root());
    writer.append(vec![update("a", "")]).unwrap();
    let directory = KeyDirectory::load(&path).unwrap();
    assert_eq!((directory.epoch(), directory.tree().len()), (1, 1));
    let key = KeyDigest::of(b"b");
    let proof = InclusionProof::new(directory.tree(), &key);
    assert_eq!(proof.verify_at_depth(1, &directory.root(), &key), Ok(None));
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("letter"), "Dear").unwrap();
    let refused = DirectoryWriter::create(folder.path()).unwrap_err();
    assert!(refused.to_string().ends_with("an empty folder or none"));
    assert!(KeyDirectory::load(folder.path()).is_err());
    assert!(DirectoryWriter::open(folder.path()).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Files that are consistent in themselves, but not with each other.
#[test]
fn files_of_other_states_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("directory");
    three_epochs(&path, 1);
    let epochs = path.join("epochs");
    let file = |number: u64| epochs.join(format!("{number:010}"));
    let load = || KeyDirectory::load(&path).map(|it| it.epoch());
    let contents: Vec<Vec<u8>> = (1..=3).map(|it| std::fs::read(file(it)).unwrap()).collect();
    let restore = |number: u64| std::fs::write(file(number), &contents[number as usize - 1]);

    for number in [1, 2] {
        std::fs::remove_file(file(number)).unwrap();
        assert!(matches!(load().unwrap_err(), StoreError::Missing(_)));
        restore(number).unwrap();
    }
    std::fs::write(file(2), &contents[2]).unwrap();
    let refused = load().unwrap_err();
    assert!(matches!(refused, StoreError::Number { found: 3, .. }));
    for (number, changed_root) in [(1, false), (2, false), (2, true), (3, false)] {
        let mut epoch = Epoch::from_bytes(&contents[number - 1]).unwrap();
        match changed_root {
            true => epoch.root_before = Digest::ZERO,
            false => epoch.root_after = Digest::ZERO,
        }
        restore(2).unwrap();
        std::fs::write(file(number as u64), epoch.to_bytes()).unwrap();
        assert!(matches!(load().unwrap_err(), StoreError::Root { .. }));
        restore(number as u64).unwrap();
    }
    let snapshot = path.join("snapshot");
    let good = std::fs::read(&snapshot).unwrap();
    let mut changed = Snapshot::from_bytes(&good).unwrap();
    changed.keys[0].0 += 1;
    std::fs::write(&snapshot, changed.to_bytes()).unwrap();
    assert!(matches!(load().unwrap_err(), StoreError::Root { .. }));
    changed.keys[1] = changed.keys[0].clone();
    std::fs::write(&snapshot, changed.to_bytes()).unwrap();
    assert!(matches!(load().unwrap_err(), StoreError::Tree { .. }));
    std::fs::write(&snapshot, &good).unwrap();
    assert_eq!(load().unwrap(), 3);
}

#[test]
fn other_versions_are_refused() {
    let snapshot = Snapshot {
        depth: 128,
        epoch: 0,
        root: Digest::ZERO,
        keys: Vec::new(),
    };
    for found in [0, 2, u32::MAX] {
        let mut bytes = snapshot.to_bytes();
        bytes[8..12].copy_from_slice(&found.to_le_bytes());
        let refused = Snapshot::from_bytes(&bytes).unwrap_err();
        let what = "snapshot of a directory";
        assert_eq!(refused, FormatError::Version { what, found });
    }
}

/// Many epochs, with snapshots made now and then: every state is that of the updates.
#[test]
fn snapshots_are_made_now_and_then() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("directory");
    let mut writer = DirectoryWriter::create(&path).unwrap();
    let mut random = SplitMix64::new(1);
    let mut tree = Tree::new();
    for _ in 0..4 {
        let updates: Vec<_> = (0..1500)
            .map(|_| update(&random.below(900).to_string(), "value"))
            .collect();
        for update in &updates {
            let (key, value) = update.digests();
            tree.set(key, value).unwrap();
        }
        writer.append(updates).unwrap();
    }
    let bytes = std::fs::read(path.join("snapshot")).unwrap();
    assert_eq!(Snapshot::from_bytes(&bytes).unwrap().epoch, 3);
    drop(writer);
    let directory = KeyDirectory::load(&path).unwrap();
    assert_eq!((directory.epoch(), directory.root()), (4, tree.root()));
    assert_eq!(directory.tree_before(4).unwrap().depth(), 128);
}
