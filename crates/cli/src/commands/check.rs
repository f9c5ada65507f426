//! `proofmill check`

use std::path::Path;

use proofmill_workflow::{Diagnostic, LocalHost, Workflow, graph, render, validate_file};

use crate::args::{Check, Graph};
use crate::failure::Failure;
use crate::provers;

pub(crate) fn run(args: &Check) -> Result<(), Failure> {
    match validate(&args.file) {
        Ok((workflow, warnings)) => {
            if args.json {
                println!("{}", serde_json::to_string_pretty(&warnings)?);
                return Ok(());
            }
            warn(&warnings);
            match args.graph {
                Some(Graph::Mermaid) => print!("{}", graph::mermaid(&workflow)),
                Some(Graph::Dot) => print!("{}", graph::dot(&workflow)),
                None => println!(
                    "{}: workflow {:?} is right: {} sources, {} dispatchers, {} collectors, {} queues",
                    args.file.display(),
                    workflow.name,
                    workflow.sources.len(),
                    workflow.dispatchers.len(),
                    workflow.collectors.len(),
                    workflow.queues.len(),
                ),
            }
            Ok(())
        }
        Err(found) => {
            if args.json {
                println!("{}", serde_json::to_string_pretty(&found)?);
            }
            Err(refused(&args.file, &found))
        }
    }
}

/// Checks a workflow file with the provers of this program.
pub(crate) fn validate(file: &Path) -> Result<(Workflow, Vec<Diagnostic>), Vec<Diagnostic>> {
    let registry = provers::registry(Path::new(""));
    let host = LocalHost::new(registry.prover_names()).with_strategies(registry.strategy_names());
    validate_file(file, &host)
}

/// Shows warnings on standard error.
pub(crate) fn warn(warnings: &[Diagnostic]) {
    if !warnings.is_empty() {
        eprintln!("{}", render(warnings).trim_end());
    }
}

/// What a file that is not right is answered with.
pub(crate) fn refused(file: &Path, found: &[Diagnostic]) -> Failure {
    eprintln!("{}", render(found).trim_end());
    Failure::new(format!("{} is not right", file.display()))
}
