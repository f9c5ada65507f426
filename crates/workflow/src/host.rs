//! The interface through which a check asks about the machine and the program that run the
//! workflow.

use std::ffi::OsString;
use std::path::Path;

use crate::model::Program;

/// Facts that a check needs about the machine and the program that run the workflow.
pub trait Host {
    /// Checks that the program can be executed.
    ///
    /// # Errors
    /// The reason why it cannot.
    fn program(&self, program: &Program) -> Result<(), ProgramFault>;

    /// Whether the path is a regular file.
    fn is_file(&self, path: &Path) -> bool;

    /// Names of the native provers that are registered.
    fn provers(&self) -> Vec<&str>;

    /// Names of the custom collector strategies that are registered.
    fn strategies(&self) -> Vec<&str>;

    /// Names of the native provers whose results the process that emits can check again.
    fn emission_checks(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Names of the native provers whose results the coordinator can check before they count.
    fn result_checks(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// The reason why a program cannot be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramFault {
    /// There is no such file.
    Missing,
    /// The file exists, but is not a regular file with execute permission.
    NotExecutable,
}

/// This machine's file system, and the names that the caller has registered.
#[derive(Clone, Debug, Default)]
pub struct LocalHost {
    provers: Vec<String>,
    strategies: Vec<String>,
    emission_checks: Vec<String>,
    result_checks: Vec<String>,
    path: Option<OsString>,
}

// === impl LocalHost ===

impl LocalHost {
    /// A host with these native provers, which searches `PATH` for bare names of programs.
    pub fn new<S: Into<String>>(provers: impl IntoIterator<Item = S>) -> Self {
        Self {
            provers: provers.into_iter().map(Into::into).collect(),
            strategies: Vec::new(),
            emission_checks: Vec::new(),
            result_checks: Vec::new(),
            path: std::env::var_os("PATH"),
        }
    }

    /// Adds custom collector strategies.
    #[must_use]
    pub fn with_strategies<S: Into<String>>(
        mut self,
        strategies: impl IntoIterator<Item = S>,
    ) -> Self {
        self.strategies
            .extend(strategies.into_iter().map(Into::into));
        self
    }

    /// Adds native provers whose results the process that emits can check again.
    #[must_use]
    pub fn with_emission_checks<S: Into<String>>(
        mut self,
        provers: impl IntoIterator<Item = S>,
    ) -> Self {
        self.emission_checks
            .extend(provers.into_iter().map(Into::into));
        self
    }

    /// Adds native provers whose results the coordinator can check before they count.
    #[must_use]
    pub fn with_result_checks<S: Into<String>>(
        mut self,
        provers: impl IntoIterator<Item = S>,
    ) -> Self {
        self.result_checks
            .extend(provers.into_iter().map(Into::into));
        self
    }
}

impl Host for LocalHost {
    fn program(&self, program: &Program) -> Result<(), ProgramFault> {
        match program {
            Program::File(path) => executable(path),
            Program::Search(name) => {
                let folders = self.path.iter().flat_map(std::env::split_paths);
                let mut fault = ProgramFault::Missing;
                for folder in folders {
                    match executable(&folder.join(name)) {
                        Ok(()) => return Ok(()),
                        Err(ProgramFault::NotExecutable) => fault = ProgramFault::NotExecutable,
                        Err(ProgramFault::Missing) => {}
                    }
                }
                Err(fault)
            }
        }
    }

    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn provers(&self) -> Vec<&str> {
        self.provers.iter().map(String::as_str).collect()
    }

    fn strategies(&self) -> Vec<&str> {
        self.strategies.iter().map(String::as_str).collect()
    }

    fn emission_checks(&self) -> Vec<&str> {
        self.emission_checks.iter().map(String::as_str).collect()
    }

    fn result_checks(&self) -> Vec<&str> {
        self.result_checks.iter().map(String::as_str).collect()
    }
}

fn executable(path: &Path) -> Result<(), ProgramFault> {
    let metadata = path.metadata().map_err(|_| ProgramFault::Missing)?;
    if metadata.is_file() && has_execute_bit(&metadata) {
        Ok(())
    } else {
        Err(ProgramFault::NotExecutable)
    }
}

#[cfg(unix)]
fn has_execute_bit(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn has_execute_bit(_: &std::fs::Metadata) -> bool {
    true
}
