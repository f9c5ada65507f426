//! Decodes text to a [`Workflow`]: syntax, fields, types and ranges.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use toml::de::DeTable;

use crate::diagnostic::{Code, Diagnostic};
use crate::document::{Document, Field};
use crate::ethereum::ethereum;
use crate::ethproofs::Ethproofs;
use crate::fields::{Faults, Fields, MAX_COUNT};
use crate::history::History;
use crate::inner::{executor, keyword, path, queue_name, speculation, strategy, text};
use crate::late::late;
use crate::mentions::Mentions;
use crate::model::{
    Backoff, Collector, Deadline, Defaults, Dispatcher, OnMissed, Policy, Queue, Sequencer, Sink,
    Source, SourceKind, Workflow, Writers,
};
use crate::scaling::{MAX_POOLS, Scaling};
use crate::sinks::{MAX_SINKS, sink};
use crate::template::Template;

/// Maximum size of a workflow file, in bytes.
pub const MAX_FILE_SIZE: usize = 1 << 20;

/// Maximum number of tables in each of `[[source]]`, `[[queue]]`, `[[dispatcher]]` and
/// `[[collector]]`.
pub const MAX_STAGES: usize = 512;

const MAX_BLOCK: u64 = i64::MAX as u64;

/// The result of decoding: the workflow, as far as it could be read, and every fault.
pub(crate) struct Decoded {
    /// Absent if the text is not TOML.
    pub(crate) workflow: Option<Workflow>,
    /// The queues that the stages name; absent if the text is not TOML.
    pub(crate) mentions: Option<Mentions>,
    pub(crate) faults: Faults,
}

/// Decodes as much of the text as possible.
pub(crate) fn decode(text: &str, file: &Path) -> Decoded {
    let mut faults = Faults {
        document: Document::new(file, ""),
        list: Vec::new(),
        graph_unreliable: false,
    };
    if text.len() > MAX_FILE_SIZE {
        let message = format!(
            "the file has {} bytes, more than {MAX_FILE_SIZE}",
            text.len()
        );
        faults.push(
            Code::TooLarge,
            &Field::root(),
            message,
            "split the workflow",
        );
        return Decoded {
            workflow: None,
            mentions: None,
            faults,
        };
    }
    faults.document = Document::new(file, text);
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        for error in errors.iter().take(Faults::MAX) {
            let span = error.span().unwrap_or(0..0);
            let message = format!("not TOML: {}", error.message());
            let help = if message.contains("duplicate key") {
                "keep one of them"
            } else {
                "correct the syntax here; strings are in quotes, tables begin with [name] or \
                 [[name]]"
            };
            let field = String::new();
            let document = &faults.document;
            let fault = Diagnostic::at(document, Code::Syntax, span, field, message, help);
            faults.list.push(fault);
        }
        return Decoded {
            workflow: None,
            mentions: None,
            faults,
        };
    }
    let mut workflow = workflow(&mut faults, root.get_ref(), folder_of(file));
    let mentions = Mentions::of(&mut faults, root.get_ref());
    workflow.document = faults.document.clone();
    Decoded {
        workflow: Some(workflow),
        mentions: Some(mentions),
        faults,
    }
}

/// The folder of a file; absolute if the system can resolve it.
fn folder_of(file: &Path) -> PathBuf {
    let folder = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

fn workflow(faults: &mut Faults, root: &DeTable<'_>, folder: PathBuf) -> Workflow {
    let mut top = Fields::new(faults, Field::root(), root);
    let name = match top.token("name", "\"my-workflow\"", false) {
        Some(name) => name,
        None => {
            if !top.has("name") {
                top.missing("name", "\"my-workflow\"");
            }
            String::new()
        }
    };
    let defaults = match top.table("defaults", "{ t_ack = \"30s\" }") {
        Some(fields) => defaults(fields),
        None => Defaults::default(),
    };

    let tables = top.sections("source", MAX_STAGES);
    let sources = each(top.faults(), "source", tables, |fields| {
        source(fields, &folder)
    });
    let tables = top.sections("queue", MAX_STAGES);
    let declared = each(top.faults(), "queue", tables, |fields| {
        queue(fields, &defaults)
    });
    repeated_queues(top.faults(), &declared);
    let tables = top.sections("dispatcher", MAX_STAGES);
    let dispatchers = each(top.faults(), "dispatcher", tables, |fields| {
        dispatcher(fields, &defaults, &folder)
    });
    let tables = top.sections("collector", MAX_STAGES);
    let collectors = each(top.faults(), "collector", tables, |fields| {
        collector(fields, &defaults)
    });
    let sequencer = top
        .table("sequencer", "{ input = \"verified\" }")
        .and_then(|fields| sequencer(fields, &defaults, &folder));
    let deadline = top
        .table("deadline", "{ slot = \"12s\" }")
        .and_then(deadline);
    let history = top
        .table("history", "{ steps = 20000 }")
        .map_or_else(History::default, History::read);
    let tables = top.sections(Scaling::SECTION, MAX_POOLS);
    let scaling = each(top.faults(), Scaling::SECTION, tables, Scaling::read);
    let ethproofs = top
        .table(Ethproofs::SECTION, "{ cluster_id = 1 }")
        .and_then(|fields| Ethproofs::read(fields, &folder));
    let trust_verifiers = top.boolean("trust_verifiers").unwrap_or(false);
    top.finish();

    let queues = queues(
        declared,
        &defaults,
        &sources,
        &dispatchers,
        &collectors,
        &sequencer,
    );
    Workflow {
        name,
        folder,
        defaults,
        queues,
        sources,
        dispatchers,
        collectors,
        sequencer,
        deadline,
        history,
        scaling,
        ethproofs,
        trust_verifiers,
        document: faults.document.clone(),
    }
}

fn each<'t, T>(
    faults: &mut Faults,
    section: &'static str,
    tables: Vec<(Field, &'t DeTable<'t>, usize)>,
    mut read: impl FnMut(Fields<'_, 't>) -> Option<T>,
) -> Vec<T> {
    let mut kept = Vec::new();
    for (at, table, index) in tables {
        if let Some(item) = read(Fields::new(faults, at, table)) {
            faults.document.keep(section, index);
            kept.push(item);
        } else if section != Sink::SECTION && section != Scaling::SECTION {
            // Without this table the graph lacks readers and writers.
            faults.graph_unreliable = true;
        }
    }
    kept
}

fn repeated_queues(faults: &mut Faults, declared: &[Queue]) {
    let mut seen = HashSet::new();
    for (index, queue) in declared.iter().enumerate() {
        if !seen.insert(&queue.name) {
            let field = faults.document.origin("queue", index).child("name");
            let message = format!("the queue `{}` is declared twice", queue.name);
            faults.graph_unreliable = true;
            faults.push(
                Code::DuplicateName,
                &field,
                message,
                "keep one of the two tables",
            );
        }
    }
}

/// Declared queues first, then the others in the order in which stages mention them.
fn queues(
    declared: Vec<Queue>,
    defaults: &Defaults,
    sources: &[Source],
    dispatchers: &[Dispatcher],
    collectors: &[Collector],
    sequencer: &Option<Sequencer>,
) -> Vec<Queue> {
    let mut seen: HashSet<String> = HashSet::new();
    let mut queues: Vec<Queue> = declared
        .into_iter()
        .filter(|queue| seen.insert(queue.name.clone()))
        .collect();
    let mentioned = sources
        .iter()
        .flat_map(|stage| &stage.outputs)
        .chain(
            dispatchers
                .iter()
                .flat_map(|stage| std::iter::once(&stage.input).chain(&stage.outputs)),
        )
        .chain(
            collectors
                .iter()
                .flat_map(|stage| stage.inputs.iter().chain(&stage.outputs)),
        )
        .chain(sequencer.iter().map(|stage| &stage.input));
    for name in mentioned {
        if seen.insert(name.clone()) {
            let (name, writers) = (name.clone(), Writers::One);
            queues.push(Queue {
                name,
                q_max: defaults.q_max,
                writers,
            });
        }
    }
    queues
}

fn defaults(mut fields: Fields<'_, '_>) -> Defaults {
    let policy = policy(&mut fields, &Policy::default());
    let q_max = fields
        .number32("q_max", 1..=10_000_000)
        .unwrap_or(Defaults::default().q_max);
    fields.finish();
    Defaults { policy, q_max }
}

fn policy(fields: &mut Fields<'_, '_>, inherited: &Policy) -> Policy {
    let t_ack = fields.duration("t_ack").unwrap_or(inherited.t_ack);
    let heartbeat = fields.duration("heartbeat").unwrap_or(inherited.heartbeat);
    let r_max = fields
        .number32("r_max", 0..=1000)
        .unwrap_or(inherited.r_max);
    let backoff = backoff(fields, &inherited.backoff);
    Policy {
        t_ack,
        heartbeat,
        r_max,
        backoff,
    }
}

/// Reads the table `backoff`; its absent fields are inherited.
pub(crate) fn backoff(fields: &mut Fields<'_, '_>, inherited: &Backoff) -> Backoff {
    let example = "{ initial = \"1s\", max = \"1m\" }";
    let Some(mut fields) = fields.table("backoff", example) else {
        return inherited.clone();
    };
    let initial = fields.duration("initial");
    let max = fields.duration("max");
    let factor = fields.float("factor", 1.0..=100.0);
    let jitter = fields.float("jitter", 0.0..=1.0);
    let backoff = Backoff {
        initial: initial.unwrap_or(inherited.initial),
        max: max.unwrap_or(inherited.max),
        factor: factor.unwrap_or(inherited.factor),
        jitter: jitter.unwrap_or(inherited.jitter),
    };
    fields.finish();
    backoff
}

fn deadline(mut fields: Fields<'_, '_>) -> Option<Deadline> {
    let slot = fields.duration("slot");
    if !fields.has("slot") {
        fields.missing("slot", "\"12s\"");
    }
    let on_missed = match fields.has("on_missed") {
        true => keyword(&mut fields, "on_missed", &["keep", "drop"]),
        false => fields.string("on_missed", "").and(None),
    };
    fields.finish();
    let on_missed = match on_missed {
        Some("drop") => OnMissed::Drop,
        _ => OnMissed::Keep,
    };
    Some(Deadline {
        slot: slot?,
        on_missed,
    })
}

/// Reads the field `name`; reports a fault if it is absent.
fn stage_name(fields: &mut Fields<'_, '_>, example: &str) -> Option<String> {
    let name = fields.token("name", example, true);
    if !fields.has("name") {
        fields.missing("name", example);
    }
    name
}

fn source(mut fields: Fields<'_, '_>, folder: &Path) -> Option<Source> {
    let name = stage_name(&mut fields, "\"blocks\"");
    let outputs = fields.names("output", "\"chunks\"", true);
    if !fields.has("output") {
        fields.missing("output", "\"chunks\"");
    }
    let rate = fields.rate("rate");
    let kind = match keyword(
        &mut fields,
        "kind",
        &["range", "headers", "jsonl", "ethereum", "submit"],
    ) {
        Some("range") => {
            let (start, end, chunk) = span(&mut fields);
            let payload = match fields.json("payload", "{ height = \"{block}\" }") {
                Some(payload) => Template::new(payload.into()),
                None if chunk == 1 => Template::default(),
                None => Template::span(),
            };
            Some(SourceKind::Range {
                start,
                end,
                chunk,
                payload,
            })
        }
        Some("headers") => {
            let file = path(&mut fields, "file", folder, "\"blocks.dat\"");
            let (start, end, chunk) = span(&mut fields);
            Some(SourceKind::Headers {
                file,
                start,
                end,
                chunk,
            })
        }
        Some("jsonl") => {
            if !fields.has("file") {
                fields.missing("file", "\"blocks.jsonl\"");
            }
            path(&mut fields, "file", folder, "\"blocks.jsonl\"")
                .map(|file| SourceKind::Jsonl { file })
        }
        Some("ethereum") => ethereum(&mut fields),
        Some(_) => Some(SourceKind::Submit),
        // Without a kind it is unknown which other fields belong here.
        None => return None,
    };
    fields.finish();
    Some(Source {
        name: name?,
        kind: kind?,
        outputs: outputs?,
        rate,
    })
}

fn span(fields: &mut Fields<'_, '_>) -> (u64, Option<u64>, u32) {
    let start = fields.number("start", 0..=MAX_BLOCK).unwrap_or(0);
    let end = fields.number("end", 0..=MAX_BLOCK);
    let chunk = fields.number32("chunk", 1..=MAX_COUNT).unwrap_or(1);
    (start, end, chunk)
}

fn queue(mut fields: Fields<'_, '_>, defaults: &Defaults) -> Option<Queue> {
    let name = stage_name(&mut fields, "\"chunks\"");
    let q_max = fields
        .number32("q_max", 1..=10_000_000)
        .unwrap_or(defaults.q_max);
    let writers = match fields.has("writers") {
        true => keyword(&mut fields, "writers", &["one", "many"]),
        false => fields.string("writers", "").and(None),
    };
    let writers = if writers == Some("many") {
        Writers::Many
    } else {
        Writers::One
    };
    fields.finish();
    Some(Queue {
        name: name?,
        q_max,
        writers,
    })
}

fn dispatcher(
    mut fields: Fields<'_, '_>,
    defaults: &Defaults,
    folder: &Path,
) -> Option<Dispatcher> {
    let name = stage_name(&mut fields, "\"prove\"");
    let input = queue_name(&mut fields, "input", "\"chunks\"");
    let outputs = outputs(&mut fields, "\"proofs\"");
    let workers = fields.number32("workers", 0..=4096).unwrap_or(1);
    let f_max = fields.number32("f_max", 1..=65_536).unwrap_or(1);
    let batch = fields.number32("batch", 1..=65_536).unwrap_or(1);
    let fan_out = fields.boolean("fan_out").unwrap_or(false);
    let verify = fields.boolean("verify").unwrap_or(false);
    let check_results = fields.boolean("check_results").unwrap_or(false);
    let group = fields
        .token("group", "\"gpus\"", true)
        .or_else(|| name.clone())
        .unwrap_or_default();
    let requires = fields
        .names("requires", "[\"gpu\"]", false)
        .unwrap_or_default();
    let labels = fields
        .names("labels", "[\"gpu\"]", false)
        .unwrap_or_default();
    let memory = fields.size("memory").unwrap_or(0);
    let memory_available = fields.size("memory_available");
    let time_limit = fields.duration("time_limit");
    let speculation = speculation(&mut fields);
    let policy = policy(&mut fields, &defaults.policy);
    let example = "{ kind = \"process\", program = \"./prove.sh\" }";
    if !fields.has("executor") {
        fields.missing("executor", example);
    }
    let executor = fields
        .table("executor", example)
        .and_then(|fields| executor(fields, folder));
    fields.finish();
    Some(Dispatcher {
        name: name?,
        input: input?,
        outputs: outputs?,
        workers,
        f_max,
        batch,
        fan_out,
        verify,
        check_results,
        group,
        requires,
        labels,
        memory,
        memory_available,
        time_limit,
        executor: executor?,
        speculation,
        policy,
    })
}

/// The field `output`, which may be absent.
fn outputs(fields: &mut Fields<'_, '_>, example: &str) -> Option<Vec<String>> {
    let outputs = fields.names("output", example, true);
    if fields.has("output") {
        outputs
    } else {
        Some(Vec::new())
    }
}

fn collector(mut fields: Fields<'_, '_>, defaults: &Defaults) -> Option<Collector> {
    let name = stage_name(&mut fields, "\"aggregate\"");
    let inputs = fields.names("inputs", "[\"proofs\"]", true);
    let required = !fields.has("inputs");
    if required || inputs.as_ref().is_some_and(Vec::is_empty) {
        fields.missing("inputs", "[\"proofs\"]");
    }
    let outputs = outputs(&mut fields, "\"batches\"");
    let t_collect = fields.duration("t_collect");
    let partial = fields.boolean("partial").unwrap_or(false);
    let late = late(&mut fields);
    let policy = policy(&mut fields, &defaults.policy);
    let example = "{ kind = \"sequential\", n = 4 }";
    if !fields.has("strategy") {
        fields.missing("strategy", example);
    }
    let strategy = fields.table("strategy", example).and_then(strategy);
    fields.finish();
    Some(Collector {
        name: name?,
        inputs: inputs.filter(|inputs| !inputs.is_empty())?,
        outputs: outputs?,
        strategy: strategy?,
        t_collect,
        partial,
        late,
        policy,
    })
}

fn sequencer(mut fields: Fields<'_, '_>, defaults: &Defaults, folder: &Path) -> Option<Sequencer> {
    let input = queue_name(&mut fields, "input", "\"verified\"");
    let start = fields.number("start", 0..=MAX_BLOCK).unwrap_or(0);
    let directory = text(&mut fields, "directory", "\"proofs\"").map(PathBuf::from);
    let inside = |path: &PathBuf| {
        path.components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
    if directory.as_ref().is_some_and(|path| !inside(path)) {
        let message = "the folder is not below the state folder";
        fields.bad(
            Code::BadPath,
            "directory",
            message,
            "give a relative path without `..`",
        );
    }
    let tables = fields.sections("sink", MAX_SINKS);
    let sinks = each(fields.faults(), Sink::SECTION, tables, |fields| {
        sink(fields, &defaults.policy.backoff, folder)
    });
    fields.finish();
    Some(Sequencer {
        input: input?,
        start,
        directory,
        sinks,
    })
}
