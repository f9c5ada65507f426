//! `proofmill check`

use std::io::ErrorKind;
use std::path::Path;

use proofmill_files::is_inherited;
use proofmill_telemetry::console_line;
use proofmill_workflow::{Diagnostic, LocalHost, Workflow, graph, render, validate_file};

use crate::args::{Check, Graph};
use crate::content::FileKind;
use crate::failure::Failure;
use crate::output;
use crate::progress::counted;
use crate::provers;

pub(crate) fn run(args: &Check) -> Result<(), Failure> {
    match validate(&args.file) {
        Ok((workflow, warnings)) => {
            if args.json {
                return output::line(serde_json::to_string(&warnings)?);
            }
            warn(&warnings);
            match args.graph {
                Some(Graph::Mermaid) => output::raw(graph::mermaid(&workflow).as_bytes()),
                Some(Graph::Dot) => output::raw(graph::dot(&workflow).as_bytes()),
                None => output::line(format!(
                    "{}: workflow {:?} is right: {}, {}, {}, {}",
                    args.file.display(),
                    workflow.name,
                    counted(workflow.sources.len(), "source"),
                    counted(workflow.dispatchers.len(), "dispatcher"),
                    counted(workflow.collectors.len(), "collector"),
                    counted(workflow.queues.len(), "queue"),
                )),
            }
        }
        Err(found) => {
            if args.json {
                output::line(serde_json::to_string(&found)?)?;
            }
            Err(refused(&args.file, &found))
        }
    }
}

/// Checks a workflow file with the provers of this program.
pub(crate) fn validate(file: &Path) -> Result<(Workflow, Vec<Diagnostic>), Vec<Diagnostic>> {
    if let Some(fault) = another_kind(file) {
        return Err(vec![fault]);
    }
    let registry = provers::registry(Path::new(""));
    let host = LocalHost::new(registry.prover_names())
        .with_strategies(registry.strategy_names())
        .with_emission_checks(registry.emission_check_names())
        .with_result_checks(registry.result_check_names());
    validate_file(file, &host)
}

/// The diagnostic for a file that other commands take, such as a key, or that is not a regular file. `None` if the file
/// may be a workflow.
fn another_kind(file: &Path) -> Option<Diagnostic> {
    let found = match FileKind::of_file(file) {
        Ok(found) => found?,
        Err(error) if error.kind() == ErrorKind::InvalidInput && !is_inherited(file) => {
            let message = format!("the file cannot be read: {error}");
            let help = "give the path of a workflow file (TOML)";
            return Some(Diagnostic::of_file(file, message, help));
        }
        // The workflow's reader reports the error.
        Err(_) => return None,
    };
    let message = format!(
        "the file is {}, not a workflow (TOML)",
        found.name_with_article()
    );
    let shown = file.display();
    let help = match found {
        FileKind::Zkey => format!(
            "`proofmill zkey check {shown}` checks a proving key; `proofmill engine serve --circuits \
             {shown}` proves with it"
        ),
        FileKind::VerifyingKey => {
            format!("`proofmill verify --vk {shown} PROOF PUBLIC` verifies proofs with it")
        }
        FileKind::ReferenceString => {
            format!("`proofmill aggregate check {shown}` checks a reference string")
        }
        _ => "give the path of a workflow file, such as examples/fan-out/workflow.toml".to_owned(),
    };
    Some(Diagnostic::of_file(file, message, help))
}

/// Shows warnings on standard error.
pub(crate) fn warn(warnings: &[Diagnostic]) {
    if !warnings.is_empty() {
        console_line(render(warnings).trim_end());
    }
}

/// Prints the diagnostics of a refused workflow file, and returns the command's failure.
pub(crate) fn refused(file: &Path, found: &[Diagnostic]) -> Failure {
    console_line(render(found).trim_end());
    Failure::new(format!("{} is not right", file.display()))
}
