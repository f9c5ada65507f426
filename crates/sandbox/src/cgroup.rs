//! Control groups, version 2: bounds for a program and everything that it starts.
//!
//! A group is made for a run, the program is in it before its first instruction, and all that is in
//! it is killed when the run ends. It is made in a group that Proofmill may write to, see
//! [`CgroupRoot::find`].

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The variable that names the group in which groups may be made.
pub const CGROUP_VARIABLE: &str = "PROOFMILL_CGROUP";

/// The controllers that a group's bounds need.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// Number of attempts to remove a group, and the wait after each: removal fails as long as killed
/// processes are in the group.
const REMOVALS: (u32, Duration) = (500, Duration::from_millis(10));

/// A group in which others may be made, with the controllers that they need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupRoot {
    path: PathBuf,
}

/// Bounds of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CgroupLimits {
    /// Most memory of all its processes together, in bytes, page cache included; `None` for no
    /// bound. At the bound the kernel takes page cache back, and then kills all of the group. None
    /// of it is swapped out.
    pub memory: Option<u64>,
    /// Most processes and threads at a time. At the bound fork(2) fails with `EAGAIN`.
    pub pids: u32,
}

/// A control group for one run. Dropping it kills the processes left in it and removes it.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
}

/// Reason for which no groups can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCgroup {
    /// The machine, or this process's place in it, has none that may be written to.
    #[error("{0}")]
    Absent(String),
    /// The group that [`CGROUP_VARIABLE`] or a caller names cannot be used.
    #[error("control group `{}` cannot be used: {why}", path.display())]
    Unusable {
        /// The group.
        path: PathBuf,
        /// Reason for which the group cannot be used.
        why: String,
    },
}

// === impl CgroupRoot ===

impl CgroupRoot {
    /// The group that [`CGROUP_VARIABLE`] names; or the one that this process is in, if it may be
    /// divided; or the one above it, if systemd has delegated that to this user (`Delegate=` and
    /// `DelegateSubgroup=`).
    ///
    /// # Errors
    /// [`NoCgroup::Unusable`] if the variable names one that cannot be used, else
    /// [`NoCgroup::Absent`].
    pub fn find() -> Result<Self, NoCgroup> {
        if let Some(path) = std::env::var_os(CGROUP_VARIABLE) {
            return Self::at(Path::new(&path));
        }
        let own = own_group().map_err(NoCgroup::Absent)?;
        let above = own.parent().filter(|above| is_delegated(above));
        match (Self::try_at(&own), above) {
            (Ok(root), _) => Ok(root),
            (Err(_), Some(above)) => Self::try_at(above).map_err(|why| absent(above, &why)),
            (Err(why), None) => Err(absent(&own, &why)),
        }
    }

    /// The group at `path`, a folder of the control groups' file system.
    ///
    /// # Errors
    /// [`NoCgroup::Unusable`].
    pub fn at(path: &Path) -> Result<Self, NoCgroup> {
        Self::try_at(path).map_err(|why| NoCgroup::Unusable {
            path: path.to_owned(),
            why,
        })
    }

    fn try_at(path: &Path) -> Result<Self, String> {
        let words = |name: &str| {
            let file = path.join(name);
            let text = fs::read_to_string(&file);
            text.map_err(|error| format!("cannot read `{}`: {error}", file.display()))
        };
        let has = |text: &str, wanted: &str| text.split_whitespace().any(|word| word == wanted);
        let there = words("cgroup.controllers")?;
        if let Some(missing) = CONTROLLERS.iter().find(|wanted| !has(&there, wanted)) {
            return Err(format!(
                "it has no controller `{missing}`; perhaps this machine has that in version 1"
            ));
        }
        let passed_on = words("cgroup.subtree_control")?;
        if !CONTROLLERS.iter().all(|wanted| has(&passed_on, wanted)) {
            let all = CONTROLLERS.map(|wanted| format!("+{wanted}")).join(" ");
            write(path, "cgroup.subtree_control", &all).map_err(|error| match error.kind() {
                io::ErrorKind::ResourceBusy => {
                    "processes are in it, and a group has processes or groups, not both".to_owned()
                }
                _ => format!("its controllers cannot be passed on: {error}"),
            })?;
        }
        let probe = path.join(format!("proofmill-probe-{}", std::process::id()));
        fs::create_dir(&probe)
            .and_then(|()| fs::remove_dir(&probe))
            .map_err(|error| format!("no group can be made in it: {error}"))?;
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a group with these bounds.
    ///
    /// # Errors
    /// It cannot be made, or has one of the bounds not.
    pub fn make(&self, name: &str, limits: CgroupLimits) -> io::Result<Cgroup> {
        let group = Cgroup::create(self.path.join(name))?;
        write(&group.path, "pids.max", &limits.pids.to_string())?;
        if let Some(memory) = limits.memory {
            write(&group.path, "memory.max", &memory.to_string())?;
            write(&group.path, "memory.oom.group", "1")?;
            // Without this, memory that is swapped out would not count towards the limit. Kernels without
            // swap have no such file.
            match write(&group.path, "memory.swap.max", "0") {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(group)
    }
}

/// Kills and removes the groups whose names begin with `prefix`, which an earlier process left in the root that
/// [`CgroupRoot::find`] finds. Returns their number.
pub fn end_left(prefix: &str) -> usize {
    let named = std::env::var_os(CGROUP_VARIABLE).map(PathBuf::from);
    let places = match named {
        Some(named) => vec![named],
        None => {
            let own = own_group().ok();
            let above = own.as_deref().and_then(Path::parent).map(Path::to_owned);
            own.into_iter().chain(above).collect()
        }
    };
    places.iter().map(|place| end_left_in(place, prefix)).sum()
}

fn end_left_in(place: &Path, prefix: &str) -> usize {
    let Ok(entries) = fs::read_dir(place) else {
        return 0;
    };
    let ours = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.starts_with(prefix).then_some(name)
    });
    // Dropped, they end.
    let groups: Vec<Cgroup> = ours
        .map(|name| Cgroup {
            path: place.join(name),
        })
        .collect();
    groups.len()
}

// === impl Cgroup ===

impl Cgroup {
    fn create(path: PathBuf) -> io::Result<Self> {
        fs::create_dir(&path)?;
        Ok(Self { path })
    }

    /// Has `command` start its program in this group. The program is in it from its first
    /// instruction on, and so is everything that it starts.
    ///
    /// # Errors
    /// The group cannot be joined.
    pub fn admit(&self, command: &mut Command) -> io::Result<()> {
        let members = open(&self.path, "cgroup.procs")?;
        join_before_exec(command, members);
        Ok(())
    }

    /// Kills all processes in the group; a later call kills those that joined since.
    pub fn kill(&self) {
        // Linux 5.14; without it the run's own ways have to do.
        let _ = write(&self.path, "cgroup.kill", "1");
    }

    /// Number of its processes that the kernel has killed for want of memory.
    pub fn killed_for_memory(&self) -> u64 {
        let events = fs::read_to_string(self.path.join("memory.events")).unwrap_or_default();
        let count = events
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "));
        count
            .and_then(|count| count.trim().parse().ok())
            .unwrap_or(0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.kill();
        if is_gone(fs::remove_dir(&self.path)) {
            return;
        }
        // The killed processes have not ended yet. No caller has to wait for that.
        #[expect(
            clippy::disallowed_methods,
            reason = "on a thread of its own, which has no runtime"
        )]
        let remove = |path: PathBuf| {
            let (times, pause) = REMOVALS;
            for _ in 0..times {
                if is_gone(fs::remove_dir(&path)) {
                    return;
                }
                std::thread::sleep(pause);
            }
        };
        let path = std::mem::take(&mut self.path);
        let remover = std::thread::Builder::new()
            .name("cgroup".to_owned())
            .spawn(move || remove(path));
        // Without a thread the group stays, and the next sweep finds it.
        drop(remover);
    }
}

fn is_gone(removed: io::Result<()>) -> bool {
    match removed {
        Ok(()) => true,
        // Whatever else it is does not change by waiting.
        Err(error) => error.kind() != io::ErrorKind::ResourceBusy,
    }
}

fn absent(path: &Path, why: &str) -> NoCgroup {
    NoCgroup::Absent(format!(
        "control group `{}` cannot be divided: {why}. Run the service with `Delegate=memory pids` \
         and `DelegateSubgroup=main`, or name a group that this user may divide in \
         {CGROUP_VARIABLE}",
        path.display()
    ))
}

fn open(group: &Path, name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // There the file is always; where a test stands in for the kernel it may have to be made.
    options.write(true).create(true).truncate(false);
    options.open(group.join(name))
}

fn write(group: &Path, name: &str, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    open(group, name)?.write_all(text.as_bytes())
}

/// The folder of the group that this process is in.
fn own_group() -> Result<PathBuf, String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    group_in(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
        .ok_or_else(|| "this machine has no control groups of version 2".to_owned())
}

/// The path of a process's group, from `/proc/PID/mountinfo` and `/proc/PID/cgroup`: proc_pid_mountinfo(5),
/// cgroups(7).
fn group_in(mounts: &str, groups: &str) -> Option<PathBuf> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        if after.split(' ').next()? != "cgroup2" {
            return None;
        }
        let below = Path::new(group).strip_prefix(root).ok()?;
        Some(Path::new(point).join(below))
    })
}

/// Whether systemd has delegated the group, so that its processes may create groups in it.
#[cfg(target_os = "linux")]
fn is_delegated(group: &Path) -> bool {
    let mut value = [0; 8];
    let read = rustix::fs::getxattr(group, "user.delegate", &mut value);
    read.is_ok_and(|length| &value[..length] == b"1")
}

#[cfg(not(target_os = "linux"))]
fn is_delegated(_group: &Path) -> bool {
    false
}

/// Makes the process that `command` starts write itself into a group before it executes the program.
/// Afterwards would be too late: processes that the program had started by then would be outside. The standard
/// library has no other way for this, and then forks instead of calling `posix_spawn`.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a hook between fork and exec")]
fn join_before_exec(command: &mut Command, members: File) {
    use std::os::unix::process::CommandExt as _;

    let hook = move || {
        // 0 stands for the writing process.
        rustix::io::write(&members, b"0")?;
        Ok(())
    };
    // SAFETY: the hook runs in a process with a copy of this one's memory and one thread, where locks
    // may be held for ever. It makes one system call, write(2), which is safe there
    // (signal-safety(7)), on a descriptor that it owns; it takes no lock, and allocates nothing: an
    // error is a number.
    unsafe {
        command.pre_exec(hook);
    }
}

#[cfg(not(target_os = "linux"))]
fn join_before_exec(_command: &mut Command, _members: File) {}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests without a runtime wait as threads do"
)]
mod tests {
    use super::*;

    /// A folder that looks as the kernel's does.
    fn pretended(controllers: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cgroup.controllers"), controllers).unwrap();
        fs::write(folder.path().join("cgroup.subtree_control"), "").unwrap();
        folder
    }

    #[test]
    fn the_group_of_a_process_is_found_under_its_mount() {
        let mounts = "36 35 0:29 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      37 36 0:30 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        let groups = "4:memory:/x\n0::/mill.slice/mill.service/main\n";
        assert_eq!(
            group_in(mounts, groups).unwrap(),
            Path::new("/sys/fs/cgroup/unified/mill.slice/mill.service/main")
        );
        let inner = "37 36 0:30 /mill.slice /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            group_in(inner, groups).unwrap(),
            Path::new("/sys/fs/cgroup/mill.service/main")
        );
        assert_eq!(group_in("", groups), None);
        assert_eq!(group_in(mounts, "4:memory:/x\n"), None);
    }

    #[test]
    fn a_group_without_the_controllers_is_named_with_the_reason() {
        let folder = pretended("cpu pids");
        let error = CgroupRoot::at(folder.path()).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("`memory`"), "{said}");
        assert!(said.contains(folder.path().to_str().unwrap()), "{said}");
        let missing = CgroupRoot::at(Path::new("/nonexistent")).unwrap_err();
        assert!(matches!(missing, NoCgroup::Unusable { .. }), "{missing}");
    }

    #[test]
    fn bounds_are_written_and_the_program_joins_by_itself() {
        let folder = pretended("cpu memory pids");
        let root = CgroupRoot::at(folder.path()).unwrap();
        let passed_on = folder.path().join("cgroup.subtree_control");
        assert_eq!(fs::read_to_string(passed_on).unwrap(), "+memory +pids");
        let limits = CgroupLimits {
            memory: Some(1 << 30),
            pids: 77,
        };
        let group = root.make("run", limits).unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", ":"]);
        group.admit(&mut command).unwrap();
        assert!(command.status().unwrap().success());
        group.kill();
        let made = folder.path().join("run");
        let said = |name: &str| fs::read_to_string(made.join(name)).unwrap();
        assert_eq!(said("memory.max"), "1073741824");
        assert_eq!(said("memory.oom.group"), "1");
        assert_eq!(said("memory.swap.max"), "0");
        assert_eq!(said("pids.max"), "77");
        assert_eq!(said("cgroup.procs"), "0");
        assert_eq!(said("cgroup.kill"), "1");
        assert_eq!(group.killed_for_memory(), 0);
        fs::write(made.join("memory.events"), "low 0\noom 2\noom_kill 3\n").unwrap();
        assert_eq!(group.killed_for_memory(), 3);
    }

    /// Uses the kernel's own groups, where this user may create some, if without limits.
    #[test]
    fn a_program_that_hides_from_its_process_group_dies_with_its_control_group() {
        let name = format!("proofmill-test-{}", std::process::id());
        let Some(Ok(group)) = own_group().ok().map(|own| Cgroup::create(own.join(name))) else {
            eprintln!("not tried: no control group can be made here");
            return;
        };
        let path = group.path.clone();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "env -i setsid sleep 600 & wait"]);
        group.admit(&mut command).unwrap();
        let mut child = command.spawn().unwrap();
        let members = || fs::read_to_string(path.join("cgroup.procs")).unwrap();
        while members().lines().count() < 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(group);
        assert!(!child.wait().unwrap().success());
        let end = std::time::Instant::now() + Duration::from_secs(60);
        while path.exists() {
            assert!(std::time::Instant::now() < end, "never removed");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
