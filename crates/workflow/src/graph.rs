//! The workflow as a picture: stages by shape, queues as rounded nodes.
//!
//! | | Mermaid | DOT |
//! |---|---|---|
//! | source | leaning box | parallelogram |
//! | dispatcher | box | box |
//! | collector | hexagon | hexagon |
//! | sequencer | box with double sides | box with double lines |
//! | queue | rounded | rounded, grey |

use std::fmt::Write as _;

use crate::late::Late;
use crate::linked::{LinkedQueue, LinkedWorkflow, StageKind};
use crate::model::{
    ChainStart, Collector, Defaults, Dispatcher, Executor, MatchCount, Program, Sequencer, Source,
    SourceKind, Strategy, Workflow,
};
use crate::value::format_duration;

/// A Mermaid flowchart.
pub fn mermaid(workflow: &Workflow) -> String {
    let linked = workflow.link();
    let mut text = String::from("flowchart LR\n");
    for stage in &linked.stages {
        let (open, close) = match stage.kind {
            StageKind::Source(_) => ("[/", "/]"),
            StageKind::Dispatcher(_) => ("[", "]"),
            StageKind::Collector(_) => ("{{", "}}"),
            StageKind::Sequencer(_) => ("[[", "]]"),
        };
        let label: Vec<String> = label(&stage.name, &stage.kind)
            .iter()
            .map(entities)
            .collect();
        line(
            &mut text,
            format_args!("s{}{open}\"{}\"{close}", stage.id.0, label.join("<br/>")),
        );
    }
    for queue in &linked.queues {
        let label: Vec<String> = queue_label(workflow, queue).iter().map(entities).collect();
        line(
            &mut text,
            format_args!("q{}([\"{}\"])", queue.id.0, label.join("<br/>")),
        );
    }
    for (from, to) in edges(&linked) {
        line(&mut text, format_args!("{from} --> {to}"));
    }
    text
}

/// A Graphviz digraph.
pub fn dot(workflow: &Workflow) -> String {
    let linked = workflow.link();
    let mut text = format!("digraph \"{}\" {{\n", escaped(&workflow.name));
    line(&mut text, format_args!("rankdir=LR;"));
    line(&mut text, format_args!("node [fontname=\"sans-serif\"];"));
    for stage in &linked.stages {
        let shape = match stage.kind {
            StageKind::Source(_) => "shape=parallelogram",
            StageKind::Dispatcher(_) => "shape=box",
            StageKind::Collector(_) => "shape=hexagon",
            StageKind::Sequencer(_) => "shape=box, peripheries=2",
        };
        let label: Vec<String> = label(&stage.name, &stage.kind)
            .iter()
            .map(escaped)
            .collect();
        let label = label.join("\\n");
        line(
            &mut text,
            format_args!("s{} [{shape}, label=\"{label}\"];", stage.id.0),
        );
    }
    for queue in &linked.queues {
        let label: Vec<String> = queue_label(workflow, queue).iter().map(escaped).collect();
        let style = "shape=box, style=\"rounded,filled\", fillcolor=\"#eeeeee\"";
        let label = label.join("\\n");
        line(
            &mut text,
            format_args!("q{} [{style}, label=\"{label}\"];", queue.id.0),
        );
    }
    for (from, to) in edges(&linked) {
        line(&mut text, format_args!("{from} -> {to};"));
    }
    text.push_str("}\n");
    text
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  {content}");
}

/// From each stage to its outputs, and from each queue to its readers.
fn edges(linked: &LinkedWorkflow) -> Vec<(String, String)> {
    let mut edges = Vec::new();
    for stage in &linked.stages {
        for queue in &stage.outputs {
            edges.push((format!("s{}", stage.id.0), format!("q{}", queue.0)));
        }
    }
    for queue in &linked.queues {
        for reader in &queue.readers {
            edges.push((format!("q{}", queue.id.0), format!("s{}", reader.0)));
        }
    }
    edges
}

fn label(name: &str, kind: &StageKind) -> Vec<String> {
    let mut lines = vec![name.to_owned()];
    match kind {
        StageKind::Source(source) => lines.push(source_label(source)),
        StageKind::Dispatcher(dispatcher) => dispatcher_label(&mut lines, dispatcher),
        StageKind::Collector(collector) => collector_label(&mut lines, collector),
        StageKind::Sequencer(Sequencer { start, .. }) => {
            lines.push(format!("in chain order from {start}"));
        }
    }
    lines
}

fn source_label(source: &Source) -> String {
    let span = |start: u64, end: Option<u64>, chunk: u32| {
        let end = end.map_or(String::new(), |end| format!("={end}"));
        let by = if chunk == 1 {
            String::new()
        } else {
            format!(", {chunk} a message")
        };
        format!("{start}..{end}{by}")
    };
    let mut text = match &source.kind {
        SourceKind::Range {
            start, end, chunk, ..
        } => {
            format!("range {}", span(*start, *end, *chunk))
        }
        SourceKind::Headers {
            start, end, chunk, ..
        } => {
            format!("headers {}", span(*start, *end, *chunk))
        }
        SourceKind::Jsonl { .. } => "jsonl".to_owned(),
        SourceKind::Ethereum { from, .. } => match from {
            ChainStart::At(block) => format!("ethereum {block}.."),
            ChainStart::Behind(0) => "ethereum head..".to_owned(),
            ChainStart::Behind(blocks) => format!("ethereum head-{blocks}.."),
        },
        SourceKind::Submit => "submit".to_owned(),
    };
    if let Some(rate) = source.rate {
        text.push_str(&format!(", {rate}"));
    }
    text
}

fn dispatcher_label(lines: &mut Vec<String>, stage: &Dispatcher) {
    lines.push(match &stage.executor {
        Executor::Native { prover, .. } => prover.clone(),
        Executor::Engine(engine) => match engine.endpoints.len() {
            1 => format!("engine: {}", engine.circuit),
            n => format!("{n} engines: {}", engine.circuit),
        },
        Executor::Process(process) => match &process.program {
            Program::Search(name) => name.clone(),
            Program::File(path) => match path.file_name() {
                Some(name) => name.to_string_lossy().into_owned(),
                None => path.display().to_string(),
            },
        },
    });
    let mut work = match stage.workers {
        1 => "1 worker".to_owned(),
        n => format!("{n} workers"),
    };
    if stage.f_max > 1 {
        work.push_str(&format!(" × {} tasks", stage.f_max));
    }
    if stage.batch > 1 {
        work.push_str(&format!(", batches of {}", stage.batch));
    }
    if stage.fan_out {
        work.push_str(", fan-out");
    }
    lines.push(work);
    if !stage.requires.is_empty() {
        lines.push(format!("requires {}", stage.requires.join(", ")));
    }
}

fn collector_label(lines: &mut Vec<String>, stage: &Collector) {
    lines.push(match &stage.strategy {
        Strategy::Match {
            k: MatchCount::Total(k),
            group_by,
        } => {
            format!("match k={k} by {:?}", group_by.as_str())
        }
        Strategy::Match {
            k: MatchCount::PerQueue(counts),
            group_by,
        } => {
            let counts: Vec<String> = counts
                .iter()
                .map(|(queue, count)| format!("{queue}={count}"))
                .collect();
            format!("match {} by {:?}", counts.join(", "), group_by.as_str())
        }
        Strategy::Sequential { n } => format!("sequential n={n}"),
        Strategy::Range { by } => format!("range by {by}"),
        Strategy::Custom { name, .. } => format!("custom {name}"),
    });
    if let Some(t_collect) = stage.t_collect {
        let then = if stage.partial {
            "emit in part"
        } else {
            "dead-letter"
        };
        lines.push(format!("after {}: {then}", format_duration(t_collect)));
    }
    match stage.late {
        Late::Dead => {}
        Late::Emit => lines.push("late: emit alone".to_owned()),
        Late::Skip => lines.push("late: skip".to_owned()),
    }
}

/// The queue's name, and its `q_max` where it is not the default.
fn queue_label(workflow: &Workflow, queue: &LinkedQueue) -> Vec<String> {
    let Defaults { q_max, .. } = workflow.defaults;
    let mut lines = vec![queue.name.clone()];
    if queue.q_max != q_max {
        lines.push(format!("at most {}", queue.q_max));
    }
    lines
}

/// Text inside a quoted Mermaid label: characters that are markup become entities.
fn entities(text: impl AsRef<str>) -> String {
    let mut out = String::with_capacity(text.as_ref().len());
    for c in text.as_ref().chars() {
        match c {
            '"' | '<' | '>' | '&' | '#' | ';' | '`' => {
                out.push_str(&format!("#{};", u32::from(c)));
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Text inside a quoted DOT string.
fn escaped(text: impl AsRef<str>) -> String {
    let mut out = String::with_capacity(text.as_ref().len());
    for c in text.as_ref().chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
