//! Survey of the confinement that a machine can provide.

use std::path::{Path, PathBuf};

use crate::cgroup::{CgroupRoot, NoCgroup};
use crate::confinement::Confinement;

/// Confinement that this machine can provide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// Reason for which [`Confinement::Basic`] is not to be had; `None` if it is.
    pub basic: Option<String>,
    /// Reason for which [`Confinement::Strict`] is not to be had; `None` if it is.
    pub strict: Option<String>,
    /// The version of Landlock's interface, if there is Landlock. From 6 on, a strict program
    /// signals none but its own processes.
    pub landlock: Option<i32>,
    /// The control group in which the runs of strict programs get theirs; or why there is none.
    pub cgroup: Result<PathBuf, NoCgroup>,
}

// === impl Survey ===

impl Survey {
    /// Of this machine, by trying.
    pub fn take() -> Self {
        let why = |confinement: Confinement<'_>| {
            let tried = confinement.check();
            tried.err().map(|error| error.to_string())
        };
        Self {
            basic: why(Confinement::Basic),
            // Some folder: nothing is written.
            strict: why(Confinement::Strict {
                writable: Path::new("/"),
            }),
            landlock: landlock(),
            cgroup: CgroupRoot::find().map(|root| root.path().to_owned()),
        }
    }
}

#[cfg(target_os = "linux")]
fn landlock() -> Option<i32> {
    // On a thread of its own, since the question changes the thread that asks.
    let asked = std::thread::spawn(crate::strict::landlock_version);
    asked.join().ok().flatten()
}

#[cfg(not(target_os = "linux"))]
fn landlock() -> Option<i32> {
    None
}
