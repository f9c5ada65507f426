//! A log that contains less than was durable: a survey of what can still be read, and a new log
//! made of that.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rusqlite::Connection;

use super::image;
use super::mark::{self, DurablePoint, Mark};
use super::store::{self, Store, create_tables, remove_if_there};
use super::verify::{Head, StoreError, decode, sql, sum, verify};
use crate::key::Key;
use crate::log::{Entry, Seq};

/// Maximum number of corrupt records listed one by one.
const RECORDS_LISTED_MAX: usize = 20;

/// Report on durable content that a log no longer contains.
///
/// `Display` states the fault, the last durable point, and how much can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    cause: String,
    /// Position of the last record that was durable.
    durable: Seq,
    /// The durable point as text, with its age at the time of the survey.
    point: Option<String>,
    readable: usize,
    /// Descriptions of records that exist but are not as they were written.
    corrupt: Vec<String>,
    is_complete: bool,
    kept_in: Option<PathBuf>,
}

/// Readable content of a damaged log.
#[derive(Debug, Default)]
pub(super) struct Survey {
    records: BTreeMap<Seq, (Key, Bytes)>,
    head: Head,
    corrupt: Vec<String>,
    /// Whether the content is an intact log, as it was at `head`.
    is_sound: bool,
}

// === impl Loss ===

impl Loss {
    /// The folder that the damaged files were moved to when the loss was accepted.
    pub fn kept_in(&self) -> Option<&Path> {
        self.kept_in.as_deref()
    }

    pub(super) fn accepted(mut self, kept_in: PathBuf) -> Self {
        self.kept_in = Some(kept_in);
        self
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        if let Some(point) = &self.point {
            write!(f, "; {point}")?;
        }
        if self.is_complete {
            return f.write_str("; all of them can be read");
        }
        write!(f, "; {} live records can be read", self.readable)?;
        for corrupt in self.corrupt.iter().take(RECORDS_LISTED_MAX) {
            write!(f, "; {corrupt}")?;
        }
        match self.corrupt.len().saturating_sub(RECORDS_LISTED_MAX) {
            0 => Ok(()),
            more => write!(f, "; {more} more are corrupt"),
        }
    }
}

// === impl Survey ===

impl Survey {
    /// Reads as much as possible of the log in `dir`, and changes nothing. A damaged write-ahead
    /// log may hide later pages of the database that a checkpoint moved, so both views are tried.
    pub(super) fn of(dir: &Path) -> Self {
        let path = store::file(dir);
        let views = [true, false].map(|with_wal| {
            let db = image::open(&path, with_wal);
            db.map_or_else(|_| Self::default(), |db| Self::read(&db, &path))
        });
        let rank = |view: &Self| (view.is_sound, view.head.seq, view.records.len());
        let [with_wal, without] = views;
        if rank(&without) > rank(&with_wal) {
            without
        } else {
            with_wal
        }
    }

    fn read(db: &Connection, path: &Path) -> Self {
        let mut survey = Self::default();
        let point = DurablePoint::default();
        let verified = verify(db, path, Some(point), |entry| survey.keep(entry));
        if let Ok(verified) = verified {
            survey.head = verified.head;
            survey.is_sound = true;
            return survey;
        }
        survey = Self::default();
        // Scans from both ends, up to the records that cannot be read.
        for order in ["ASC", "DESC"] {
            let _ = survey.scan(db, order);
        }
        survey.head.seq = survey
            .records
            .keys()
            .next_back()
            .copied()
            .unwrap_or_default();
        survey
    }

    fn scan(&mut self, db: &Connection, order: &str) -> Result<(), StoreError> {
        let select = format!("SELECT seq, key, value, sum FROM records ORDER BY seq {order}");
        let mut select = db.prepare(&select)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            match decode(row) {
                Ok(entry) if self.records.contains_key(&entry.seq) => return Ok(()),
                Ok(entry) => self.keep(entry),
                Err(error) => {
                    let error = error.to_string();
                    if !self.corrupt.contains(&error) {
                        self.corrupt.push(error);
                    }
                }
            }
        }
        Ok(())
    }

    fn keep(&mut self, entry: Entry) {
        self.records.insert(entry.seq, (entry.key, entry.value));
    }

    pub(super) fn loss(&self, cause: &StoreError, point: Option<DurablePoint>) -> Loss {
        let is_complete = point.is_some_and(|point| {
            self.is_sound && self.head.seq == point.seq && self.head.live == point.live
        });
        Loss {
            cause: cause.to_string(),
            durable: point.unwrap_or_default().seq,
            point: point.map(|point| point.to_string()),
            readable: self.records.len(),
            corrupt: self.corrupt.clone(),
            is_complete,
            kept_in: None,
        }
    }

    /// Replaces the damaged log by a log of the readable records. The damaged files are kept in a
    /// folder beside it, with a list of the losses. Returns the folder.
    pub(super) fn rebuild(mut self, dir: &Path, loss: &Loss) -> Result<PathBuf, StoreError> {
        self.drop_superseded();
        self.head.live = self.records.len() as u64;
        // A position is never assigned twice, not even after a loss.
        self.head.seq = self.head.seq.max(loss.durable);
        let new = dir.join("log.rebuilt");
        remove_if_there(&new)?;
        self.write_to(&new)?;

        let kept = keep_damaged_files(dir, loss)?;
        fs::rename(&new, store::file(dir))?;
        Mark::create(dir, DurablePoint::now(self.head.seq, self.head.live))?;
        File::open(dir)?.sync_all()?;
        Ok(kept)
    }

    /// Keeps the latest record of each key: a damaged database may contain a record and its
    /// successor.
    fn drop_superseded(&mut self) {
        let mut latest: HashMap<&Key, Seq> = HashMap::new();
        for (seq, (key, _)) in &self.records {
            latest.insert(key, *seq);
        }
        let latest: Vec<Seq> = latest.into_values().collect();
        let mut kept = BTreeMap::new();
        for seq in latest {
            kept.extend(self.records.remove_entry(&seq));
        }
        self.records = kept;
    }

    fn write_to(&self, path: &Path) -> Result<(), StoreError> {
        let mut db = Store::create_file(path).and_then(|()| Ok(store::connect(path, false)?))?;
        let tx = db.transaction()?;
        create_tables(&tx, self.head)?;
        {
            let mut insert = tx.prepare("INSERT INTO records VALUES (?, ?, ?, ?)")?;
            for (seq, (key, value)) in &self.records {
                insert.execute((sql(*seq), key.as_str(), &value[..], sum(*seq, key, value)))?;
            }
        }
        tx.commit()?;
        Ok(())
    }
}

/// Moves the files of a damaged log into a folder of their own, with a list of the losses. The
/// database itself is copied: until it is replaced, the losses can be determined again.
fn keep_damaged_files(dir: &Path, loss: &Loss) -> io::Result<PathBuf> {
    let at_ms = DurablePoint::now(Seq(0), 0).at_ms;
    let kept = dir.join(format!("damaged-{at_ms}"));
    DirBuilder::new().mode(0o700).create(&kept)?;
    let database = store::file(dir);
    let wal = image::wal_file(&database);
    let copy = |from: &Path| match from.file_name() {
        Some(name) if from.try_exists()? => {
            fs::copy(from, kept.join(name))?;
            File::open(kept.join(name))?.sync_all()
        }
        _ => Ok(()),
    };
    for file in [&database, &wal, &mark::file(dir)] {
        copy(file)?;
    }
    let mut list = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(kept.join("loss.txt"))?;
    writeln!(list, "{loss}")?;
    list.sync_all()?;
    File::open(&kept)?.sync_all()?;
    // SQLite applies a write-ahead log to any database beside it.
    remove_if_there(&wal)?;
    let mut index = database.into_os_string();
    index.push("-shm");
    remove_if_there(Path::new(&index))?;
    Ok(kept)
}
