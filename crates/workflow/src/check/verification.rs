//! Rules for verification: emitted results were verified by a stage, the process that emits can
//! check them again, and the coordinator can check what it is to check before it counts.

use super::checker::Checker;
use crate::diagnostic::Code;
use crate::document::Field;
use crate::linked::{StageId, StageKind};
use crate::model::{Dispatcher, Executor};

pub(super) fn check(checker: &mut Checker<'_>) {
    result_checks(checker);
    if checker.workflow.sequencer.is_none() {
        return;
    }
    let linked = checker.linked.clone();
    let mut unverified = Vec::new();
    let mut verified = Vec::new();
    for id in linked.emitters() {
        match &linked.stage(id).kind {
            StageKind::Dispatcher(stage) if stage.verify => verified.push((id, stage)),
            _ => unverified.push(checker.stage_name(id).to_owned()),
        }
    }
    if !unverified.is_empty() {
        let message = format!(
            "no stage verifies the results of {}: they are emitted unchecked",
            unverified.join(", ")
        );
        let help = "feed the sequencer from a stage that verifies, and mark that stage \
                    `verify = true`";
        let field = Field::table("sequencer").child("input");
        checker.push(Code::UnverifiedEmission, &field, message, help);
    }
    if !checker.workflow.trust_verifiers {
        for (id, stage) in verified {
            checked_again(checker, id, stage);
        }
    } else if let Some((id, _)) = verified.first() {
        let message = format!(
            "results of {:?} are emitted without a second check: a dishonest worker of that stage \
             can have anything emitted",
            checker.stage_name(*id)
        );
        let help = "remove `trust_verifiers`, unless the stage's workers are yours alone";
        let field = Field::root().child("trust_verifiers");
        checker.push(Code::TrustedVerifiers, &field, message, help);
    }
}

/// Reports stages whose results the coordinator cannot check before they count.
fn result_checks(checker: &mut Checker<'_>) {
    let linked = checker.linked.clone();
    for id in linked.stage_ids() {
        let StageKind::Dispatcher(stage) = &linked.stage(id).kind else {
            continue;
        };
        if !stage.check_results {
            continue;
        }
        let why = match &stage.executor {
            Executor::Native { prover, .. } => {
                let is_known = checker.host.result_checks().contains(&prover.as_str());
                // A prover that does not exist is reported by another rule.
                if is_known || !checker.host.provers().contains(&prover.as_str()) {
                    continue;
                }
                "the prover offers no such check"
            }
            Executor::Process(_) => "the check needs a native prover, and this is a program",
            Executor::Engine(_) => "the check needs a native prover, and this is an engine",
        };
        let message = format!("the stage's results cannot be checked before they count: {why}");
        let help = "remove `check_results`, or use a native prover that offers a check, such as \
                    \"partition.prove\"";
        let field = checker.stage_field(id).child("check_results");
        checker.push(Code::NoResultCheck, &field, message, help);
    }
}

/// Reports a stage whose results the process that emits cannot check again.
fn checked_again(checker: &mut Checker<'_>, id: StageId, stage: &Dispatcher) {
    let why = match &stage.executor {
        Executor::Native { prover, .. } => {
            let known = checker.host.emission_checks();
            // A prover that does not exist is reported by another rule.
            let is_prover = checker.host.provers().contains(&prover.as_str());
            if known.contains(&prover.as_str()) || !is_prover {
                return;
            }
            "the prover offers no such check"
        }
        Executor::Process(_) => "the check needs a native prover, and this is a program",
        Executor::Engine(_) => "the check needs a native prover, and this is an engine",
    };
    let message =
        format!("the stage's results cannot be checked again before they are emitted: {why}");
    let help = "verify with a native prover such as \"bitcoin.verify\"; or write \
                `trust_verifiers = true` at the top of the file, if the stage's workers are yours";
    let field = checker.stage_field(id).child("verify");
    checker.push(Code::NoEmissionCheck, &field, message, help);
}
