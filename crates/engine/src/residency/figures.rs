//! Sizes of keys: the numbers of points of their queries, and the measured memory of hot keys. They are
//! stored in a file, so that a measurement survives a restart.
//!
//! The file has a magic number (8 bytes), a version (1 byte), the SHA-256 of the rest (32 bytes), and the
//! rest: the version of the program and the key sizes of each circuit, encoded by postcard. A file that is
//! damaged, or was written by another version of the program, whose structures may have other sizes, is
//! ignored, and the sizes are measured again.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use proofmill_files::{Visibility, write_whole};
use proofmill_groth16::QueryPoints;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::interface::CircuitId;
use crate::options::KeyForm;
use crate::registry::KeyPoints;

const MAGIC: &[u8; 8] = b"PMILLFIG";
const VERSION: u8 = 1;
const HEAD_BYTES: usize = MAGIC.len() + 1;
const DIGEST_BYTES: usize = 32;

/// Largest file that is read, in bytes.
const FILE_MAX: u64 = 8 << 20;

/// Most circuits that are stored.
const CIRCUITS_MAX: usize = 1 << 14;

/// The sizes of the keys of all circuits, in memory and, with a path, in a file.
#[derive(Debug, Default)]
pub(crate) struct KeySizes {
    path: Option<PathBuf>,
    known: Mutex<BTreeMap<[u8; 32], KeySize>>,
}

/// The size of the key of a circuit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KeySize {
    points: Option<StoredPoints>,
    /// Measured bytes of the hot key, by the form in which it was held.
    hot: BTreeMap<StoredForm, u64>,
}

/// [`KeyPoints`] as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredPoints {
    queries: QueryPoints,
    matrices: u64,
}

/// [`KeyForm`] as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum StoredForm {
    Plain,
    Prepared(u32),
    Shared,
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct Content {
    program: String,
    circuits: BTreeMap<[u8; 32], KeySize>,
}

// === impl KeySizes ===

impl KeySizes {
    /// Reads the key sizes of `circuits` from a file; none if the file cannot be used.
    pub(crate) fn open(path: Option<PathBuf>, circuits: &[CircuitId]) -> Self {
        let mut known = BTreeMap::new();
        if let Some(path) = &path {
            match read(path) {
                Ok(found) => known = found,
                Err(why) => {
                    let path = path.display();
                    tracing::warn!(%path, why, "what keys take in memory is measured again");
                }
            }
        }
        known.retain(|id, _| circuits.iter().any(|circuit| circuit.0 == *id));
        Self {
            path,
            known: Mutex::new(known),
        }
    }

    /// The numbers of points of a circuit's key, if they were counted.
    pub(crate) fn points(&self, id: &CircuitId) -> Option<KeyPoints> {
        let points = self.lock().get(&id.0)?.points?;
        Some(KeyPoints {
            queries: points.queries,
            matrices: points.matrices,
        })
    }

    /// Measured bytes of a circuit's hot key in this form, if it was ever loaded so.
    pub(crate) fn hot(&self, id: &CircuitId, form: KeyForm) -> Option<u64> {
        self.lock().get(&id.0)?.hot.get(&form.into()).copied()
    }

    /// Stores the numbers of points of a circuit's key.
    pub(crate) fn counted(&self, id: &CircuitId, points: KeyPoints) {
        let points = StoredPoints {
            queries: points.queries,
            matrices: points.matrices,
        };
        self.change(id, |key_size| key_size.points = Some(points));
    }

    /// Stores the measured bytes of a key that was loaded.
    pub(crate) fn measured(&self, id: &CircuitId, form: KeyForm, bytes: u64) {
        self.change(id, |key_size| {
            key_size.hot.insert(form.into(), bytes);
        });
    }

    fn change(&self, id: &CircuitId, change: impl FnOnce(&mut KeySize)) {
        let mut known = self.lock();
        if known.len() >= CIRCUITS_MAX && !known.contains_key(&id.0) {
            return;
        }
        let key_size = known.entry(id.0).or_default();
        let before = key_size.clone();
        change(key_size);
        let (Some(path), true) = (&self.path, *key_size != before) else {
            return;
        };
        // Under the lock, so that the file never replaces newer sizes by older ones.
        if let Err(error) = write(path, &known) {
            tracing::warn!(error, "what keys take in memory is not remembered");
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<[u8; 32], KeySize>> {
        // No code panics under this lock in the middle of a change, so a poisoned lock is safe to use.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl StoredForm ===

impl From<KeyForm> for StoredForm {
    fn from(form: KeyForm) -> Self {
        match form {
            KeyForm::Plain => Self::Plain,
            KeyForm::Prepared { percent } => Self::Prepared(percent),
            KeyForm::Shared => Self::Shared,
        }
    }
}

/// The key sizes in a file; empty if the file does not exist or another version of the program wrote it.
fn read(path: &Path) -> Result<BTreeMap<[u8; 32], KeySize>, String> {
    let length = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        Ok(_) => return Err("it is no file".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error.to_string()),
    };
    if length > FILE_MAX {
        return Err(format!("it has {length} bytes, the limit is {FILE_MAX}"));
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Result<BTreeMap<[u8; 32], KeySize>, String> {
    let (head, rest) = bytes
        .split_at_checked(HEAD_BYTES)
        .ok_or("it is cut short")?;
    if head[..MAGIC.len()] != MAGIC[..] {
        return Err("it is another kind of file".to_owned());
    }
    if head[MAGIC.len()] != VERSION {
        // A later version of the program may have written it.
        return Ok(BTreeMap::new());
    }
    let (digest, content) = rest
        .split_at_checked(DIGEST_BYTES)
        .ok_or("it is cut short")?;
    if Sha256::digest(content).as_slice() != digest {
        return Err("its checksum does not match: it is damaged".to_owned());
    }
    let content: Content = postcard::from_bytes(content).map_err(|error| error.to_string())?;
    if content.program != env!("CARGO_PKG_VERSION") {
        return Ok(BTreeMap::new());
    }
    Ok(content.circuits)
}

fn write(path: &Path, circuits: &BTreeMap<[u8; 32], KeySize>) -> Result<(), String> {
    let content = Content {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        circuits: circuits.clone(),
    };
    let content = postcard::to_extend(&content, Vec::new()).map_err(|error| error.to_string())?;
    write_whole(path, Visibility::Private, |file| {
        file.write_all(MAGIC)?;
        file.write_all(&[VERSION])?;
        file.write_all(&Sha256::digest(&content))?;
        file.write_all(&content)
    })
    .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: CircuitId = CircuitId([7; 32]);

    fn points() -> KeyPoints {
        KeyPoints {
            queries: QueryPoints {
                a: 5,
                b_g1: 3,
                b_g2: 3,
                l: 4,
            },
            matrices: 100,
        }
    }

    #[test]
    fn figures_survive_a_restart_for_registered_circuits() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = || Some(folder.path().join("figures"));
        let key_sizes = KeySizes::open(path(), &[]);
        key_sizes.counted(&ID, points());
        key_sizes.measured(&ID, KeyForm::Plain, 1234);
        let again = KeySizes::open(path(), &[ID]);
        assert_eq!(again.points(&ID), Some(points()));
        assert_eq!(again.hot(&ID, KeyForm::Plain), Some(1234));
        assert_eq!(again.hot(&ID, KeyForm::Prepared { percent: 300 }), None);
        assert_eq!(KeySizes::open(path(), &[]).points(&ID), None);
    }

    #[test]
    fn a_damaged_file_counts_as_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("figures");
        let key_sizes = KeySizes::open(Some(path.clone()), &[]);
        key_sizes.measured(&ID, KeyForm::Plain, 1234);
        let whole = fs::read(&path).expect("written");
        assert!(parse(&whole).is_ok_and(|found| found.len() == 1));
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).is_err(), "cut to {length} bytes");
        }
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x10;
            fs::write(&path, &damaged).expect("written");
            let found = KeySizes::open(Some(path.clone()), &[ID]);
            assert_eq!(found.hot(&ID, KeyForm::Plain), None, "byte {place}");
        }
        // The file is written again with the next size.
        let found = KeySizes::open(Some(path.clone()), &[ID]);
        found.measured(&ID, KeyForm::Shared, 5);
        let again = KeySizes::open(Some(path), &[ID]);
        assert_eq!(again.hot(&ID, KeyForm::Shared), Some(5));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_partition_whose_key_takes_more_than_was_remembered_asks_again() {
        use crate::{
            CircuitRef, CircuitSource, EventKind, Input, JobState, Options, Partition, Priority,
            Registration, RequestId, Secret, Service, Submission,
        };
        let fixture = |name: &str| {
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../groth16/tests/fixtures/bn254")
                .join(name)
        };
        let state = tempfile::tempdir().expect("a folder");
        let open = async || {
            let options = Options {
                state_dir: Some(state.path().to_owned()),
                memory: Some(64 << 20),
                ..Options::default()
            };
            let (service, handle) = Service::open(options).await.expect("it opens");
            let (trigger, shutdown) = proofmill_shutdown::channel();
            (tokio::spawn(service.run(shutdown)), handle, trigger)
        };
        let (running, handle, trigger) = open().await;
        let registration = Registration {
            name: "circuit".to_owned(),
            source: CircuitSource::Zkey(fixture("circuit.zkey")),
        };
        let known = handle.register(registration).await.expect("a circuit");
        trigger.raise(proofmill_shutdown::Level::Drain);
        running.await.expect("it ran").expect("it ended well");

        // Far too low sizes.
        let key_sizes = KeySizes::open(Some(state.path().join("figures")), &[known.id]);
        key_sizes.measured(&known.id, KeyForm::Plain, 1);
        let none = KeyPoints {
            queries: QueryPoints::default(),
            matrices: 0,
        };
        key_sizes.counted(&known.id, none);
        let (running, handle, trigger) = open().await;
        let before = handle.circuits().await.expect("circuits").remove(0);
        assert!(before.hot_bytes == 1 && before.work_bytes < known.work_bytes);
        let mut events = handle.events();
        let witness = fs::read(fixture("witness.wtns")).expect("a witness");
        let partition = Partition {
            circuit: CircuitRef::Id(known.id),
            input: Input::Wtns(Secret::new(witness)),
        };
        let submission = Submission {
            request: RequestId::new("test", "1").expect("an id"),
            priority: Priority::Normal,
            deadline: None,
            partitions: vec![partition],
            trace: None,
        };
        let result = handle.prove(submission).await.expect("a result");
        assert_eq!(result.state, JobState::Done);
        let mut admitted = Vec::new();
        while let Ok(event) = events.try_recv() {
            if let EventKind::Admitted { bytes, span } = event.kind {
                admitted.push((span.attempt, bytes));
            }
        }
        let after = handle.circuits().await.expect("circuits").remove(0);
        assert_eq!(after.work_bytes, known.work_bytes);
        assert!(after.hot_bytes > 1 && after.loads == 1);
        // Both times as the first attempt, and the second time with all the memory that it needs.
        assert_eq!(admitted.len(), 2, "{admitted:?}");
        assert_eq!(admitted[1], (1, known.work_bytes));
        trigger.raise(proofmill_shutdown::Level::Drain);
        running.await.expect("it ran").expect("it ended well");
    }
}
