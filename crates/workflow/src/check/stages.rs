//! Rules for single tables: consistent durations, workers able to run the tasks, and files and
//! programs that exist on this machine.

use std::collections::BTreeSet;
use std::path::Path;

use super::checker::Checker;
use crate::diagnostic::Code;
use crate::document::Field;
use crate::host::ProgramFault;
use crate::model::{
    Backoff, Collector, Deadline, Dispatcher, Executor, OnMissed, Policy, Program, Sink, SinkKind,
    SourceKind, Strategy, Workflow,
};
use crate::suggest::nearest;
use crate::value::format_duration;

pub(super) fn check(checker: &mut Checker<'_>) {
    let workflow: &Workflow = checker.workflow;
    policy(
        checker,
        &Field::table("defaults"),
        &workflow.defaults.policy,
    );
    let drops = |deadline: &Deadline| deadline.on_missed == OnMissed::Drop;
    if workflow.deadline.as_ref().is_some_and(drops) && workflow.sequencer.is_some() {
        let message = "the sequencer would wait for ever for a block that is dropped";
        let help = "remove `on_missed`, or the sequencer";
        let field = Field::table("deadline").child("on_missed");
        checker.push(Code::DropWithSequencer, &field, message, help);
    }
    for (index, source) in workflow.sources.iter().enumerate() {
        let at = checker.document().origin("source", index);
        source_kind(checker, &at, &source.kind);
    }
    for (index, stage) in workflow.dispatchers.iter().enumerate() {
        let at = checker.document().origin("dispatcher", index);
        policy(checker, &at, &stage.policy);
        dispatcher(checker, &at, stage);
    }
    for (index, stage) in workflow.collectors.iter().enumerate() {
        let at = checker.document().origin("collector", index);
        policy(checker, &at, &stage.policy);
        collector(checker, &at, stage);
    }
    let sinks = workflow.sequencer.iter().flat_map(|stage| &stage.sinks);
    for (index, sink) in sinks.enumerate() {
        let at = checker.document().origin(Sink::SECTION, index);
        self::sink(checker, &at, sink);
    }
}

/// Reports a fault only at the table that sets the value, not at each stage that inherits it.
fn policy(checker: &mut Checker<'_>, at: &Field, policy: &Policy) {
    let document = checker.document();
    let written = |key: &str| document.has(&at.child(key));
    if policy.heartbeat * 2 >= policy.t_ack && (written("heartbeat") || written("t_ack")) {
        let key = if written("heartbeat") {
            "heartbeat"
        } else {
            "t_ack"
        };
        let message = format!(
            "a heartbeat every {} is too slow for a lease of {}",
            format_duration(policy.heartbeat),
            format_duration(policy.t_ack)
        );
        let help = "make `heartbeat` less than half of `t_ack`";
        checker.push(Code::SlowHeartbeat, &at.child(key), message, help);
    }
    backoff(checker, at, &policy.backoff);
}

fn backoff(checker: &mut Checker<'_>, at: &Field, backoff: &Backoff) {
    if backoff.initial > backoff.max && checker.document().has(&at.child("backoff")) {
        let message = format!(
            "the first wait, {}, is longer than the longest, {}",
            format_duration(backoff.initial),
            format_duration(backoff.max)
        );
        let help = "make `initial` at most `max`";
        checker.push(Code::BackoffOrder, &at.child("backoff"), message, help);
    }
}

fn source_kind(checker: &mut Checker<'_>, at: &Field, kind: &SourceKind) {
    let (file, start, end) = match kind {
        SourceKind::Range { start, end, .. } => (None, *start, *end),
        SourceKind::Headers {
            file, start, end, ..
        } => (file.as_ref(), *start, *end),
        SourceKind::Jsonl { file } => (Some(file), 0, None),
        SourceKind::Ethereum { .. } | SourceKind::Submit => return,
    };
    if let Some(end) = end.filter(|&end| end < start) {
        let message = format!("the last block, {end}, is before the first, {start}");
        let help = "make `end` at least `start`, or leave `end` out to count forever";
        checker.push(Code::EmptyRange, &at.child("end"), message, help);
    }
    if let Some(path) = file {
        file_is_there(checker, &at.child("file"), path);
    }
}

pub(super) fn file_is_there(checker: &mut Checker<'_>, at: &Field, path: &Path) {
    if !checker.host.is_file(path) {
        let message = format!("there is no file {}", path.display());
        let help = "give the path of a file, relative to the workflow file's folder";
        checker.push(Code::MissingFile, at, message, help);
    }
}

fn sink(checker: &mut Checker<'_>, at: &Field, sink: &Sink) {
    backoff(checker, at, &sink.backoff);
    if let Some(ca) = sink.kind.ca() {
        file_is_there(checker, &at.child("ca"), ca);
    }
    if let Some(abi) = sink.kind.abi() {
        file_is_there(checker, &at.child("abi"), abi);
    }
    if let SinkKind::Exec { program, .. } = &sink.kind {
        self::program(checker, &at.child("program"), program);
    }
}

fn dispatcher(checker: &mut Checker<'_>, at: &Field, stage: &Dispatcher) {
    if stage.workers == 0 {
        let help = "make `workers` at least 1";
        checker.push(
            Code::NoWorkers,
            &at.child("workers"),
            "this stage has no workers",
            help,
        );
    }
    // Any worker of the group may run the stage's tasks; the fault names the labels that the best
    // of them lacks.
    let peers = || {
        let all = checker.workflow.dispatchers.iter();
        all.filter(|peer| peer.group == stage.group)
    };
    let lacking = |peer: &Dispatcher| -> Vec<String> {
        let lacks = |label: &&String| !peer.labels.contains(label);
        stage.requires.iter().filter(lacks).cloned().collect()
    };
    let lacking = peers()
        .map(lacking)
        .min_by_key(Vec::len)
        .unwrap_or_default();
    let offered = |peer: &Dispatcher| peer.memory_available.unwrap_or(u64::MAX);
    let offered = peers().map(offered).max().unwrap_or(u64::MAX);
    if !lacking.is_empty() {
        let message = format!(
            "the workers of group {:?} lack: {}",
            stage.group,
            lacking.join(", ")
        );
        let help = "add them to `labels`, or take them out of `requires`";
        checker.push(Code::UnmetRequirement, &at.child("requires"), message, help);
    }
    if offered < stage.memory {
        let message = format!(
            "a task needs {} bytes of memory, and the workers of group {:?} offer {offered}",
            stage.memory, stage.group
        );
        let help = "make `memory_available` at least `memory`";
        checker.push(Code::UnmetMemory, &at.child("memory"), message, help);
    }
    speculation(checker, at, stage);
    if stage.fan_out && stage.outputs.is_empty() {
        let message = "the stage splits its results into messages, but has no output queue";
        let help = "add `output`, or remove `fan_out`";
        checker.push(Code::FanOutToNobody, &at.child("fan_out"), message, help);
    }
    let executor = at.child("executor");
    match &stage.executor {
        Executor::Process(process) => {
            if stage.batch > 1 {
                let message = "a program takes one task at a time";
                let help = "remove `batch`; raise `workers` or `f_max` to run more at once";
                checker.push(Code::BatchNeedsNative, &at.child("batch"), message, help);
            }
            program(checker, &executor.child("program"), &process.program);
        }
        Executor::Engine(engine) => {
            if stage.batch > 1 {
                let message = "an engine takes one task at a time, and overlaps them by itself";
                let help = "remove `batch`; raise `workers` or `f_max` to have more under way";
                checker.push(Code::BatchNeedsNative, &at.child("batch"), message, help);
            }
            if stage.fan_out {
                let message = "an engine returns one proof for a task, not a list";
                let help = "remove `fan_out`";
                checker.push(Code::FanOutOfProof, &at.child("fan_out"), message, help);
            }
            if let Some(ca) = &engine.ca {
                file_is_there(checker, &executor.child("ca"), ca);
            }
            if let Some(key) = &engine.verifying_key {
                file_is_there(checker, &executor.child("verifying_key"), key);
            }
        }
        Executor::Native { prover, .. } => {
            let known = checker.host.provers();
            if !known.contains(&prover.as_str()) {
                let help = one_of("prover", prover, &known);
                let message = format!("there is no native prover {}", quoted(prover));
                checker.push(
                    Code::UnknownProver,
                    &executor.child("prover"),
                    message,
                    help,
                );
            }
        }
    }
}

fn speculation(checker: &mut Checker<'_>, at: &Field, stage: &Dispatcher) {
    let of = &stage.speculation;
    if of.accept > of.copies {
        let message = format!(
            "{} results of a task cannot come from {} copies of it",
            of.accept, of.copies
        );
        let help = format!("make `copies` at least {}, or `accept` smaller", of.accept);
        let key = if checker.document().has(&at.child("accept")) {
            "accept"
        } else {
            "copies"
        };
        checker.push(Code::AcceptAboveCopies, &at.child(key), message, help);
    }
    let all = checker.workflow.dispatchers.iter();
    let peers = all.filter(|peer| peer.group == stage.group);
    if let Some(prefix) = &of.distinct_label {
        let labels: BTreeSet<&String> = peers
            .flat_map(|peer| &peer.labels)
            .filter(|label| label.starts_with(prefix.as_str()))
            .collect();
        let needed = of.copies.max(1) as usize;
        if labels.len() < needed {
            let message = format!(
                "each task is for workers with {needed} different labels that begin with \
                 {prefix:?}, and group {:?} has {}",
                stage.group,
                labels.len()
            );
            let help = "give stages of the group such `labels`, or make `copies` smaller";
            let field = at.child("distinct_label");
            checker.push(Code::TooFewWorkers, &field, message, help);
        }
    } else {
        let workers: u64 = peers.map(|peer| u64::from(peer.workers)).sum();
        if of.copies > 1 && u64::from(of.copies) > workers {
            let message = format!(
                "each task is for {} workers, and group {:?} has {workers}",
                of.copies, stage.group
            );
            let help = "raise `workers`, or make `copies` smaller";
            checker.push(Code::TooFewWorkers, &at.child("copies"), message, help);
        }
    }
    if of.accept > 1 && stage.fan_out {
        let message = "the elements of several results cannot be matched to each other";
        let help = "remove `fan_out`, or make `accept` 1";
        checker.push(Code::AcceptWithFanOut, &at.child("accept"), message, help);
    }
    if of.copies > 1 && stage.batch > 1 {
        let message = "a task for several workers cannot be part of a batch";
        let help = "remove `batch`, or make `copies` 1";
        checker.push(Code::BatchWithCopies, &at.child("batch"), message, help);
    }
}

fn program(checker: &mut Checker<'_>, at: &Field, program: &Program) {
    let Err(fault) = checker.host.program(program) else {
        return;
    };
    let shown = match program {
        Program::Search(name) => quoted(name),
        Program::File(path) => path.display().to_string(),
    };
    match (fault, program) {
        (ProgramFault::Missing, Program::Search(name)) => {
            let message = format!("there is no program {shown} in PATH");
            let help = match name.len() {
                0..=64 => {
                    format!("install it; or write \"./{name}\" if it is beside the workflow file")
                }
                _ => "install it, or give its path".to_owned(),
            };
            checker.push(Code::MissingProgram, at, message, help);
        }
        (ProgramFault::Missing, Program::File(_)) => {
            let message = format!("there is no program {shown}");
            let help = "give its path relative to the workflow file's folder, or a name in PATH";
            checker.push(Code::MissingProgram, at, message, help);
        }
        (ProgramFault::NotExecutable, _) => {
            let message = format!("{shown} cannot be executed");
            let help = match program {
                Program::File(path) => format!("run `chmod +x {}`", path.display()),
                Program::Search(_) => "make it executable".to_owned(),
            };
            checker.push(Code::ProgramNotExecutable, at, message, help);
        }
    }
}

fn collector(checker: &mut Checker<'_>, at: &Field, stage: &Collector) {
    if stage.partial && stage.t_collect.is_none() {
        let message = "without `t_collect` a group is never emitted in part";
        let help = "add `t_collect = \"60s\"`, or remove `partial`";
        checker.push(
            Code::PartialWithoutTimeout,
            &at.child("partial"),
            message,
            help,
        );
    }
    if let Strategy::Custom { name, .. } = &stage.strategy {
        let known = checker.host.strategies();
        if !known.contains(&name.as_str()) {
            let help = one_of("strategy", name, &known);
            let message = format!("there is no custom strategy {}", quoted(name));
            let field = at.child("strategy").child("name");
            checker.push(Code::UnknownStrategy, &field, message, help);
        }
    }
}

fn one_of(what: &str, given: &str, known: &[&str]) -> String {
    match nearest(given, known.iter().copied()) {
        Some(near) => format!("did you mean {near:?}?"),
        None if known.is_empty() => {
            format!("this program has no {what} to choose from; register one in code")
        }
        None => format!("use one of: {}", known.join(", ")),
    }
}

fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(64).collect();
    format!("{shown:?}")
}
