//! Resources for runs: a probe before runs, and the diagnosis of a full disk after them.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

use super::machine::{MachineFailure, MissingResource};
use super::scratch::Scratch;

/// Bytes free below which a file system counts as full; also the bytes that a probe writes.
const FULL_BYTES: u64 = 1 << 20;

/// Maximum bytes of a run's own files for a full disk not to be attributed to the run; a quarter of
/// the file system if that is less.
const OWN_BYTES: u64 = 16 << 20;

/// The corresponding maximum number of files and folders.
const OWN_ENTRIES: usize = 1024;

/// Bytes written to detect a quota that is exhausted while the file system has space.
const QUOTA_BYTES: usize = 64 << 10;

/// Number of descriptors that a probe opens at a time: a run has two pipes and one more while it
/// starts, its input, its process's descriptor, and a few briefly.
const DESCRIPTORS: usize = 16;

/// The machine's failure that a finished run met, if its file system is full at this moment, and
/// not because of the run's own files. A program that fills the disk must not pause the machine,
/// and is charged with the failure.
pub(super) fn full_disk_failure(scratch: &Scratch, succeeded: bool) -> Option<MachineFailure> {
    let path = scratch.path();
    let found = statvfs(path).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let total = found.f_blocks.saturating_mul(found.f_frsize);
    // File systems without a fixed number of inodes report 0 of 0.
    let no_inodes = found.f_files > 0 && found.f_favail == 0;
    let full = free < FULL_BYTES || no_inodes || (!succeeded && is_over_quota(path));
    if !full || !uses_little_space(path, OWN_BYTES.min(total / 4)) {
        return None;
    }
    let folder = path.parent().unwrap_or(path).display();
    let detail = format!(
        "the program ended without success while `{folder}` was full by other files than its own \
         ({free} bytes free)"
    );
    let missing = MissingResource::DiskSpace;
    Some(MachineFailure { missing, detail })
}

/// Whether writing a small file fails for lack of space.
fn is_over_quota(folder: &Path) -> bool {
    let path = folder.join(".room");
    let written = File::create(&path).and_then(|mut file| file.write_all(&[1; QUOTA_BYTES]));
    // Otherwise it is removed with the folder.
    let _ = fs::remove_file(&path);
    written.is_err_and(|error| MissingResource::of(&error) == Some(MissingResource::DiskSpace))
}

/// Whether the files below `folder` occupy at most `bytes` on the disk, and are few.
fn uses_little_space(folder: &Path, bytes: u64) -> bool {
    let (mut held, mut entries) = (0_u64, 0_usize);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        // Files that cannot be read are not counted.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            entries += 1;
            held = held.saturating_add(metadata.blocks().saturating_mul(512));
            if held > bytes || entries > OWN_ENTRIES {
                return false;
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    true
}

/// See [`ProcessExecutor::probe`](super::ProcessExecutor::probe).
pub(super) async fn probe(root: PathBuf) -> Result<(), MachineFailure> {
    let probed = tokio::task::spawn_blocking(move || try_resources(&root)).await;
    probed.unwrap_or_else(|error| {
        Err(MachineFailure {
            missing: MissingResource::Processes,
            detail: format!("the probe did not run: {error}"),
        })
    })
}

fn try_resources(root: &Path) -> Result<(), MachineFailure> {
    let failed = |what: &'static str| {
        let what = format!("cannot {what} in `{}`", root.display());
        move |error: io::Error| MachineFailure::of_scratch(what, &error)
    };
    let scratch = Scratch::create(root).map_err(failed("make a scratch directory"))?;
    let path = scratch.input();
    let file = File::create_new(&path);
    let mut file = file.map_err(failed("make a file"))?;
    write_noise(&mut file).map_err(failed("write 1 MiB"))?;
    let mut open = Vec::with_capacity(DESCRIPTORS);
    for _ in 0..DESCRIPTORS {
        open.push(File::open(&path).map_err(failed("open files"))?);
    }
    // A process and a thread count against the same limits.
    let started = std::thread::Builder::new().spawn(|| {});
    let thread = started.map_err(failed("start a thread for a run"))?;
    // The thread does nothing that could panic.
    let _ = thread.join();
    Ok(())
}

/// Writes [`FULL_BYTES`] of pseudo-random data, which no file system can compress away.
fn write_noise(file: &mut File) -> io::Result<()> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut written = 0;
    let mut block = [0_u8; 64 << 10];
    while written < FULL_BYTES {
        for word in block.as_chunks_mut::<8>().0 {
            // Xorshift.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *word = state.to_le_bytes();
        }
        file.write_all(&block)?;
        written += block.len() as u64;
    }
    // File systems with delayed allocation report a lack of space only here.
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_leaves_nothing_behind_and_names_what_is_missing() {
        let root = tempfile::tempdir().unwrap();
        try_resources(root.path()).unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
        let lost = root.path().join("lost");
        let failure = try_resources(&lost).unwrap_err();
        assert_eq!(failure.missing, MissingResource::Scratch);
        assert!(failure.detail.contains("lost"), "{failure}");
    }

    #[test]
    fn a_run_that_holds_much_is_not_starved_by_others() {
        let root = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(root.path()).unwrap();
        fs::create_dir(scratch.path().join("deep")).unwrap();
        fs::write(scratch.path().join("deep/trace"), vec![1; 300_000]).unwrap();
        assert!(uses_little_space(scratch.path(), 1 << 20));
        assert!(!uses_little_space(scratch.path(), 200_000));
        for number in 0..OWN_ENTRIES {
            File::create(scratch.path().join(number.to_string())).unwrap();
        }
        assert!(!uses_little_space(scratch.path(), 1 << 20));
    }
}
