//! State directories, and the workflow to which each belongs.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proofmill_bus::OpenError;
use proofmill_files::Visibility;
use proofmill_files::check_private_directory;
use proofmill_orchestrator::mill::{Mill, MillError, Options, Registry};
use proofmill_workflow::{Workflow, render};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::files;

/// Default parent of state directories, relative to the working directory.
pub(crate) const ROOT: &str = ".proofmill";

/// File in a state directory that records its workflow, as JSON.
const WORKFLOW_FILE: &str = "workflow.json";

/// Entries that the program may create in a state directory before it writes [`WORKFLOW_FILE`]; a directory with other entries
/// and no [`WORKFLOW_FILE`] is refused.
const STATE_ENTRIES: [&str; 8] = [
    "log",
    "blobs",
    "scratch",
    "proofs",
    "engine",
    "demo.json",
    "emissions.json",
    "accepted-emissions",
];

/// Longest wait of a starting mill for a short command (`status`, `dlq`) to release the state directory.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(3);

#[derive(Serialize, Deserialize)]
struct SavedWorkflow {
    /// The workflow's name.
    workflow: String,
    /// Absolute path of the workflow file, its bytes in hexadecimal: a path need not be UTF-8.
    file: String,
    /// Text of the workflow file.
    text: String,
}

/// Creates the directory `state`, or checks that it is a state directory of this workflow. A directory that belongs to
/// another workflow, or holds other files, is refused and left unchanged.
pub(crate) fn claim(state: &Path, workflow: &str) -> Result<(), Failure> {
    let shown = state.display();
    ensure_private(state)?;
    if let Some(saved) = read(state)? {
        if saved.workflow != workflow {
            return Err(Failure::usage(format!(
                "{shown} is the state of workflow {:?}, not of {workflow:?}",
                saved.workflow
            ))
            .help("name another directory with --state"));
        }
        return Ok(());
    }
    let entries = match std::fs::read_dir(state) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(state)
                .map_err(|error| {
                    Failure::new(format!("cannot make the state directory {shown}: {error}"))
                });
        }
        Err(error) => {
            return Err(Failure::new(format!(
                "cannot use {shown} as state directory: {error}"
            )));
        }
    };
    for entry in entries {
        let name = entry?.file_name();
        let is_known = STATE_ENTRIES.iter().any(|entry| name == **entry)
            || name.as_bytes().starts_with(b".new-")
            || name.as_bytes().starts_with(b".proofmill-")
            || name.as_bytes().starts_with(b"headers-")
            || name.as_bytes().starts_with(b"audit.");
        if !is_known {
            return Err(Failure::usage(format!(
                "{shown} holds {:?} and is no state directory: it is left unchanged",
                name.to_string_lossy()
            ))
            .help("name an empty or a new directory with --state"));
        }
    }
    Ok(())
}

/// Refuses a state directory that other users can write to, or one under a `.proofmill` that they can: files placed
/// there would decide what is proved and which programs run.
fn ensure_private(state: &Path) -> Result<(), Failure> {
    let root = state.parent().filter(|parent| parent.ends_with(ROOT));
    for directory in root.into_iter().chain([state]) {
        match check_private_directory(directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            checked => checked.map_err(|error| {
                Failure::new(format!(
                    "cannot use {} as state directory: {error}",
                    directory.display()
                ))
            })?,
        }
    }
    Ok(())
}

/// Records the workflow in its state directory, for later commands that open it.
pub(crate) fn save(state: &Path, workflow: &Workflow, file: &Path) -> Result<(), Failure> {
    let file = std::path::absolute(file)?;
    let saved = serde_json::to_vec_pretty(&SavedWorkflow {
        workflow: workflow.name.clone(),
        file: hex::encode(file.as_os_str().as_bytes()),
        text: workflow.document().text().to_owned(),
    })?;
    files::write(&state.join(WORKFLOW_FILE), Visibility::Private, &saved)
}

fn read(state: &Path) -> Result<Option<SavedWorkflow>, Failure> {
    let path = state.join(WORKFLOW_FILE);
    match std::fs::read(&path) {
        Ok(bytes) => match serde_json::from_slice(&bytes) {
            Ok(saved) => Ok(Some(saved)),
            Err(error) => Err(Failure::new(format!("{}: {error}", path.display()))
                .help("this is no state directory of this version; name another with --state")),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            Err(Failure::new(format!("{} is no directory", state.display())))
        }
        Err(error) => Err(Failure::new(format!(
            "cannot read {}: {error}",
            path.display()
        ))),
    }
}

/// Loads the workflow recorded in a state directory.
pub(crate) fn load(state: &Path) -> Result<Workflow, Failure> {
    ensure_private(state)?;
    let saved = read(state)?.ok_or_else(|| {
        Failure::new(format!("{} is no state directory", state.display()))
            .help("name the directory given to `run` or `demo` with --state")
    })?;
    let file = hex::decode(&saved.file).map_err(|error| {
        Failure::new(format!(
            "{}: the file's name: {error}",
            state.join(WORKFLOW_FILE).display()
        ))
    })?;
    let file = PathBuf::from(OsString::from_vec(file));
    Workflow::parse(&saved.text, &file).map_err(|found| Failure::new(render(&found)))
}

/// Opens a mill on its state. Waits up to [`LOCK_WAIT_MAX`] for the lock, which a short command holds only for a
/// moment; another running mill holds it longer, and the error is returned.
pub(crate) async fn open(
    workflow: &Workflow,
    registry: &Registry,
    mut options: impl FnMut() -> Options,
) -> Result<Mill, MillError> {
    let until = Instant::now() + LOCK_WAIT_MAX;
    loop {
        match Mill::open(workflow, registry.clone(), options()).await {
            Err(MillError::Open(OpenError::Locked(_))) if Instant::now() < until => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            opened => return opened,
        }
    }
}

/// The state directory named on the command line, or the only one under [`ROOT`].
pub(crate) fn choose(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return Ok(named);
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir(ROOT)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join(WORKFLOW_FILE).is_file())
        .collect();
    found.sort();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Failure::usage(format!("no state directory under {ROOT}"))
            .help("run a workflow first, or name its state directory with --state")),
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            Err(Failure::usage(format!(
                "there are several state directories: {}",
                names.join(", ")
            ))
            .help("name one with --state"))
        }
    }
}
