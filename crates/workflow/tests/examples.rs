//! Tests that the examples are valid, and that their programs produce the messages that their
//! workflows need: each is evaluated here, naively and stage by stage, with real processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use proofmill_workflow::{
    Code, Dispatcher, Executor, LinkedWorkflow, LocalHost, MatchCount, Program, QueueId,
    SourceKind, StageKind, Strategy, Workflow, render, validate, validate_file,
};
use serde_json::{Map, Value};

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the examples' folder")
        .map(|entry| entry.expect("an entry").path().join("workflow.toml"))
        .filter(|file| file.exists())
        .collect();
    files.sort();
    files
}

fn host() -> LocalHost {
    LocalHost::new(["bitcoin.prove", "bitcoin.verify"]).with_emission_checks(["bitcoin.verify"])
}

#[track_caller]
fn sound(file: &Path) -> Workflow {
    let (workflow, warnings) =
        validate_file(file, &host()).unwrap_or_else(|found| panic!("{}", render(&found)));
    // The programs only stand in for provers, so no stage verifies results.
    let native = |stage: &Dispatcher| matches!(stage.executor, Executor::Native { .. });
    let verified = workflow.dispatchers.iter().any(native);
    let expected: &[Code] = match verified {
        true => &[],
        false => &[Code::UnverifiedEmission],
    };
    let found: Vec<Code> = warnings.iter().map(|found| found.code).collect();
    assert_eq!(found, expected, "{}", render(&warnings));
    workflow
}

#[test]
fn each_example_is_sound_and_explained() {
    let files = examples();
    assert!(files.len() >= 7, "{files:?}");
    for file in files {
        let workflow = sound(&file);
        let folder = file.parent().expect("a folder");
        assert_eq!(
            folder.file_name().and_then(|name| name.to_str()),
            Some(workflow.name.as_str())
        );
        let readme = std::fs::read_to_string(folder.join("README.md")).expect("a README");
        let command = format!("proofmill run examples/{}/workflow.toml", workflow.name);
        assert!(readme.contains(&command), "{}", workflow.name);
    }
}

#[test]
fn the_reference_begins_with_a_sound_workflow() {
    let reference = include_str!("../../../docs/workflow.md");
    let text = reference
        .split("```")
        .nth(1)
        .and_then(|block| block.strip_prefix("toml\n"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fan-in/workflow.toml");
    if let Err(found) = validate(text.expect("a TOML block"), &file, &host()) {
        panic!("{}", render(&found));
    }
}

#[test]
fn each_example_of_programs_covers_its_chain() {
    for file in examples() {
        let workflow = sound(&file);
        let native = |executor: &Executor| !matches!(executor, Executor::Process(_));
        if workflow
            .sources
            .iter()
            .all(|source| source.kind == SourceKind::Submit)
        {
            continue;
        }
        if workflow
            .dispatchers
            .iter()
            .any(|stage| native(&stage.executor))
        {
            continue;
        }
        let linked = workflow.link();
        let queues = evaluate(&linked);
        let sequencer = linked.stage_by_name("sequencer").expect("a sequencer");
        let mut emitted = queues[sequencer.inputs[0].0].clone();
        emitted.sort_by_key(|message| message.first);
        let SourceKind::Range { end: Some(end), .. } = workflow.sources[0].kind else {
            panic!("{}: a finite range", workflow.name);
        };
        let mut next = 0;
        for message in &emitted {
            assert_eq!(message.first, next, "{}: {emitted:?}", workflow.name);
            assert!(
                message.payload.is_object(),
                "{}: {message:?}",
                workflow.name
            );
            next = message.last + 1;
        }
        assert_eq!(next, end + 1, "{}", workflow.name);
    }
}

#[test]
fn a_wrong_proof_is_a_failure_for_good() {
    let file = examples()
        .into_iter()
        .find(|file| file.ends_with("sequential/workflow.toml"));
    let verify = file.expect("the example").with_file_name("verify.sh");
    let folder = tempfile::tempdir().expect("a folder");
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    std::fs::write(&input, r#"{"block":1,"state":2,"proof":3}"#).expect("written");
    let status = Command::new(verify)
        .args(["--input-path".as_ref(), input.as_os_str()])
        .args(["--output-path".as_ref(), output.as_os_str()])
        .output()
        .expect("it runs")
        .status;
    assert_eq!(status.code(), Some(65));
    assert!(!output.exists());
}

#[derive(Clone, Debug)]
struct Message {
    first: u64,
    last: u64,
    part: String,
    payload: Value,
}

/// All messages of each queue, once every stage has finished its work.
fn evaluate(linked: &LinkedWorkflow) -> Vec<Vec<Message>> {
    let mut queues: Vec<Vec<Message>> = vec![Vec::new(); linked.queues.len()];
    let mut done = vec![false; linked.stages.len()];
    while !done.iter().all(|&done| done) {
        let ready = linked.stages.iter().find(|stage| {
            let fed = |queue: &QueueId| linked.queue(*queue).writers.iter().all(|id| done[id.0]);
            !done[stage.id.0] && stage.inputs.iter().all(fed)
        });
        let stage = ready.expect("no cycle");
        let inputs: Vec<(&str, &[Message])> = stage
            .inputs
            .iter()
            .map(|queue| {
                (
                    linked.queue(*queue).name.as_str(),
                    queues[queue.0].as_slice(),
                )
            })
            .collect();
        let made = match &stage.kind {
            StageKind::Source(source) => {
                let SourceKind::Range {
                    start,
                    end: Some(end),
                    chunk: 1,
                    payload,
                } = &source.kind
                else {
                    panic!("a finite range of single blocks");
                };
                let message = |block| {
                    let payload = payload.render(block, block);
                    Message {
                        first: block,
                        last: block,
                        part: String::new(),
                        payload,
                    }
                };
                (*start..=*end).map(message).collect()
            }
            StageKind::Dispatcher(dispatcher) => std::thread::scope(|scope| {
                let tasks: Vec<_> = inputs[0]
                    .1
                    .iter()
                    .map(|message| {
                        scope.spawn(move || (message, prove(&dispatcher.executor, message)))
                    })
                    .collect();
                let mut made = Vec::new();
                for task in tasks {
                    let (message, payload) = task.join().expect("no panic");
                    if !dispatcher.fan_out {
                        made.push(Message {
                            payload,
                            ..message.clone()
                        });
                        continue;
                    }
                    for (part, payload) in payload.as_array().expect("an array").iter().enumerate()
                    {
                        let (part, payload) = (part.to_string(), payload.clone());
                        made.push(Message {
                            part,
                            payload,
                            ..message.clone()
                        });
                    }
                }
                made
            }),
            StageKind::Collector(collector) => gather(&collector.strategy, &inputs),
            StageKind::Sequencer(_) => Vec::new(),
        };
        for queue in &stage.outputs {
            queues[queue.0].extend(made.iter().cloned());
        }
        done[stage.id.0] = true;
    }
    queues
}

fn prove(executor: &Executor, message: &Message) -> Value {
    let Executor::Process(process) = executor else {
        panic!("a program")
    };
    let Program::File(program) = &process.program else {
        panic!("a file")
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    std::fs::write(&input, message.payload.to_string()).expect("written");
    let run = Command::new(program)
        .current_dir(folder.path())
        .args(&process.args)
        .args([process.input_flag.as_ref(), input.as_os_str()])
        .args([process.output_flag.as_ref(), output.as_os_str()])
        .output()
        .expect("it runs");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(
        run.status.success() && errors.is_empty(),
        "{program:?}: {message:?}: {errors}"
    );
    let text = std::fs::read(&output).expect("an output");
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{program:?}: {error}"))
}

/// Groups by a key; each group must have the number of messages that the strategy states.
fn gather(strategy: &Strategy, inputs: &[(&str, &[Message])]) -> Vec<Message> {
    let mut groups: BTreeMap<String, Vec<(&str, &Message)>> = BTreeMap::new();
    for (queue, messages) in inputs {
        for message in *messages {
            let key = match strategy {
                Strategy::Match { group_by, .. } => group_by
                    .resolve(&message.payload)
                    .expect("a grouping field")
                    .to_string(),
                Strategy::Sequential { n } => format!("{:06}", message.first / n),
                Strategy::Range { by } => {
                    let (_, bounds) = inputs.iter().find(|(name, _)| name == by).expect("by");
                    let bound = bounds
                        .iter()
                        .find(|bound| bound.first <= message.first && message.last <= bound.last);
                    format!("{:06}", bound.expect("a boundary").first)
                }
                Strategy::Custom { .. } => panic!("no custom strategy"),
            };
            groups.entry(key).or_default().push((queue, message));
        }
    }
    let mut made = Vec::new();
    for mut members in groups.into_values() {
        members.sort_by_key(|(queue, message)| (message.first, *queue, message.part.clone()));
        let first = members
            .iter()
            .map(|(_, message)| message.first)
            .min()
            .expect("a member");
        let last = members
            .iter()
            .map(|(_, message)| message.last)
            .max()
            .expect("a member");
        let of = |queue: &str| -> Vec<&Message> {
            members
                .iter()
                .filter(|(name, _)| *name == queue)
                .map(|(_, message)| *message)
                .collect()
        };
        for (queue, _) in inputs {
            match strategy {
                Strategy::Match {
                    k: MatchCount::Total(k),
                    ..
                } => {
                    assert_eq!(members.len(), *k as usize);
                }
                Strategy::Match {
                    k: MatchCount::PerQueue(k),
                    ..
                } => {
                    assert_eq!(of(queue).len(), k[*queue] as usize);
                }
                Strategy::Sequential { n } => {
                    let covered: u64 = of(queue).iter().map(|m| m.last - m.first + 1).sum();
                    assert_eq!((first % n, covered), (0, *n));
                }
                _ => {
                    let covered: u64 = of(queue).iter().map(|m| m.last - m.first + 1).sum();
                    assert_eq!(covered, last - first + 1);
                }
            }
        }
        let payloads = |queue: &str| {
            of(queue)
                .iter()
                .map(|m| m.payload.clone())
                .collect::<Value>()
        };
        let payload = match inputs {
            [(queue, _)] => payloads(queue),
            _ => Value::Object(
                inputs
                    .iter()
                    .map(|(queue, _)| ((*queue).to_owned(), payloads(queue)))
                    .collect::<Map<_, _>>(),
            ),
        };
        made.push(Message {
            first,
            last,
            part: String::new(),
            payload,
        });
    }
    made
}
