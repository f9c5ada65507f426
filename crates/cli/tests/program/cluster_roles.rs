//! The roles of a workflow, each a process and a user of its own, on a server that lets each do only
//! what it needs (deploy/nats/cluster.conf).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use proofmill_nats_server::Deployed;

use crate::support::{Running, answered, eventually, finish, folder, post, proofmill, url};

const WORKFLOW: &str = r#"
    name = "roles"
    [[queue]]
    name = "blocks"
    writers = "many"
    [[source]]
    name = "file"
    kind = "jsonl"
    file = "blocks.jsonl"
    output = "blocks"
    [[source]]
    name = "submissions"
    kind = "submit"
    output = "blocks"
    [[dispatcher]]
    name = "prove"
    input = "blocks"
    output = "proofs"
    workers = 2
    executor = { kind = "process", program = "./copy.sh" }
    [[collector]]
    name = "gather"
    inputs = ["proofs"]
    output = "groups"
    strategy = { kind = "sequential", n = 2 }
    [[dispatcher]]
    name = "verify"
    input = "groups"
    output = "verified"
    executor = { kind = "process", program = "./copy.sh" }
    [sequencer]
    input = "verified"
    directory = "proofs"
"#;

/// The program, as a user of the server.
pub(crate) fn as_user(server: &Deployed, folder: &Path, user: &str) -> Command {
    let mut command = proofmill(folder);
    command
        .env("PROOFMILL_BUS", server.server.url())
        .env("PROOFMILL_BUS_USER", user)
        .env("PROOFMILL_BUS_PASSWORD", Deployed::password(user))
        .env("PROOFMILL_BUS_CA", &server.authority)
        .env("PROOFMILL_BUS_CERT", &server.client.certificate)
        .env("PROOFMILL_BUS_KEY", &server.client.key);
    command
}

/// A message of a block, too large to travel in a record.
fn payload(block: u64, bytes: usize) -> String {
    format!(r#"{{"block": {block}, "proof": "{}"}}"#, "x".repeat(bytes))
}

/// A folder with the workflow and these blocks, for its program to copy.
pub(crate) fn prepare(blocks: u64) -> tempfile::TempDir {
    let folder = folder();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("the folder can be written");
    };
    write("workflow.toml", WORKFLOW);
    write("copy.sh", "#!/bin/sh\nexec cp \"$2\" \"$4\"\n");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("copy.sh"), executable).expect("it is ours");
    let lines: Vec<String> = (0..blocks)
        .map(|block| {
            format!(
                r#"{{"block": {block}, "payload": {}}}"#,
                payload(block, 100_000)
            )
        })
        .collect();
    write("blocks.jsonl", &lines.join("\n"));
    folder
}

#[test]
fn every_role_works_with_the_rights_of_its_own_user() {
    let server = Deployed::start();
    let folder = prepare(7);
    let start = |(user, role, more): (&str, &str, &[&str])| {
        let mut command = as_user(&server, folder.path(), user);
        command.args([role, "workflow.toml"]).args(more);
        Running::start(&mut command)
    };
    // In an order in which all but the last have to wait for another.
    let roles: [(&str, &str, &[&str]); 6] = [
        ("sequencer", "sequencer", &[]),
        ("prover", "dispatcher", &["--stage", "prove"]),
        ("verifier", "dispatcher", &["--stage", "verify"]),
        ("source", "source", &["--submit", "127.0.0.1:0"]),
        ("collector", "collector", &[]),
        ("coordinator", "coordinator", &[]),
    ];
    let running = roles.map(start);
    let proofs = folder.path().join(".proofmill/roles/proofs");
    let proof = |name: &str| {
        let file = proofs.join(name);
        eventually(name, || std::fs::metadata(&file).ok()).len()
    };
    assert!(proof("0000000004-0000000005.json") > 200_000);

    let ask = |args: &[&str]| {
        let mut command = as_user(&server, folder.path(), "operator");
        command.args(args).args(["--workflow", "roles"]);
        answered(|| finish(&mut command))
    };
    // Under a leader that has just begun, the collector is not there at once.
    let status = eventually("the collector has its partitions", || {
        let status = ask(&["status", "--json"]).succeeded();
        (status.json()["hosts"][0]["partitions"] == 64).then_some(status)
    });
    assert_eq!(status.json()["live"], 1, "{status:?}");
    ask(&["tasks"]).succeeded();
    ask(&["dlq", "list"]).succeeded();
    // Larger than any message.
    std::fs::write(folder.path().join("large.json"), payload(7, 1_500_000)).expect("written");
    ask(&["submit", "--queue", "blocks", "--block", "7", "large.json"]).succeeded();
    assert!(proof("0000000006-0000000007.json") > 1_600_000);
    // By way of the source, which stays for it.
    let line = running[3].line("messages on http");
    for block in [8, 9] {
        let message = format!(
            r#"{{"block": {block}, "payload": {}}}"#,
            payload(block, 1_500_000)
        );
        let (status, said) = post(url(&line), "blocks", &message);
        assert_eq!(status, 201, "{said}");
    }
    assert!(proof("0000000008-0000000009.json") > 3_000_000);
    for role in running {
        let said = role.kill().join("\n");
        assert!(!said.contains("the server does not let"), "{said}");
    }
}

#[test]
fn a_role_with_the_user_of_another_role_names_the_refusal() {
    let server = Deployed::start();
    let folder = prepare(0);
    for (role, user) in [("coordinator", "prover"), ("dispatcher", "source")] {
        let mut command = as_user(&server, folder.path(), user);
        let ran = finish(command.args([role, "workflow.toml"]));
        let ran = ran.failed(1, &format!("the server does not let this {role} listen on"));
        assert!(ran.stderr.contains("deploy/nats/cluster.conf"), "{ran:?}");
    }
    let mut command = as_user(&server, folder.path(), "operator");
    finish(command.args(["status", "--workflow", "roles"])).failed(1, "start a coordinator");
}

#[test]
fn status_on_a_bus_lists_the_led_workflows_and_their_leaders() {
    let server = Deployed::start();
    let folder = prepare(0);
    let ask = |args: &[&str]| {
        let mut command = as_user(&server, folder.path(), "operator");
        command.args(args);
        answered(|| finish(&mut command))
    };
    let coordinator = Running::start(
        as_user(&server, folder.path(), "coordinator").args(["coordinator", "workflow.toml"]),
    );
    coordinator.line("ready");
    let dispatcher = Running::start(as_user(&server, folder.path(), "prover").args([
        "dispatcher",
        "workflow.toml",
        "--stage",
        "prove",
    ]));
    dispatcher.line("ready");
    let led = eventually("its workers are listed", || {
        let listed = ask(&["status", "--json"]).succeeded().json();
        (listed[0]["workers"].as_array().map(Vec::len) == Some(2)).then_some(listed)
    });
    assert_eq!(led[0]["workflow"], "roles");
    assert_eq!(led[0]["worker_count"], 2);
    assert_eq!(led[0]["workers"][0]["group"], "prove");
    let table = eventually("the table has its workers", || {
        let table = ask(&["status"]).succeeded().stdout;
        table.contains("prove-1@prove.prover.").then_some(table)
    });
    assert!(table.contains("workflow roles: led by "), "{table}");
    let ran = ask(&["tasks"]).failed(2, "no workflow is named; those on this bus are: roles");
    assert!(ran.stderr.contains("--workflow"), "{ran:?}");
    ask(&["dlq", "retry", "--all"]).failed(2, "no workflow is named");
    // A state directory that is named is what is meant.
    ask(&["status", "--state", "nowhere"]).failed(1, "nowhere is no state directory");
    drop((coordinator, dispatcher));
}
