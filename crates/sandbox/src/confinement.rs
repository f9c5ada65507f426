//! Starting programs with fewer rights.

use std::io;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;

/// Stack of the thread that starts a program, in bytes.
const STACK: usize = 512 << 10;

/// Limits on a program's rights. They also hold for all processes that the program starts, and cannot be
/// lifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement<'a> {
    /// On Linux: no set-user-id program or file capability gives it further rights (`no_new_privs`).
    /// Elsewhere: all rights of this user.
    Basic,
    /// Linux only, and refused where the kernel cannot: [`Basic`](Self::Basic), and
    ///
    /// - it writes to, makes and removes files in one folder only (Landlock), and in `/dev` to
    ///   `null`, `zero` and `full`; it changes no modes, owners or extended attributes at all;
    /// - it makes no sockets (seccomp): neither networks nor services of this machine are reached;
    /// - it neither traces other processes nor reads their memory and environment, shares no System V
    ///   memory or message queues with them, and from Landlock ABI 6 on (Linux 6.12) sends signals to
    ///   none but its own;
    /// - it has no capabilities: run by root, it is an ordinary user who owns root's files;
    /// - it makes no namespaces, mounts nothing and performs no other administrative operations.
    ///
    /// It can read all that this user may read, and its use of processors is not limited.
    Strict {
        /// The folder.
        writable: &'a Path,
    },
}

/// A program that was not started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The program could not be confined, and was not started.
    #[error("{0}")]
    Confinement(String),
    /// The program could be confined but did not start.
    #[error(transparent)]
    Start(io::Error),
}

// === impl Confinement ===

impl Confinement<'_> {
    /// Starts a program with these confines.
    ///
    /// # Errors
    /// It cannot be confined, or not be started. Nothing is ever started without the confines.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, LaunchError> {
        self.launch(|| command.spawn())
    }

    /// Calls `start` on a thread with these confines, which the processes that it makes inherit.
    /// Blocks until it returns.
    ///
    /// # Errors
    /// There can be no such thread, or `start` fails.
    pub fn launch<T: Send>(
        &self,
        start: impl FnOnce() -> io::Result<T> + Send,
    ) -> Result<T, LaunchError> {
        thread::scope(|scope| {
            let thread = thread::Builder::new()
                .name("launch".to_owned())
                .stack_size(STACK)
                .spawn_scoped(scope, || {
                    self.enter().map_err(LaunchError::Confinement)?;
                    start().map_err(LaunchError::Start)
                })
                .map_err(LaunchError::Start)?;
            thread.join().unwrap_or_else(|_| {
                let panicked = io::Error::other("the thread that starts programs panicked");
                Err(LaunchError::Start(panicked))
            })
        })
    }

    /// Whether programs can be confined so on this machine; if not, why, and what to do.
    ///
    /// # Errors
    /// They cannot.
    pub fn check(&self) -> Result<(), LaunchError> {
        self.launch(|| Ok(()))
    }

    /// Confines the calling thread.
    #[cfg(target_os = "linux")]
    fn enter(&self) -> Result<(), String> {
        crate::strict::forbid_new_privileges()?;
        match self {
            Self::Basic => Ok(()),
            Self::Strict { writable } => crate::strict::enter(writable),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn enter(&self) -> Result<(), String> {
        match self {
            Self::Basic => Ok(()),
            Self::Strict { .. } => Err("programs can be confined so on Linux only".to_owned()),
        }
    }
}
