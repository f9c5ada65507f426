//! Atomic writes of files: a new file is written whole and then renamed over the old one.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::FileError;

/// Read permission of a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// The owner alone: for witnesses and other secrets.
    Private,
    /// Everyone that the process's `umask` allows: for keys, proofs and circuits.
    Public,
}

/// A file that is completely written and flushed to disk, beside its final path. [`commit`](Self::commit)
/// renames it to that path; dropping it before removes it.
#[derive(Debug)]
pub struct StagedFile {
    file: NamedTempFile<File>,
    path: PathBuf,
}

/// The file that was at a path before another one was renamed to it.
enum Before {
    Nothing,
    /// The old file, under another name.
    Kept(NamedTempFile<()>),
    /// A file that could not be given another name: the file system or its owner refuses links.
    Lost,
}

/// Writes a file atomically: `write` fills a new file beside `path`, which is flushed to disk and then
/// renamed over it. Processes that have the old file open or mapped keep the old content.
///
/// # Errors
///
/// [`FileError::Io`] if the file system refuses or `write` fails; the file at `path` is then unchanged.
pub fn write_whole<T>(
    path: &Path,
    visibility: Visibility,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<T>,
) -> Result<T, FileError> {
    let (staged, result) = StagedFile::write(path, visibility, write)?;
    staged.commit()?;
    Ok(result)
}

// === impl StagedFile ===

impl StagedFile {
    /// Prepares the new content of the file at `path`: `write` fills a new file in the same folder, which is
    /// flushed to disk. The file at `path` is unchanged.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`], which names `path`, if the file system refuses or `write` fails; the new file is
    /// then removed.
    pub fn write<T>(
        path: &Path,
        visibility: Visibility,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<T>,
    ) -> Result<(Self, T), FileError> {
        let failed = |source| FileError::io(path, source);
        let file = builder()
            .make_in(folder_of(path), |path| create(path, visibility))
            .map_err(failed)?;
        let mut out = BufWriter::with_capacity(1 << 20, file.as_file());
        let result = write(&mut out).map_err(failed)?;
        out.flush().map_err(failed)?;
        drop(out);
        file.as_file().sync_all().map_err(failed)?;
        let path = path.to_owned();
        Ok((Self { file, path }, result))
    }

    /// Renames the new file to its path.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] if the file system refuses; the file at the path is then unchanged.
    pub fn commit(self) -> Result<(), FileError> {
        Self::commit_all(vec![self])
    }

    /// Renames each to its path, in their order. If one cannot be, those before it are taken back, as
    /// far as the file system allows; a process that is killed meanwhile may leave some replaced and
    /// some not.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] of the file that could not be renamed.
    pub fn commit_all(files: Vec<Self>) -> Result<(), FileError> {
        let last = files.len().saturating_sub(1);
        let mut replaced: Vec<(PathBuf, Before)> = Vec::new();
        for (index, Self { file, path }) in files.into_iter().enumerate() {
            // After the last one nothing can fail that would have to be taken back.
            let before = if index < last {
                Before::of(&path)
            } else {
                Before::Lost
            };
            if let Err(error) = file.persist(&path) {
                for (path, before) in replaced.into_iter().rev() {
                    before.restore(&path);
                }
                return Err(FileError::io(&path, error.error));
            }
            replaced.push((path, before));
        }
        for (path, _) in &replaced {
            File::open(folder_of(path))
                .and_then(|folder| folder.sync_all())
                .map_err(|source| FileError::io(path, source))?;
        }
        Ok(())
    }
}

// === impl Before ===

impl Before {
    fn of(path: &Path) -> Self {
        match builder().make_in(folder_of(path), |other| std::fs::hard_link(path, other)) {
            Ok(link) => Self::Kept(link),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Nothing,
            Err(_) => Self::Lost,
        }
    }

    /// Puts the old file back. Its own errors are ignored: the caller reports the one that made it necessary.
    fn restore(self, path: &Path) {
        match self {
            Self::Nothing => drop(std::fs::remove_file(path)),
            Self::Kept(link) => drop(link.persist(path)),
            Self::Lost => {}
        }
    }
}

/// The folder that a file is in; `.` for a bare name.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".proofmill-").suffix(".tmp");
    builder
}

/// Makes a file that is not there. Unlike those of `tempfile`, its errors do not name it: the path
/// that a user knows is another.
fn create(path: &Path, visibility: Visibility) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(match visibility {
            Visibility::Private => 0o600,
            Visibility::Public => 0o666,
        });
    }
    #[cfg(not(unix))]
    let _ = visibility;
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn staged(path: &Path, content: &[u8]) -> StagedFile {
        let write = |out: &mut BufWriter<&File>| out.write_all(content);
        StagedFile::write(path, Visibility::Public, write)
            .unwrap()
            .0
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let name = |entry: io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = entries
            .map(|entry| name(entry).into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_replaced_together_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("old"), "old").unwrap();
        std::fs::create_dir_all(path("taken/by a directory")).unwrap();
        let stage = |last: &str| {
            let names = [("old", "1"), ("new", "2"), (last, "3")];
            names.map(|(name, content)| staged(&path(name), content.as_bytes()))
        };
        let error = StagedFile::commit_all(stage("taken").into()).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("{}: ", path("taken").display()))
        );
        assert_eq!(names(directory.path()), ["old", "taken"]);
        assert_eq!(std::fs::read(path("old")).unwrap(), b"old");

        drop(stage("last"));
        assert_eq!(names(directory.path()), ["old", "taken"]);

        StagedFile::commit_all(stage("last").into()).unwrap();
        assert_eq!(names(directory.path()), ["last", "new", "old", "taken"]);
        for (name, content) in [("old", "1"), ("new", "2"), ("last", "3")] {
            assert_eq!(std::fs::read_to_string(path(name)).unwrap(), content);
        }
    }

    #[test]
    fn an_error_names_the_file_that_was_asked_for_and_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("absent/file");
        let error = write_whole(&path, Visibility::Public, |_| Ok(())).unwrap_err();
        let expected = format!("{}: No such file or directory (os error 2)", path.display());
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_bare_name_is_in_the_current_folder() {
        assert_eq!(folder_of(Path::new("file")), Path::new("."));
        assert_eq!(folder_of(Path::new("a/file")), Path::new("a"));
        assert_eq!(folder_of(Path::new("/file")), Path::new("/"));
        assert_eq!(folder_of(Path::new("/")), Path::new("."));
    }
}
