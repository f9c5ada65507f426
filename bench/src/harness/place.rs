//! Where an experiment keeps its state: a fresh directory on a disk that can lose power.

use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::TempDir;

use super::disk;
use super::figures::Figures;

/// What every experiment takes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Common {
    /// Where to make the state directory, which is removed afterwards: the disk to measure
    /// [default: ./target if it is there, else the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// End with one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A fresh directory.
pub(crate) struct Place {
    dir: TempDir,
    /// What an fsync costs there, in milliseconds.
    pub(crate) fsync: Figures,
}

// === impl Place ===

impl Place {
    /// Makes the directory, says so if it is in memory only, and measures its disk's fsync.
    pub(crate) fn fresh(common: &Common) -> anyhow::Result<Self> {
        let target = Path::new("target");
        let base = match &common.dir {
            Some(dir) => dir.clone(),
            None if target.is_dir() => target.to_owned(),
            None => std::env::temp_dir(),
        };
        let shown = || format!("cannot make a state directory in {}", base.display());
        let dir = tempfile::Builder::new()
            .prefix("proofmill-bench-")
            .tempdir_in(&base)
            .with_context(shown)?;
        if in_memory(dir.path()).with_context(shown)? {
            eprintln!(
                "warning: {} is in memory, where an fsync costs nothing: durable figures need \
                 --dir on a disk",
                base.display()
            );
        }
        let fsync = disk::fsync(dir.path())?;
        Ok(Self { dir, fsync })
    }

    /// The state directory of one run; each run has its own `name`.
    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

#[cfg(target_os = "linux")]
fn in_memory(path: &Path) -> std::io::Result<bool> {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    let kind = rustix::fs::statfs(path)?.f_type as u64;
    Ok(matches!(kind & 0xffff_ffff, TMPFS | RAMFS))
}

#[cfg(not(target_os = "linux"))]
fn in_memory(_: &Path) -> std::io::Result<bool> {
    Ok(false)
}
