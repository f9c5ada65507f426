//! Tests of files that are damaged while no process uses them: everything durable is unchanged, or
//! the log is refused with a description of the loss.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proofmill_bus::{EmbeddedLog, Entry, Log, OpenError, Options, Seq, until_durable};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::scenario::{batch, block_on, check_prefix, entries, key, without_room};

const DATABASE: &str = "log.sqlite";
const WAL: &str = "log.sqlite-wal";
const MARK: &str = "high-water";

/// Numbers of batches in the database itself, and in its write-ahead log.
const FOLDED: u64 = 300;
const BATCHES: u64 = 360;

/// A log as a killed process leaves it, partly checkpointed into the database, and its records.
fn killed() -> (tempfile::TempDir, Vec<Entry>) {
    let (dir, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut found = Vec::new();
    for (from, to) in [(0, FOLDED), (FOLDED, BATCHES)] {
        let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
        block_on(async {
            for n in from..to {
                let seq = log.append(batch(n)).await.unwrap();
                until_durable(&mut log.durable(), seq).await.unwrap();
            }
            found = entries(&log).await;
        });
        copy(dir.path(), left.path());
        let wal = without_room(fs::read(left.path().join(WAL)).unwrap());
        fs::write(left.path().join(WAL), wal).unwrap();
    }
    assert!(fs::metadata(left.path().join(WAL)).unwrap().len() > 100_000);
    (left, found)
}

fn copy(from: &Path, to: &Path) {
    for file in [DATABASE, WAL, MARK] {
        fs::copy(from.join(file), to.join(file)).unwrap();
    }
}

/// The files of a directory, with their content.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap());
    let files = files.filter(|file| file.file_type().unwrap().is_file());
    files
        .map(|file| {
            let name = file.file_name().into_string().unwrap();
            (name, fs::read(file.path()).unwrap())
        })
        .collect()
}

fn open(dir: &Path, accept_loss: bool) -> Result<EmbeddedLog, OpenError> {
    EmbeddedLog::open(dir, Options::default().with_accepted_loss(accept_loss))
}

/// Damages the database or its write-ahead log in one of the ways that disks and people do.
fn damage(dir: &Path, random: &mut StdRng) -> String {
    let name = if random.random() { DATABASE } else { WAL };
    let path = dir.join(name);
    let mut bytes = fs::read(&path).unwrap();
    let at = random.random_range(0..bytes.len());
    let what = match random.random_range(0..10) {
        0..5 => {
            bytes[at] ^= 1 << random.random_range(0..8);
            format!("a bit of byte {at}")
        }
        5 | 6 => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
        7 => {
            let end = (at + 4096).min(bytes.len());
            bytes[at..end].fill(0);
            format!("zeroes from {at}")
        }
        8 => {
            bytes.clear();
            "emptied".to_owned()
        }
        _ => {
            fs::remove_file(&path).unwrap();
            if random.random() {
                fs::remove_file(dir.join(DATABASE))
                    .or_else(|_| fs::remove_file(dir.join(WAL)))
                    .unwrap();
                return "both deleted".to_owned();
            }
            return format!("{name}: deleted");
        }
    };
    fs::write(&path, bytes).unwrap();
    format!("{name}: {what}")
}

#[test]
fn two_hundred_damages_are_refused_or_harmless() {
    let (source, expected) = killed();
    let promised = Seq(BATCHES * 3);
    let written: BTreeMap<_, _> = (0..BATCHES)
        .flat_map(batch)
        .filter_map(|op| match op {
            proofmill_bus::Op::Put { key, value, .. } => Some(((key, value), ())),
            proofmill_bus::Op::Delete { .. } => None,
        })
        .collect();
    let (mut refused, mut harmless) = (0, 0);
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let dir = tempfile::tempdir().unwrap();
        copy(source.path(), dir.path());
        let what = format!("seed {seed}, {}", damage(dir.path(), &mut random));
        let damaged = files(dir.path());

        let looked = EmbeddedLog::read(dir.path());
        assert_eq!(files(dir.path()), damaged, "{what}: looking has changed it");
        match open(dir.path(), false) {
            Ok(log) => {
                harmless += 1;
                assert_eq!(block_on(entries(&log)), expected, "{what}");
                assert_eq!(log.durable().borrow().seq, promised, "{what}");
                assert!(log.accepted_loss().is_none(), "{what}");
                let looked = looked.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(block_on(entries(&looked)), expected, "{what}");
            }
            Err(error) => {
                refused += 1;
                let said = error.to_string();
                assert!(matches!(error, OpenError::Damaged { .. }), "{what}: {said}");
                for part in [
                    "record 1080, with 41 live records, was durable",
                    "--accept-loss",
                ] {
                    assert!(said.contains(part), "{what}: no {part:?} in {said}");
                }
                let mut after = files(dir.path());
                // Created by every process that opens a log, and irrelevant.
                after.retain(|name, bytes| match name.as_str() {
                    "lock" | "log.sqlite-shm" => false,
                    WAL => !bytes.is_empty() || damaged.contains_key(WAL),
                    _ => true,
                });
                assert_eq!(after, damaged, "{what}: the refusal has changed it");

                let log = open(dir.path(), true).unwrap_or_else(|error| panic!("{what}: {error}"));
                let loss = log.accepted_loss().expect("a loss").clone();
                let kept = loss.kept_in().expect("a folder");
                let list = fs::read_to_string(kept.join("loss.txt")).unwrap();
                assert!(list.contains(&loss.to_string()), "{what}: {list}");
                for entry in block_on(entries(&log)) {
                    let record = (entry.key, entry.value);
                    assert!(written.contains_key(&record), "{what}: {record:?}");
                }
                assert!(log.durable().borrow().seq >= promised, "{what}");
            }
        }
        goes_on(dir.path(), promised, &what);
    }
    assert!(
        refused > 60 && harmless > 20,
        "{refused} refused, {harmless} harmless"
    );
}

/// Checks that records written after the damage stay, and that no position is assigned twice.
fn goes_on(dir: &Path, promised: Seq, what: &str) {
    let names: Vec<_> = (0..60).map(|n| key(&format!("later.{n}"))).collect();
    let log = open(dir, false).unwrap_or_else(|error| panic!("{what}: {error}"));
    let before = block_on(entries(&log)).len();
    block_on(async {
        for name in &names {
            let put = proofmill_bus::Op::put(name.clone(), vec![7; 2000]);
            let seq = log.append(vec![put]).await.unwrap();
            assert!(seq > promised, "{what}: {seq}");
        }
        log.close().await.unwrap();
    });
    drop(log);
    let log = open(dir, false).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(
        block_on(entries(&log)).len(),
        before + names.len(),
        "{what}"
    );
}

#[test]
fn room_after_the_last_frame_is_no_content() {
    let (dir, expected) = killed();
    let wal = dir.path().join(WAL);
    let mut bytes = fs::read(&wal).unwrap();
    bytes.resize(bytes.len() + 1_000_000, 0);
    fs::write(&wal, bytes).unwrap();
    let looked = EmbeddedLog::read(dir.path()).unwrap();
    assert_eq!(block_on(entries(&looked)), expected);
    let log = open(dir.path(), false).unwrap();
    assert_eq!(block_on(entries(&log)), expected);
    drop(log);
    goes_on(dir.path(), Seq(BATCHES * 3), "room");
}

#[test]
fn commits_of_a_killed_process_are_synced_before_the_mark_covers_them() {
    let (dir, expected) = killed();
    let log = open(dir.path(), false).unwrap();
    let copied = tempfile::tempdir().unwrap();
    for file in [DATABASE, MARK] {
        fs::copy(dir.path().join(file), copied.path().join(file)).unwrap();
    }
    drop(log);
    let log = open(copied.path(), false).unwrap();
    assert_eq!(block_on(entries(&log)), expected);
}

#[test]
fn a_commit_finds_room_in_the_write_ahead_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), false).unwrap();
    let length = || fs::metadata(dir.path().join(WAL)).unwrap().len();
    let before = length();
    assert!(before > 0);
    block_on(async {
        for n in 0..20 {
            let seq = log.append(batch(n)).await.unwrap();
            until_durable(&mut log.durable(), seq).await.unwrap();
            assert_eq!(length() % (24 + 4096), before % (24 + 4096), "batch {n}");
            assert!(length() >= before, "batch {n}");
        }
    });
}

#[test]
fn a_flipped_bit_in_the_write_ahead_log_is_no_silent_rollback() {
    let (dir, _) = killed();
    let wal = dir.path().join(WAL);
    let mut bytes = fs::read(&wal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&wal, bytes).unwrap();
    let said = open(dir.path(), false).unwrap_err().to_string();
    assert!(said.contains("it ends at record 9"), "{said}");
    assert!(said.contains("to 1080 are missing"), "{said}");
}

#[test]
fn an_empty_or_deleted_database_is_no_new_log() {
    for (name, spoil, says) in [
        ("emptied", "empty", "it has 0 bytes"),
        ("deleted", "gone", "the database is missing"),
    ] {
        let (dir, expected) = killed();
        let path = dir.path().join(DATABASE);
        match spoil {
            "empty" => fs::write(&path, "").unwrap(),
            _ => fs::remove_file(&path).unwrap(),
        }
        let error = open(dir.path(), false).unwrap_err().to_string();
        assert!(error.contains(says), "{name}: {error}");
        let error = EmbeddedLog::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains(says), "{name}: {error}");
        // SQLite would have deleted the write-ahead log; with a copy of the database everything is
        // recovered.
        assert!(dir.path().join(WAL).exists(), "{name}");
        let (copy, _) = killed();
        fs::copy(copy.path().join(DATABASE), &path).unwrap();
        fs::copy(copy.path().join(WAL), dir.path().join(WAL)).unwrap();
        let log = open(dir.path(), false).unwrap();
        assert_eq!(block_on(entries(&log)), expected, "{name}");
    }
}

#[test]
fn a_database_of_zero_bytes_without_a_mark_is_no_new_log() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(DATABASE), "").unwrap();
    let error = open(dir.path(), false).unwrap_err().to_string();
    assert!(error.contains("it has 0 bytes"), "{error}");
    drop(open(dir.path(), true).unwrap());
    drop(open(dir.path(), false).unwrap());
}

#[test]
fn a_log_without_its_mark_is_refused_and_can_be_accepted() {
    let (dir, expected) = killed();
    fs::remove_file(dir.path().join(MARK)).unwrap();
    let error = open(dir.path(), false).unwrap_err().to_string();
    assert!(error.contains("its high-water mark is gone"), "{error}");
    fs::write(dir.path().join(MARK), vec![0; 8192]).unwrap();
    let error = open(dir.path(), false).unwrap_err().to_string();
    assert!(error.contains("neither copy in it is whole"), "{error}");
    let log = open(dir.path(), true).unwrap();
    assert_eq!(block_on(entries(&log)), expected);
    drop(log);
    drop(open(dir.path(), false).unwrap());
}

#[test]
fn a_torn_mark_costs_nothing() {
    for slot in [0, 4096] {
        let (dir, expected) = killed();
        let path = dir.path().join(MARK);
        let mut bytes = fs::read(&path).unwrap();
        bytes[slot + 20] ^= 1;
        fs::write(&path, bytes).unwrap();
        let log = open(dir.path(), false).unwrap();
        assert_eq!(block_on(entries(&log)), expected);
    }
}

#[test]
fn a_log_of_the_version_before_opens_and_gets_a_mark() {
    let (dir, expected) = killed();
    drop(open(dir.path(), false).unwrap());
    let db = rusqlite::Connection::open(dir.path().join(DATABASE)).unwrap();
    db.execute_batch("ALTER TABLE head DROP COLUMN sum; PRAGMA user_version = 1")
        .unwrap();
    drop(db);
    fs::remove_file(dir.path().join(MARK)).unwrap();
    let looked = EmbeddedLog::read(dir.path()).unwrap();
    assert_eq!(block_on(entries(&looked)), expected);
    assert!(!dir.path().join(MARK).exists());
    assert_eq!(check_prefix(dir.path()), Some(BATCHES - 1));
    fs::remove_file(dir.path().join(DATABASE)).unwrap();
    let error = open(dir.path(), false).unwrap_err().to_string();
    assert!(
        error.contains("record 1080, with 41 live records"),
        "{error}"
    );
}

#[test]
fn reading_a_log_that_another_process_has_open_is_refused_and_readers_share_it() {
    let (dir, expected) = killed();
    let log = open(dir.path(), false).unwrap();
    let error = EmbeddedLog::read(dir.path()).unwrap_err();
    assert!(matches!(error, OpenError::Locked(_)), "{error}");
    drop(log);
    let looked = EmbeddedLog::read(dir.path()).unwrap();
    assert_eq!(block_on(entries(&looked)), expected);
}

#[test]
fn a_lock_file_that_is_a_link_is_not_followed() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = other.path().join("precious");
    fs::write(&target, "precious").unwrap();
    std::os::unix::fs::symlink(&target, dir.path().join("lock")).unwrap();
    let error = open(dir.path(), false).unwrap_err();
    let said = std::error::Error::source(&error).unwrap().to_string();
    assert!(said.contains("symbolic link"), "{said}");
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
}
