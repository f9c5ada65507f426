//! Proofs that come after their block: none vanishes, whatever the workflow does with it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Finished, Running, eventually, files, folder, post, proofmill, run, url};

const PROVERS: [&str; 3] = ["sp1", "risc0", "openvm"];

const BLOCKS: u64 = 4;

/// A deployment as the public demo's for Ethproofs: several provers of each block, and a collector that
/// takes one proof. Its blocks are published by somebody else.
fn deployment(folder: &Path) {
    let mut compose = "services:\n".to_owned();
    for name in PROVERS {
        let program = folder.join(format!("{name}.sh"));
        // Each takes its time, so that it differs who is first.
        let script = format!(
            "#!/bin/sh\nblock=$(cat \"$2\")\nsleep 0.0$(( (block * 7 + $$) % 10 ))\n\
             printf '{{\"block\":%s,\"prover\":\"{name}\"}}' \"$block\" > \"$4\"\n"
        );
        fs::write(&program, script).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
        compose += &format!(
            "  {name}:\n    command: dispatcher\n    environment:\n      - INPUT_QUEUE=mo.blocks\n      \
             - OUTPUT_QUEUE=mo.block_proofs\n      - CONSUMER_NAME={name}\n      - BINARY={}\n",
            program.display()
        );
    }
    compose += "  proof-collector:\n    command: collector\n    environment:\n      \
                - INPUT_QUEUE=mo.block_proofs,mo.blocks\n      - OUTPUT_QUEUE=mo.completed_proofs\n      \
                - STRATEGY=Proof\n      - SINGLE_OUTPUT=true\n      - NUM_INPUTS=1\n";
    fs::write(folder.join("docker-compose-ethproofs.yml"), compose).expect("written");
}

/// Block and prover of every proof of a JSON value, wherever they are in it.
fn proofs(value: &Value, found: &mut BTreeSet<(u64, String)>) {
    if let (Some(block), Some(prover)) = (value["block"].as_u64(), value["prover"].as_str()) {
        found.insert((block, prover.to_owned()));
    }
    match value {
        Value::Array(values) => values.iter().for_each(|value| proofs(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| proofs(value, found)),
        _ => {}
    }
}

/// Runs a workflow until nothing of its blocks is left; what was emitted, and the status.
fn run_blocks(folder: &Path, workflow: &str, state: &str) -> (BTreeSet<(u64, String)>, Value) {
    let args = ["run", workflow, "--state", state, "--json"];
    let intake = ["--submit", "127.0.0.1:0"];
    let mill = Running::start(proofmill(folder).args(args).args(intake));
    let line = mill.line("messages on http");
    for block in 0..BLOCKS {
        let message = format!(r#"{{"block": {block}, "payload": {block}}}"#);
        assert_eq!(post(url(&line), "blocks", &message).0, 201);
    }
    eventually("nothing is left", || {
        let status = ask(folder, state, &["status"]).succeeded().json();
        let done = status["next_block"] == BLOCKS && status["live"] == 0;
        done.then_some(())
    });
    mill.signal(Signal::TERM);
    let status = mill.end().1.succeeded_or_dead().json()["status"].take();
    let mut emitted = BTreeSet::new();
    let completed = files(&folder.join(state).join("completed"));
    assert_eq!(completed.len() as u64, BLOCKS);
    for (_, bytes) in completed {
        proofs(&serde_json::from_slice(&bytes).expect("JSON"), &mut emitted);
    }
    (emitted, status)
}

fn ask(folder: &Path, state: &str, args: &[&str]) -> Finished {
    let args = args.iter().copied();
    run(folder, args.chain(["--state", state, "--json"]))
}

fn late_of(status: &Value) -> u64 {
    let stages = status["stages"].as_array().expect("stages").iter();
    stages
        .map(|stage| stage["counters"]["late"].as_u64().expect("a count"))
        .sum()
}

#[test]
fn every_proof_of_an_imported_deployment_is_emitted_or_in_the_dead_letter_queue() {
    let folder = folder();
    let folder = folder.path();
    deployment(folder);
    let compose = "docker-compose-ethproofs.yml";
    let imported = run(folder, ["import-env", compose, "-o", "./workflow.toml"]).succeeded();
    let note = "3, one of each prover (NUM_INPUTS says 1";
    assert!(imported.stderr.contains(note), "{}", imported.stderr);
    run(folder, ["check", "./workflow.toml"]).succeeded();
    let all: BTreeSet<(u64, String)> = (0..BLOCKS)
        .flat_map(|block| PROVERS.map(|prover| (block, prover.to_owned())))
        .collect();

    // As it was imported, a block leaves with all its proofs.
    let (emitted, status) = run_blocks(folder, "workflow.toml", "whole");
    assert_eq!(emitted, all);
    assert_eq!((late_of(&status), &status["dead"]), (0, &0.into()));

    // With the count of push0 a block leaves with one, and the others are kept.
    let text = fs::read_to_string(folder.join("workflow.toml")).expect("text");
    let first = text.replace("k = 3,", "k = 1,");
    assert_ne!(first, text);
    fs::write(folder.join("first.toml"), first).expect("written");
    let (mut found, status) = run_blocks(folder, "first.toml", "first");
    assert_eq!(found.len() as u64, BLOCKS);
    let late = all.len() as u64 - BLOCKS;
    assert_eq!((late_of(&status), &status["dead"]), (late, &late.into()));
    let letters = ask(folder, "first", &["dlq", "list"]).succeeded().json();
    for letter in letters.as_array().expect("a list") {
        let task = letter["task"].as_str().expect("a task");
        let reason = letter["reason"].as_str().expect("a reason");
        assert!(reason.starts_with("it came late: "), "{reason}");
        let letter = ask(folder, "first", &["dlq", "show", task]).succeeded();
        let payload = letter.json()["payload"].take();
        let payload = serde_json::from_str(payload.as_str().expect("text")).expect("JSON");
        proofs(&payload, &mut found);
    }
    assert_eq!(found, all);

    // They cannot come into a group that has left; they can be dropped, and nothing waits for them.
    let retried = ask(folder, "first", &["dlq", "retry", "--all"]);
    let retried = retried.failed(1, "a retry cannot bring");
    assert!(
        retried.stderr.contains("7 other tasks failed too"),
        "{}",
        retried.stderr
    );
    let dropped = ask(folder, "first", &["dlq", "drop", "--all"]).succeeded();
    assert_eq!(dropped.json()["tasks"].as_array().map(Vec::len), Some(8));
    assert_eq!(dropped.json()["gaps"], Value::Array(Vec::new()));
    let status = ask(folder, "first", &["status"]).succeeded().json();
    assert_eq!((&status["dead"], &status["live"]), (&0.into(), &0.into()));
}

#[test]
fn late_proofs_are_passed_on_alone_if_the_workflow_says_so() {
    let folder = folder();
    let folder = folder.path();
    deployment(folder);
    let stage = |name: &str| {
        format!(
            "[[dispatcher]]\nname = \"{name}\"\ninput = \"blocks\"\noutput = \"proofs\"\n\
             executor = {{ kind = \"process\", program = \"./{name}.sh\" }}\n"
        )
    };
    let workflow = |late: &str, last: &str| {
        format!(
            "name = \"late\"\n[[source]]\nname = \"blocks\"\nkind = \"range\"\nend = 3\n\
             output = \"blocks\"\n{}\
             [[queue]]\nname = \"proofs\"\nwriters = \"many\"\n\
             [[collector]]\nname = \"first\"\ninputs = [\"proofs\"]\noutput = \"firsts\"\n\
             strategy = {{ kind = \"match\", k = 1, group_by = \"/block\" }}\n{late}{last}",
            PROVERS.map(stage).concat()
        )
    };
    let archive = "[[dispatcher]]\nname = \"archive\"\ninput = \"firsts\"\n\
                   executor = { kind = \"process\", program = \"./archive.sh\" }\n";
    // Ranges bring objects, of which the block is taken.
    for name in PROVERS {
        let script = format!(
            "#!/bin/sh\nblock=$(tr -dc 0-9 < \"$2\")\n\
             printf '{{\"block\":%s,\"prover\":\"{name}\"}}' \"$block\" > \"$4\"\n"
        );
        fs::write(folder.join(format!("{name}.sh")), script).expect("written");
    }
    let here = folder.display();
    let script = format!("#!/bin/sh\n(cat \"$2\"; echo) >> '{here}/archived'\necho 0 > \"$4\"\n");
    fs::write(folder.join("archive.sh"), script).expect("written");
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.join("archive.sh"), mode).expect("set");

    let emit = "late = \"emit\"\n";
    fs::write(folder.join("emit.toml"), workflow(emit, archive)).expect("written");
    let args = ["run", "emit.toml", "--state", "emit", "--json"];
    let status = run(folder, args).succeeded().json()["status"].take();
    assert_eq!((late_of(&status), &status["dead"]), (8, &0.into()));
    let archived = fs::read_to_string(folder.join("archived")).expect("text");
    let groups: Vec<Value> = archived
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let mut found = BTreeSet::new();
    for group in &groups {
        assert_eq!(group.as_array().map(Vec::len), Some(1), "{group}");
        proofs(group, &mut found);
    }
    assert_eq!((groups.len(), found.len()), (12, 12));

    // A sequencer emits one message for each block.
    let sequencer = "[sequencer]\ninput = \"firsts\"\n";
    fs::write(folder.join("wrong.toml"), workflow(emit, sequencer)).expect("written");
    let refused = run(folder, ["check", "wrong.toml"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(
        said.contains("`first` emits late messages one by one"),
        "{said}"
    );
}

// === impl Finished ===

impl Finished {
    /// A run that ended well, or with dead letters.
    #[track_caller]
    fn succeeded_or_dead(self) -> Self {
        match self.code {
            Some(0) => self,
            _ => self.failed(1, "in the dead-letter queue"),
        }
    }
}
