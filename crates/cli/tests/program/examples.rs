//! Every example, to its end, with the program's own processes.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Running, emitted, files, finish, folder, names, proofmill, repository, run};

/// The examples that end by themselves, and the spans that each emits: blocks, and how many
/// together.
const EXAMPLES: [(&str, u64, u64); 9] = [
    ("sequential", 20, 1),
    ("parallel", 24, 1),
    ("fan-in", 32, 4),
    ("fan-out", 10, 1),
    ("multi-queue-join", 16, 1),
    ("proposer-flow", 64, 16),
    ("bitcoin-headers", 32, 4),
    ("bitcoin-bundles", 32, 8),
    ("deliver", 8, 1),
];

fn file(example: &str) -> PathBuf {
    repository("examples").join(example).join("workflow.toml")
}

fn spans(blocks: u64, each: u64) -> Vec<String> {
    (0..blocks / each)
        .map(|group| emitted(group * each, group * each + each - 1))
        .collect()
}

#[test]
fn every_example_is_run_here() {
    let mut known: Vec<&str> = EXAMPLES.iter().map(|(name, ..)| *name).collect();
    known.push("submit");
    // With an engine: in `engine.rs`.
    known.push("engines");
    known.sort_unstable();
    let mut found: Vec<String> = std::fs::read_dir(repository("examples"))
        .expect("the examples")
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.path().join("workflow.toml").exists())
        .map(|entry| entry.file_name().into_string().expect("text"))
        .collect();
    found.sort();
    assert_eq!(found, known);
}

#[test]
fn each_example_emits_its_chain_and_a_second_run_has_nothing_to_do() {
    for (example, blocks, each) in EXAMPLES {
        let folder = folder();
        let here = folder.path();
        let file = file(example);
        let args = ["run".as_ref(), file.as_os_str(), "--json".as_ref()];
        let summary = run(here, args).succeeded().json();
        assert_eq!(summary["status"]["live"], 0, "{example}: {summary}");
        let proofs = here.join(".proofmill").join(example).join("proofs");
        assert_eq!(names(&proofs), spans(blocks, each), "{example}");
        for (name, bytes) in files(&proofs) {
            let parsed: Value = serde_json::from_slice(&bytes).expect("JSON");
            // A group of one queue is an array.
            let fits = parsed.is_object() || parsed.is_array();
            assert!(fits, "{example} {name}: {parsed}");
        }
        let before = files(&proofs);
        let again = run(here, args).succeeded().json();
        assert_eq!(files(&proofs), before, "{example}");
        for (source, brought) in again["sources"].as_object().expect("sources") {
            assert_eq!(brought["accepted"], 0, "{example} {source}: {again}");
        }
    }
}

fn proposer_flow(folder: &Path, workflow: &Path) -> std::process::Command {
    let mut command = proofmill(folder);
    command
        .arg("run")
        .arg(workflow)
        .args(["--state", "state", "--json"]);
    command
}

/// A copy of the proposer flow in a folder, with a source of a tenth of the rate: seconds pass from the first bundle to the
/// last.
fn slow_proposer_flow(folder: &Path) -> PathBuf {
    for (name, bytes) in files(&repository("examples/proposer-flow")) {
        let to = folder.join(&name);
        // With its mode: programs are among them.
        std::fs::copy(repository("examples/proposer-flow").join(&name), &to).expect("copied");
        if name == "workflow.toml" {
            let text = String::from_utf8(bytes).expect("text");
            let slow = text.replace("rate = \"100/s\"", "rate = \"10/s\"");
            assert_ne!(text, slow);
            std::fs::write(to, slow).expect("written");
        }
    }
    folder.join("workflow.toml")
}

#[test]
fn the_proposer_flow_killed_in_the_middle_emits_the_same_set() {
    let folder = folder();
    let whole = folder.path().join("whole");
    let killed = folder.path().join("killed");
    for folder in [&whole, &killed] {
        std::fs::create_dir(folder).expect("made");
    }
    finish(&mut proposer_flow(&whole, &file("proposer-flow"))).succeeded();

    let workflow = slow_proposer_flow(&killed);
    let running = Running::start(&mut proposer_flow(&killed, &workflow));
    let proofs = killed.join("state/proofs");
    // In the middle: something has left, and there is more to come. The source paces itself, so
    // there is a middle however fast the machine is.
    crate::support::eventually("a bundle has left", || {
        (!files(&proofs).is_empty()).then_some(())
    });
    running.kill();
    let kept = files(&proofs);
    assert!(kept.len() < 4, "killed too late: {}", kept.len());
    finish(&mut proposer_flow(&killed, &workflow)).succeeded();
    let end = files(&proofs);
    assert_eq!(end[..kept.len()], kept[..], "what had left is as it was");
    assert_eq!(end, files(&whole.join("state/proofs")));
}
