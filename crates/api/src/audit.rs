//! The audit log of a mill: which change was asked for, by whom, when, and with which result.
//!
//! It is a file of JSON lines, private to the mill's user. An action has two lines of the same id: one that is durable
//! before the action begins, without a result, and one with the result. The file is bounded: when it is full it is renamed,
//! and the oldest one is removed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use proofmill_orchestrator::text::beginning_of;
use proofmill_orchestrator::wall_ms;
use serde::{Deserialize, Serialize};

/// The file's name in a state directory.
const FILE_NAME: &str = "audit.jsonl";

/// Most bytes of a file; a full one is renamed.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Number of full files that are kept beside the present one.
const OLD_FILES_MAX: u32 = 4;

/// Most bytes of a text in an entry; longer ones are cut.
const TEXT_BYTES_MAX: usize = 1024;

/// Most bytes at the end of the file that are read to show entries.
const READ_BYTES_MAX: u64 = 512 << 10;

/// A client or user who asks for a change, and the way of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Name of the client, or of the user.
    pub name: Arc<str>,
    /// The way: `console`, `command` or `bus`.
    pub via: &'static str,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Id of the action; its two lines share it.
    pub id: String,
    /// Time of the line, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Name of the client, or of the user.
    pub who: String,
    /// The way: `console`, `command` or `bus`.
    pub via: String,
    /// The action.
    pub action: String,
    /// Object of the action.
    pub target: String,
    /// The result, in words; none before the action has ended.
    pub result: Option<String>,
    /// Whether the action was carried out; none before it has ended.
    pub done: Option<bool>,
}

/// The audit log of one mill; cheap to clone.
#[derive(Clone, Debug)]
pub struct AuditLog(Arc<Mutex<AuditFile>>);

#[derive(Debug)]
struct AuditFile {
    path: PathBuf,
    bytes_max: u64,
    /// Number of entries that this process has begun.
    begun: u64,
}

// === impl Actor ===

impl Actor {
    /// The user of the mill, on the command line.
    pub fn on_command_line() -> Self {
        Self {
            name: "the mill's user".into(),
            via: "command",
        }
    }

    /// An operator of a bus. The server admits operators only, but it does not tell who asks: the name is the operator's own
    /// statement.
    pub(crate) fn on_bus(stated: &str) -> Self {
        let stated: String = stated.chars().filter(|it| !it.is_control()).collect();
        Self {
            name: match stated.trim() {
                "" => "an operator of the bus".into(),
                stated => stated.into(),
            },
            via: "bus",
        }
    }

    /// A client of the console.
    pub(crate) fn in_console(name: Arc<str>) -> Self {
        Self {
            name,
            via: "console",
        }
    }
}

// === impl AuditLog ===

impl AuditLog {
    /// The audit log in a state directory; the file is made with the first entry.
    pub fn in_directory(state: &Path) -> Self {
        Self::with_limit(state, FILE_BYTES_MAX)
    }

    fn with_limit(state: &Path, bytes_max: u64) -> Self {
        Self(Arc::new(Mutex::new(AuditFile {
            path: state.join(FILE_NAME),
            bytes_max,
            begun: 0,
        })))
    }

    /// Records, durably, that an action begins.
    ///
    /// # Errors
    /// The file cannot be written. The action must then not be carried out.
    pub(crate) async fn begin(
        &self,
        by: &Actor,
        action: &str,
        target: &str,
    ) -> io::Result<AuditEntry> {
        let entry = AuditEntry {
            id: String::new(),
            at_ms: wall_ms(),
            who: cut(&by.name),
            via: by.via.to_owned(),
            action: action.to_owned(),
            target: cut(target),
            result: None,
            done: None,
        };
        self.blocking(move |file| file.begin(entry)).await
    }

    /// Records the result of an action.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) async fn end(
        &self,
        begun: AuditEntry,
        result: Result<String, String>,
    ) -> io::Result<()> {
        let done = result.is_ok();
        let (Ok(text) | Err(text)) = result;
        let entry = AuditEntry {
            at_ms: wall_ms(),
            result: Some(cut(&text)),
            done: Some(done),
            ..begun
        };
        self.blocking(move |file| file.write(&entry)).await
    }

    /// The latest entries, newest first: one for each action, with its result if it has ended.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) async fn latest(&self, limit: usize) -> io::Result<Vec<AuditEntry>> {
        self.blocking(move |file| file.latest(limit)).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut AuditFile) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let file = self.0.clone();
        let task = tokio::task::spawn_blocking(move || {
            // No code panics while the lock is held.
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut file)
        });
        task.await.map_err(io::Error::other)?
    }
}

// === impl AuditFile ===

impl AuditFile {
    fn begin(&mut self, mut entry: AuditEntry) -> io::Result<AuditEntry> {
        self.begun += 1;
        entry.id = format!("{:x}-{}-{}", entry.at_ms, std::process::id(), self.begun);
        self.write(&entry)?;
        Ok(entry)
    }

    fn write(&mut self, entry: &AuditEntry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry).map_err(io::Error::other)?;
        line.push(b'\n');
        let mut file = self.open()?;
        let length = file.metadata()?.len();
        let mut is_new = length == 0;
        if length > 0 && length + line.len() as u64 > self.bytes_max {
            self.rename_full()?;
            file = self.open()?;
            is_new = true;
        } else if length > 0 && !ends_with_newline(&mut file)? {
            // A crash has cut the last line off.
            line.insert(0, b'\n');
        }
        file.write_all(&line)?;
        file.sync_data()?;
        // The file itself must not be lost with its first line.
        match self.path.parent() {
            Some(folder) if is_new => File::open(folder)?.sync_all(),
            _ => Ok(()),
        }
    }

    /// The file to append to. A link in its place is not followed.
    fn open(&self) -> io::Result<File> {
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits();
        OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(no_follow.cast_signed())
            .open(&self.path)
    }

    fn rename_full(&self) -> io::Result<()> {
        for number in (1..OLD_FILES_MAX).rev() {
            match std::fs::rename(self.old(number), self.old(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::rename(&self.path, self.old(1))
    }

    fn old(&self, number: u32) -> PathBuf {
        self.path.with_file_name(format!("audit.{number}.jsonl"))
    }

    fn latest(&self, limit: usize) -> io::Result<Vec<AuditEntry>> {
        let mut lines = tail(&self.path)?;
        if lines.len() < 2 * limit {
            let mut older = tail(&self.old(1))?;
            older.append(&mut lines);
            lines = older;
        }
        let mut entries: Vec<AuditEntry> = Vec::new();
        // The line with the result comes later, and is met first.
        for entry in lines.into_iter().rev() {
            if !entries.iter().any(|it| it.id == entry.id) {
                entries.push(entry);
            }
            if entries.len() == limit {
                break;
            }
        }
        Ok(entries)
    }
}

fn ends_with_newline(file: &mut File) -> io::Result<bool> {
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// The entries at the end of a file, oldest first; lines that do not parse are left out. None if there is no file.
fn tail(path: &Path) -> io::Result<Vec<AuditEntry>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(READ_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
    let lines = bytes.split(|byte| *byte == b'\n');
    Ok(lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

fn cut(text: &str) -> String {
    beginning_of(text, TEXT_BYTES_MAX).to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn actor() -> Actor {
        Actor::in_console("alice".into())
    }

    #[tokio::test]
    async fn an_action_is_recorded_before_it_begins_and_when_it_has_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = AuditLog::in_directory(folder.path());
        assert_eq!(log.latest(9).await.expect("read"), []);
        let begun = log.begin(&actor(), "retry", "prove/1/0").await;
        let begun = begun.expect("written");
        assert_eq!(
            log.latest(9).await.expect("read"),
            std::slice::from_ref(&begun)
        );
        let long = "x".repeat(5000);
        log.end(begun, Err(long)).await.expect("written");
        let other = log.begin(&actor(), "drop", "prove/2/0").await;
        log.end(other.expect("written"), Ok("dropped".into()))
            .await
            .expect("written");
        let entries = log.latest(9).await.expect("read");
        let shown = |entry: &AuditEntry| (entry.action.clone(), entry.done);
        let wanted = [
            ("drop".to_owned(), Some(true)),
            ("retry".to_owned(), Some(false)),
        ];
        assert_eq!(entries.iter().map(shown).collect::<Vec<_>>(), wanted);
        assert_eq!(
            entries[1].result.as_ref().map(String::len),
            Some(TEXT_BYTES_MAX)
        );
        let path = folder.path().join(FILE_NAME);
        let mode = path.metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[tokio::test]
    async fn the_log_is_bounded_and_survives_a_cut_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = AuditLog::with_limit(folder.path(), 1000);
        for number in 0..60 {
            log.begin(&actor(), "retry", &number.to_string())
                .await
                .expect("written");
        }
        let entries = std::fs::read_dir(folder.path()).expect("listed");
        let sizes = entries.map(|entry| entry.expect("one").metadata().expect("one").len());
        let sizes: Vec<u64> = sizes.collect();
        assert_eq!(sizes.len(), 1 + OLD_FILES_MAX as usize);
        assert!(sizes.iter().all(|size| *size <= 1000), "{sizes:?}");
        // More than the present file has: the one before is read too.
        let latest = log.latest(5).await.expect("read");
        let targets: Vec<&str> = latest.iter().map(|entry| &*entry.target).collect();
        assert_eq!(targets, ["59", "58", "57", "56", "55"]);

        let path = folder.path().join(FILE_NAME);
        let bytes = std::fs::read(&path).expect("read");
        std::fs::write(&path, &bytes[..bytes.len() - 9]).expect("cut");
        log.begin(&actor(), "drop", "60").await.expect("written");
        let latest = log.latest(2).await.expect("read");
        let targets: Vec<&str> = latest.iter().map(|entry| &*entry.target).collect();
        assert_eq!(targets, ["60", "58"]);
    }

    #[tokio::test]
    async fn a_link_in_the_files_place_is_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let elsewhere = folder.path().join("elsewhere");
        std::fs::write(&elsewhere, "").expect("written");
        std::os::unix::fs::symlink(&elsewhere, folder.path().join(FILE_NAME)).expect("linked");
        let log = AuditLog::in_directory(folder.path());
        log.begin(&actor(), "retry", "x").await.expect_err("a link");
        assert_eq!(std::fs::read(&elsewhere).expect("read"), b"");
    }
}
