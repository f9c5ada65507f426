//! Landlock: which files a program writes, and which processes it reaches.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    PathBeneath, PathFd, RestrictSelf, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    Scope,
};

/// The first version that forbids every way of writing to a file: without 2 files cannot be moved
/// between the folder's own subfolders, without 3 any file can be truncated. Linux 6.2.
const NEEDED: ABI = ABI::V3;

/// The latest Landlock version whose restrictions are requested where the kernel has them: 4 adds TCP, 5
/// ioctls of devices, 6 signals and abstract sockets (Linux 6.12).
const WANTED: ABI = ABI::V6;

/// Devices that take whatever is written to them.
const SINKS: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

/// Sets `no_new_privs` for the calling thread.
pub(crate) fn forbid_new_privileges() -> Result<(), String> {
    // Without any flag this enters no domain: it calls prctl(2), whether there is Landlock or not.
    let status = RestrictSelf::default().apply();
    match status {
        Ok(status) if status.no_new_privs => Ok(()),
        Ok(_) => Err("this kernel has no `no_new_privs`".to_owned()),
        Err(error) => Err(format!("cannot set `no_new_privs`: {error}")),
    }
}

/// The version of Landlock's interface here, if there is Landlock. Sets `no_new_privs` for the
/// calling thread.
pub(crate) fn landlock_version() -> Option<i32> {
    match RestrictSelf::default().apply().ok()?.landlock {
        LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        } => Some(kernel_abi.unwrap_or(effective_abi as i32)),
        _ => None,
    }
}

/// Lets the calling thread write to `writable` only.
pub(super) fn enter(writable: &Path) -> Result<(), String> {
    let opened = |path: &Path| {
        PathFd::new(path).map_err(|error| format!("cannot open `{}`: {error}", path.display()))
    };
    let folder = opened(writable)?;
    let sinks = SINKS.map(|sink| opened(Path::new(sink)));
    let sinks = sinks.into_iter().collect::<Result<Vec<_>, _>>()?;
    restrict(folder, sinks).map_err(|error| match landlock_version() {
        Some(version) if version >= NEEDED as i32 => format!("Landlock failed: {error}"),
        Some(version) => format!(
            "this kernel has version {version} of Landlock, and {} is needed: Linux 6.2 or newer",
            NEEDED as i32
        ),
        None => "this kernel has no Landlock: Linux 6.2 or newer has it, if `landlock` stands in \
                 /sys/kernel/security/lsm, and containers may be kept from it by their seccomp \
                 profile"
            .to_owned(),
    })
}

fn restrict(folder: PathFd, sinks: Vec<PathFd>) -> Result<(), RulesetError> {
    let writes = AccessFs::from_write(NEEDED);
    // Making devices is not allowed: a device file could give access to the machine's disk.
    let devices: BitFlags<AccessFs> = AccessFs::MakeChar | AccessFs::MakeBlock;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(writes)?
        // What follows is beside the calls that seccomp forbids, except that signals are not.
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(WANTED))?
        .handle_access(AccessNet::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?
        .set_compatibility(CompatLevel::HardRequirement)
        .add_rule(PathBeneath::new(folder, writes & !devices))?;
    for sink in sinks {
        ruleset = ruleset.add_rule(PathBeneath::new(
            sink,
            AccessFs::WriteFile | AccessFs::Truncate,
        ))?;
    }
    ruleset.restrict_self()?;
    Ok(())
}
