//! What is on disk: an SQLite database in WAL mode with one table of live records.
//!
//! The header's application id is [`MAGIC`] and its user version is [`FORMAT`]. Table `records`
//! holds each live record under its place, with a CRC-32 of place, key and value; the one row of
//! `head` holds the last place given out and the count of live records, so that a place is never
//! given twice and a record that vanished is noticed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row};

use super::options::OpenError;
use crate::key::Key;
use crate::log::{Entry, Seq};
use crate::pending::Group;

/// "PFML", the application id of a log.
pub(super) const MAGIC: i32 = 0x5046_4d4c;
/// The version of the tables below.
pub(super) const FORMAT: i32 = 1;

const SCHEMA: &str = "
    CREATE TABLE records (
        seq INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        sum INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE head (
        id INTEGER PRIMARY KEY CHECK (id = 0),
        seq INTEGER NOT NULL,
        live INTEGER NOT NULL
    ) STRICT;
    INSERT INTO head VALUES (0, 0, 0);";

/// Pages in the write-ahead log from which a checkpoint is made when nothing else is to do.
const CHECKPOINT_WHEN_IDLE: u32 = 1024;
/// Pages in the write-ahead log from which a checkpoint is made in any case.
const CHECKPOINT_ALWAYS: u32 = 8192;
/// Free bytes in the file, if they are also more than half of it, that are given back on open.
const VACUUM_FROM_BYTES: i64 = 16 * 1024 * 1024;

/// The connection that writes.
#[derive(Debug)]
pub(super) struct Store {
    db: Connection,
    wal_pages: Arc<AtomicU32>,
    head: Head,
}

/// A connection that only reads.
#[derive(Debug)]
pub(super) struct Reader {
    db: Connection,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) seq: Seq,
    pub(super) live: u64,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error("record {seq} is corrupt: {reason}; restore the directory from a copy")]
    Corrupt { seq: Seq, reason: String },
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
}

// === impl Store ===

impl Store {
    /// Opens or creates the database in `dir`, and reads the keys of its live records.
    pub(super) fn open(dir: &Path) -> Result<(Self, HashMap<Key, Seq>), OpenError> {
        let path = file(dir);
        let damaged = |error: StoreError| OpenError::damaged(path.clone(), error);
        let directory = |source| OpenError::Directory {
            path: path.clone(),
            source,
        };
        create_private(&path).map_err(directory)?;
        let mut db = connect(&path, false).map_err(|e| damaged(e.into()))?;
        Self::prepare(&db, &path)?;

        let wal_pages = Arc::new(AtomicU32::new(0));
        let counter = wal_pages.clone();
        db.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            counter.store(pages.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        }))
        .map_err(|e| damaged(e.into()))?;
        let mut store = Self {
            db,
            wal_pages,
            head: Head::default(),
        };
        let live = store.load().map_err(damaged)?;
        store.vacuum().map_err(damaged)?;
        // The names of new files are as durable as what is in them.
        for folder in [
            Some(dir),
            dir.parent().filter(|p| !p.as_os_str().is_empty()),
        ] {
            let sync = |folder: &Path| std::fs::File::open(folder)?.sync_all();
            folder.map_or(Ok(()), sync).map_err(directory)?;
        }
        Ok((store, live))
    }

    fn prepare(db: &Connection, path: &Path) -> Result<(), OpenError> {
        let damaged = |e: rusqlite::Error| OpenError::damaged(path.to_owned(), e.into());
        let header = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let (magic, format) = (
            header("application_id").map_err(damaged)?,
            header("user_version").map_err(damaged)?,
        );
        let tables: i64 = db
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(damaged)?;
        match (magic, format) {
            (0, 0) if tables == 0 => {
                db.pragma_update(None, "journal_mode", "WAL")
                    .map_err(damaged)?;
                // The tables go to the database itself at once: whatever becomes of the
                // write-ahead log, what is left is a log.
                db.execute_batch(&format!(
                    "BEGIN IMMEDIATE; PRAGMA application_id = {MAGIC}; \
                     PRAGMA user_version = {FORMAT}; {SCHEMA} COMMIT; \
                     PRAGMA wal_checkpoint(TRUNCATE);"
                ))
                .map_err(damaged)
            }
            (MAGIC, FORMAT) => db
                .pragma_update(None, "journal_mode", "WAL")
                .map_err(damaged),
            (MAGIC, found) => Err(OpenError::UnknownFormat {
                path: path.to_owned(),
                found,
                known: FORMAT,
            }),
            (found, _) => Err(OpenError::NotALog {
                path: path.to_owned(),
                found,
            }),
        }
    }

    /// Verifies every record, and the count of them.
    fn load(&mut self) -> Result<HashMap<Key, Seq>, StoreError> {
        self.head = read_head(&self.db)?;
        let mut live = HashMap::new();
        let mut select = self.db.prepare(SELECT_FROM)?;
        let mut rows = select.query((0, i64::MAX, -1))?;
        while let Some(row) = rows.next()? {
            let entry = decode(row)?;
            if entry.seq > self.head.seq {
                let reason = format!("it is beyond the head, {}", self.head.seq);
                return Err(StoreError::Corrupt {
                    seq: entry.seq,
                    reason,
                });
            }
            if let Some(other) = live.insert(entry.key, entry.seq) {
                let reason = format!("record {other} is live under the same key");
                return Err(StoreError::Corrupt {
                    seq: entry.seq,
                    reason,
                });
            }
        }
        if live.len() as u64 != self.head.live {
            let reason = format!("{} live records found of {}", live.len(), self.head.live);
            return Err(StoreError::Corrupt {
                seq: self.head.seq,
                reason,
            });
        }
        Ok(live)
    }

    fn vacuum(&self) -> Result<(), StoreError> {
        let pragma = |name| {
            self.db
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
        };
        let (free, pages, size) = (
            pragma("freelist_count")?,
            pragma("page_count")?,
            pragma("page_size")?,
        );
        if free * size >= VACUUM_FROM_BYTES && free > pages / 2 {
            self.db.execute_batch("VACUUM")?;
            self.checkpoint()?;
        }
        Ok(())
    }

    pub(super) fn head(&self) -> Head {
        self.head
    }

    /// Writes `group` in one transaction; when this returns it is on stable storage.
    pub(super) fn commit(&mut self, group: &Group) -> Result<(), StoreError> {
        let head = Head {
            seq: group.last,
            live: self.head.live + group.puts.len() as u64 - group.removed.len() as u64,
        };
        let tx = self.db.transaction()?;
        {
            let mut delete = tx.prepare_cached("DELETE FROM records WHERE seq = ?")?;
            for seq in &group.removed {
                delete.execute([sql(*seq)])?;
            }
            let mut insert = tx.prepare_cached("INSERT INTO records VALUES (?, ?, ?, ?)")?;
            for (seq, (key, value)) in &group.puts {
                insert.execute((sql(*seq), key.as_str(), &value[..], sum(*seq, key, value)))?;
            }
            tx.prepare_cached("UPDATE head SET seq = ?, live = ?")?
                .execute((sql(head.seq), head.live.cast_signed()))?;
        }
        tx.commit()?;
        self.head = head;
        Ok(())
    }

    /// Moves the write-ahead log into the database when it has grown too much, so that it is used
    /// again from its start: appending to a file costs more than overwriting it.
    pub(super) fn tidy(&self) -> Result<(), StoreError> {
        if self.wal_pages.load(Ordering::Relaxed) >= CHECKPOINT_ALWAYS {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Whether the write-ahead log should be moved as soon as there is nothing else to do.
    pub(super) fn wants_tidying(&self) -> bool {
        self.wal_pages.load(Ordering::Relaxed) >= CHECKPOINT_WHEN_IDLE
    }

    /// Readers may keep part of the write-ahead log from being moved: that is not an error.
    pub(super) fn checkpoint(&self) -> Result<(), StoreError> {
        self.db
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        // The next commit counts anew: from the start, or on from what a reader kept.
        self.wal_pages.store(0, Ordering::Relaxed);
        Ok(())
    }
}

// === impl Reader ===

impl Reader {
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            db: connect(&file(dir), true)?,
        })
    }

    /// Fixes what later reads see, until this reader is dropped.
    pub(super) fn pin(&self) -> Result<(), StoreError> {
        self.db.execute_batch("BEGIN")?;
        read_head(&self.db)?;
        Ok(())
    }

    pub(super) fn get(&self, seq: Seq) -> Result<Option<Entry>, StoreError> {
        let mut select = self.db.prepare_cached(SELECT_ONE)?;
        select
            .query_row([sql(seq)], |row| Ok(decode(row)))
            .optional()?
            .transpose()
    }

    /// Up to `count` records after `after` and up to `to`, in order.
    pub(super) fn range(&self, after: Seq, to: Seq, count: i64) -> Result<Vec<Entry>, StoreError> {
        let mut select = self.db.prepare_cached(SELECT_FROM)?;
        let mut rows = select.query((sql(after), sql(to), count))?;
        let mut entries = Vec::new();
        while let Some(row) = rows.next()? {
            entries.push(decode(row)?);
        }
        Ok(entries)
    }
}

const SELECT_ONE: &str = "SELECT seq, key, value, sum FROM records WHERE seq = ?";
const SELECT_FROM: &str =
    "SELECT seq, key, value, sum FROM records WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?";

pub(super) fn file(dir: &Path) -> PathBuf {
    dir.join("log.sqlite")
}

/// SQLite gives its other files the permissions of the database.
fn create_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map(drop)
}

fn connect(path: &Path, read_only: bool) -> rusqlite::Result<Connection> {
    let access = if read_only {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    };
    let db = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_timeout(std::time::Duration::from_secs(10))?;
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "trusted_schema", false)?;
    Ok(db)
}

fn read_head(db: &Connection) -> Result<Head, StoreError> {
    let head = db.query_row("SELECT seq, live FROM head", [], |row| {
        Ok(Head {
            seq: Seq(row.get::<_, i64>(0)?.cast_unsigned()),
            live: row.get::<_, i64>(1)?.cast_unsigned(),
        })
    })?;
    Ok(head)
}

fn decode(row: &Row<'_>) -> Result<Entry, StoreError> {
    let seq = Seq(row.get::<_, i64>(0)?.cast_unsigned());
    let corrupt = |reason: String| StoreError::Corrupt { seq, reason };
    let text = row
        .get_ref(1)?
        .as_str()
        .map_err(|e| corrupt(e.to_string()))?;
    let key = Key::new(text).map_err(|e| corrupt(e.to_string()))?;
    let value = row
        .get_ref(2)?
        .as_blob()
        .map_err(|e| corrupt(e.to_string()))?;
    let (expected, found) = (row.get::<_, i64>(3)?, sum(seq, &key, value));
    if expected != found {
        let reason = format!(
            "the checksum of its content, under {key}, is {found:08x} and not {expected:08x}"
        );
        return Err(corrupt(reason));
    }
    Ok(Entry {
        seq,
        key,
        value: Bytes::copy_from_slice(value),
    })
}

fn sum(seq: Seq, key: &Key, value: &[u8]) -> i64 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&seq.0.to_le_bytes());
    sum.update(&(key.as_str().len() as u64).to_le_bytes());
    sum.update(key.as_str().as_bytes());
    sum.update(value);
    i64::from(sum.finalize())
}

/// 2^63 records at a million a second last 290,000 years.
fn sql(seq: Seq) -> i64 {
    seq.0.cast_signed()
}
