//! A program to run, and the limits of its runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use proofmill_sandbox::is_variable_name;

/// A program and its limits, the same for every task of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// The program. A path with a `/` is relative to the current directory when
    /// [`ProcessExecutor::new`](super::ProcessExecutor::new) is called; a bare name is searched in
    /// `PATH` (that of [`env`](Self::env) if set there).
    pub program: PathBuf,
    /// Arguments that come before the input and output flags.
    pub args: Vec<String>,
    /// Environment variables added to those that every program gets
    /// ([`proofmill_sandbox::Environment`]).
    pub env: BTreeMap<String, String>,
    /// Names of variables of this process that the program also gets.
    pub inherit_env: Vec<String>,
    /// Confinement of the program.
    pub sandbox: Sandbox,
    /// Channel of the input, and whether the program makes an output.
    pub input_channel: InputChannel,
    /// The flag before the path of the input file, with [`InputChannel::Files`].
    pub input_flag: String,
    /// The flag before the path at which the output file is expected, with [`InputChannel::Files`].
    pub output_flag: String,
    /// Longest wall time of a run, from its start; `None` for no limit.
    pub time_limit: Option<Duration>,
    /// Largest address space of each process of the run, in bytes (Linux only: `RLIMIT_AS`,
    /// getrlimit(2)); `None` for no limit.
    ///
    /// The limit applies to mapped memory, not to resident memory: a program that reserves much and
    /// touches little (Go, Java, CUDA, sanitizers) needs a limit well above its use. It applies to
    /// each process, not to their sum, and does not cover device memory, page cache, or shared
    /// memory that another process maps. A process at its limit is not killed: its next allocation
    /// fails, and most programs then abort. It is set just after the program starts, which in all
    /// but contrived cases is before the program can have forked. For a strict program
    /// ([`Sandbox::Strict`]) it also limits the sum, where control groups can be used.
    pub memory_limit: Option<u64>,
    /// Time between `SIGTERM` and `SIGKILL`.
    pub kill_grace: Duration,
    /// Bytes kept of each of standard output and standard error: the first half and the last half.
    pub capture_limit: usize,
    /// Maximum size of the output file, in bytes.
    pub output_limit: u64,
}

/// Confinement of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Sandbox {
    /// [`proofmill_sandbox::Confinement::Basic`].
    #[default]
    Basic,
    /// [`proofmill_sandbox::Confinement::Strict`], with the scratch directory as the only folder
    /// that it can write to, and as its `TMPDIR`. If this machine does not support it, the executor
    /// cannot be made. A control group, if one can be used, limits the total resources of the
    /// program and its descendants; if not, a warning states the reason.
    Strict {
        /// Maximum number of processes and threads at a time.
        pids_limit: u32,
        /// Control group to create groups in; if absent, one found by
        /// [`CgroupRoot::find`](proofmill_sandbox::CgroupRoot::find).
        cgroup: Option<PathBuf>,
    },
}

/// Channel of a program's input, and whether the program makes an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputChannel {
    /// A file, whose path follows the input flag; success requires an output file.
    #[default]
    Files,
    /// Standard input; there is no output.
    Stdin,
    /// A file, whose path is the last argument; there is no output.
    LastArgument,
}

/// The reason why a process executor cannot be made, or a scratch root cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// A field of [`ProcessSpec`] has an invalid value.
    #[error("invalid process executor: `{field}` {reason}")]
    InvalidSpec {
        /// The field, as [`ProcessSpec`] names it.
        field: &'static str,
        /// The fault, and valid values.
        reason: String,
    },
    /// This machine cannot confine the program as required.
    #[error("`{}` is not run without its sandbox: {why}", program.display())]
    Sandbox {
        /// The program.
        program: PathBuf,
        /// The missing feature, and how to get it.
        why: String,
    },
    /// The scratch root cannot be created or read.
    #[error("cannot use scratch root `{}`: {source}; choose a directory this user can write", path.display())]
    ScratchRoot {
        /// The scratch root.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

// === impl ProcessSpec ===

impl ProcessSpec {
    /// `program` without arguments, with the default flags and limits: `--input-path`,
    /// `--output-path`, no time or memory limit, 2 s between `SIGTERM` and `SIGKILL`, 64 KiB kept of
    /// each stream, at most 64 MiB of output.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            inherit_env: Vec::new(),
            sandbox: Sandbox::Basic,
            input_channel: InputChannel::Files,
            input_flag: "--input-path".to_owned(),
            output_flag: "--output-path".to_owned(),
            time_limit: None,
            memory_limit: None,
            kill_grace: Duration::from_secs(2),
            capture_limit: 64 << 10,
            output_limit: 64 << 20,
        }
    }

    /// Checks everything that can be checked without running the program.
    pub(super) fn validate(&self) -> Result<(), ProcessError> {
        let invalid = |field, reason: &str| {
            Err(ProcessError::InvalidSpec {
                field,
                reason: reason.to_owned(),
            })
        };
        if self.program.as_os_str().is_empty() {
            return invalid("program", "is empty; name an executable file");
        }
        if self.program.as_os_str().as_encoded_bytes().contains(&0) {
            return invalid("program", "contains a NUL byte");
        }
        if self.args.iter().any(|arg| arg.contains('\0')) {
            return invalid("args", "contains a NUL byte, which no argument can");
        }
        for (key, value) in &self.env {
            if !is_variable_name(key) || value.contains('\0') {
                let reason = format!(
                    "has a variable {key:?} that cannot be set; names are not empty and without \
                     `=`, and neither name nor value holds a NUL byte"
                );
                return Err(ProcessError::InvalidSpec {
                    field: "env",
                    reason,
                });
            }
        }
        if !self.inherit_env.iter().all(|name| is_variable_name(name)) {
            return invalid("inherit_env", "has a name that no variable has");
        }
        if matches!(self.sandbox, Sandbox::Strict { pids_limit: 0, .. }) {
            return invalid("pids_limit", "is zero, so that nothing could run");
        }
        for (field, flag) in [
            ("input_flag", &self.input_flag),
            ("output_flag", &self.output_flag),
        ] {
            if flag.is_empty() || flag.contains('\0') {
                return invalid(field, "must be a flag such as `--input-path` or `-i`");
            }
        }
        if self.input_flag == self.output_flag {
            return invalid("output_flag", "must differ from `input_flag`");
        }
        if self.time_limit == Some(Duration::ZERO) {
            return invalid("time_limit", "is zero; leave it out for no limit");
        }
        if self.memory_limit == Some(0) {
            return invalid("memory_limit", "is zero; leave it out for no limit");
        }
        if self.output_limit == 0 {
            return invalid("output_limit", "is zero, so that no run could succeed");
        }
        Ok(())
    }
}
