//! Detection of a state directory that was removed or replaced.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Interval between checks.
const EACH: Duration = Duration::from_millis(500);

/// Identities of the directories that a mill has opened.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    /// The watched paths, each with its device and inode.
    known: Vec<(PathBuf, (u64, u64))>,
}

// === impl Presence ===

impl Presence {
    /// The state directory and the log in it, if they exist.
    pub(super) fn of(state: &Path) -> Self {
        let paths = [state.to_owned(), state.join("log")];
        let known = paths.into_iter().filter_map(|path| {
            let identity = identity(&path).ok()?;
            Some((path, identity))
        });
        Self {
            known: known.collect(),
        }
    }

    /// A directory that was removed or replaced; `None` if there is none. An error of the disk does
    /// not count as a loss.
    pub(super) fn lost(&self) -> Option<&Path> {
        let lost = self
            .known
            .iter()
            .find(|(path, known)| match identity(path) {
                Ok(now) => now != *known,
                Err(error) => matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ),
            });
        lost.map(|(path, _)| path.as_path())
    }

    /// Waits until a directory is lost.
    pub(super) async fn until_lost(&self) {
        while self.lost().is_none() {
            tokio::time::sleep(EACH).await;
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_or_replaced_is_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        fs::create_dir_all(state.join("log")).expect("made");
        let presence = Presence::of(&state);
        assert_eq!(presence.lost(), None);
        fs::write(state.join("log/more"), b"x").expect("written");
        assert_eq!(presence.lost(), None, "what is in it may change");
        fs::rename(state.join("log"), state.join("old")).expect("renamed");
        assert_eq!(presence.lost(), Some(&*state.join("log")));
        fs::create_dir(state.join("log")).expect("made");
        assert_eq!(presence.lost(), Some(&*state.join("log")), "another one");
        fs::remove_dir_all(&state).expect("removed");
        assert_eq!(presence.lost(), Some(&*state));
        assert_eq!(Presence::of(&state).lost(), None, "it never was there");
    }
}
