//! The high-water mark: the extent of the log that has been reported durable, in a file of its own.
//!
//! SQLite does not treat a damaged write-ahead log as an error: it continues with the part before
//! the damage. A file beside the database therefore records up to which record the log was durable;
//! a log with less is not opened.
//!
//! The mark is written after each commit, and the commit is reported only after that. The mark is
//! never ahead of stable storage, and is exact after the process is killed. It is not synced with
//! each commit, which would double a commit's cost: it is synced at most [`SYNC_EVERY`] later while
//! the log has idle moments, [`UNSYNCED_MAX`] later if it has none, and when the log is closed.
//! After a loss of power it may lag by that much; damage that the same loss of power did to the
//! last moments before it is then noticed only by the write-ahead log's own checksums.
//!
//! The file has two slots, written in turn, each in a sector of its own: a torn write damages the
//! older point only.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

use super::store::{FORMAT, remove_if_there};
use crate::log::Seq;

/// Longest time that a mark stays unsynced while the log has idle moments.
pub(super) const SYNC_EVERY: Duration = Duration::from_secs(1);
/// Longest time that a mark stays unsynced without idle moments of the log.
const UNSYNCED_MAX: Duration = Duration::from_secs(5);

const MAGIC: [u8; 8] = *b"PFMLMARK";
/// Version of a slot's layout.
const VERSION: u32 = 1;
/// Bytes of a slot: magic, version, the database's format, generation, last record, number of live
/// records, time, checksum.
const SLOT_BYTES: usize = 52;
/// Bytes from one slot to the next: more than a sector of any disk.
const SLOT_STRIDE_BYTES: usize = 4096;
const SLOTS: usize = 2;

/// State of the log that was durable at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DurablePoint {
    /// The last record's position.
    pub(super) seq: Seq,
    /// Number of live records.
    pub(super) live: u64,
    /// Milliseconds since 1970, by this machine's clock.
    pub(super) at_ms: u64,
    /// Format of the database.
    pub(super) format: i32,
}

/// The file, open for the process that writes the log.
#[derive(Debug)]
pub(super) struct Mark {
    file: File,
    generation: u64,
    durable: Seq,
    /// Time since which the file has held a point that may not be on stable storage.
    unsynced_since: Option<Instant>,
}

/// Reason why a mark cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum MarkError {
    #[error("neither copy in it is whole")]
    Damaged,
    #[error("it has version {0}, this build knows version {VERSION}")]
    Unknown(u32),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The mark's file in the log's directory.
pub(super) fn file(dir: &Path) -> PathBuf {
    dir.join("high-water")
}

// === impl DurablePoint ===

impl DurablePoint {
    pub(super) fn now(seq: Seq, live: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let at_ms = now.unwrap_or_default().as_millis();
        Self {
            seq,
            live,
            at_ms: u64::try_from(at_ms).unwrap_or(u64::MAX),
            format: FORMAT,
        }
    }

    fn encode(self, generation: u64) -> [u8; SLOT_BYTES] {
        let mut slot = [0; SLOT_BYTES];
        slot[..8].copy_from_slice(&MAGIC);
        slot[8..12].copy_from_slice(&VERSION.to_le_bytes());
        slot[12..16].copy_from_slice(&self.format.to_le_bytes());
        for (at, number) in [
            (16, generation),
            (24, self.seq.0),
            (32, self.live),
            (40, self.at_ms),
        ] {
            slot[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let sum = crc32fast::hash(&slot[..SLOT_BYTES - 4]);
        slot[SLOT_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        slot
    }

    /// The point in a slot and its generation; `None` if the slot is not whole.
    fn decode(slot: &[u8]) -> Option<Result<(u64, Self), u32>> {
        let slot: &[u8; SLOT_BYTES] = slot.first_chunk()?;
        let short = |at: usize| slot[at..].first_chunk().map(|it| u32::from_le_bytes(*it));
        let long = |at: usize| slot[at..].first_chunk().map(|it| u64::from_le_bytes(*it));
        let sum = crc32fast::hash(&slot[..SLOT_BYTES - 4]);
        if slot[..8] != MAGIC || short(SLOT_BYTES - 4)? != sum {
            return None;
        }
        let version = short(8)?;
        if version != VERSION {
            return Some(Err(version));
        }
        let point = Self {
            format: short(12)?.cast_signed(),
            seq: Seq(long(24)?),
            live: long(32)?,
            at_ms: long(40)?,
        };
        Some(Ok((long(16)?, point)))
    }
}

impl fmt::Display for DurablePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = Self::now(self.seq, self.live).at_ms;
        let seconds = now.saturating_sub(self.at_ms) / 1000;
        let (seq, live) = (self.seq, self.live);
        write!(
            f,
            "record {seq}, with {live} live records, was durable {seconds} seconds ago"
        )
    }
}

// === impl Mark ===

impl Mark {
    /// The latest point in `dir`; `None` if there is no mark.
    pub(super) fn read(dir: &Path) -> Result<Option<DurablePoint>, MarkError> {
        Ok(Self::read_latest(dir)?.map(|(_, point)| point))
    }

    fn read_latest(dir: &Path) -> Result<Option<(u64, DurablePoint)>, MarkError> {
        let file = match options().read(true).open(file(dir)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = [0; SLOT_STRIDE_BYTES * (SLOTS - 1) + SLOT_BYTES];
        let mut read = 0;
        while read < bytes.len() {
            match file.read_at(&mut bytes[read..], read as u64)? {
                0 => break,
                more => read += more,
            }
        }
        let mut latest: Option<(u64, DurablePoint)> = None;
        for number in 0..SLOTS {
            match DurablePoint::decode(&bytes[number * SLOT_STRIDE_BYTES..]) {
                Some(Ok(found)) if latest.is_none_or(|latest| found.0 > latest.0) => {
                    latest = Some(found);
                }
                Some(Ok(_)) | None => {}
                Some(Err(version)) => return Err(MarkError::Unknown(version)),
            }
        }
        latest.map(Some).ok_or(MarkError::Damaged)
    }

    /// Creates or replaces the mark of `dir`; it is on stable storage when this returns.
    pub(super) fn create(dir: &Path, point: DurablePoint) -> io::Result<Self> {
        let (path, new) = (file(dir), dir.join("high-water.new"));
        remove_if_there(&new)?;
        let mut bytes = vec![0; SLOT_STRIDE_BYTES * SLOTS];
        for (number, slot) in bytes.chunks_mut(SLOT_STRIDE_BYTES).enumerate() {
            slot[..SLOT_BYTES].copy_from_slice(&point.encode(number as u64));
        }
        let mut file = options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        File::open(dir)?.sync_all()?;
        Ok(Self::of(file, SLOTS as u64 - 1, point.seq))
    }

    /// Opens the mark of `dir` for writing; it must exist and be whole.
    pub(super) fn open(dir: &Path) -> Result<Self, MarkError> {
        let (generation, point) = Self::read_latest(dir)?.ok_or(MarkError::Damaged)?;
        let file = options().write(true).open(file(dir))?;
        Ok(Self::of(file, generation, point.seq))
    }

    fn of(file: File, generation: u64, durable: Seq) -> Self {
        Self {
            file,
            generation,
            durable,
            unsynced_since: None,
        }
    }

    /// Records what has just become durable, unless the mark is already at a later record.
    pub(super) fn advance(&mut self, point: DurablePoint) -> io::Result<()> {
        if point.seq < self.durable {
            return Ok(());
        }
        let generation = self.generation + 1;
        let at = (generation % SLOTS as u64) * SLOT_STRIDE_BYTES as u64;
        self.file.write_all_at(&point.encode(generation), at)?;
        self.generation = generation;
        self.durable = point.seq;
        self.unsynced_since.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Time until the mark should be synced in an idle moment; `None` if it is synced.
    pub(super) fn due_in(&self) -> Option<Duration> {
        let since = self.unsynced_since?;
        Some(SYNC_EVERY.saturating_sub(since.elapsed()))
    }

    /// Whether the mark must be synced now, even if the log is busy.
    pub(super) fn is_overdue(&self) -> bool {
        self.unsynced_since
            .is_some_and(|since| since.elapsed() >= UNSYNCED_MAX)
    }

    /// Puts the last point on stable storage.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.unsynced_since.is_some() {
            self.file.sync_data()?;
            self.unsynced_since = None;
        }
        Ok(())
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}
