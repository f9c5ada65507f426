//! Rules for names, and for the readers and writers of queues.

use std::collections::{HashMap, HashSet};

use super::checker::Checker;
use crate::diagnostic::Code;
use crate::document::Field;
use crate::linked::{QueueId, StageId};
use crate::mentions::{Mention, Mentions};
use crate::model::{Sequencer, Writers};
use crate::suggest::nearest;

pub(super) fn check(checker: &mut Checker<'_>) {
    names(checker);
    repeats(checker);
    readers_and_writers(checker);
    reachable(checker);
}

fn names(checker: &mut Checker<'_>) {
    let mut first: HashMap<String, StageId> = HashMap::new();
    let mut faults = Vec::new();
    for stage in checker.stages() {
        if let Some(&other) = first.get(&stage.name) {
            let field = checker.stage_field(other);
            let (line, ..) = checker
                .document()
                .place(checker.document().span(&field).start);
            faults.push((stage.id, stage.name.clone(), line));
        } else {
            first.insert(stage.name.clone(), stage.id);
        }
    }
    for (id, name, line) in faults {
        let sequencer = checker.stage_field(id) == Field::table("sequencer");
        if sequencer {
            let message = format!("the stage at line {line} has the sequencer's name");
            let help = "choose another name";
            let field = first
                .get(Sequencer::NAME)
                .map(|&id| checker.stage_field(id));
            let field = field.unwrap_or_else(Field::root).child("name");
            checker.push(Code::DuplicateName, &field, message, help);
        } else {
            let message = format!("a stage at line {line} is called `{name}` too");
            let field = checker.stage_field(id).child("name");
            checker.push(
                Code::DuplicateName,
                &field,
                message,
                "rename one of the two stages",
            );
        }
    }
}

fn repeats(checker: &mut Checker<'_>) {
    let mut faults = Vec::new();
    for stage in checker.stages() {
        let at = checker.stage_field(stage.id);
        for (key, queues) in [("inputs", &stage.inputs), ("output", &stage.outputs)] {
            let mut seen = HashSet::new();
            for (index, queue) in queues.iter().enumerate() {
                if !seen.insert(queue) {
                    faults.push((at.child(key).item(index), *queue));
                }
            }
        }
    }
    for (field, queue) in faults {
        let message = format!("the queue `{}` is named twice", checker.queue_name(queue));
        checker.push(Code::RepeatedQueue, &field, message, "name it once");
    }
}

fn readers_and_writers(checker: &mut Checker<'_>) {
    let declared: HashMap<&str, Field> = checker
        .workflow
        .queues
        .iter()
        .enumerate()
        .map(|(index, queue)| {
            (
                queue.name.as_str(),
                checker.document().origin("queue", index),
            )
        })
        .filter(|(_, field)| checker.document().has(field))
        .collect();
    let read: Vec<String> = with_some(checker, |queue| {
        !checker.linked.queue(queue).readers.is_empty()
    });
    let written: Vec<String> = with_some(checker, |queue| {
        !checker.linked.queue(queue).writers.is_empty()
    });

    let unwritten = without(&read, &written);

    for index in 0..checker.linked.queues.len() {
        if checker.full() {
            return;
        }
        let queue = checker.linked.queues[index].clone();
        let name = queue.name.as_str();
        match (queue.writers.as_slice(), queue.readers.as_slice()) {
            ([], []) => {
                let field = declared.get(name).map(|field| field.child("name"));
                let message = format!("no stage uses the queue `{name}`");
                let help = "remove it, or name it in a stage";
                checker.push(
                    Code::UnusedQueue,
                    &field.unwrap_or_else(Field::root),
                    message,
                    help,
                );
            }
            ([], [reader, ..]) => {
                let field = checker.input_field(*reader, queue.id);
                unknown(checker, name, &field, &written);
            }
            ([writer, ..], []) => {
                let field = checker.output_field(*writer, queue.id);
                unread(checker, name, &field, &unwritten);
            }
            _ => {}
        }
        if let [first, second, ..] = queue.writers[..]
            && first != second
            && checker.workflow.queues[index].writers == Writers::One
        {
            let field = checker.output_field(second, queue.id);
            let message = format!(
                "the queue `{name}` is written by `{}` already",
                checker.stage_name(first)
            );
            let help = match declared.contains_key(name) {
                true => format!("write another queue, or set `writers = \"many\"` for `{name}`"),
                false => format!(
                    "write another queue, or declare this one: `[[queue]]`, `name = \"{name}\"`, \
                     `writers = \"many\"`"
                ),
            };
            checker.push(Code::TwoWriters, &field, message, help);
        }
    }
}

/// Checks that the queues which stages name have readers and writers, where the graph is not reliable because
/// of other faults. A queue is not reported if a name that could not be read may be the missing one.
pub(super) fn check_mentions(checker: &mut Checker<'_>, mentions: &Mentions) {
    let names = |mentions: &[Mention]| -> Vec<String> {
        mentions.iter().map(|one| one.queue.clone()).collect()
    };
    let (read, written) = (names(&mentions.read), names(&mentions.written));
    let unwritten = without(&read, &written);
    let unread_names: HashSet<String> = without(&written, &read).into_iter().collect();
    let unwritten_names: HashSet<&String> = unwritten.iter().collect();
    let mut seen = HashSet::new();
    if mentions.all_written {
        for mention in &mentions.read {
            if unwritten_names.contains(&mention.queue) && seen.insert(&mention.queue) {
                unknown(checker, &mention.queue, &mention.field, &written);
            }
            if checker.full() {
                return;
            }
        }
    }
    if mentions.all_read {
        for mention in &mentions.written {
            if unread_names.contains(&mention.queue) && seen.insert(&mention.queue) {
                unread(checker, &mention.queue, &mention.field, &unwritten);
            }
            if checker.full() {
                return;
            }
        }
    }
}

/// The names that are not among `others`.
fn without(names: &[String], others: &[String]) -> Vec<String> {
    let others: HashSet<&String> = others.iter().collect();
    let names = names.iter().filter(|name| !others.contains(name));
    names.cloned().collect()
}

/// Reports a queue that is read in `field` and written by none.
fn unknown(checker: &mut Checker<'_>, name: &str, field: &Field, written: &[String]) {
    let help = match nearest(name, written.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("add `output = \"{name}\"` to the stage that makes it"),
    };
    let message = format!("no stage writes the queue `{name}`");
    checker.push(Code::UnknownQueue, field, message, help);
}

/// Reports a queue that is written in `field` and read by none; `unwritten` are those that are read and not written.
fn unread(checker: &mut Checker<'_>, name: &str, field: &Field, unwritten: &[String]) {
    let help = match nearest(name, unwritten.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "read it in a stage or the sequencer, or remove it here".to_owned(),
    };
    let message = format!("no stage reads the queue `{name}`");
    checker.push(Code::UnreadQueue, field, message, help);
}

fn with_some(checker: &Checker<'_>, keep: impl Fn(QueueId) -> bool) -> Vec<String> {
    let queues = checker.linked.queues.iter().filter(|queue| keep(queue.id));
    queues.map(|queue| queue.name.clone()).collect()
}

/// A stage is reached if each of its inputs is; a queue if one of its writers is. A queue without
/// writers counts as reached: it is reported by another rule.
fn reachable(checker: &mut Checker<'_>) {
    let linked = &checker.linked;
    if checker.workflow.sources.is_empty() {
        let help = "add a `[[source]]`; `kind = \"submit\"` takes tasks from the command line";
        checker.push(
            Code::NoSource,
            &Field::root(),
            "the workflow has no source",
            help,
        );
        return;
    }
    let mut waiting: Vec<usize> = linked
        .stages
        .iter()
        .map(|stage| stage.inputs.len())
        .collect();
    let mut reached = vec![false; linked.queues.len()];
    let mut queues: Vec<QueueId> = Vec::new();
    let mut reach = |queue: QueueId, queues: &mut Vec<QueueId>| {
        if !std::mem::replace(&mut reached[queue.0], true) {
            queues.push(queue);
        }
    };
    for queue in linked
        .queues
        .iter()
        .filter(|queue| queue.writers.is_empty())
    {
        reach(queue.id, &mut queues);
    }
    for stage in linked.stages.iter().filter(|stage| stage.inputs.is_empty()) {
        stage
            .outputs
            .iter()
            .for_each(|&queue| reach(queue, &mut queues));
    }
    while let Some(queue) = queues.pop() {
        for &reader in &linked.queue(queue).readers {
            waiting[reader.0] -= 1;
            if waiting[reader.0] == 0 {
                let outputs = &linked.stage(reader).outputs;
                outputs.iter().for_each(|&queue| reach(queue, &mut queues));
            }
        }
    }
    let lost: Vec<(StageId, QueueId)> = linked
        .stages
        .iter()
        .filter(|stage| waiting[stage.id.0] > 0)
        .filter_map(|stage| {
            let dry = stage.inputs.iter().find(|queue| !reached[queue.0])?;
            Some((stage.id, *dry))
        })
        .collect();
    for (id, queue) in lost {
        let field = checker.input_field(id, queue);
        let message = format!(
            "no source's messages reach this stage through `{}`",
            checker.queue_name(queue)
        );
        let help = "connect a source to the stages that write this queue";
        checker.push(Code::UnreachableStage, &field, message, help);
    }
}
