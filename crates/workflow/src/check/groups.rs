//! Rules for groups that can be completed, queues that can hold them, and a sequencer that gets
//! every block.

use std::collections::BTreeMap;

use super::checker::Checker;
use super::flow::{Blocks, DuplicateBlocks, Flow};
use crate::diagnostic::Code;
use crate::document::Field;
use crate::linked::{LinkedStage, QueueId, StageId, StageKind};
use crate::model::{Collector, MatchCount, Sequencer, Strategy};
use crate::suggest::nearest;

pub(super) fn check(checker: &mut Checker<'_>, flows: &[Flow]) {
    for index in 0..checker.linked.stages.len() {
        if checker.full() {
            return;
        }
        let stage = checker.linked.stages[index].clone();
        match &stage.kind {
            StageKind::Collector(collector) => {
                let group = Group {
                    stage: &stage,
                    collector,
                    flows,
                };
                match &collector.strategy {
                    Strategy::Match {
                        k: MatchCount::Total(k),
                        ..
                    } => {
                        group.total(checker, u64::from(*k));
                    }
                    Strategy::Match {
                        k: MatchCount::PerQueue(counts),
                        ..
                    } => {
                        group.per_queue(checker, counts);
                    }
                    Strategy::Sequential { n } => group.sequential(checker, *n),
                    Strategy::Range { by } => group.range(checker, by),
                    Strategy::Custom { .. } => {}
                }
            }
            StageKind::Sequencer(sequencer) => sequence(checker, &stage, sequencer, flows),
            StageKind::Source(_) | StageKind::Dispatcher(_) => {}
        }
    }
}

/// A collector, and the flows of all queues.
struct Group<'a> {
    stage: &'a LinkedStage,
    collector: &'a Collector,
    flows: &'a [Flow],
}

const RAISE: &str = "raise the queue's `q_max` in `[[queue]]`, or make the group smaller";

// === impl Group ===

impl Group<'_> {
    fn field(&self, checker: &Checker<'_>, key: &str) -> Field {
        checker
            .stage_field(self.stage.id)
            .child("strategy")
            .child(key)
    }

    /// Whether an incomplete group is emitted after a timeout.
    fn emits_partial(&self) -> bool {
        self.collector.partial && self.collector.t_collect.is_some()
    }

    fn total(&self, checker: &mut Checker<'_>, k: u64) {
        let field = self.field(checker, "k");
        if k == 0 {
            let message = "a group of no messages never fires";
            return checker.push(Code::EmptyGroup, &field, message, "make `k` at least 1");
        }
        let capacity: u64 = self.inputs(checker).map(|(_, q_max)| q_max).sum();
        if k > capacity {
            let message = format!("a group needs {k} messages, and the inputs hold {capacity}");
            checker.push(Code::QueueBelowGroup, &field, message, RAISE);
        }
        let all = self.stage.inputs.iter().try_fold(0u64, |sum, queue| {
            sum.checked_add(self.flows[queue.0].messages()?)
        });
        if let Some(all) = all
            && all < k
            && !self.emits_partial()
        {
            let message = format!("a group needs {k} messages, and only {all} ever come");
            let help = "make `k` smaller, or give `t_collect` and `partial = true`";
            checker.push(Code::GroupNeverFills, &field, message, help);
        }
    }

    fn per_queue(&self, checker: &mut Checker<'_>, counts: &BTreeMap<String, u32>) {
        let field = self.field(checker, "k");
        if counts.is_empty() {
            let help = format!("write `k = {{ {} = 1 }}`", self.collector.inputs[0]);
            let message = "a group of no messages never fires";
            return checker.push(Code::EmptyGroup, &field, message, help);
        }
        for (name, &count) in counts {
            let field = field.child(name);
            let Some(input) = self
                .stage
                .inputs
                .iter()
                .find(|id| checker.queue_name(**id) == name)
            else {
                let inputs = self.collector.inputs.iter().map(String::as_str);
                let help = match nearest(name, inputs) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "remove it, or add the queue to `inputs`".to_owned(),
                };
                let shown: String = name.chars().take(64).collect();
                let message = format!("{shown:?} is not an input of this stage");
                checker.push(Code::CountNotInput, &field, message, help);
                continue;
            };
            if count == 0 {
                let help = "make it at least 1, or remove the queue from `inputs`";
                let message = "a group takes no message of this input";
                checker.push(Code::EmptyGroup, &field, message, help);
                continue;
            }
            let q_max = u64::from(checker.linked.queue(*input).q_max);
            if u64::from(count) > q_max {
                let message = format!("a group needs {count} messages, and `{name}` holds {q_max}");
                checker.push(Code::QueueBelowGroup, &field, message, RAISE);
            }
            if let Some(all) = self.flows[input.0].messages()
                && all < u64::from(count)
                && !self.emits_partial()
            {
                let message =
                    format!("a group needs {count} messages of `{name}`, and only {all} ever come");
                let help = "make the count smaller, or give `t_collect` and `partial = true`";
                checker.push(Code::GroupNeverFills, &field, message, help);
            }
        }
        for &input in &self.stage.inputs {
            let name = checker.queue_name(input).to_owned();
            if !counts.contains_key(&name) {
                let message = format!("a group counts no messages of `{name}`");
                let help = format!("add `{name} = 1` to `k`, or remove `{name}` from `inputs`");
                let field = checker.input_field(self.stage.id, input);
                checker.push(Code::InputNotCounted, &field, message, help);
            }
        }
    }

    fn sequential(&self, checker: &mut Checker<'_>, n: u64) {
        let field = self.field(checker, "n");
        if n == 0 {
            let message = "a group of no blocks never fires";
            return checker.push(Code::EmptyGroup, &field, message, "make `n` at least 1");
        }
        for &queue in &self.stage.inputs {
            self.check_one_message_per_block(checker, queue);
            for blocks in &self.flows[queue.0].blocks {
                if let Some((message, help)) = self.unfillable(n, blocks) {
                    let message = format!("{message} (through `{}`)", checker.queue_name(queue));
                    checker.push(Code::GroupNeverFills, &field, message, help);
                    break;
                }
            }
            let q_max = u64::from(checker.linked.queue(queue).q_max);
            if let Some(blocks) = self.flows[queue.0].single() {
                self.check_capacity(checker, &field, queue, n.div_ceil(blocks.chunk), q_max);
            }
        }
    }

    fn check_capacity(
        &self,
        checker: &mut Checker<'_>,
        field: &Field,
        queue: QueueId,
        needs: u64,
        q_max: u64,
    ) {
        if needs > q_max {
            let name = checker.queue_name(queue);
            let message = format!("a group needs {needs} messages, and `{name}` holds {q_max}");
            checker.push(Code::QueueBelowGroup, field, message, RAISE);
        }
    }

    /// The reason why groups of `n` blocks never fit these messages, and advice; `None` if they
    /// fit.
    fn unfillable(&self, n: u64, blocks: &Blocks) -> Option<(String, String)> {
        let (start, span) = (blocks.start, blocks.span());
        let inside_one = blocks.end.is_some_and(|end| end / n == start / n);
        if !inside_one && (!n.is_multiple_of(span) || !start.is_multiple_of(span)) {
            let message = format!(
                "messages of {span} blocks from block {start} cross the borders of groups of {n}"
            );
            let help = "make `n` and the source's `start` multiples of its `chunk`";
            return Some((message, help.to_owned()));
        }
        if self.emits_partial() {
            return None;
        }
        if !start.is_multiple_of(n) {
            let message = format!(
                "the group of blocks {} to {} never fills: the first block is {start}",
                start - start % n,
                start - start % n + (n - 1)
            );
            let help = format!(
                "make the source's `start` a multiple of {n}, or give `t_collect` and \
                 `partial = true`"
            );
            return Some((message, help));
        }
        let end = blocks
            .end
            .filter(|&end| end >= start && !(end + 1).is_multiple_of(n))?;
        let message = format!(
            "the group of blocks {} to {} never fills: the last block is {end}",
            end - end % n,
            end - end % n + (n - 1)
        );
        let help = format!(
            "make the source's number of blocks a multiple of {n}, or give `t_collect` and \
             `partial = true`"
        );
        Some((message, help))
    }

    fn range(&self, checker: &mut Checker<'_>, by: &str) {
        let field = self.field(checker, "by");
        let set = self
            .stage
            .inputs
            .iter()
            .find(|id| checker.queue_name(**id) == by)
            .copied();
        let Some(by) = set else {
            let inputs = self.collector.inputs.iter().map(String::as_str);
            let help = match nearest(by, inputs) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("name one of: {}", self.collector.inputs.join(", ")),
            };
            let message = format!("`{by}` is not an input of this stage");
            return checker.push(Code::ByNotInput, &field, message, help);
        };
        let others: Vec<QueueId> = self
            .stage
            .inputs
            .iter()
            .copied()
            .filter(|&queue| queue != by)
            .collect();
        if others.is_empty() {
            let message = "there is no other input to join with";
            let help = "add a queue to `inputs`, or use the strategy \"sequential\"";
            return checker.push(Code::NothingToJoin, &field, message, help);
        }
        self.check_one_message_per_block(checker, by);
        for queue in others {
            self.check_one_message_per_block(checker, queue);
            let (Some(set), Some(member)) =
                (self.flows[by.0].single(), self.flows[queue.0].single())
            else {
                continue;
            };
            let q_max = u64::from(checker.linked.queue(queue).q_max);
            self.check_capacity(
                checker,
                &field,
                queue,
                set.span().div_ceil(member.chunk),
                q_max,
            );
            if let Some((message, help)) = self.uncovered(checker, (by, set), (queue, member)) {
                checker.push(Code::GroupNeverFills, &field, message, help);
            }
        }
    }

    /// The reason why an input never covers the groups of a join, and advice; `None` if it can.
    fn uncovered(
        &self,
        checker: &Checker<'_>,
        (by, set): (QueueId, Blocks),
        (queue, member): (QueueId, Blocks),
    ) -> Option<(String, &'static str)> {
        let (by, name) = (checker.queue_name(by), checker.queue_name(queue));
        let (outer, inner) = (set.span(), member.span());
        let one = set.messages() == Some(1);
        if !one
            && (!outer.is_multiple_of(inner)
                || !set.start.abs_diff(member.start).is_multiple_of(inner))
        {
            let message = format!(
                "messages of {inner} blocks of `{name}` cross the borders that `{by}` sets every \
                 {outer} blocks"
            );
            return Some((message, "make the larger span a multiple of the smaller"));
        }
        if self.emits_partial() {
            return None;
        }
        let help = "let the inputs cover the same blocks, or give `t_collect` and `partial = true`";
        if member.start > set.start {
            let message = format!(
                "`{by}` begins at block {}, and `{name}` only at {}",
                set.start, member.start
            );
            return Some((message, help));
        }
        let last = member.end?;
        match set.end {
            Some(end) if end <= last => None,
            Some(end) => Some((
                format!("`{by}` goes to block {end}, and `{name}` only to {last}"),
                help,
            )),
            // The last header of a file is not known here.
            None if checker
                .workflow
                .sources
                .iter()
                .any(|source| source.may_end_unsaid()) =>
            {
                None
            }
            None => Some((
                format!("`{by}` has no last block, and `{name}` ends at block {last}"),
                help,
            )),
        }
    }

    /// Reports an input with several messages per block: a block counts as covered by its first
    /// message, so the group would fire too early.
    fn check_one_message_per_block(&self, checker: &mut Checker<'_>, queue: QueueId) {
        if let Some(duplicates) = self.flows[queue.0].duplicates {
            let message = format!(
                "`{}` holds several messages about the same block: {}",
                checker.queue_name(queue),
                why(checker, duplicates)
            );
            let field = checker.input_field(self.stage.id, queue);
            checker.push(
                Code::GroupAmbiguous,
                &field,
                message,
                fix_advice(duplicates),
            );
        }
    }

    fn inputs<'c>(&self, checker: &'c Checker<'_>) -> impl Iterator<Item = (QueueId, u64)> + 'c
    where
        Self: 'c,
    {
        let inputs = self.stage.inputs.clone();
        inputs
            .into_iter()
            .map(|id| (id, u64::from(checker.linked.queue(id).q_max)))
    }
}

/// Advice for a queue that must not hold several messages about the same block.
fn fix_advice(duplicates: DuplicateBlocks) -> &'static str {
    match duplicates {
        DuplicateBlocks::FanOut(_) | DuplicateBlocks::Writers(_) => {
            "gather them first, with a collector of the strategy \"match\""
        }
        DuplicateBlocks::Late(_) => {
            "use `late = \"dead\"` or \"skip\"; a stage that wants every message can read the \
             collector's inputs"
        }
    }
}

fn why(checker: &Checker<'_>, duplicates: DuplicateBlocks) -> String {
    match duplicates {
        DuplicateBlocks::Late(stage) => format!(
            "`{}` emits late messages one by one (`late = \"emit\"`)",
            checker.stage_name(stage)
        ),
        DuplicateBlocks::FanOut(stage) => format!("`{}` fans out", checker.stage_name(stage)),
        DuplicateBlocks::Writers(queue) => {
            let writers: Vec<&str> = checker
                .linked
                .queue(queue)
                .writers
                .iter()
                .take(4)
                .map(|&id: &StageId| checker.stage_name(id))
                .collect();
            format!(
                "`{}` is written by stages that one source feeds: {}",
                checker.queue_name(queue),
                writers.join(", ")
            )
        }
    }
}

fn sequence(checker: &mut Checker<'_>, stage: &LinkedStage, sequencer: &Sequencer, flows: &[Flow]) {
    let at = checker.stage_field(stage.id);
    let Some(flow) = stage.inputs.first().map(|queue| &flows[queue.0]) else {
        return;
    };
    if let Some(duplicates) = flow.duplicates {
        let message = format!(
            "the sequencer needs one message for each block, and gets several: {}",
            why(checker, duplicates)
        );
        let field = at.child("input");
        checker.push(
            Code::SequencerNotChain,
            &field,
            message,
            fix_advice(duplicates),
        );
    }
    if flow.unknown || flow.blocks.is_empty() {
        return;
    }
    let start = sequencer.start;
    let first = flow
        .blocks
        .iter()
        .map(|blocks| blocks.start)
        .min()
        .unwrap_or(0);
    let last = flow
        .blocks
        .iter()
        .try_fold(0, |last, blocks| Some(last.max(blocks.end?)));
    let field = at.child("start");
    if first > start {
        let message = format!("block {start} never comes: the first is {first}");
        checker.push(
            Code::SequencerStart,
            &field,
            message,
            format!("set `start = {first}`"),
        );
    } else if let Some(last) = last.filter(|&last| last < start) {
        let message = format!("block {start} never comes: the last is {last}");
        checker.push(
            Code::SequencerStart,
            &field,
            message,
            format!("set `start = {first}`"),
        );
    } else if let Some(blocks) = flow.single()
        && !(start - blocks.start).is_multiple_of(blocks.chunk)
    {
        let border = start - (start - blocks.start) % blocks.chunk;
        let message = format!(
            "block {start} is inside a message that spans {border} to {}",
            border + (blocks.chunk - 1)
        );
        checker.push(
            Code::SequencerStart,
            &field,
            message,
            format!("set `start = {border}`"),
        );
    }
}
