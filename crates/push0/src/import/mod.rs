//! `proofmill import-env`: turns the environments of a deployment into a workflow file.
//!
//! ```no_run
//! # fn example() -> Result<(), proofmill_push0::import::ImportError> {
//! use std::path::Path;
//!
//! use proofmill_push0::import::{Deployment, to_workflow};
//!
//! let deployment = Deployment::read(&[Path::new("compose/docker-compose.yml")])?;
//! let imported = to_workflow(&deployment)?;
//! for remark in &imported.remarks {
//!     eprintln!("{remark}");
//! }
//! print!("{}", imported.workflow);
//! # Ok(()) }
//! ```

mod compose;
mod model;
mod provers;
mod sources;
mod variables;
mod write;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

pub use model::to_workflow;

use crate::environment::EnvError;
use compose::ComposeService;

/// Largest file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Most services of a deployment.
const MAX_SERVICES: usize = 256;

/// The processes of a deployment, with their environments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deployment {
    /// The processes, in the order of their files.
    pub services: Vec<Service>,
    /// Messages about services that were ignored.
    pub passed_over: Vec<String>,
}

/// One process of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The name of the service.
    pub name: String,
    /// The role of the process.
    pub role: Role,
    /// The environment variables.
    pub variables: BTreeMap<String, String>,
}

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `dispatcher`.
    Dispatcher,
    /// `collector`, which may be a source.
    Collector,
}

/// A workflow that does the same as a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The text of the workflow file, which is valid.
    pub workflow: String,
    /// Messages about settings that could not be carried over, or that mean something else in a workflow.
    pub remarks: Vec<String>,
}

/// The reason that no workflow could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The content of a file is invalid.
    #[error("{}: {why}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// There is no environment of a dispatcher or collector.
    #[error("{} holds no dispatcher or collector: give a compose file, or a directory with one file NAME.env for each process", path.display())]
    Empty {
        /// The path that was read.
        path: PathBuf,
    },
    /// The environment of a service is invalid.
    #[error("the service {service}: {source}")]
    Environment {
        /// The name of the service.
        service: String,
        /// The fault.
        source: EnvError,
    },
    /// Several paths, of which one is a directory.
    #[error(
        "{} is a directory: give one directory, or several files of one deployment",
        path.display()
    )]
    DirectoryAmongFiles {
        /// The directory.
        path: PathBuf,
    },
    /// The services together do not make a valid workflow.
    #[error(
        "the services do not make a valid workflow:\n{faults}\nthe workflow made of them:\n\
         {workflow}"
    )]
    Invalid {
        /// All faults, one a line.
        faults: String,
        /// The text of the invalid workflow.
        workflow: String,
    },
}

// === impl Deployment ===

impl Deployment {
    /// Reads a directory, or files.
    ///
    /// In a directory, every compose file (`*.yml`, `*.yaml`) and every environment (`NAME.env`) has
    /// services of its own. Files given by name are environments, and compose files that are merged in
    /// their order, as `docker compose -f A -f B` does: the variables of a service that several files name
    /// are put together, the later value wins, and paths are relative to the first file's folder.
    ///
    /// The variables of a file named `.env` beside them are shared: compose files substitute them, and the
    /// environments of a directory inherit them.
    ///
    /// # Errors
    /// A file cannot be read or understood, or there is nothing to import.
    pub fn read<P: AsRef<Path>>(paths: &[P]) -> Result<Self, ImportError> {
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        let mut deployment = Self::default();
        match paths[..] {
            [path] if is_directory(path)? => deployment.add_directory(path)?,
            _ => deployment.add_files(&paths)?,
        }
        if deployment.services.is_empty() {
            let path = paths.first().copied().unwrap_or(Path::new("."));
            return Err(ImportError::Empty {
                path: path.to_owned(),
            });
        }
        Ok(deployment)
    }

    fn add_directory(&mut self, path: &Path) -> Result<(), ImportError> {
        let shared = shared(path)?;
        for file in files(path)? {
            let extension = file.extension().and_then(|extension| extension.to_str());
            match extension {
                Some("yml" | "yaml") => {
                    let found = compose_services(&file, &shared)?;
                    self.add_compose(&file, path, &shared, found)?;
                }
                Some("env") => self.add_environment(&file, &shared)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn add_files(&mut self, paths: &[&Path]) -> Result<(), ImportError> {
        let mut merged: Option<(PathBuf, BTreeMap<String, String>, Vec<ComposeService>)> = None;
        for &path in paths {
            if is_directory(path)? {
                let path = path.to_owned();
                return Err(ImportError::DirectoryAmongFiles { path });
            }
            if path.extension().is_some_and(|extension| extension == "env") {
                self.add_environment(path, &BTreeMap::new())?;
                continue;
            }
            match &mut merged {
                Some((_, shared, services)) => {
                    compose::merge(services, compose_services(path, shared)?);
                }
                None => {
                    let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
                    let shared = shared(&folder)?;
                    let services = compose_services(path, &shared)?;
                    merged = Some((folder, shared, services));
                }
            }
        }
        if let Some((folder, shared, services)) = merged {
            // Faults of services are reported for the last file, which was merged last.
            let file = paths.last().copied().unwrap_or(&folder);
            self.add_compose(file, &folder, &shared, services)?;
        }
        Ok(())
    }

    fn add_environment(
        &mut self,
        file: &Path,
        shared: &BTreeMap<String, String>,
    ) -> Result<(), ImportError> {
        let text = read(file)?;
        let mut variables = shared.clone();
        variables::parse(&text, &mut variables).map_err(|why| content(file, why))?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        match Role::of(None, &variables) {
            Some(role) => self.add(file, name.into_owned(), role, variables),
            None => {
                let why = "neither BINARY nor STRATEGY is set: passed over";
                self.passed_over.push(format!("{name}: {why}"));
                Ok(())
            }
        }
    }

    /// Adds the services of `file`, whose paths are relative to `folder`.
    fn add_compose(
        &mut self,
        file: &Path,
        folder: &Path,
        shared: &BTreeMap<String, String>,
        services: Vec<ComposeService>,
    ) -> Result<(), ImportError> {
        for found in services {
            let mut variables = BTreeMap::new();
            for env_file in &found.env_files {
                let path = folder.join(env_file);
                let text = read(&path)?;
                variables::parse(&text, &mut variables).map_err(|why| content(&path, why))?;
            }
            for (name, value) in &found.variables {
                // A variable without a value takes the shared one, as in compose.
                if let Some(value) = value.as_ref().or_else(|| shared.get(name)) {
                    variables.insert(name.clone(), value.clone());
                }
            }
            match Role::of(found.command.as_deref(), &variables) {
                Some(role) => self.add(file, found.name, role, variables)?,
                None => {
                    let why = "neither a dispatcher nor a collector: passed over";
                    self.passed_over.push(format!("{}: {why}", found.name));
                }
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        file: &Path,
        name: String,
        role: Role,
        variables: BTreeMap<String, String>,
    ) -> Result<(), ImportError> {
        if self.services.iter().any(|service| service.name == name) {
            let why = format!(
                "the service {name} is in another file too: name the files that run together, in \
                 their order for `docker compose -f`"
            );
            return Err(content(file, why));
        }
        if self.services.len() == MAX_SERVICES {
            return Err(content(file, format!("over {MAX_SERVICES} services")));
        }
        self.services.push(Service {
            name,
            role,
            variables,
        });
        Ok(())
    }
}

// === impl Role ===

impl Role {
    /// Determines the role from the command, or else from a variable that only one role has.
    fn of(command: Option<&str>, variables: &BTreeMap<String, String>) -> Option<Self> {
        let mut words = command.unwrap_or_default().split_whitespace();
        let named = words.find_map(|word| match word {
            "dispatcher" => Some(Self::Dispatcher),
            "collector" => Some(Self::Collector),
            _ => None,
        });
        named.or_else(|| {
            if variables.contains_key("STRATEGY") {
                Some(Self::Collector)
            } else if variables.contains_key("BINARY") {
                Some(Self::Dispatcher)
            } else {
                None
            }
        })
    }
}

fn is_directory(path: &Path) -> Result<bool, ImportError> {
    let metadata = fs::metadata(path).map_err(|source| ImportError::File {
        path: path.to_owned(),
        source,
    })?;
    Ok(metadata.is_dir())
}

/// The services of a compose file, with the variables in their values substituted.
fn compose_services(
    file: &Path,
    shared: &BTreeMap<String, String>,
) -> Result<Vec<ComposeService>, ImportError> {
    let text = read(file)?;
    let mut services = compose::parse(&text).map_err(|why| content(file, why))?;
    let values = services.iter_mut().flat_map(|found| &mut found.variables);
    for (name, value) in values {
        if let Some(text) = value {
            let resolved = variables::substitute(text, shared);
            *text = resolved.map_err(|why| content(file, format!("{name}: {why}")))?;
        }
    }
    Ok(services)
}

fn content(path: &Path, why: String) -> ImportError {
    ImportError::Content {
        path: path.to_owned(),
        why,
    }
}

/// The variables in the file `.env` of a folder, if it exists.
fn shared(folder: &Path) -> Result<BTreeMap<String, String>, ImportError> {
    let path = folder.join(".env");
    let mut variables = BTreeMap::new();
    if path.is_file() {
        let text = read(&path)?;
        variables::parse(&text, &mut variables).map_err(|why| content(&path, why))?;
    }
    Ok(variables)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let fault = |source| ImportError::File {
        path: folder.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(fault)? {
        files.push(entry.map_err(fault)?.path());
    }
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<String, ImportError> {
    let fault = |source| ImportError::File {
        path: path.to_owned(),
        source,
    };
    // A pipe without a writer would block for ever. A pipe that the program was started with, such as a
    // shell's `<(…)`, is below /dev.
    let is_file = fs::metadata(path).map_err(fault)?.is_file();
    if !is_file && !path.starts_with("/dev") {
        return Err(fault(std::io::Error::other("not a regular file")));
    }
    let file = fs::File::open(path).map_err(fault)?;
    let mut text = String::new();
    file.take(MAX_FILE + 1)
        .read_to_string(&mut text)
        .map_err(fault)?;
    if text.len() as u64 > MAX_FILE {
        return Err(content(path, format!("it is over {MAX_FILE} bytes")));
    }
    Ok(text)
}
