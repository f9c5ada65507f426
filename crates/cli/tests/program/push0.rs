//! The program as a replacement for push0: without a workflow, configured by the environment alone.

use std::process::Command;

use proofmill_nats_server::NatsServer;
use rustix::process::Signal;

use crate::support::{Running, finish, folder, proofmill, run};

/// A dispatcher that reads one queue and runs `binary`.
fn dispatcher(folder: &std::path::Path, url: &str, binary: &str) -> Command {
    let mut command = proofmill(folder);
    command
        .arg("dispatcher")
        .env("NATS_URL", url)
        .env("INPUT_STREAM", "mo")
        .env("INPUT_QUEUE", "mo.blocks")
        .env("OUTPUT_QUEUE", "mo.proofs")
        .env("BINARY", binary);
    command
}

#[test]
fn workflow_options_are_refused_without_a_workflow() {
    let folder = folder();
    let here = folder.path();
    for role in ["dispatcher", "collector"] {
        let ran = run(here, [role, "--bus", "nats://127.0.0.1:9"]);
        let ran = ran.failed(2, &format!("--bus is for the {role} of a workflow"));
        assert!(ran.stderr.contains("NATS_URL"), "{ran:?}");
        assert!(
            ran.stderr
                .contains(&format!("proofmill {role} workflow.toml")),
            "{ran:?}"
        );
    }
    let ran = run(here, ["dispatcher", "--workers", "prove=2"]);
    ran.failed(2, "--workers prove=2 is for the dispatcher of a workflow");
}

#[test]
fn a_dispatcher_looks_for_its_program_and_says_when_it_is_ready() {
    let folder = folder();
    // Nobody listens there: the program is looked for first.
    let mut command = dispatcher(folder.path(), "nats://127.0.0.1:9", "./prover");
    let ran = finish(&mut command).failed(2, "BINARY holds \"./prover\"");
    assert!(ran.stderr.contains("an existing program"), "{ran:?}");

    let server = NatsServer::start();
    let mut command = dispatcher(folder.path(), &server.url(), "cp");
    command.env("PROOFMILL_BUS", "nats://127.0.0.1:9");
    let role = Running::start(&mut command);
    role.line("--bus (PROOFMILL_BUS) is for the dispatcher of a workflow");
    let ready = role.line("ready, reads mo.blocks");
    assert!(ready.contains("dispatcher-mo_blocks-mo_proofs"), "{ready}");
    role.signal(Signal::TERM);
    let (status, ran) = role.end();
    assert!(status.success(), "{ran:?}");
}

#[test]
fn files_of_a_deployment_are_merged_into_one_workflow() {
    let folder = folder();
    let here = folder.path();
    let write = |name: &str, text: &str| std::fs::write(here.join(name), text).expect("written");
    write(
        "core.yml",
        "services:\n  blocks:\n    command: collector\n    environment:\n      - STRATEGY=Block\n      \
         - L1_RPC=${L1_RPC}\n      - OUTPUT_QUEUE=mo.blocks\n      - NEXT_BLOCK=7\n",
    );
    write(
        "provers.yml",
        "services:\n  blocks:\n    environment:\n      NEXT_BLOCK: -3\n  prove:\n    \
         command: dispatcher\n    environment:\n      - BINARY=./prove\n      - INPUT_QUEUE=mo.blocks\n      \
         - OUTPUT_QUEUE=mo.proofs\n",
    );
    write(
        ".env",
        "INPUT_STREAM=mo\nL1_RPC=http://127.0.0.1:8545/key\n",
    );
    let ran = run(here, ["import-env", "core.yml", "provers.yml"]).succeeded();
    for line in [
        "kind = \"ethereum\"",
        "rpc = \"http://127.0.0.1:8545/key\"",
        "from = -3",
        "payload = \"{block}\"",
        "program = \"./prove\"",
    ] {
        assert!(ran.stdout.contains(line), "{line} is not in {}", ran.stdout);
    }
    assert!(!ran.stderr.contains("/key"), "{}", ran.stderr);
    run(here, ["import-env", "core.yml", "absent.yml"]).failed(1, "absent.yml");
    run(here, ["import-env"]).failed(2, "FILE_OR_DIR");
}
