//! Confinement of an executor's runs, and the environment of their programs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use proofmill_sandbox::{Cgroup, CgroupLimits, CgroupRoot, Confinement, Environment, NoCgroup};

use super::spec::{ProcessError, ProcessSpec, Sandbox};

/// Confinement of every run of an executor.
#[derive(Debug, Clone)]
pub(super) enum Confined {
    Basic,
    Strict {
        /// The control group in which each run gets one of its own; `None` if control groups cannot
        /// be used.
        groups: Option<Groups>,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Groups {
    root: CgroupRoot,
    prefix: String,
}

/// Prefix of the names of control groups for runs in a scratch root, which distinguishes the roots
/// of several processes that share a control group.
pub(super) fn group_prefix(scratch_root: &Path) -> io::Result<String> {
    let root = fs::metadata(scratch_root)?;
    Ok(format!("proofmill-{:x}-{:x}-", root.dev(), root.ino()))
}

// === impl Confined ===

impl Confined {
    /// The confinement that `spec` requires; an error if this machine cannot provide it.
    pub(super) fn new(spec: &ProcessSpec, scratch_root: &Path) -> Result<Self, ProcessError> {
        let refused = |why: String| ProcessError::Sandbox {
            program: spec.program.clone(),
            why,
        };
        let Sandbox::Strict { cgroup, .. } = &spec.sandbox else {
            return Ok(Self::Basic);
        };
        let strict = Confinement::Strict {
            writable: scratch_root,
        };
        strict.check().map_err(|error| refused(error.to_string()))?;
        let root = match cgroup {
            Some(path) => CgroupRoot::at(path),
            None => CgroupRoot::find(),
        };
        let groups = match root {
            Ok(root) => Some(Groups {
                root,
                prefix: group_prefix(scratch_root).map_err(|error| refused(error.to_string()))?,
            }),
            Err(error @ NoCgroup::Unusable { .. }) => return Err(refused(error.to_string())),
            Err(NoCgroup::Absent(why)) => {
                tracing::warn!(
                    program = %spec.program.display(),
                    why,
                    "nothing bounds the memory and the number of a strict program's processes together"
                );
                None
            }
        };
        Ok(Self::Strict { groups })
    }

    /// The confinement of a run in `scratch`.
    pub(super) fn confinement<'a>(&self, scratch: &'a Path) -> Confinement<'a> {
        match self {
            Self::Basic => Confinement::Basic,
            Self::Strict { .. } => Confinement::Strict { writable: scratch },
        }
    }

    /// Creates the control group of a run, in which `command` will start its program.
    pub(super) fn tree(
        &self,
        spec: &ProcessSpec,
        scratch: &Path,
        command: &mut Command,
    ) -> io::Result<Option<Cgroup>> {
        let (
            Self::Strict {
                groups: Some(groups),
            },
            Sandbox::Strict { pids_limit, .. },
        ) = (self, &spec.sandbox)
        else {
            return Ok(None);
        };
        let run = scratch.file_name().unwrap_or_default().to_string_lossy();
        let limits = CgroupLimits {
            memory: spec.memory_limit,
            pids: *pids_limit,
        };
        let name = format!("{}{run}", groups.prefix);
        let tree = groups.root.make(&name, limits)?;
        tree.admit(command)?;
        Ok(Some(tree))
    }

    /// The variables of a run's program, without those that describe its task.
    pub(super) fn environment(
        &self,
        spec: &ProcessSpec,
        scratch: &Path,
    ) -> BTreeMap<OsString, OsString> {
        let mut set = spec.env.clone();
        // A strict program cannot write to the usual folder for temporary files.
        let names = |name: &String| name == "TMPDIR";
        if matches!(self, Self::Strict { .. })
            && !spec.inherit_env.iter().any(names)
            && let Some(scratch) = scratch.to_str()
        {
            set.entry("TMPDIR".to_owned())
                .or_insert_with(|| scratch.to_owned());
        }
        let environment = Environment {
            inherit: spec.inherit_env.clone(),
            set,
        };
        environment.variables()
    }
}
