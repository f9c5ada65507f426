//! State directories, and the workflow that each belongs to.

use std::io::Write;
use std::path::{Path, PathBuf};

use proofmill_workflow::{Workflow, render};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Where state directories are by default.
pub(crate) const ROOT: &str = ".proofmill";

/// The file in a state directory that says which workflow it belongs to.
const FILE: &str = "workflow.json";

#[derive(Serialize, Deserialize)]
struct Saved {
    file: PathBuf,
    text: String,
}

/// Remembers the workflow of a state directory, for the commands that look at it later.
pub(crate) fn save(state: &Path, workflow_file: &Path, text: &str) -> Result<(), Failure> {
    let file = std::path::absolute(workflow_file)?;
    let saved = serde_json::to_vec_pretty(&Saved { file, text: text.to_owned() })?;
    write_whole(&state.join(FILE), &saved)
}

/// The workflow of a state directory.
pub(crate) fn load(state: &Path) -> Result<Workflow, Failure> {
    let path = state.join(FILE);
    let bytes = std::fs::read(&path).map_err(|error| {
        Failure::new(format!("{} is no state directory: {error}", state.display()))
            .help("name the directory given to `run` or `demo` with --state")
    })?;
    let saved: Saved = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    Workflow::parse(&saved.text, &saved.file).map_err(|found| Failure::new(render(&found)))
}

/// The state directory that is meant: the one named, or the only one there is.
pub(crate) fn choose(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return Ok(named);
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir(ROOT)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join(FILE).is_file())
        .collect();
    found.sort();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Failure::usage(format!("no state directory under {ROOT}"))
            .help("run a workflow first, or name its state directory with --state")),
        several => {
            let names: Vec<String> =
                several.iter().map(|path| path.display().to_string()).collect();
            Err(Failure::usage(format!("there are several state directories: {}", names.join(", ")))
                .help("name one with --state"))
        }
    }
}

/// Writes a file whole: a temporary file, synced, then renamed.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let directory = path.parent().unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| {
        Failure::new(format!("cannot write {}: {}", path.display(), error.error))
    })?;
    std::fs::File::open(directory)?.sync_all()?;
    Ok(())
}
