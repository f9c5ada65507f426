//! A run's private directory, and the note beside it by which a later process finds leftover
//! processes.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rustix::process::Pid;

use super::supervised::Supervised;

/// Environment variable with the path of a run's scratch directory. Every descendant inherits it,
/// so on Linux it also marks those that left the process group.
pub const SCRATCH_VARIABLE: &str = "PROOFMILL_SCRATCH";

/// Length of a note in bytes: one line, padded with spaces.
const NOTE_BYTES: usize = 256;

/// Prefix of the directories of runs; other files in a scratch root are never touched.
pub(super) const PREFIX: &str = "run-";

const INPUT: &str = "input.json";
const OUTPUT: &str = "output.json";

/// Extension of the note. It is beside the directory, where a strict program cannot write, because
/// the process that it names is killed.
const NOTE: &str = "group";

/// Payloads up to this size are written and read on the calling thread: through the page cache that
/// takes less time than handing them to another thread.
const IN_PLACE: u64 = 256 << 10;

/// A scratch directory; removed when dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    /// Set while a program may run in it.
    supervised: Option<Supervised>,
}

/// The process group of a run, as its note records it. One line of text: a name, a version, the
/// leader's process id, its start time in clock ticks since boot, and the boot's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Note {
    /// The leader's process id, which is also the group's.
    pub(super) leader: Pid,
    /// Start time, which distinguishes the leader from another process with a reused id.
    pub(super) started: u64,
}

/// The reason why there is no output.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoOutput {
    #[error("left no output file at the path given with its output flag")]
    Missing,
    #[error("left something at its output path that is not a regular file")]
    NotAFile,
    #[error("left an output of {size} bytes, over the limit of {limit}")]
    TooLarge { size: u64, limit: u64 },
    #[error("left an output that cannot be read: {0}")]
    Unreadable(io::Error),
}

// === impl Scratch ===

impl Scratch {
    /// Creates a directory in `root`, which one process owns at a time.
    pub(super) fn create(root: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let own = std::process::id();
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = root.join(format!("{PREFIX}{own}-{number}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let scratch = Self::adopt(path);
                    scratch.reserve_note()?;
                    return Ok(scratch);
                }
                // Left by an earlier process with the same id; the next number is tried.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes over a directory that an earlier process left.
    pub(super) fn adopt(path: PathBuf) -> Self {
        Self {
            path,
            supervised: None,
        }
    }

    /// Registers the program about to run in it, for `task`, to be ended if this process is killed.
    pub(super) fn supervise(&mut self, task: &str) {
        self.supervised = Some(Supervised::begin(&self.path, task));
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn input(&self) -> PathBuf {
        self.path.join(INPUT)
    }

    pub(super) fn output(&self) -> PathBuf {
        self.path.join(OUTPUT)
    }

    fn note(&self) -> PathBuf {
        self.path.with_extension(NOTE)
    }

    /// Writes the input file. Not synced: a scratch directory is not used after a crash.
    pub(super) async fn write_input(&self, input: &[u8]) -> io::Result<()> {
        if input.len() as u64 <= IN_PLACE {
            fs::write(self.input(), input)
        } else {
            tokio::fs::write(self.input(), input).await
        }
    }

    /// Reads the output file, which no process may be writing any more.
    pub(super) async fn read_output(&self, limit: u64) -> Result<Bytes, NoOutput> {
        let path = self.output();
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(NoOutput::Missing);
            }
            Err(error) => return Err(NoOutput::Unreadable(error)),
        };
        if !metadata.is_file() {
            return Err(NoOutput::NotAFile);
        }
        let size = metadata.len();
        if size > limit {
            return Err(NoOutput::TooLarge { size, limit });
        }
        let read = move || {
            let mut output = Vec::new();
            // One byte more than the file contains, so that its end is found without growing the
            // buffer.
            output.try_reserve_exact(
                usize::try_from(size)
                    .unwrap_or(usize::MAX)
                    .saturating_add(1),
            )?;
            File::open(path)?
                .take(limit.saturating_add(1))
                .read_to_end(&mut output)?;
            Ok(output)
        };
        let output = if size <= IN_PLACE {
            read()
        } else {
            tokio::task::spawn_blocking(read)
                .await
                .unwrap_or_else(|error| Err(error.into()))
        };
        match output {
            Ok(output) if output.len() as u64 > limit => Err(NoOutput::TooLarge {
                size: output.len() as u64,
                limit,
            }),
            Ok(output) => Ok(output.into()),
            Err(error) => Err(NoOutput::Unreadable(error)),
        }
    }

    /// Allocates the note's disk space before the program can use it up.
    fn reserve_note(&self) -> io::Result<()> {
        File::create_new(self.note())?.write_all(&[b' '; NOTE_BYTES])
    }

    /// Writes the note by which [`sweep`](super::sweep) finds the group if this process dies first.
    pub(super) fn write_note(&self, leader: Pid) -> io::Result<()> {
        // A leader that is gone already needs no note, and without `/proc` it could not be
        // distinguished from another process later.
        let Some(started) = super::program::start_time(leader) else {
            return Ok(());
        };
        let line = format!("proofmill-group 1 {leader} {started} {}\n", boot_id());
        // Overwrites the reserved space: the disk may be full by now.
        let mut note = File::options().write(true).open(self.note())?;
        note.write_all(line.as_bytes())
    }

    /// Removes the directory; on a blocking thread if that may take long.
    pub(super) async fn close(self) {
        if !self.remove_expected() {
            let _ = tokio::task::spawn_blocking(move || self.remove()).await;
        }
    }

    /// Removes the directory and its content.
    pub(super) fn remove(self) {
        drop(self);
    }

    /// Removes the files that every run has. Returns whether the directory is gone.
    fn remove_expected(&self) -> bool {
        // The note is removed first, so that none is left without its directory, where no sweep
        // would look for it.
        let _ = fs::remove_file(self.note());
        for name in [INPUT, OUTPUT] {
            let _ = fs::remove_file(self.path.join(name));
        }
        !matches!(fs::remove_dir(&self.path), Err(error) if error.kind() != io::ErrorKind::NotFound)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Needs no descriptor, of which none may be available.
        if self.remove_expected() {
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            // The next sweep tries again.
            tracing::warn!(path = %self.path.display(), %error, "cannot remove scratch directory");
        }
    }
}

// === impl Note ===

impl Note {
    /// The note of the run in `scratch`, if it was written since this machine booted. A note
    /// written by another user is ignored.
    pub(super) fn read(scratch: &Path) -> Option<Self> {
        let file = File::open(scratch.with_extension(NOTE)).ok()?;
        if file.metadata().ok()?.uid() != rustix::process::geteuid().as_raw() {
            return None;
        }
        let mut line = String::new();
        file.take(NOTE_BYTES as u64)
            .read_to_string(&mut line)
            .ok()?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["proofmill-group", "1", leader, started, boot] = words[..] else {
            return None;
        };
        // Numbers up to 1 mean all processes or process 1, never a group of a run.
        let leader = leader.parse::<i32>().ok().filter(|&pid| pid > 1)?;
        let leader = Pid::from_raw(leader)?;
        (boot == boot_id()).then_some(Self {
            leader,
            started: started.parse().ok()?,
        })
    }
}

/// Identifies the current boot of the machine; `-` where the system has no such id.
fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(
        || match fs::read_to_string("/proc/sys/kernel/random/boot_id") {
            Ok(id) if !id.trim().is_empty() => id.trim().to_owned(),
            _ => "-".to_owned(),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_is_read_back_and_nonsense_is_not() {
        let root = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(root.path()).unwrap();
        assert_eq!(Note::read(scratch.path()), None);
        let own = rustix::process::getpid();
        scratch.write_note(own).unwrap();
        let note = Note::read(scratch.path()).unwrap();
        assert_eq!(note.leader, own);
        assert_eq!(Some(note.started), crate::program::start_time(own));

        let boot = boot_id();
        for line in [
            String::new(),
            format!("proofmill-group 2 77 5 {boot}"),
            format!("proofmill-group 1 1 5 {boot}"),
            format!("proofmill-group 1 -77 5 {boot}"),
            format!("proofmill-group 1 0 5 {boot}"),
            format!("proofmill-group 1 99999999999 5 {boot}"),
            format!("proofmill-group 1 77 {boot}"),
            "proofmill-group 1 77 5 another-boot".to_owned(),
        ] {
            fs::write(scratch.note(), &line).unwrap();
            assert_eq!(Note::read(scratch.path()), None, "{line}");
        }
    }

    #[test]
    fn a_directory_is_private_and_goes_with_all_it_holds() {
        let root = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(root.path()).unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        fs::create_dir(path.join("deep")).unwrap();
        fs::write(path.join("deep/file"), b"x").unwrap();
        assert!(!scratch.remove_expected());
        scratch.remove();
        assert!(!path.exists());
    }
}
