//! The state of an experiment: a new directory on a real disk, and the bus's servers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use proofmill_bus::NatsOptions;
use proofmill_nats_server::{Cluster, find_program};
use tempfile::TempDir;

use super::disk;
use super::figures::Figures;

/// Arguments of every experiment.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Common {
    /// Where to make the state directory, which is removed afterwards: the disk to measure
    /// [default: ./target if it is there, else the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Place of the log, and connection between the roles
    #[arg(long, value_enum, default_value_t = Bus::Embedded)]
    bus: Bus,
    /// With --bus jetstream: servers of the cluster, each with a copy of everything
    #[arg(long, default_value_t = 1)]
    servers: usize,
    /// End with one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Common {
    /// Whether all roles run in this process, without a bus.
    pub(crate) fn is_embedded(&self) -> bool {
        self.bus == Bus::Embedded
    }
}

/// Place of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Bus {
    /// In a directory, and everything in this process
    Embedded,
    /// On a nats-server that syncs every message; dispatchers are processes of their own, and
    /// submissions go through it as well
    Jetstream,
}

/// The state directory of an experiment, and the servers of its bus.
pub(crate) struct StateDisk {
    dir: TempDir,
    /// The bus, if it is not embedded.
    pub(crate) servers: Option<Cluster>,
    /// Milliseconds of an fsync in the directory, measured without pauses.
    pub(crate) fsync: Figures,
}

// === impl StateDisk ===

impl StateDisk {
    /// Makes the directory, measures its disk's fsync, and starts the bus's servers, if there are
    /// any. Prints a warning if the directory is in memory only.
    ///
    /// # Errors
    /// Fails if the directory cannot be made, and if a server is needed and `nats-server` is not
    /// installed.
    pub(crate) fn fresh(common: &Common) -> anyhow::Result<Self> {
        if !common.is_embedded() {
            find_program()?;
        }
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
        let fsync = disk::fsync(dir.path(), 300, Duration::ZERO)?;
        anyhow::ensure!(
            matches!(common.servers, 1 | 3),
            "--servers: 1 or 3, not {}",
            common.servers
        );
        let servers = (!common.is_embedded()).then(|| {
            // Every message is synced before it is acknowledged.
            let store = dir.path().join("nats-$NAME");
            let config = format!(
                "jetstream {{ store_dir: {:?}, sync_interval: always }}",
                store.display().to_string()
            );
            Cluster::start(common.servers, &config)
        });
        Ok(Self {
            dir,
            servers,
            fsync,
        })
    }

    /// Milliseconds of an fsync in the directory after a pause of `rest`, as the disk and the
    /// processor have it between tasks.
    pub(crate) fn fsync_after(&self, rest: Duration) -> anyhow::Result<Figures> {
        disk::fsync(self.dir.path(), 30, rest)
    }

    /// Options for connecting the run in `state` to the bus; `None` if it is embedded.
    pub(crate) fn bus(&self, state: &Path) -> Option<NatsOptions> {
        let cluster = self.servers.as_ref()?;
        let mut options = NatsOptions::new(&cluster.url());
        let name = state.file_name().unwrap_or_default().to_string_lossy();
        options.prefix = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        options.replicas = cluster.servers.len();
        Some(options)
    }

    /// The state directory of the run `name`. Names differ between the runs of an experiment.
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
