//! The process group of a run: signals, exit and cleanup.
//!
//! The leader stays a zombie until [`Group::reap`]. Until then its process group id cannot be
//! reused, so a signal to the group cannot reach another process.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use proofmill_sandbox::Cgroup;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process_group,
    test_kill_process_group, waitid, waitpgid,
};
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::time::{Instant, sleep};

use super::scratch::Scratch;

/// Longest wait for a group to be gone after `SIGKILL`. A process in an uninterruptible call can
/// take longer, and a zombie whose parent does not reap it never goes; neither may delay a run.
const EXIT_WAIT_MAX: Duration = Duration::from_millis(500);

/// A started process group and its scratch directory. If it is dropped before its end, it kills the
/// group at once, and a thread reaps it and removes the directory.
#[derive(Debug)]
pub(super) struct Group {
    live: Option<Live>,
}

#[derive(Debug)]
struct Live {
    child: Child,
    pgid: Pid,
    scratch: Scratch,
    /// Kills its processes and removes itself when dropped.
    tree: Option<Cgroup>,
    watch: Watch,
}

/// Notification of the leader's exit.
#[derive(Debug)]
enum Watch {
    /// Linux: a descriptor of this process alone that becomes readable on exit.
    #[cfg(target_os = "linux")]
    Pidfd(tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>),
    /// Elsewhere, and where descriptors ran out: the leader is checked at every `SIGCHLD`.
    Signal(SignalStream),
}

// === impl Group ===

impl Group {
    /// Takes over `child`, which must lead its own process group, and its control group.
    ///
    /// If its exit cannot be watched, it kills and reaps the group and fails.
    pub(super) fn new(
        mut child: Child,
        scratch: Scratch,
        tree: Option<Cgroup>,
    ) -> io::Result<Self> {
        let pgid = Pid::from_child(&child);
        match Watch::new(pgid) {
            Ok(watch) => Ok(Self {
                live: Some(Live {
                    child,
                    pgid,
                    scratch,
                    tree,
                    watch,
                }),
            }),
            Err(error) => {
                let _ = kill_process_group(pgid, Signal::KILL);
                let _ = child.wait();
                Err(error)
            }
        }
    }

    fn live(&self) -> &Live {
        self.live
            .as_ref()
            .expect("a group is used only before it ends")
    }

    /// The leader's process id, which is also the group's.
    pub(super) fn id(&self) -> Pid {
        self.live().pgid
    }

    /// The run's scratch directory.
    pub(super) fn scratch(&self) -> &Scratch {
        &self.live().scratch
    }

    /// Number of the run's processes that the kernel has killed at their common memory limit.
    pub(super) fn killed_for_memory(&self) -> u64 {
        let tree = self.live().tree.as_ref();
        tree.map_or(0, Cgroup::killed_for_memory)
    }

    /// Waits until the leader has exited. May be dropped and called again.
    pub(super) async fn exited(&mut self) {
        let live = self
            .live
            .as_mut()
            .expect("a group is used only before it ends");
        live.watch.exited(live.pgid).await;
    }

    /// Sends `SIGTERM` to every process of the group, and `SIGCONT` so that stopped ones receive
    /// it.
    pub(super) fn terminate(&self) {
        let _ = kill_process_group(self.id(), Signal::TERM);
        let _ = kill_process_group(self.id(), Signal::CONT);
    }

    /// Kills every process of the group.
    pub(super) fn kill(&self) {
        // Fails only if this process may not signal any that are left (a set-user-id program).
        let _ = kill_process_group(self.id(), Signal::KILL);
        if let Some(tree) = &self.live().tree {
            tree.kill();
        }
    }

    /// Kills the rest of the group and reaps the leader, which must have exited.
    pub(super) fn reap(mut self) -> io::Result<(ExitStatus, Scratch, Pid)> {
        self.kill();
        let mut live = self
            .live
            .take()
            .expect("a group is used only before it ends");
        let status = live.child.wait()?;
        Ok((status, live.scratch, live.pgid))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(mut live) = self.live.take() else {
            return;
        };
        let _ = kill_process_group(live.pgid, Signal::KILL);
        if let Some(tree) = &live.tree {
            tree.kill();
        }
        // On a thread, since a group may be dropped because the runtime is shutting down.
        let reaper = std::thread::Builder::new()
            .name("reap".to_owned())
            .spawn(move || {
                let _ = live.child.wait();
                live.scratch.remove();
            });
        if let Err(error) = reaper {
            tracing::warn!(%error, "cannot start a thread to reap a killed process group");
        }
    }
}

/// Waits, up to [`EXIT_WAIT_MAX`], until no process of a killed group is left, so that its resources
/// (devices, memory, ports) are free for the next attempt.
pub(super) async fn wait_until_gone(pgid: Pid) {
    let give_up = Instant::now() + EXIT_WAIT_MAX;
    let mut pause = Duration::from_micros(200);
    while test_kill_process_group(pgid).is_ok() && Instant::now() < give_up {
        // Process 1 of a container inherits orphans, which no other process reaps.
        if getpid().is_init() {
            while let Ok(Some(_)) = waitpgid(pgid, WaitOptions::NOHANG) {}
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

// === impl Watch ===

impl Watch {
    #[cfg(target_os = "linux")]
    #[allow(
        deprecated,
        reason = "the successor is unsafe because some types lend a descriptor that is not theirs; \
                  an `OwnedFd` owns its own"
    )]
    fn new(pid: Pid) -> io::Result<Self> {
        use rustix::process::{PidfdFlags, pidfd_open};
        use tokio::io::{Interest, unix::AsyncFd};

        if let Ok(fd) = pidfd_open(pid, PidfdFlags::NONBLOCK)
            && let Ok(fd) = AsyncFd::with_interest(fd, Interest::READABLE)
        {
            return Ok(Self::Pidfd(fd));
        }
        Self::signals()
    }

    #[cfg(not(target_os = "linux"))]
    fn new(_pid: Pid) -> io::Result<Self> {
        Self::signals()
    }

    fn signals() -> io::Result<Self> {
        signal(SignalKind::child()).map(Self::Signal)
    }

    async fn exited(&mut self, pid: Pid) {
        while !has_exited(pid) {
            match self {
                #[cfg(target_os = "linux")]
                Self::Pidfd(fd) => {
                    let Ok(mut ready) = fd.readable().await else {
                        return;
                    };
                    if has_exited(pid) {
                        return;
                    }
                    ready.clear_ready();
                }
                Self::Signal(signals) => {
                    signals.recv().await;
                }
            }
        }
    }
}

/// Whether a child that is not yet reaped has exited; does not reap it.
fn has_exited(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // An error means that there is no such child, so there is nothing to wait for.
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn exit_is_seen_by_either_watch_and_the_child_stays_to_be_reaped() {
        for signals in [false, true] {
            for exits_at_once in [true, false] {
                let mut command = Command::new("/bin/sh");
                command.args([
                    "-c",
                    if exits_at_once {
                        "exit 3"
                    } else {
                        "sleep 0.1; exit 3"
                    },
                ]);
                let mut child = command.spawn().unwrap();
                let pid = Pid::from_child(&child);
                let mut watch = if signals {
                    Watch::signals().unwrap()
                } else {
                    Watch::new(pid).unwrap()
                };
                assert_eq!(matches!(watch, Watch::Signal(_)), signals);
                tokio::time::timeout(Duration::from_secs(60), watch.exited(pid))
                    .await
                    .unwrap();
                assert_eq!(child.wait().unwrap().code(), Some(3));
            }
        }
    }
}
