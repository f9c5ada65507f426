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
    /// The version of Landlock's interface; `None` without Landlock. From 6 on, a strict program can
    /// signal only its own processes.
    pub landlock: Option<i32>,
    /// The control group in which groups for runs of strict programs are made, or the reason why there is none.
    pub cgroup: Result<PathBuf, NoCgroup>,
}

// === impl Survey ===

impl Survey {
    /// Surveys this machine by trying each feature.
    pub fn take() -> Self {
        let why = |confinement: Confinement<'_>| {
            let tried = confinement.check();
            tried.err().map(|error| error.to_string())
        };
        Self {
            basic: why(Confinement::Basic),
            // Any folder will do: nothing is written.
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
    // On a separate thread, since the query changes the calling thread.
    let asked = std::thread::spawn(crate::strict::landlock_version);
    asked.join().ok().flatten()
}

#[cfg(not(target_os = "linux"))]
fn landlock() -> Option<i32> {
    None
}
