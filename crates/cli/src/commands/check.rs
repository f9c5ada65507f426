//! `proofmill check`

use std::path::Path;

use proofmill_telemetry::console_line;
use proofmill_workflow::{Diagnostic, LocalHost, Workflow, graph, render, validate_file};

use crate::args::{Check, Graph};
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
    let registry = provers::registry(Path::new(""));
    let host = LocalHost::new(registry.prover_names())
        .with_strategies(registry.strategy_names())
        .with_emission_checks(registry.emission_check_names());
    validate_file(file, &host)
}

/// Shows warnings on standard error.
pub(crate) fn warn(warnings: &[Diagnostic]) {
    if !warnings.is_empty() {
        console_line(render(warnings).trim_end());
    }
}

/// What a file that is not right is answered with.
pub(crate) fn refused(file: &Path, found: &[Diagnostic]) -> Failure {
    console_line(render(found).trim_end());
    Failure::new(format!("{} is not right", file.display()))
}
