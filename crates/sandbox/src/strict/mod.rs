//! Confinement of a thread, and of the programs it starts: `no_new_privs`, Landlock, seccomp, no
//! capabilities.

mod calls;
mod files;

use std::path::Path;

use caps::CapSet;

pub(crate) use files::{forbid_new_privileges, landlock_version};

/// See [`Confinement::Strict`](crate::Confinement::Strict). The thread has `no_new_privs` already.
pub(crate) fn enter(writable: &Path) -> Result<(), String> {
    files::enter(writable)?;
    calls::enter()?;
    give_up_capabilities()
}

/// Drops all capabilities, the rights that root has beyond an ordinary user's. Landlock does not
/// stop a process with `CAP_PERFMON` from reading another process's environment. With
/// `no_new_privs` executing a program cannot restore a capability.
fn give_up_capabilities() -> Result<(), String> {
    // Nothing can be effective that is not permitted.
    for set in [CapSet::Effective, CapSet::Permitted, CapSet::Inheritable] {
        caps::clear(None, set).map_err(|error| format!("cannot give up capabilities: {error}"))?;
    }
    Ok(())
}
