//! Reading of the tables, and checks that they are as they were written and reported durable.

use std::collections::HashMap;
use std::path::Path;

use bytes::Bytes;
use rusqlite::{Connection, ErrorCode, Row};

use super::mark::DurablePoint;
use super::options::OpenError;
use super::store::{FORMAT, MAGIC};
use crate::key::Key;
use crate::log::{Entry, Seq};

pub(super) const SELECT_ONE: &str = "SELECT seq, key, value, sum FROM records WHERE seq = ?";
pub(super) const SELECT_FROM: &str =
    "SELECT seq, key, value, sum FROM records WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?";

/// The position last assigned, and the number of live records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) seq: Seq,
    pub(super) live: u64,
}

/// The content of a database that passed all checks.
#[derive(Debug)]
pub(super) struct Verified {
    pub(super) format: i32,
    pub(super) head: Head,
    pub(super) live: HashMap<Key, Seq>,
}

/// A failure of the database.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error("record {seq} is corrupt: {reason}")]
    Corrupt { seq: Seq, reason: String },
    #[error("{0}")]
    Unsound(String),
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Reason why a log is not opened as it is.
#[derive(Debug)]
pub(super) enum Fault {
    /// The log may be intact, but was written by another program or version, or the system denies
    /// access.
    Refused(OpenError),
    /// Durable content is missing or altered.
    Damaged(StoreError),
}

// === impl Head ===

impl Head {
    /// The checksum of the head's row.
    pub(super) fn sum(self) -> i64 {
        let mut sum = crc32fast::Hasher::new();
        sum.update(&self.seq.0.to_le_bytes());
        sum.update(&self.live.to_le_bytes());
        i64::from(sum.finalize())
    }

    /// The head of a database of format 1, which has no checksum for it.
    fn read_unsummed(db: &Connection) -> rusqlite::Result<Self> {
        db.query_row("SELECT seq, live FROM head", [], |row| {
            Ok(Self {
                seq: Seq(row.get::<_, i64>(0)?.cast_unsigned()),
                live: row.get::<_, i64>(1)?.cast_unsigned(),
            })
        })
    }

    pub(super) fn read(db: &Connection, format: i32) -> Result<Self, StoreError> {
        let head = Self::read_unsummed(db)?;
        if format >= 2 {
            let sum: i64 = db.query_row("SELECT sum FROM head", [], |row| row.get(0))?;
            if sum != head.sum() {
                let why = "the record of how many records there are has a wrong checksum";
                return Err(StoreError::Unsound(why.into()));
            }
        }
        Ok(head)
    }
}

// === impl Fault ===

impl Fault {
    /// Distinguishes damage from a system that denies this process the file at present.
    pub(super) fn of(path: &Path, error: StoreError) -> Self {
        let is_of_the_system = match &error {
            StoreError::Corrupt { .. } | StoreError::Unsound(_) => false,
            StoreError::Io(_) => true,
            StoreError::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(
                    ErrorCode::DatabaseBusy
                        | ErrorCode::DatabaseLocked
                        | ErrorCode::OutOfMemory
                        | ErrorCode::SystemIoFailure
                        | ErrorCode::DiskFull
                        | ErrorCode::CannotOpen
                        | ErrorCode::PermissionDenied
                        | ErrorCode::FileLockingProtocolFailed
                        | ErrorCode::NoLargeFileSupport
                )
            ),
        };
        if is_of_the_system {
            return Self::Refused(OpenError::Unusable {
                path: path.to_owned(),
                reason: error.to_string(),
            });
        }
        Self::Damaged(error)
    }
}

/// Checks that the database is an intact log and contains what was reported durable; passes every live
/// record to `take`, in order.
pub(super) fn verify(
    db: &Connection,
    path: &Path,
    point: Option<DurablePoint>,
    mut take: impl FnMut(Entry),
) -> Result<Verified, Fault> {
    let damaged = |error: StoreError| Fault::of(path, error);
    let format = format_of(db, path, point)?;
    check_structure(db).map_err(damaged)?;
    let (head, live) = load(db, format, &mut take).map_err(damaged)?;
    let Some(point) = point else {
        return if format < 2 {
            // A log of format 1, which has no mark.
            Ok(Verified { format, head, live })
        } else {
            let why = "its high-water mark is gone";
            Err(damaged(StoreError::Unsound(why.into())))
        };
    };
    if head.seq < point.seq {
        let why = match point.seq.0 - head.seq.0 {
            1 => format!("record {} is missing", point.seq),
            _ => format!("records {} to {} are missing", head.seq.next(), point.seq),
        };
        let why = format!("it ends at record {}: {why}", head.seq);
        return Err(damaged(StoreError::Unsound(why)));
    }
    if head.seq == point.seq && head.live != point.live {
        let why = format!("it holds {} live records at record {}", head.live, head.seq);
        return Err(damaged(StoreError::Unsound(why)));
    }
    Ok(Verified { format, head, live })
}

/// The format in the header, if it is one that this build reads.
fn format_of(db: &Connection, path: &Path, point: Option<DurablePoint>) -> Result<i32, Fault> {
    let header = |name: &str| {
        db.pragma_query_value(None, name, |row| row.get::<_, i32>(0))
            .map_err(|error| Fault::of(path, error.into()))
    };
    let (magic, format) = (header("application_id")?, header("user_version")?);
    match (magic, format) {
        (MAGIC, 1..=FORMAT) => Ok(format),
        // The mark beside it shows that the database is ours, so its header is damaged.
        _ if point.is_some() => Err(Fault::Damaged(StoreError::Unsound(format!(
            "its header is not a log's (application id {magic:#010x}, format {format})"
        )))),
        (MAGIC, found) => Err(Fault::Refused(OpenError::UnknownFormat {
            path: path.to_owned(),
            found,
            known: FORMAT,
        })),
        (found, _) => Err(Fault::Refused(OpenError::NotALog {
            path: path.to_owned(),
            found,
        })),
    }
}

/// Lets SQLite check the database's pages: a page that is used twice, or not at all, would
/// otherwise be noticed too late.
fn check_structure(db: &Connection) -> Result<(), StoreError> {
    let found: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    let found = found.replace('\n', " ");
    Err(StoreError::Unsound(format!(
        "its pages are damaged: {found}"
    )))
}

/// Reads and verifies every record, and their number.
fn load(
    db: &Connection,
    format: i32,
    take: &mut impl FnMut(Entry),
) -> Result<(Head, HashMap<Key, Seq>), StoreError> {
    let head = Head::read(db, format)?;
    let mut live = HashMap::new();
    let mut select = db.prepare(SELECT_FROM)?;
    let mut rows = select.query((0, i64::MAX, -1))?;
    while let Some(row) = rows.next()? {
        let entry = decode(row)?;
        let corrupt = |reason: String| StoreError::Corrupt {
            seq: entry.seq,
            reason,
        };
        if entry.seq > head.seq {
            return Err(corrupt(format!("it is beyond the head, {}", head.seq)));
        }
        if let Some(other) = live.insert(entry.key.clone(), entry.seq) {
            let reason = format!("record {other} is live under the same key");
            return Err(corrupt(reason));
        }
        take(entry);
    }
    if live.len() as u64 != head.live {
        let reason = format!("{} live records found of {}", live.len(), head.live);
        return Err(StoreError::Corrupt {
            seq: head.seq,
            reason,
        });
    }
    Ok((head, live))
}

pub(super) fn decode(row: &Row<'_>) -> Result<Entry, StoreError> {
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

pub(super) fn sum(seq: Seq, key: &Key, value: &[u8]) -> i64 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&seq.0.to_le_bytes());
    sum.update(&(key.as_str().len() as u64).to_le_bytes());
    sum.update(key.as_str().as_bytes());
    sum.update(value);
    i64::from(sum.finalize())
}

/// The position as SQLite stores it. 2^63 records at a million per second last 290,000 years.
pub(super) fn sql(seq: Seq) -> i64 {
    seq.0.cast_signed()
}
