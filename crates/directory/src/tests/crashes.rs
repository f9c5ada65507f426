//! A directory after a crash at any moment, and damage of any byte.

use std::fs;
use std::path::{Path, PathBuf};

use super::store::{three_epochs, update};
use crate::store::{DirectoryWriter, KeyDirectory};

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

fn epoch_of(path: &Path) -> u64 {
    KeyDirectory::load(path).unwrap().epoch()
}

/// The moments of an epoch's write: a part of the new file under another name; the new file under its name; a part of
/// a new snapshot; the new snapshot. The state is the old one at first, and the new one from the second on.
#[test]
fn a_crash_leaves_the_old_or_the_new_state() {
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new");
    let checkpoints = three_epochs(&new, 1);
    let epoch = fs::read(new.join("epochs/0000000003")).unwrap();
    let old = folder.path().join("old");
    copy(&new, &old);
    fs::remove_file(old.join("epochs/0000000003")).unwrap();
    assert_eq!(epoch_of(&old), 2);

    let unfinished = old.join("epochs/.proofmill-abcdef.tmp");
    for length in 0..=epoch.len() {
        fs::write(&unfinished, &epoch[..length]).unwrap();
        assert_eq!(epoch_of(&old), 2, "{length} bytes");
    }
    // The next writer goes on from the old state.
    let again = folder.path().join("again");
    copy(&old, &again);
    let mut writer = DirectoryWriter::open(&again).unwrap();
    writer
        .append(vec![update("bob", "b1"), update("dave", "d0")])
        .unwrap();
    assert_eq!(writer.directory().checkpoint(), checkpoints[3]);

    fs::rename(&unfinished, old.join("epochs/0000000003")).unwrap();
    assert_eq!(epoch_of(&old), 3);
    let mut writer = DirectoryWriter::open(&new).unwrap();
    writer.write_snapshot().unwrap();
    let snapshot = fs::read(new.join("snapshot")).unwrap();
    let unfinished = old.join(".proofmill-abcdef.tmp");
    for length in 0..=snapshot.len() {
        fs::write(&unfinished, &snapshot[..length]).unwrap();
        assert_eq!(epoch_of(&old), 3, "{length} bytes");
    }
    fs::rename(&unfinished, old.join("snapshot")).unwrap();
    let directory = KeyDirectory::load(&old).unwrap();
    assert_eq!(directory.checkpoint(), checkpoints[3]);
}

/// The moments of the making of a directory: after each, another attempt succeeds.
#[test]
fn a_directory_whose_making_was_interrupted_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    for files in [
        &[][..],
        &["lock"],
        &["lock", "epochs/"],
        &["lock", "epochs/", "records/"],
        &["lock", "epochs/", "records/", ".proofmill-abcdef.tmp"],
    ] {
        let path = folder.path().join(format!("made-{}", files.len()));
        fs::create_dir(&path).unwrap();
        for file in files {
            match file.strip_suffix('/') {
                Some(name) => fs::create_dir(path.join(name)).unwrap(),
                None => fs::write(path.join(file), "").unwrap(),
            }
        }
        drop(DirectoryWriter::create(&path).unwrap());
        assert_eq!(epoch_of(&path), 0);
    }
}

/// A file that is cut at any length, or has any byte changed, is refused by name: nothing is lost in silence.
#[test]
fn damage_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("directory");
    three_epochs(&path, 1);
    let files = ["snapshot", "epochs/0000000001", "epochs/0000000003"];
    for file in files.map(|file| path.join(file)) {
        let good = fs::read(&file).unwrap();
        for length in 0..good.len() {
            refused(&path, &file, &good[..length]);
        }
        for changed in 0..good.len() {
            let mut bytes = good.clone();
            bytes[changed] ^= 1 << (changed % 8);
            refused(&path, &file, &bytes);
        }
        refused(&path, &file, &[&good[..], &[0]].concat());
        fs::write(&file, good).unwrap();
        assert_eq!(epoch_of(&path), 3);
    }
}

fn refused(path: &Path, file: &PathBuf, bytes: &[u8]) {
    fs::write(file, bytes).unwrap();
    let error = KeyDirectory::load(path).unwrap_err().to_string();
    let expected = format!("{}: ", file.display());
    assert!(error.starts_with(&expected), "{error}");
}
