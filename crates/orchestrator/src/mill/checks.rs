//! The checks of emissions, and of results before they count, that a workflow requires.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use proofmill_workflow as file;

use super::options::MillError;
use super::registry::Registry;
use crate::coordinator::ResultChecks;
use crate::plan::Plan;
use crate::sink::{Checks, EmissionCheck, History};

/// File in the state directory with the end of the last emissions.
const HISTORY: &str = "emissions.json";

/// The checks of a workflow's emissions; `None` if no stage verifies, or verifiers are trusted.
pub(crate) fn checks(
    workflow: &file::Workflow,
    registry: &Registry,
    state: &Path,
) -> Result<Option<Arc<Mutex<Checks>>>, MillError> {
    let Some(sequencer) = &workflow.sequencer else {
        return Ok(None);
    };
    let linked = workflow.link();
    let mut stages: BTreeMap<Arc<str>, Arc<dyn EmissionCheck>> = BTreeMap::new();
    let mut unchecked: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut takes_submitted = false;
    for id in linked.emitters() {
        let stage = linked.stage(id);
        match &stage.kind {
            file::StageKind::Dispatcher(of) if of.verify && !workflow.trust_verifiers => {
                let made = check_of(of, registry);
                let check = made.map_err(|why| MillError::Setup {
                    what: format!("dispatcher {:?}", of.name),
                    why,
                })?;
                stages.insert(stage.name.as_str().into(), check);
            }
            file::StageKind::Dispatcher(_) => {
                unchecked.insert(stage.name.as_str().into());
            }
            _ => takes_submitted = true,
        }
    }
    if stages.is_empty() {
        return Ok(None);
    }
    let history = History::open(&state.join(HISTORY), sequencer.start);
    let checks = Checks::new(stages, unchecked, takes_submitted, history);
    Ok(Some(Arc::new(Mutex::new(checks))))
}

/// The checks of results before they count that a workflow requires.
pub(crate) fn result_checks(
    workflow: &file::Workflow,
    registry: &Registry,
    plan: &Plan,
) -> Result<ResultChecks, MillError> {
    let mut checks = ResultChecks::default();
    for stage in workflow.dispatchers.iter().filter(|of| of.check_results) {
        let made = match &stage.executor {
            file::Executor::Native { prover, params } => registry.make_result_check(prover, params),
            _ => Err("only results of native provers can be checked before they count".to_owned()),
        };
        let check = made.map_err(|why| MillError::Setup {
            what: format!("dispatcher {:?}", stage.name),
            why,
        })?;
        if let Some(ix) = plan.stage_named(&stage.name) {
            checks.insert(ix, check);
        }
    }
    Ok(checks)
}

fn check_of(
    stage: &file::Dispatcher,
    registry: &Registry,
) -> Result<Arc<dyn EmissionCheck>, String> {
    match &stage.executor {
        file::Executor::Native { prover, params } => registry.make_check(prover, params),
        _ => Err(
            "results that a program or an engine has verified cannot be checked again before they \
             are emitted: verify with a native prover, or write `trust_verifiers = true`"
                .to_owned(),
        ),
    }
}
