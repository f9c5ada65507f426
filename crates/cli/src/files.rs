//! Output files of commands: checks that none replaces a file that is still needed, and atomic writes.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use proofmill_files::{
    FileError, StagedFile, Visibility, check_regular, folder_of, open_regular_or_inherited,
    write_whole,
};

use crate::content::FileKind;
use crate::failure::Failure;

/// The files that a command reads and those that it will write, each with a name for error messages.
#[derive(Debug, Default)]
pub(crate) struct FilePlan<'a> {
    reads: Vec<(&'static str, &'a Path)>,
    writes: Vec<(&'static str, &'a Path)>,
}

/// The existing files that a command may overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverwritePolicy {
    /// Any file except the command's own inputs: the user asked for it.
    Anything,
    /// Any file except those that are [hard to recreate](FileKind::is_hard_to_recreate).
    NothingHardToRecreate,
    /// No file.
    Nothing,
}

/// Identity of a file, independent of the path by which it is named.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    /// Device and inode of an existing file.
    Existing(u64, u64),
    /// Device and inode of the folder, and the file's name, for a file that does not exist.
    Absent(u64, u64, OsString),
}

// === impl FilePlan ===

impl<'a> FilePlan<'a> {
    /// Adds an input; `what` names it in errors, as in `the witness`.
    pub(crate) fn reads(mut self, what: &'static str, path: &'a Path) -> Self {
        self.reads.push((what, path));
        self
    }

    /// Adds an output; `what` names it in errors, as in `the proof`.
    pub(crate) fn writes(mut self, what: &'static str, path: &'a Path) -> Self {
        self.writes.push((what, path));
        self
    }

    /// Fails if an output has no folder, is the same file as an input or another output, or would replace a file that
    /// `policy` protects. Called before the work starts. Hard and symbolic links count as the file they lead to.
    pub(crate) fn check(&self, policy: OverwritePolicy) -> Result<(), Failure> {
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
            check_replaced(path, policy)?;
        }
        Ok(())
    }
}

/// Fails if a file exists at `path` that `policy` protects, or that is not a regular file.
fn check_replaced(path: &Path, policy: OverwritePolicy) -> Result<(), Failure> {
    let shown = path.display();
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::new(format!("cannot write {shown}: {error}"))),
    };
    check_regular(&found)
        .map_err(|error| Failure::new(format!("cannot write {shown}: {error}")))?;
    match policy {
        OverwritePolicy::Anything => Ok(()),
        OverwritePolicy::Nothing => Err(Failure::usage(format!("{shown} already exists"))
            .help("name another file with -o, or overwrite it with --force")),
        // A file that cannot be read is not known to be hard to recreate.
        OverwritePolicy::NothingHardToRecreate => match FileKind::of_file(path).ok().flatten() {
            Some(kind) if kind.is_hard_to_recreate() => {
                let message = format!(
                    "{shown} would be overwritten, and is {}",
                    kind.name_with_article()
                );
                Err(Failure::usage(message).help("name another file, or remove that one first"))
            }
            _ => Ok(()),
        },
    }
}

// === impl Identity ===

impl Identity {
    /// `None` if neither the file nor its folder exists.
    fn of(path: &Path) -> Option<Self> {
        let number = |found: &Metadata| (found.dev(), found.ino());
        if let Ok(found) = std::fs::metadata(path) {
            let (device, inode) = number(&found);
            return Some(Self::Existing(device, inode));
        }
        let folder = std::fs::metadata(folder_of(path)).ok();
        let (device, inode) = number(&folder.filter(Metadata::is_dir)?);
        Some(Self::Absent(device, inode, path.file_name()?.to_owned()))
    }
}

/// Reads a file of at most `bytes_max` bytes. The error does not name the path: callers add it.
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

/// Writes a file atomically: `write` fills a new file, which is then renamed to `path`.
pub(crate) fn write_with<T>(
    path: &Path,
    visibility: Visibility,
    write: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<T>,
) -> Result<T, Failure> {
    write_whole(path, visibility, write).map_err(unwritten)
}

/// Writes bytes atomically.
pub(crate) fn write(path: &Path, visibility: Visibility, bytes: &[u8]) -> Result<(), Failure> {
    write_with(path, visibility, |file| file.write_all(bytes))
}

/// Writes several world-readable files together: all are on the disk before the first is renamed into place, and if one
/// cannot be written none is renamed.
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
        let plan = FilePlan::default().writes("the text", path);
        for text in ["first", "second"] {
            plan.check(OverwritePolicy::NothingHardToRecreate)
                .expect("it may be written");
            write(path, Visibility::Public, text.as_bytes()).expect("written");
            assert_eq!(std::fs::read_to_string(path).expect("a text"), text);
        }
        write_together(&[(path, "third")]).expect("written");
        assert_eq!(std::fs::read_to_string(path).expect("a text"), "third");
        let failure = plan
            .check(OverwritePolicy::Nothing)
            .expect_err("it is there");
        assert_eq!(failure.code, 2);
        let absent = folder.path().join("no/such");
        let plan = FilePlan::default().writes("the text", &absent);
        plan.check(OverwritePolicy::Anything)
            .expect_err("no folder");
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
            let plan = FilePlan::default()
                .reads("the key", &key)
                .writes("the proof", &output);
            let failure = plan.check(OverwritePolicy::Anything).expect_err(name);
            assert_eq!(failure.code, 2, "{name}");
        }
        // Neither file exists.
        let (one, other) = (path("new"), path("inner/../new"));
        let plan = FilePlan::default().writes("a", &one).writes("b", &other);
        plan.check(OverwritePolicy::Anything).expect_err("one file");
        let third = path("inner/new");
        let plan = FilePlan::default().writes("a", &one).writes("b", &third);
        plan.check(OverwritePolicy::Nothing).expect("two files");
        // A key that is not among the inputs.
        let plan = FilePlan::default().writes("the proof", &key);
        plan.check(OverwritePolicy::NothingHardToRecreate)
            .expect_err("a key");
        plan.check(OverwritePolicy::Anything)
            .expect("it was asked for");
    }
}
