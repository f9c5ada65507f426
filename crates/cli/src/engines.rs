//! The engines that the stages of a workflow use, as its console shows them.

use std::path::PathBuf;

use proofmill_api::engine::{Address, Credentials, WatchedEngine};
use proofmill_workflow::{Dispatcher, Executor, Workflow};

use crate::args::console::EngineArgs;
use crate::provers;

/// An engine by its address, and the stages that use it.
struct Found {
    address: Address,
    credentials: Credentials,
    stages: Vec<String>,
}

/// The engines in other processes that a workflow names, each once, with the credentials of the first stage that uses it.
pub(crate) fn of_workflow(workflow: &Workflow) -> Vec<WatchedEngine> {
    watched(found(workflow))
}

/// The engines that the arguments name; without any, those of the workflow. Files of the arguments replace those of the
/// workflow, which are on the dispatchers' machines.
pub(crate) fn of_arguments(args: &EngineArgs, workflow: &Workflow) -> Vec<WatchedEngine> {
    let mut engines = found(workflow);
    if !args.engine.is_empty() {
        let known = std::mem::take(&mut engines);
        for address in &args.engine {
            let known = known.iter().find(|it| it.address == *address);
            let stages = known.map_or_else(Vec::new, |it| it.stages.clone());
            engines.push(Found {
                address: address.clone(),
                credentials: Credentials::default(),
                stages,
            });
        }
    }
    let replace = |own: &mut Option<PathBuf>, given: &Option<PathBuf>| {
        if given.is_some() {
            own.clone_from(given);
        }
    };
    for engine in &mut engines {
        replace(&mut engine.credentials.token, &args.engine_token);
        replace(&mut engine.credentials.authority, &args.engine_ca);
    }
    watched(engines)
}

fn watched(found: Vec<Found>) -> Vec<WatchedEngine> {
    let engines = found.into_iter();
    engines
        .map(|it| WatchedEngine::there(it.address, it.credentials, it.stages))
        .collect()
}

fn found(workflow: &Workflow) -> Vec<Found> {
    let mut engines: Vec<Found> = Vec::new();
    for stage in &workflow.dispatchers {
        for (address, credentials) in of_stage(stage) {
            let known = engines.iter_mut().find(|it| it.address == address);
            match known {
                Some(known) => known.stages.push(stage.name.clone()),
                None => engines.push(Found {
                    address,
                    credentials,
                    stages: vec![stage.name.clone()],
                }),
            }
        }
    }
    engines
}

/// The engines of a stage, with the client's credentials.
fn of_stage(stage: &Dispatcher) -> Vec<(Address, Credentials)> {
    let named = match &stage.executor {
        Executor::Engine(engine) => Some(engine.clone()),
        Executor::Native { .. } => provers::part_engines(stage),
        Executor::Process(_) => None,
    };
    let Some(engine) = named else {
        return Vec::new();
    };
    let credentials = Credentials {
        authority: engine.ca,
        token: engine.token,
    };
    // A workflow's addresses are those of engines; others would be refused by its dispatchers, too.
    let addresses = engine.endpoints.iter();
    let addresses = addresses.filter_map(|at| at.to_string().parse().ok());
    addresses
        .map(|address| (address, credentials.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const WORKFLOW: &str = r#"
        name = "engines"
        [[source]]
        name = "blocks"
        kind = "range"
        end = 3
        output = "blocks"
        [[dispatcher]]
        name = "prove"
        input = "blocks"
        output = "proofs"
        executor = { kind = "engine", circuit = "a", endpoints = ["unix:/run/e.sock", "https://e:7400"], token = "/t" }
        [[dispatcher]]
        name = "wrap"
        input = "proofs"
        executor = { kind = "engine", circuit = "b", endpoints = ["unix:/run/e.sock"], token = "/other" }
    "#;

    fn summary(engines: &[Found]) -> Vec<(String, Option<PathBuf>, String)> {
        let row = |it: &Found| {
            let token = it.credentials.token.clone();
            (it.address.to_string(), token, it.stages.join(" "))
        };
        engines.iter().map(row).collect()
    }

    #[test]
    fn an_engine_of_several_stages_is_found_once() {
        let workflow = Workflow::parse(WORKFLOW, Path::new("/w.toml"));
        let workflow = workflow.unwrap_or_else(|faults| panic!("{faults:?}"));
        let token = Some(PathBuf::from("/t"));
        let expected = [
            (
                "unix:/run/e.sock".to_owned(),
                token.clone(),
                "prove wrap".to_owned(),
            ),
            ("https://e:7400/".to_owned(), token, "prove".to_owned()),
        ];
        assert_eq!(summary(&found(&workflow)), expected);
    }
}
