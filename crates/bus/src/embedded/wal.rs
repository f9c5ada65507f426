//! The file of the write-ahead log, as the writer threads use it beside SQLite: they sync commits
//! in it, and enlarge it before commits need the space.
//!
//! SQLite syncs with `fsync` and lets the file grow with every commit. Both make the file system
//! write records of its own each time, and commit its journal if it has one: for the file's new
//! length, or only for its new modification time. `fdatasync` of a file that is long enough already
//! writes the commit's pages alone.
//!
//! Zeros after the last frame are not a frame: SQLite and [`image`](super::image) stop before them,
//! as they stop before frames of an earlier round.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use super::image::wal_file;

/// Bytes of a page and of its frame's header.
const FRAME_BYTES: u64 = 4096 + 24;
/// Number of frames by which the file is enlarged in one step.
const STEP_FRAMES: u64 = 128;

/// The file, opened for syncing.
#[derive(Debug)]
pub(super) struct WalSync(File);

/// The file, opened for enlarging it.
#[derive(Debug)]
pub(super) struct Wal {
    file: File,
    /// Length up to which the file has space; stale if SQLite has enlarged the file since.
    length: u64,
    /// Length beyond which the file is not enlarged.
    length_max: u64,
}

// === impl WalSync ===

impl WalSync {
    /// Opens the write-ahead log of `database`, which SQLite has open. The system reports each
    /// failure to write the file once per handle, so every thread that syncs it needs a handle of
    /// its own.
    pub(super) fn open(database: &Path) -> io::Result<Self> {
        open(database).map(Self)
    }

    /// Puts on stable storage what SQLite has written to the file; other threads may sync it at the
    /// same time.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

// === impl Wal ===

impl Wal {
    /// Opens the write-ahead log of `database`, which SQLite has open. It will not be enlarged
    /// beyond about `frames_max` frames.
    pub(super) fn open(database: &Path, frames_max: u32) -> io::Result<Self> {
        Ok(Self {
            file: open(database)?,
            length: 0,
            length_max: (u64::from(frames_max) + STEP_FRAMES) * FRAME_BYTES,
        })
    }

    /// Whether the space after the first `frames` frames is running out.
    pub(super) fn wants_room(&self, frames: u32) -> bool {
        let wanted = (u64::from(frames) + STEP_FRAMES / 2) * FRAME_BYTES;
        self.length < wanted.min(self.length_max)
    }

    /// Enlarges the file if the space after the first `frames` frames is running out. On a full
    /// disk it does nothing: SQLite reports that itself.
    pub(super) fn make_room(&mut self, frames: u32) -> io::Result<()> {
        if !self.wants_room(frames) {
            return Ok(());
        }
        self.length = self.length.max(self.file.metadata()?.len());
        if !self.wants_room(frames) {
            return Ok(());
        }
        let zeros = vec![0; usize::try_from(STEP_FRAMES * FRAME_BYTES).unwrap_or(0)];
        if let Err(error) = self.file.write_all_at(&zeros, self.length) {
            tracing::debug!(%error, "there is no room to be made in the write-ahead log");
            self.length = self.length_max;
            return Ok(());
        }
        self.file.sync_all()?;
        self.length += STEP_FRAMES * FRAME_BYTES;
        Ok(())
    }
}

fn open(database: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options.write(true).open(wal_file(database))
}

#[cfg(test)]
impl WalSync {
    /// A handle whose every sync fails: it is a pipe, which cannot be synced.
    pub(super) fn that_fails() -> Self {
        let (_, pipe) = io::pipe().unwrap();
        Self(File::from(std::os::fd::OwnedFd::from(pipe)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wal(dir: &Path, frames_max: u32) -> Wal {
        let database = dir.join("log.sqlite");
        File::create(wal_file(&database)).unwrap();
        Wal::open(&database, frames_max).unwrap()
    }

    fn length(wal: &Wal) -> u64 {
        wal.file.metadata().unwrap().len()
    }

    #[test]
    fn space_is_added_before_it_is_used_up_and_up_to_the_maximum() {
        let dir = tempfile::tempdir().unwrap();
        let mut wal = wal(dir.path(), 1000);
        assert!(wal.wants_room(0));
        wal.make_room(0).unwrap();
        assert_eq!(length(&wal), STEP_FRAMES * FRAME_BYTES);
        let mut made = 0;
        for frames in 0..5000_u32 {
            let before = length(&wal);
            wal.make_room(frames).unwrap();
            assert!(!wal.wants_room(frames), "at {frames} frames");
            made += u32::from(length(&wal) > before);
            if frames <= 1000 {
                assert!(length(&wal) >= (u64::from(frames) + 32) * FRAME_BYTES);
            }
        }
        assert_eq!(made, 8);
        assert!(length(&wal) < (1000 + 3 * STEP_FRAMES) * FRAME_BYTES);
    }

    #[test]
    fn existing_content_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let mut wal = wal(dir.path(), 1000);
        let frames = vec![7; usize::try_from(3 * STEP_FRAMES * FRAME_BYTES).unwrap()];
        wal.file.write_all_at(&frames, 0).unwrap();
        wal.make_room(0).unwrap();
        assert_eq!(length(&wal), 3 * STEP_FRAMES * FRAME_BYTES);
        wal.make_room(3 * 128).unwrap();
        assert_eq!(length(&wal), 4 * STEP_FRAMES * FRAME_BYTES);
        let written = std::fs::read(wal_file(&dir.path().join("log.sqlite"))).unwrap();
        assert!(written[..frames.len()] == frames);
        assert!(written[frames.len()..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_disk_without_room_is_no_failure() {
        let dir = tempfile::tempdir().unwrap();
        let mut wal = wal(dir.path(), 1000);
        // A file that is open for reading only refuses writes, as a full disk does.
        wal.file = File::open(wal_file(&dir.path().join("log.sqlite"))).unwrap();
        wal.make_room(0).unwrap();
        assert!(!wal.wants_room(0));
        assert_eq!(length(&wal), 0);
    }
}
