//! Files that commands write: that none is written over what is needed, and writing them whole.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use proofmill_r1cs::iden3::{
    FileError, StagedFile, Visibility, check_regular, folder_of, open_regular_or_inherited,
    write_whole,
};

use crate::content::Content;
use crate::failure::Failure;

/// The files that a command reads and those that it will write, each with what it is for.
#[derive(Debug, Default)]
pub(crate) struct Plan<'a> {
    reads: Vec<(&'static str, &'a Path)>,
    writes: Vec<(&'static str, &'a Path)>,
}

/// What a command may write over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replace {
    /// Any file but those that it reads: it was told to.
    Anything,
    /// Any but keys, circuits and witnesses.
    NothingPrecious,
    /// No file.
    Nothing,
}

/// What tells a file from others, by whatever path it is named.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    /// Device and inode.
    There(u64, u64),
    /// Of the folder, and the name, of a file that is not there.
    Absent(u64, u64, OsString),
}

// === impl Plan ===

impl<'a> Plan<'a> {
    /// Of a command that reads this file; `what` is what it is for: `the witness`.
    pub(crate) fn reads(mut self, what: &'static str, path: &'a Path) -> Self {
        self.reads.push((what, path));
        self
    }

    /// And writes this one.
    pub(crate) fn writes(mut self, what: &'static str, path: &'a Path) -> Self {
        self.writes.push((what, path));
        self
    }

    /// That each file can be written without loss: better known before the work than after. Links, hard
    /// and symbolic, are the file that they lead to.
    pub(crate) fn check(&self, replace: Replace) -> Result<(), Failure> {
        for (index, (what, path)) in self.writes.iter().enumerate() {
            let shown = path.display();
            let Some(own) = Identity::of(path) else {
                let folder = folder_of(path).display();
                let message = format!("{shown}: there is no folder {folder}");
                return Err(Failure::new(message));
            };
            let is_same = |other: &Path| Identity::of(other).as_ref() == Some(&own);
            let mut before = self.writes[..index].iter();
            if let Some((other, _)) = before.find(|(_, other)| is_same(other)) {
                let message = format!("{shown}: {other} and {what} would be the same file");
                return Err(Failure::usage(message).help("name a file for each"));
            }
            let read = self.reads.iter().find(|(_, other)| is_same(other));
            if let Some((other, named)) = read {
                let named = if named == path {
                    String::new()
                } else {
                    format!(", which is {}", named.display())
                };
                let message = format!("{shown}: {what} would overwrite {other}{named}");
                return Err(Failure::usage(message).help(format!("name another file for {what}")));
            }
            check_replaced(path, replace)?;
        }
        Ok(())
    }
}

/// That what is at a path, if anything, may be replaced.
fn check_replaced(path: &Path, replace: Replace) -> Result<(), Failure> {
    let shown = path.display();
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::new(format!("cannot write {shown}: {error}"))),
    };
    check_regular(&found)
        .map_err(|error| Failure::new(format!("cannot write {shown}: {error}")))?;
    match replace {
        Replace::Anything => Ok(()),
        Replace::Nothing => Err(Failure::usage(format!("{shown} is there already"))
            .help("name another file with -o, or overwrite it with --force")),
        // What cannot be looked at is not known to be any of them.
        Replace::NothingPrecious => match Content::of_file(path).ok().flatten() {
            Some(content) if content.is_precious() => {
                let message = format!("{shown} would be overwritten, and is {}", content.named());
                Err(Failure::usage(message).help("name another file, or remove that one first"))
            }
            _ => Ok(()),
        },
    }
}

// === impl Identity ===

impl Identity {
    /// Nothing if neither the file nor its folder is there.
    fn of(path: &Path) -> Option<Self> {
        let number = |found: &Metadata| (found.dev(), found.ino());
        if let Ok(found) = std::fs::metadata(path) {
            let (device, inode) = number(&found);
            return Some(Self::There(device, inode));
        }
        let folder = std::fs::metadata(folder_of(path)).ok();
        let (device, inode) = number(&folder.filter(Metadata::is_dir)?);
        Some(Self::Absent(device, inode, path.file_name()?.to_owned()))
    }
}

/// The content of a file, of which there are `bytes_max` at most; why not, without its path.
pub(crate) fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    open_regular_or_inherited(path)
        .and_then(|file| file.take(bytes_max as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() > bytes_max {
        return Err(format!(
            "more than {bytes_max} bytes, the most that is read"
        ));
    }
    Ok(bytes)
}

/// Writes a file whole or not at all: `write` fills a new one, which is renamed to `path`.
pub(crate) fn write_with<T>(
    path: &Path,
    visibility: Visibility,
    write: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<T>,
) -> Result<T, Failure> {
    write_whole(path, visibility, write).map_err(unwritten)
}

/// Writes bytes whole or not at all.
pub(crate) fn write(path: &Path, visibility: Visibility, bytes: &[u8]) -> Result<(), Failure> {
    write_with(path, visibility, |file| file.write_all(bytes))
}

/// Writes contents that belong together, for anyone to read: every one is on the disk before the first takes
/// its place, and if one cannot be written none does.
pub(crate) fn write_together<T: AsRef<[u8]>>(contents: &[(&Path, T)]) -> Result<(), Failure> {
    let staged = contents.iter().map(|(path, content)| {
        let write = |file: &mut BufWriter<&File>| file.write_all(content.as_ref());
        StagedFile::write(path, Visibility::Public, write).map(|(staged, ())| staged)
    });
    staged
        .collect::<Result<Vec<_>, FileError>>()
        .and_then(StagedFile::commit_all)
        .map_err(unwritten)
}

fn unwritten(error: FileError) -> Failure {
    match error {
        FileError::Io { path, source } => {
            let failure = Failure::new(format!("cannot write {}: {source}", path.display()));
            match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    failure.help("make room and try again: nothing was replaced")
                }
                _ => failure,
            }
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_written_and_replaced_in_the_current_folder() {
        // Tests run in the folder of their package.
        let folder = tempfile::tempdir().expect("a folder");
        let name = format!(".written-{}", std::process::id());
        let path = Path::new(&name);
        assert_eq!(path.parent(), Some(Path::new("")));
        let _removed = Removed(path);
        let plan = Plan::default().writes("the text", path);
        for text in ["first", "second"] {
            plan.check(Replace::NothingPrecious)
                .expect("it may be written");
            write(path, Visibility::Public, text.as_bytes()).expect("written");
            assert_eq!(std::fs::read_to_string(path).expect("a text"), text);
        }
        write_together(&[(path, "third")]).expect("written");
        assert_eq!(std::fs::read_to_string(path).expect("a text"), "third");
        let failure = plan.check(Replace::Nothing).expect_err("it is there");
        assert_eq!(failure.code, 2);
        let absent = folder.path().join("no/such");
        let plan = Plan::default().writes("the text", &absent);
        plan.check(Replace::Anything).expect_err("no folder");
    }

    struct Removed<'a>(&'a Path);

    impl Drop for Removed<'_> {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(self.0);
        }
    }

    #[test]
    fn files_are_the_same_by_every_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("key"), "zkey").expect("written");
        std::fs::hard_link(path("key"), path("hard")).expect("linked");
        std::os::unix::fs::symlink("key", path("soft")).expect("linked");
        std::fs::create_dir(path("inner")).expect("made");
        let key = path("key");
        for name in ["key", "hard", "soft", "inner/../key"] {
            let output = path(name);
            let plan = Plan::default()
                .reads("the key", &key)
                .writes("the proof", &output);
            let failure = plan.check(Replace::Anything).expect_err(name);
            assert_eq!(failure.code, 2, "{name}");
        }
        // Neither is there.
        let (one, other) = (path("new"), path("inner/../new"));
        let plan = Plan::default().writes("a", &one).writes("b", &other);
        plan.check(Replace::Anything).expect_err("one file");
        let third = path("inner/new");
        let plan = Plan::default().writes("a", &one).writes("b", &third);
        plan.check(Replace::Nothing).expect("two files");
        // Another key than the one that is read.
        let plan = Plan::default().writes("the proof", &key);
        plan.check(Replace::NothingPrecious).expect_err("a key");
        plan.check(Replace::Anything).expect("it was asked for");
    }
}
