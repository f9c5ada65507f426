//! Pauses of stages, sources and workers, attempts that do not wait, and the audit log.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::operate::{Site, THREE, blocks, site};
use crate::support::{Running, eventually};

/// The only live task of a block, once it has one.
fn task(site: &Site, block: &str) -> Value {
    eventually("the block has a task", || {
        let tasks = site.json(&["block", block])["tasks"].take();
        tasks.as_array().and_then(|of| of.first().cloned())
    })
}

/// Waits until the mill has a state directory that commands find.
fn when_open(site: &Site) {
    eventually("the mill is open", || {
        let is_there = site.file("state/workflow.json").is_file();
        is_there.then_some(())
    });
}

/// Actions in the audit log that have ended, each with its object and whether it was carried out.
fn audited(site: &Site) -> Vec<(String, String, bool)> {
    let text = fs::read_to_string(site.file("state/audit.jsonl")).expect("there");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let ended = lines.filter(|line: &Value| line["done"].is_boolean());
    let word = |value: &Value| value.as_str().expect("a text").to_owned();
    ended
        .map(|line| {
            assert_eq!(line["via"], "command");
            let done = line["done"].as_bool().expect("whether");
            (word(&line["action"]), word(&line["target"]), done)
        })
        .collect()
}

#[test]
fn a_pause_lasts_over_a_restart_until_it_is_ended() {
    let site = site(THREE, "");
    site.mark("gate");
    let running = Running::start(&mut site.mill(&["--stay"]));
    when_open(&site);
    task(&site, "1");
    let told = site.ask(&["pause", "stage", "prove"]).succeeded().stdout;
    assert_eq!(told, "stage prove is paused; work that has begun goes on\n");
    site.ask(&["pause", "stage", "prove"])
        .failed(1, "stage prove is paused already, by the mill's user");
    running.kill();
    let status = site.ask(&["status"]).succeeded().stdout;
    assert!(
        status.contains("stage prove is paused, by the mill's user, "),
        "{status}"
    );
    assert!(
        status.contains(": proofmill resume stage prove"),
        "{status}"
    );

    fs::remove_file(site.file("gate")).expect("removed");
    // It has work in a paused stage, and so does not end.
    let running = Running::start(&mut site.mill(&[]));
    let why = eventually("the reason", || {
        let task = task(&site, "2");
        let is_running = site.json(&["status"])["running"] == true;
        is_running.then(|| task["waits_for"].as_str().expect("a reason").to_owned())
    });
    assert!(
        why.starts_with("stage \"prove\" to be resumed: the mill's user paused it"),
        "{why}"
    );
    assert_eq!(site.proofs(), Vec::<String>::new());
    let told = site.json(&["resume", "stage", "prove"]);
    assert_eq!(told, json!({ "done": "stage prove goes on" }));
    running.end().1.succeeded();
    assert_eq!(site.proofs(), blocks(0..=2));

    site.ask(&["resume", "stage", "prove"])
        .failed(1, "stage prove is not paused");
    site.ask(&["pause", "source", "prove"])
        .failed(1, "no source prove; workflow site has blocks");
    let wanted = [
        ("pause", "stage prove", true),
        ("pause", "stage prove", false),
        ("resume", "stage prove", true),
        ("resume", "stage prove", false),
        ("pause", "source prove", false),
    ];
    let wanted = wanted.map(|(action, of, done)| (action.to_owned(), of.to_owned(), done));
    assert_eq!(audited(&site), wanted);
    let metadata = fs::metadata(site.file("state/audit.jsonl")).expect("there");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_task_that_backs_off_runs_now_and_workers_are_known_by_name() {
    let stage =
        "r_max = 3\nbackoff = { initial = \"1h\", max = \"1h\", factor = 1.0, jitter = 0.0 }";
    let site = site("kind = \"range\"\nstart = 0\nend = 0", stage);
    // The first run of the program fails.
    let script = fs::read_to_string(site.file("prove.sh")).expect("a script");
    let failing = "[ -e \"$here/began\" ] || { echo 0 > \"$here/began\"; exit 1; }\nblock=";
    fs::write(site.file("prove.sh"), script.replacen("block=", failing, 1)).expect("written");
    let running = Running::start(&mut site.mill(&[]));
    when_open(&site);
    eventually("it backs off", || {
        (task(&site, "0")["phase"] == "delayed").then_some(())
    });
    site.ask(&["run-now", "prove/1/0"])
        .failed(1, "no live task prove/1/0");
    site.ask(&["pause", "worker", "nobody"])
        .failed(1, "no worker nobody has joined");
    let told = site.ask(&["run-now", "prove/0/0"]).succeeded().stdout;
    assert_eq!(told, "prove/0/0 runs as soon as a worker is free\n");
    running.end().1.succeeded();
    assert_eq!(site.proofs(), blocks(0..=0));
}
