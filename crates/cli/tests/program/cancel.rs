//! Cancelling tasks that are running.

use proofmill_nats_server::NatsServer;
use serde_json::{Value, json};

use crate::operate::{Site, THREE, blocks, runs, site};
use crate::support::{Running, answered, eventually, proofmill, run};

/// Waits until the hanging program and its child are gone.
fn when_killed(site: &Site) {
    let pids = site.pids();
    eventually("the program is killed", || {
        (!pids.iter().any(|pid| runs(*pid))).then_some(())
    });
}

#[test]
fn a_task_a_block_or_all_are_stopped_and_can_be_brought_back() {
    let site = site(THREE, "");
    site.mark("hang-0");
    let mut running = site.mill(&["--stay"]);
    let running = Running::start(&mut running);
    site.pids();
    let told = site.ask(&["cancel", "prove/0/0"]).succeeded().stdout;
    assert_eq!(
        told,
        "task prove/0/0: stopped, and in the dead-letter queue; see `proofmill dlq`\n"
    );
    when_killed(&site);
    let dead = site.json(&["dlq", "list"]);
    assert_eq!(
        (&dead[0]["task"], &dead[0]["reason"]),
        (&"prove/0/0".into(), &"cancelled by an operator".into()),
        "{dead}"
    );
    site.ask(&["cancel", "--block", "0"])
        .failed(1, "no live task is about block 0");
    site.ask(&["cancel", "prove/0/0"])
        .failed(1, "no live task prove/0/0");
    site.ask(&["cancel", "prove"]).failed(1, "invalid task id");
    site.ask(&["cancel"]).failed(2, "required");
    site.ask(&["cancel", "prove/0/0", "--all"])
        .failed(2, "cannot be used with");
    // Blocks 1 and 2 wait for block 0 at the sequencer.
    eventually("the others are proved", || {
        let tasks = site.json(&["tasks", "--stage", "sequencer"]);
        (tasks.as_array().map(Vec::len) == Some(2)).then_some(())
    });
    let told = site.json(&["cancel", "--block", "1"]);
    assert_eq!(told, json!({ "cancelled": { "block": 1 } }));
    let told = site.json(&["cancel", "--all"]);
    assert_eq!(told, json!({ "cancelled": "all" }));
    site.ask(&["cancel", "--all"]).succeeded();
    assert_eq!(
        site.json(&["dlq", "list"]).as_array().map(Vec::len),
        Some(3)
    );
    assert_eq!(site.json(&["tasks"]), Value::Array(Vec::new()));
    site.ask(&["dlq", "retry", "--all"]).succeeded();
    eventually("all have left", || {
        (site.proofs() == blocks(0..=2)).then_some(())
    });
    running.kill();
}

#[test]
fn a_block_is_stopped_over_the_bus() {
    let site = site(THREE, "");
    site.mark("hang-0");
    let server = NatsServer::start();
    let url = server.url();
    let role = |name: &str| {
        let mut command = proofmill(site.path());
        command.args([name, "workflow.toml", "--bus", &url]);
        command
    };
    let coordinator = Running::start(&mut role("coordinator"));
    let dispatcher = Running::start(&mut role("dispatcher"));
    let source = Running::start(&mut role("source"));
    site.pids();
    let ask = |args: &[&str]| {
        let cluster = ["--workflow", "site", "--bus", &url, "--json"];
        answered(|| run(site.path(), args.iter().copied().chain(cluster)))
    };
    let told = ask(&["cancel", "--block", "0"]).succeeded().json();
    assert_eq!(told, json!({ "cancelled": { "block": 0 } }));
    when_killed(&site);
    let dead = ask(&["dlq", "list"]).succeeded().json();
    assert_eq!(dead[0]["task"], "prove/0/0", "{dead}");
    ask(&["cancel", "--block", "0"]).failed(1, "no live task is about block 0");
    for running in [coordinator, dispatcher, source] {
        running.kill();
    }
}
