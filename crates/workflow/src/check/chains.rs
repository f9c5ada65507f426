//! Rule that a chain that may be reorganised shares no stage with another source.

use std::collections::BTreeSet;

use super::checker::Checker;
use crate::diagnostic::Code;
use crate::linked::{LinkedWorkflow, StageId, StageKind};
use crate::model::SourceKind;

/// Reports stages that an Ethereum source shares with another source. A reorganisation would drop
/// the other source's messages about the removed blocks, and they would not be sent again.
pub(super) fn check(checker: &mut Checker<'_>) {
    let linked = checker.linked.clone();
    let sources = linked.stages.iter().filter_map(|stage| match &stage.kind {
        StageKind::Source(source) => Some((stage.id, &source.kind)),
        _ => None,
    });
    let reaches: Vec<_> = sources
        .map(|(id, kind)| (id, kind, reached(&linked, id)))
        .collect();
    for (id, kind, stages) in &reaches {
        if !matches!(kind, SourceKind::Ethereum { .. }) {
            continue;
        }
        let others = reaches.iter().filter(|(other, ..)| other != id);
        let shared = others.filter_map(|(other, _, theirs)| {
            let stage = stages.intersection(theirs).min()?;
            Some((*other, *stage))
        });
        for (other, stage) in shared.take(1) {
            let message = format!(
                "source {:?} reaches {:?} too: a reorganisation of this chain would drop the \
                 messages of that source there",
                checker.stage_name(other),
                checker.stage_name(stage),
            );
            let field = checker.stage_field(*id).child("output");
            let help = "give each chain its own stages";
            checker.push(Code::MixedChain, &field, message, help);
        }
    }
}

/// The stages that a source's messages reach.
fn reached(linked: &LinkedWorkflow, source: StageId) -> BTreeSet<StageId> {
    let mut stages = BTreeSet::new();
    let mut next = linked.stage(source).outputs.clone();
    while let Some(queue) = next.pop() {
        for reader in &linked.queue(queue).readers {
            if stages.insert(*reader) {
                next.extend(&linked.stage(*reader).outputs);
            }
        }
    }
    stages
}
