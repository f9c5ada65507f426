//! The log on disk: an SQLite database in WAL mode with one table of live records.
//!
//! The header's application id is [`MAGIC`] and its user version is [`FORMAT`]. Table `records`
//! holds each live record under its position, with a CRC-32 of position, key and value. The one row
//! of `head` holds the position last assigned and the number of live records, with a CRC-32, so
//! that a position is never assigned twice and a lost record is noticed. Format 1 had no checksum
//! in `head`, and no [mark](super::mark) beside the database; it is read, and converted to format
//! 2.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use rustix::fs::OFlags;

use super::image::{self, wal_file};
use super::loss::{Loss, Survey};
use super::mark::{self, DurablePoint, Mark, MarkError};
use super::options::OpenError;
use super::verify::{
    Fault, Head, SELECT_FROM, SELECT_ONE, StoreError, Verified, decode, sql, sum, verify,
};
use super::wal::{Wal, WalSync};
use crate::key::Key;
use crate::log::{Entry, Seq};
use crate::pending::Group;

/// "PFML", the application id of a log.
pub(super) const MAGIC: i32 = 0x5046_4d4c;
/// The version of the tables below.
pub(super) const FORMAT: i32 = 2;

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
        live INTEGER NOT NULL,
        sum INTEGER NOT NULL DEFAULT 0
    ) STRICT;";

/// Number of pages in the write-ahead log from which an idle log makes a checkpoint.
const CHECKPOINT_WHEN_IDLE: u32 = 1024;
/// Number of pages in the write-ahead log from which a checkpoint is made in any case.
const CHECKPOINT_ALWAYS: u32 = 8192;
/// Free bytes in the file from which opening it reclaims them, if they are also more than half of
/// it.
const VACUUM_FROM_BYTES: i64 = 16 * 1024 * 1024;

/// The connection that writes.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    db: Connection,
    wal: Wal,
    mark: Arc<Mutex<Mark>>,
    wal_pages: Arc<AtomicU32>,
    head: Head,
}

/// A handle with which one thread makes the store's writes durable and records them in the mark.
#[derive(Debug)]
pub(super) struct Syncer {
    wal: WalSync,
    mark: Arc<Mutex<Mark>>,
}

/// A connection that only reads.
#[derive(Debug)]
pub(super) struct Reader {
    db: Connection,
}

/// The result of opening a log.
pub(super) struct Opened {
    pub(super) store: Store,
    pub(super) live: HashMap<Key, Seq>,
    /// The content that was missing, if the log was opened without it.
    pub(super) loss: Option<Loss>,
}

/// A log that passed all checks, and has not been changed yet.
struct CheckedLog {
    db: Connection,
    verified: Verified,
    mark: Mark,
}

// === impl Store ===

impl Store {
    /// Opens or creates the log in `dir`, and reads the keys of its live records. A log that
    /// contains less than was durable is left unchanged, unless `accept_loss`.
    pub(super) fn open(dir: &Path, accept_loss: bool) -> Result<Opened, OpenError> {
        let path = file(dir);
        let (checked, loss) = match open_checked(dir) {
            Ok(checked) => (checked, None),
            Err(Fault::Refused(error)) => return Err(error),
            Err(Fault::Damaged(cause)) => {
                let (survey, loss) = survey(dir, &cause);
                if !accept_loss {
                    return Err(OpenError::Damaged {
                        path,
                        loss: Box::new(loss),
                    });
                }
                let kept = survey.rebuild(dir, &loss).map_err(unusable(&path))?;
                let checked = open_checked(dir).map_err(|fault| fault.into_error(dir))?;
                (checked, Some(loss.accepted(kept)))
            }
        };
        let CheckedLog {
            mut db,
            verified,
            mark,
        } = checked;
        let wal_pages = Arc::new(AtomicU32::new(0));
        let counter = wal_pages.clone();
        db.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            counter.store(pages.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        }))
        .map_err(|error| unusable(&path)(error.into()))?;
        // SQLite creates the write-ahead log at the first access.
        Head::read(&db, verified.format).map_err(unusable(&path))?;
        let wal = Wal::open(&path, CHECKPOINT_WHEN_IDLE)
            .map_err(|error| unusable(&path)(error.into()))?;
        let mut store = Self {
            path: path.clone(),
            db,
            wal,
            mark: Arc::new(Mutex::new(mark)),
            wal_pages,
            head: verified.head,
        };
        store
            .make_current(verified.format)
            .map_err(unusable(&path))?;
        // Makes the names of new files as durable as their content.
        for folder in [
            Some(dir),
            dir.parent().filter(|p| !p.as_os_str().is_empty()),
        ] {
            let sync = |folder: &Path| std::fs::File::open(folder)?.sync_all();
            folder
                .map_or(Ok(()), sync)
                .map_err(|error| unusable(&path)(error.into()))?;
        }
        Ok(Opened {
            store,
            live: verified.live,
            loss,
        })
    }

    /// Prepares the database for changes. Commits that a killed process left in the write-ahead log
    /// may not be on stable storage yet, so they are synced before the mark covers them.
    fn make_current(&mut self, format: i32) -> Result<(), StoreError> {
        self.db
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        self.checkpoint()?;
        let mut mark = locked(&self.mark);
        mark.advance(DurablePoint::now(self.head.seq, self.head.live))?;
        mark.sync()?;
        drop(mark);
        if format == 1 {
            let tx = self.db.transaction()?;
            tx.execute_batch(&format!(
                "ALTER TABLE head ADD COLUMN sum INTEGER NOT NULL DEFAULT 0; \
                 UPDATE head SET sum = {}; PRAGMA user_version = {FORMAT};",
                self.head.sum()
            ))?;
            tx.commit()?;
            tracing::info!("the log is of the format before, and has been brought to this one");
        }
        self.vacuum()?;
        // From here on commits are synced by `Syncer`; SQLite still syncs checkpoints.
        self.db.pragma_update(None, "synchronous", "NORMAL")?;
        self.make_room()
    }

    /// Creates an empty file that only its owner can read. SQLite gives its other files the
    /// permissions of the database.
    pub(super) fn create_file(path: &Path) -> Result<(), StoreError> {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        options.open(path).map(drop).map_err(StoreError::from)
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

    /// A means for one thread to make this store's writes durable.
    pub(super) fn syncer(&self) -> Result<Syncer, StoreError> {
        Ok(Syncer {
            wal: WalSync::open(&self.path)?,
            mark: self.mark.clone(),
        })
    }

    /// Writes `group` in one transaction, and returns the point to record once it is on stable
    /// storage; the commit must not be reported before. A failure ends the log, and closes its
    /// connection, which rolls back the transaction.
    pub(super) fn write(&mut self, group: &Group) -> Result<DurablePoint, StoreError> {
        let head = Head {
            seq: group.last,
            live: self.head.live + group.puts.len() as u64 - group.removed.len() as u64,
        };
        let db = &self.db;
        db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut delete = db.prepare_cached("DELETE FROM records WHERE seq = ?")?;
        for seq in &group.removed {
            delete.execute([sql(*seq)])?;
        }
        let mut insert = db.prepare_cached("INSERT INTO records VALUES (?, ?, ?, ?)")?;
        for (seq, (key, value)) in &group.puts {
            insert.execute((sql(*seq), key.as_str(), &value[..], sum(*seq, key, value)))?;
        }
        db.prepare_cached("UPDATE head SET seq = ?, live = ?, sum = ?")?
            .execute((sql(head.seq), head.live.cast_signed(), head.sum()))?;
        db.prepare_cached("COMMIT")?.execute([])?;
        drop((delete, insert));
        self.head = head;
        Ok(DurablePoint::now(head.seq, head.live))
    }

    /// Closes a store after a failed sync. Its last writes may never reach stable storage: they are
    /// left in the write-ahead log for the next open, which does not rely on them. Moving them into
    /// the database would involve a sync that does not know of the failure.
    pub(super) fn abandon(self) {
        let config = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        if let Err(error) = self.db.set_db_config(config, true) {
            tracing::debug!(%error, "the log's database is closed as usual");
        }
    }

    fn make_room(&mut self) -> Result<(), StoreError> {
        let pages = self.wal_pages.load(Ordering::Relaxed);
        Ok(self.wal.make_room(pages)?)
    }

    /// Maintenance that cannot wait for an idle moment. Makes a checkpoint when the write-ahead log
    /// has grown too much, so that it is used again from its start: appending to a file costs more
    /// than overwriting it. Syncs the mark if that is overdue.
    pub(super) fn maintain(&mut self) -> Result<(), StoreError> {
        if self.wal_pages.load(Ordering::Relaxed) >= CHECKPOINT_ALWAYS {
            self.checkpoint()?;
        }
        let mut mark = locked(&self.mark);
        if mark.is_overdue() {
            mark.sync()?;
        }
        Ok(())
    }

    /// Time until maintenance is due in an idle moment; `None` if none is pending.
    pub(super) fn maintenance_due_in(&self) -> Option<Duration> {
        let pages = self.wal_pages.load(Ordering::Relaxed);
        if pages >= CHECKPOINT_WHEN_IDLE || self.wal.wants_room(pages) {
            return Some(Duration::ZERO);
        }
        locked(&self.mark).due_in()
    }

    /// Maintenance for an idle moment: a checkpoint, space in the write-ahead log, and a sync of
    /// the mark, each if it is due.
    pub(super) fn maintain_when_idle(&mut self) -> Result<(), StoreError> {
        if self.wal_pages.load(Ordering::Relaxed) >= CHECKPOINT_WHEN_IDLE {
            self.checkpoint()?;
        }
        self.make_room()?;
        let mut mark = locked(&self.mark);
        if mark.due_in().is_some_and(|left| left.is_zero()) {
            mark.sync()?;
        }
        Ok(())
    }

    /// The last writes before the log is closed.
    pub(super) fn finish(&mut self) -> Result<(), StoreError> {
        locked(&self.mark).sync()?;
        self.checkpoint()
    }

    /// Readers may keep part of the write-ahead log from being moved, which is not an error.
    fn checkpoint(&self) -> Result<(), StoreError> {
        self.db
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        // The next commit counts anew: from the start, or after the part that a reader kept.
        self.wal_pages.store(0, Ordering::Relaxed);
        Ok(())
    }
}

fn locked(mark: &Mutex<Mark>) -> MutexGuard<'_, Mark> {
    // If a panic interrupted an update of the mark, the file's other slot is still valid.
    mark.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Syncer ===

impl Syncer {
    /// Puts on stable storage everything that the store had written when it returned `point`,
    /// then records the point in the mark. The commit may be reported only after that.
    pub(super) fn make_durable(&self, point: DurablePoint) -> Result<(), StoreError> {
        self.wal.sync()?;
        Ok(locked(&self.mark).advance(point)?)
    }
}

// === impl Reader ===

impl Reader {
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            db: connect(&file(dir), true)?,
        })
    }

    /// Fixes the state that later reads see, until this reader is dropped.
    pub(super) fn pin(&self) -> Result<(), StoreError> {
        self.db.execute_batch("BEGIN")?;
        Head::read(&self.db, FORMAT)?;
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

pub(super) fn file(dir: &Path) -> PathBuf {
    dir.join("log.sqlite")
}

pub(super) fn connect(path: &Path, read_only: bool) -> rusqlite::Result<Connection> {
    let access = if read_only {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    };
    let db = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // Closing must not move a damaged write-ahead log into the database.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    db.busy_timeout(Duration::from_secs(10))?;
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "trusted_schema", false)?;
    Ok(db)
}

// === impl Fault ===

impl Fault {
    /// The error for a caller that only reads the log in `dir`.
    pub(super) fn into_error(self, dir: &Path) -> OpenError {
        match self {
            Self::Refused(error) => error,
            Self::Damaged(cause) => OpenError::Damaged {
                path: file(dir),
                loss: Box::new(survey(dir, &cause).1),
            },
        }
    }
}

/// Reads the log in `dir` into memory, and changes nothing. Returns its last position and its live
/// records.
pub(super) fn read_only(dir: &Path) -> Result<(Seq, Vec<Entry>), OpenError> {
    let read = || {
        let Some(point) = read_durable_point(dir)? else {
            return Ok((Seq(0), Vec::new()));
        };
        let path = file(dir);
        let db = image::open(&path, true).map_err(|error| Fault::of(&path, error))?;
        let mut entries = Vec::new();
        let verified = verify(&db, &path, point, |entry| entries.push(entry))?;
        Ok((verified.head.seq, entries))
    };
    read().map_err(|fault: Fault| fault.into_error(dir))
}

fn survey(dir: &Path, cause: &StoreError) -> (Survey, Loss) {
    let point = Mark::read(dir).ok().flatten();
    let survey = Survey::of(dir);
    let loss = survey.loss(cause, point);
    (survey, loss)
}

/// The durable point of the log in `dir`, if there is a log; `None` if nothing has ever been in it.
/// Must run before SQLite opens the file, which deletes the write-ahead log of an empty database.
fn read_durable_point(dir: &Path) -> Result<Option<Option<DurablePoint>>, Fault> {
    let unsound = |why: String| Err(Fault::Damaged(StoreError::Unsound(why)));
    let path = file(dir);
    let point = match Mark::read(dir) {
        Ok(point) => point,
        Err(MarkError::Io(error)) => return Err(Fault::of(&mark::file(dir), error.into())),
        Err(MarkError::Unknown(found)) => {
            return Err(Fault::Refused(OpenError::UnknownFormat {
                path: mark::file(dir),
                found: found.cast_signed(),
                known: FORMAT,
            }));
        }
        Err(MarkError::Damaged) => {
            return unsound("its high-water mark is damaged: neither copy in it is whole".into());
        }
    };
    if let Some(point) = point
        && point.format > FORMAT
    {
        return Err(Fault::Refused(OpenError::UnknownFormat {
            path,
            found: point.format,
            known: FORMAT,
        }));
    }
    let length = |path: &Path| match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Fault::of(path, error.into())),
    };
    let was_used = point.is_some_and(|point| point.seq > Seq(0));
    match length(&path)? {
        None if !was_used && length(&wal_file(&path))?.is_none() => Ok(None),
        None => unsound("the database is missing".into()),
        Some(0) => unsound("the database is empty: it has 0 bytes".into()),
        Some(_) => Ok(Some(point)),
    }
}

/// Opens the log in `dir` for writing, without changing it: a damaged log may still be repaired by
/// hand, or restored from a copy.
fn open_checked(dir: &Path) -> Result<CheckedLog, Fault> {
    let path = file(dir);
    let fault = |error: StoreError| Fault::of(&path, error);
    let point = if let Some(point) = read_durable_point(dir)? {
        point
    } else {
        let point = DurablePoint::now(Seq(0), 0);
        // The mark is created first: a database without one is of format 1.
        Mark::create(dir, point).map_err(|error| fault(error.into()))?;
        create(&path).map_err(fault)?;
        Some(point)
    };
    let db = connect(&path, false).map_err(|error| fault(error.into()))?;
    let verified = verify(&db, &path, point, drop)?;
    db.pragma_update(None, "journal_mode", "WAL")
        .map_err(|error| fault(error.into()))?;
    let mark = match point {
        Some(_) => Mark::open(dir).map_err(|error| match error {
            MarkError::Io(error) => fault(error.into()),
            other => fault(StoreError::Unsound(other.to_string())),
        })?,
        None => {
            let point = DurablePoint::now(verified.head.seq, verified.head.live);
            Mark::create(dir, point).map_err(|error| fault(error.into()))?
        }
    };
    Ok(CheckedLog { db, verified, mark })
}

/// Creates an empty log; afterwards it exists completely or not at all.
fn create(path: &Path) -> Result<(), StoreError> {
    let new = path.with_extension("new");
    remove_if_there(&new)?;
    Store::create_file(&new)?;
    let mut db = connect(&new, false)?;
    let tx = db.transaction()?;
    create_tables(&tx, Head::default())?;
    tx.commit()?;
    drop(db);
    Ok(std::fs::rename(&new, path)?)
}

pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates the tables of an empty database, for a log that continues after `head`.
pub(super) fn create_tables(db: &Connection, head: Head) -> Result<(), StoreError> {
    db.execute_batch(&format!(
        "PRAGMA application_id = {MAGIC}; PRAGMA user_version = {FORMAT}; {SCHEMA}"
    ))?;
    db.execute(
        "INSERT INTO head VALUES (0, ?, ?, ?)",
        (sql(head.seq), head.live.cast_signed(), head.sum()),
    )?;
    Ok(())
}

fn unusable(path: &Path) -> impl Fn(StoreError) -> OpenError {
    move |error| OpenError::Unusable {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn put(seq: u64) -> Group {
        let key = Key::new(format!("key.{seq}")).unwrap();
        Group {
            puts: [(Seq(seq), (key, Bytes::from_static(b"value")))].into(),
            last: Seq(seq),
            ..Group::default()
        }
    }

    #[test]
    fn a_group_that_is_not_synced_is_not_in_the_mark_and_may_be_there_later() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let mut store = Store::open(dir, false).ok().unwrap().store;
        let mut syncer = store.syncer().unwrap();
        let first = store.write(&put(1)).unwrap();
        syncer.make_durable(first).unwrap();
        syncer.wal = WalSync::that_fails();
        let second = store.write(&put(2)).unwrap();
        syncer.make_durable(second).unwrap_err();
        assert_eq!(Mark::read(dir).unwrap(), Some(first));
        store.abandon();
        assert!(wal_file(&file(dir)).exists());
        let store = Store::open(dir, false).ok().unwrap().store;
        assert!([Seq(1), Seq(2)].contains(&store.head().seq));
        // Moves all that is in this store's mark into the database.
        std::fs::remove_file(wal_file(&file(dir))).unwrap();
        let db = image::open(&file(dir), true).unwrap();
        assert_eq!(Head::read(&db, FORMAT).unwrap(), store.head());
    }

    #[test]
    fn a_later_group_is_marked_with_those_before_it_and_stays_marked() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let mut store = Store::open(dir, false).ok().unwrap().store;
        let (one, other) = (store.syncer().unwrap(), store.syncer().unwrap());
        let first = store.write(&put(1)).unwrap();
        let second = store.write(&put(2)).unwrap();
        other.make_durable(second).unwrap();
        assert_eq!(Mark::read(dir).unwrap(), Some(second));
        one.make_durable(first).unwrap();
        assert_eq!(Mark::read(dir).unwrap(), Some(second));
    }
}
