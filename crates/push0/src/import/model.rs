//! The conversion of processes into the stages of a workflow.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proofmill_workflow::{Diagnostic, Host, HttpUrl, Program, ProgramFault, validate};

use super::provers::{one_of_each, provers_into, size_of_group};
use super::sources::{address, endpoint};
use super::write::Text;
use super::{Deployment, ImportError, Imported, Role};
use crate::environment::{Config, Environment, Start, Strategy};

/// The place of the block number in the demo's payloads, unless they are bare numbers.
const BLOCK: &str = "/block";

/// Variables that a deployment may leave out here, with stand-in values.
const STAND_INS: [(&str, &str); 2] = [
    ("NATS_URL", "nats://127.0.0.1:4222"),
    ("INPUT_STREAM", "imported"),
];

/// A stage: all processes that share one consumer.
pub(super) struct ImportedStage {
    pub(super) name: String,
    pub(super) role: Role,
    processes: u32,
    pub(super) config: Config,
    /// The chain's endpoint, if the stage is a source and a workflow can ask it.
    pub(super) endpoint: Option<HttpUrl>,
}

/// Choices that depend on the rest of the workflow. The first choice with a valid workflow is taken.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    /// Whether the queue that no stage reads is emitted in order.
    sequencer: bool,
    /// Whether proofs are gathered before they are joined with their block.
    gather: bool,
    /// Whether sources follow their chain; otherwise blocks are submitted.
    pub(super) follow: bool,
}

// === impl Choice ===

impl Choice {
    /// All choices, the best first. Ordered output matters most, then sources that follow their chain.
    fn all() -> impl Iterator<Item = Self> {
        (0..8).map(|bits| Self {
            sequencer: bits & 4 == 0,
            follow: bits & 2 == 0,
            gather: bits & 1 != 0,
        })
    }
}

/// A host for validation on which every program exists, since the workflow runs on another machine.
struct AnyHost;

/// Converts a deployment into a workflow.
///
/// # Errors
/// An environment is invalid, or the services do not make a valid workflow.
pub fn to_workflow(deployment: &Deployment) -> Result<Imported, ImportError> {
    let (stages, mut common) = stages(deployment)?;
    common.splice(0..0, deployment.passed_over.iter().cloned());
    let mut first_fault = None;
    for choice in Choice::all() {
        let (text, remarks) = Writer::new(&stages, choice).write();
        match validate(&text, Path::new("workflow.toml"), &AnyHost) {
            Ok((_, warnings)) => {
                let warnings = warnings.iter().map(Diagnostic::to_string);
                let remarks = common.into_iter().chain(remarks).chain(warnings);
                return Ok(Imported {
                    workflow: text,
                    remarks: remarks.collect(),
                });
            }
            Err(faults) => {
                let shown = || faults.iter().map(ToString::to_string).collect::<Vec<_>>();
                first_fault.get_or_insert_with(|| ImportError::Invalid {
                    faults: shown().join("\n"),
                    workflow: text,
                });
            }
        }
    }
    Err(first_fault.unwrap_or(ImportError::Empty {
        path: "the deployment".into(),
    }))
}

fn stages(deployment: &Deployment) -> Result<(Vec<ImportedStage>, Vec<String>), ImportError> {
    let mut stages: Vec<(String, ImportedStage)> = Vec::new();
    let mut remarks = Vec::new();
    let mut names = BTreeSet::from(["sequencer".to_owned()]);
    for service in &deployment.services {
        let variable = |name: &str| {
            // An endpoint that no source can ask does not prevent the conversion.
            if name == "L1_RPC" && service.variables.contains_key(name) {
                let own = endpoint(&service.variables);
                return Some(own.map_or("http://endpoint".to_owned(), |url| address(&url)));
            }
            let stand_in = STAND_INS.iter().find(|(known, _)| *known == name);
            let own = service
                .variables
                .get(name)
                .filter(|value| !value.is_empty());
            own.cloned()
                .or_else(|| stand_in.map(|(_, value)| (*value).to_owned()))
        };
        let fault = |source| ImportError::Environment {
            service: service.name.clone(),
            source,
        };
        let config = Environment::read(variable).map_err(fault)?;
        let role = match service.role {
            Role::Dispatcher => {
                config.program().map_err(fault)?;
                "dispatcher"
            }
            Role::Collector => {
                config.collection().map_err(fault)?;
                "collector"
            }
        };
        let consumer = format!("{role} {}", config.consumer(role));
        if let Some((_, stage)) = stages.iter_mut().find(|(known, _)| *known == consumer) {
            if service.role == Role::Dispatcher {
                stage.processes += 1;
            }
            if stage.config.program != config.program
                || stage.config.output_queue != config.output_queue
            {
                remarks.push(format!(
                    "{}: it shares the consumer of `{}`, but not its BINARY or OUTPUT_QUEUE; the \
                     workflow has those of `{}`",
                    service.name, stage.name, stage.name
                ));
            }
            continue;
        }
        let stage = ImportedStage {
            name: unique(&service.name, &mut names),
            role: service.role,
            processes: 1,
            config,
            endpoint: endpoint(&service.variables),
        };
        stages.push((consumer, stage));
    }
    Ok((
        stages.into_iter().map(|(_, stage)| stage).collect(),
        remarks,
    ))
}

/// A valid name in a workflow that is not in `taken`.
pub(super) fn unique(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut plain: String = name
        .to_ascii_lowercase()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        })
        .take(50)
        .collect();
    if !plain.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        plain.insert(0, 'q');
    }
    let mut candidate = plain.clone();
    let mut number = 2;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{plain}-{number}");
        number += 1;
    }
    candidate
}

pub(super) struct Writer<'a> {
    pub(super) stages: &'a [ImportedStage],
    pub(super) choice: Choice,
    /// The names of queues in the workflow, by subject.
    queues: BTreeMap<&'a str, String>,
    /// Number of stages that write each queue.
    pub(super) writers: BTreeMap<&'a str, usize>,
    pub(super) read: BTreeSet<&'a str>,
    /// The queue that is emitted in order.
    last: Option<&'a str>,
    pub(super) names: BTreeSet<String>,
    pub(super) text: Text,
    pub(super) remarks: Vec<String>,
}

// === impl Writer ===

impl<'a> Writer<'a> {
    fn new(stages: &'a [ImportedStage], choice: Choice) -> Self {
        let mut writer = Self {
            stages,
            choice,
            queues: BTreeMap::new(),
            writers: BTreeMap::new(),
            read: BTreeSet::new(),
            last: None,
            names: stages.iter().map(|stage| stage.name.clone()).collect(),
            text: Text::default(),
            remarks: Vec::new(),
        };
        for stage in stages {
            if !stage.is_source() {
                writer
                    .read
                    .extend(stage.config.input_queues.iter().map(String::as_str));
            }
            if let Some(output) = stage.config.output_queue.as_deref() {
                *writer.writers.entry(output).or_default() += stage.messages_writers();
            }
        }
        writer.name_queues();
        let ends = stages.iter().filter(|stage| stage.role == Role::Collector);
        let ends = ends.chain(stages.iter().filter(|stage| stage.role == Role::Dispatcher));
        let mut unread = ends
            .filter(|stage| !stage.is_source())
            .filter_map(|stage| stage.config.output_queue.as_deref())
            .filter(|queue| !writer.read.contains(queue));
        writer.last = unread.next().filter(|_| choice.sequencer);
        writer
    }

    /// Names the queues. A first token that all subjects of the deployment share is left out.
    fn name_queues(&mut self) {
        let subjects: BTreeSet<&str> = self
            .read
            .iter()
            .chain(self.writers.keys())
            .copied()
            .collect();
        let first = |subject: &'a str| subject.split_once('.').map(|(first, _)| first);
        let prefix = subjects.first().and_then(|subject| first(subject));
        let shared = prefix.filter(|prefix| {
            subjects
                .iter()
                .all(|subject| first(subject) == Some(*prefix))
        });
        let mut taken = BTreeSet::new();
        for subject in subjects {
            let short = shared.map_or(subject, |prefix| &subject[prefix.len() + 1..]);
            self.queues.insert(subject, unique(short, &mut taken));
        }
    }

    pub(super) fn queue(&self, subject: &str) -> String {
        self.queues.get(subject).cloned().unwrap_or_default()
    }

    fn write(mut self) -> (String, Vec<String>) {
        self.remarks.push(
            "NATS_URL, the streams, CONSUMER_NAME, METRICS_PORT and METRICS_BIND have no place in a \
             workflow file: a workflow keeps its own log, and `proofmill run --metrics` serves its own metrics"
                .to_owned(),
        );
        self.text
            .comment("Made from the environments of a push0 deployment.");
        self.text.line("name = \"imported\"");
        self.sources();
        for stage in self
            .stages
            .iter()
            .filter(|stage| stage.role == Role::Dispatcher)
        {
            self.dispatcher(stage);
        }
        for stage in self
            .stages
            .iter()
            .filter(|stage| stage.role == Role::Collector)
        {
            self.collector(stage);
        }
        let several = self.writers.iter().filter(|&(_, &writers)| writers > 1);
        for queue in several
            .map(|(queue, _)| self.queue(queue))
            .collect::<Vec<_>>()
        {
            self.text.table("queue");
            self.text.text("name", &queue);
            self.text.text("writers", "many");
        }
        if let Some(last) = self.last {
            let start = self.stages.iter().find_map(ImportedStage::start);
            self.text.table_once("sequencer");
            self.text.text("input", &self.queue(last));
            match start {
                Some(start) => self.text.number("start", start),
                None => self.remarks.push(
                    "sequencer: NEXT_BLOCK does not say which block is first; set `start`, or nothing \
                     is emitted before block 0"
                        .to_owned(),
                ),
            }
            self.text.text("directory", "completed");
        }
        (self.text.finish(), self.remarks)
    }

    /// The output of a stage, if a stage reads it or it is emitted.
    fn output(&mut self, stage: &ImportedStage) -> Option<String> {
        let output = stage.config.output_queue.as_deref()?;
        if self.read.contains(output) || self.last == Some(output) {
            return Some(self.queue(output));
        }
        self.remarks.push(format!(
            "{}: no service reads {output}; its messages are left out, since every queue of a \
             workflow has a reader",
            stage.name
        ));
        None
    }

    fn policy(&mut self, config: &Config) {
        let default = proofmill_workflow::Policy::default();
        if config.ack_wait != default.t_ack {
            let text = proofmill_workflow::format_duration(config.ack_wait);
            self.text.text("t_ack", &text);
            if config.ack_wait <= default.heartbeat * 2 {
                let third = (config.ack_wait / 3).max(std::time::Duration::from_millis(1));
                self.text
                    .text("heartbeat", &proofmill_workflow::format_duration(third));
            }
        }
        if let Some(deliveries) = config.max_deliver {
            self.text
                .number("r_max", u64::from((deliveries - 1).min(1000)));
        }
    }

    fn dispatcher(&mut self, stage: &ImportedStage) {
        let Some(program) = &stage.config.program else {
            return;
        };
        let output = self.output(stage);
        let inputs = &stage.config.input_queues;
        for (index, input) in inputs.iter().enumerate() {
            let name = if index == 0 {
                stage.name.clone()
            } else {
                unique(
                    &format!("{}-{}", stage.name, self.queue(input)),
                    &mut self.names,
                )
            };
            self.text.table("dispatcher");
            self.text.text("name", &name);
            self.text.text("input", &self.queue(input));
            if let Some(output) = &output {
                self.text.text("output", output);
            }
            self.text.number("workers", u64::from(stage.processes));
            if inputs.len() > 1 {
                self.text.text("group", &stage.name);
            }
            if program.multiple_output && output.is_some() {
                self.text.line("fan_out = true");
            }
            self.policy(&stage.config);
            self.text
                .program("executor", &program.binary, &program.inherit_env);
        }
    }

    fn collector(&mut self, stage: &ImportedStage) {
        let Some(collection) = &stage.config.collection else {
            return;
        };
        if stage.is_source() {
            return;
        }
        if collection.collect_timeout.is_some() {
            self.remarks.push(format!(
                "{}: COLLECT_TIMEOUT_PERIOD_MILLIS is left out, since a workflow hands no \
                 messages back; `t_collect` is the longest time for a group before it is given up",
                stage.name
            ));
        }
        let output = self.output(stage);
        let inputs: Vec<String> = stage
            .config
            .input_queues
            .iter()
            .map(|queue| self.queue(queue))
            .collect();
        match &collection.strategy {
            Strategy::Match {
                inputs: size,
                field,
            } => {
                let pointer = field.as_ref().map_or_else(
                    || {
                        self.remarks.push(format!(
                            "{}: groups by `/group_id`; messages without it are not grouped by `block` \
                             instead, set `group_by` if they have no `group_id`",
                            stage.name
                        ));
                        "/group_id".to_owned()
                    },
                    crate::environment::Field::pointer,
                );
                let queues = stage.config.input_queues.iter().map(String::as_str);
                let provers = provers_into(self.stages, &queues.collect::<Vec<_>>());
                let (group, remark) = size_of_group(&stage.name, *size, provers);
                self.remarks.extend(remark);
                self.begin_collector(&stage.name, &inputs, output.as_deref());
                self.text.matching(group, &pointer);
                self.policy(&stage.config);
            }
            Strategy::Sequential { blocks, .. } => {
                self.remarks.push(format!(
                    "{}: a group is the blocks with the same block / {blocks}, whatever the first \
                     block is",
                    stage.name
                ));
                self.begin_collector(&stage.name, &inputs, output.as_deref());
                self.text.sequential(u64::from(*blocks));
                self.policy(&stage.config);
            }
            Strategy::Proof { proofs } => self.proof(stage, *proofs, output.as_deref()),
            Strategy::Block { .. } => {}
        }
    }

    fn proof(&mut self, stage: &ImportedStage, proofs: u32, output: Option<&str>) {
        let subjects = &stage.config.input_queues;
        let from_source = |subject: &&String| {
            let writes = |other: &ImportedStage| {
                other.config.output_queue.as_deref() == Some(subject.as_str())
            };
            self.stages
                .iter()
                .any(|other| other.is_source() && writes(other))
        };
        let fed = |subject: &&String| !self.writers.contains_key(subject.as_str());
        let blocks = subjects
            .iter()
            .find(from_source)
            .or_else(|| subjects.iter().find(fed));
        let Some(blocks) = blocks.or(subjects.last()) else {
            return;
        };
        let others: Vec<String> = subjects
            .iter()
            .filter(|subject| *subject != blocks)
            .map(|queue| self.queue(queue))
            .collect();
        let queues = subjects.iter().map(String::as_str);
        let queues: Vec<&str> = queues.filter(|subject| subject != blocks).collect();
        let provers = provers_into(self.stages, &queues);
        let blocks = self.queue(blocks);
        let mut joined = others.clone();
        if (self.choice.gather || proofs > 1 || others.len() > 1) && !others.is_empty() {
            let name = unique(&format!("{}-proofs", stage.name), &mut self.names);
            let group = provers.max(proofs);
            self.remarks.push(format!(
                "{}: `{name}` gathers the proofs of a block by `{BLOCK}` before they are joined: {}",
                stage.name,
                one_of_each(proofs, group)
            ));
            self.begin_collector(&name, &others, Some(&name));
            self.text.matching(group, BLOCK);
            joined = vec![name];
        }
        joined.push(blocks.clone());
        self.remarks.push(format!(
            "{}: each emitted message is an object with an array for each queue, {{\"{blocks}\": \
             […], …}}",
            stage.name
        ));
        self.begin_collector(&stage.name, &joined, output);
        self.text.range(&blocks);
        self.policy(&stage.config);
    }

    fn begin_collector(&mut self, name: &str, inputs: &[String], output: Option<&str>) {
        self.text.table("collector");
        self.text.text("name", name);
        self.text.list("inputs", inputs);
        if let Some(output) = output {
            self.text.text("output", output);
        }
    }
}

// === impl ImportedStage ===

impl ImportedStage {
    pub(super) fn is_source(&self) -> bool {
        self.start_of_source().is_some()
    }

    pub(super) fn start_of_source(&self) -> Option<Start> {
        match self.config.collection.as_ref()?.strategy {
            Strategy::Block { start, .. } => Some(start),
            _ => None,
        }
    }

    /// The first block, if this stage sets it.
    fn start(&self) -> Option<u64> {
        match self.start_of_source()? {
            Start::At(block) => Some(block),
            Start::Behind(_) => None,
        }
    }

    /// Number of stages in the workflow that write its output: a dispatcher becomes one for each input.
    fn messages_writers(&self) -> usize {
        match self.role {
            Role::Dispatcher => self.config.input_queues.len(),
            Role::Collector => 1,
        }
    }
}

impl Host for AnyHost {
    fn program(&self, _program: &Program) -> Result<(), ProgramFault> {
        Ok(())
    }

    fn is_file(&self, _path: &Path) -> bool {
        true
    }

    fn provers(&self) -> Vec<&str> {
        Vec::new()
    }

    fn strategies(&self) -> Vec<&str> {
        Vec::new()
    }
}
