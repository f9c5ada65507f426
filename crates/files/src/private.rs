//! Directories that only this user can change.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Permission bits with which the group or others can change a directory.
const OTHERS_WRITE: u32 = 0o022;

/// Creates `path` (mode 0700) and its parents if necessary, and checks it with
/// [`check_private_directory`].
///
/// # Errors
/// It cannot be created, or is not private.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    check_private_directory(path)
}

/// Checks that `path` is a directory of this process's user or of root, and that no other user can
/// change it: the content of a state or key directory determines what this process reads and runs.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] with the reason and the remedy, or the error of reading the
/// metadata.
pub fn check_private_directory(path: &Path) -> io::Result<()> {
    let me = rustix::process::geteuid().as_raw();
    // The owner of a symbolic link chooses the directory, so the link itself is checked too.
    check(&fs::symlink_metadata(path)?, me)?;
    check(&fs::metadata(path)?, me)
}

fn check(found: &fs::Metadata, me: u32) -> io::Result<()> {
    let denied = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    let owner = found.uid();
    if owner != me && owner != 0 {
        return denied(format!(
            "it belongs to user {owner}, and this process is of user {me}: use a directory of your \
             own, or `chown` it"
        ));
    }
    if found.is_symlink() {
        return Ok(());
    }
    if !found.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            "it is no directory",
        ));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return denied(format!(
            "other users may change it (mode {:04o}): `chmod go-w` it, after a look at what is in it",
            found.mode() & 0o7777
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_directory_that_others_may_change_is_refused() {
        let parent = tempfile::tempdir().expect("a folder");
        let path = parent.path().join("a/b");
        make_private_directory(&path).expect("made");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o700);
        for (mode, fits) in [
            (0o755, true),
            (0o775, false),
            (0o757, false),
            (0o1777, false),
        ] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
            let checked = make_private_directory(&path);
            assert_eq!(checked.is_ok(), fits, "{mode:o}: {checked:?}");
            if let Err(error) = checked {
                assert!(error.to_string().contains("chmod go-w"), "{error}");
            }
        }
    }

    #[test]
    fn a_link_of_ones_own_is_followed() {
        let parent = tempfile::tempdir().expect("a folder");
        let (real, link) = (parent.path().join("real"), parent.path().join("link"));
        make_private_directory(&real).expect("made");
        symlink(&real, &link).expect("linked");
        check_private_directory(&link).expect("private");
        fs::set_permissions(&real, Permissions::from_mode(0o777)).expect("it is ours");
        check_private_directory(&link).expect_err("others may change it");
    }

    /// Needs the right to change a file's owner; without it, only checks that a directory of root
    /// is accepted.
    #[test]
    fn a_directory_of_another_user_is_refused() {
        let parent = tempfile::tempdir().expect("a folder");
        let path = parent.path().join("theirs");
        make_private_directory(&path).expect("made");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(12_345), None).expect("root may");
            let error = check_private_directory(&path).expect_err("not ours");
            assert!(error.to_string().contains("user 12345"), "{error}");
        } else {
            check_private_directory(Path::new("/usr")).expect("of root");
        }
    }
}
