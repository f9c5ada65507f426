//! Rule that messages must not go round in a cycle.

use super::checker::Checker;
use crate::diagnostic::Code;
use crate::linked::{LinkedWorkflow, QueueId, StageId};

/// Maximum number of cycles reported (`MAX_CYCLES`), and of stages of a cycle shown (`MAX_SHOWN`).
const MAX_CYCLES: usize = 20;
const MAX_SHOWN: usize = 12;

/// Reports cycles. Returns whether there is one.
pub(super) fn check(checker: &mut Checker<'_>) -> bool {
    let cycles = cycles(&checker.linked);
    for cycle in &cycles {
        let shown: Vec<String> = cycle
            .iter()
            .take(MAX_SHOWN)
            .flat_map(|&(stage, queue)| [checker.stage_name(stage), checker.queue_name(queue)])
            .map(str::to_owned)
            .collect();
        let more = if cycle.len() > MAX_SHOWN {
            "… -> "
        } else {
            ""
        };
        let first = cycle[0].0;
        let last = cycle[cycle.len() - 1];
        let field = checker.output_field(last.0, last.1);
        let message = format!(
            "a cycle: {} -> {more}{}",
            shown.join(" -> "),
            checker.stage_name(first)
        );
        let help = format!(
            "write a queue that does not lead back to these stages, or remove `{}`",
            { checker.queue_name(last.1) }
        );
        checker.push(Code::Cycle, &field, message, help);
    }
    !cycles.is_empty()
}

/// Stages in topological order, without those in `without` and those that a cycle feeds.
pub(super) fn order(linked: &LinkedWorkflow, without: &[bool]) -> Vec<StageId> {
    let mut writers: Vec<usize> = vec![0; linked.queues.len()];
    let mut inputs: Vec<usize> = vec![0; linked.stages.len()];
    for queue in &linked.queues {
        writers[queue.id.0] = queue.writers.iter().filter(|id| !without[id.0]).count();
        if writers[queue.id.0] > 0 {
            queue
                .readers
                .iter()
                .for_each(|reader| inputs[reader.0] += 1);
        }
    }
    let mut order: Vec<StageId> = linked
        .stages
        .iter()
        .map(|stage| stage.id)
        .filter(|id| !without[id.0] && inputs[id.0] == 0)
        .collect();
    let mut next = 0;
    while let Some(&id) = order.get(next) {
        next += 1;
        for queue in &linked.stage(id).outputs {
            writers[queue.0] -= 1;
            if writers[queue.0] > 0 {
                continue;
            }
            for reader in &linked.queue(*queue).readers {
                inputs[reader.0] -= 1;
                if inputs[reader.0] == 0 && !without[reader.0] {
                    order.push(*reader);
                }
            }
        }
    }
    order
}

/// Disjoint cycles, each as its stages with the queue that each writes to the next, beginning with
/// the stage that is first in [`LinkedWorkflow::stages`].
fn cycles(linked: &LinkedWorkflow) -> Vec<Vec<(StageId, QueueId)>> {
    let mut gone = vec![false; linked.stages.len()];
    let mut cycles = Vec::new();
    while cycles.len() < MAX_CYCLES {
        let mut left: Vec<bool> = gone.iter().map(|gone| !gone).collect();
        for id in order(linked, &gone) {
            left[id.0] = false;
        }
        let Some(start) = left.iter().position(|&left| left) else {
            break;
        };
        // Every stage left has a writer that is left, so following writers back must meet a cycle.
        let mut seen: Vec<Option<usize>> = vec![None; linked.stages.len()];
        let mut path: Vec<(StageId, QueueId)> = Vec::new();
        let mut at = StageId(start);
        let begin = loop {
            if let Some(begin) = seen[at.0] {
                break begin;
            }
            seen[at.0] = Some(path.len());
            let back = linked.stage(at).inputs.iter().find_map(|&queue| {
                let writer = linked
                    .queue(queue)
                    .writers
                    .iter()
                    .find(|writer| left[writer.0])?;
                Some((*writer, queue))
            });
            let Some(back) = back else { return cycles };
            path.push(back);
            at = back.0;
        };
        let mut cycle = path.split_off(begin);
        cycle.reverse();
        let first = (0..cycle.len())
            .min_by_key(|&index| cycle[index].0)
            .unwrap_or(0);
        cycle.rotate_left(first);
        cycle.iter().for_each(|(stage, _)| gone[stage.0] = true);
        cycles.push(cycle);
    }
    cycles
}
