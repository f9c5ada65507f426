//! Help and error texts, compared with the files in `snapshots/`. `UPDATE_SNAPSHOTS=1` rewrites them.

use std::fmt::Write;
use std::path::Path;

use crate::support::{Finished, finish, folder, proofmill, repository, run};

#[track_caller]
pub(crate) fn snapshot(name: &str, text: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/snapshots");
    let file = folder.join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::write(&file, text).expect("written");
        return;
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        text,
        expected,
        "{} differs; UPDATE_SNAPSHOTS=1 rewrites it",
        file.display()
    );
}

#[test]
fn help_of_every_command() {
    let folder = folder();
    let commands: &[(&str, &[&str])] = &[
        ("proofmill", &[]),
        ("demo", &["demo"]),
        ("run", &["run"]),
        ("coordinator", &["coordinator"]),
        ("dispatcher", &["dispatcher"]),
        ("sequencer", &["sequencer"]),
        ("source", &["source"]),
        ("collector", &["collector"]),
        ("console", &["console"]),
        ("import-env", &["import-env"]),
        ("check", &["check"]),
        ("status", &["status"]),
        ("queues", &["queues"]),
        ("tasks", &["tasks"]),
        ("scale", &["scale"]),
        ("block", &["block"]),
        ("dlq", &["dlq"]),
        ("dlq-list", &["dlq", "list"]),
        ("dlq-show", &["dlq", "show"]),
        ("dlq-retry", &["dlq", "retry"]),
        ("dlq-drop", &["dlq", "drop"]),
        ("dlq-bundle", &["dlq", "bundle"]),
        ("dlq-replay", &["dlq", "replay"]),
        ("top", &["top"]),
        ("cancel", &["cancel"]),
        ("pause", &["pause"]),
        ("resume", &["resume"]),
        ("run-now", &["run-now"]),
        ("submit", &["submit"]),
        ("prove", &["prove"]),
        ("verify", &["verify"]),
        ("verifier", &["verifier"]),
        ("verifier-serve", &["verifier", "serve"]),
        ("zkey", &["zkey"]),
        ("zkey-info", &["zkey", "info"]),
        ("zkey-check", &["zkey", "check"]),
        ("zkey-export-vk", &["zkey", "export-vk"]),
        ("zkey-export-solidity", &["zkey", "export-solidity"]),
        ("calldata", &["calldata"]),
        ("ethproofs", &["ethproofs"]),
        ("ethproofs-clusters", &["ethproofs", "clusters"]),
        ("ethproofs-register", &["ethproofs", "register"]),
        ("ethproofs-update", &["ethproofs", "update"]),
        ("setup", &["setup"]),
        ("aggregate", &["aggregate"]),
        ("aggregate-setup", &["aggregate", "setup"]),
        ("aggregate-contribute", &["aggregate", "contribute"]),
        ("aggregate-check", &["aggregate", "check"]),
        ("aggregate-key", &["aggregate", "key"]),
        ("aggregate-prove", &["aggregate", "prove"]),
        ("aggregate-verify", &["aggregate", "verify"]),
        ("engine", &["engine"]),
        ("engine-serve", &["engine", "serve"]),
        ("engine-status", &["engine", "status"]),
        ("engine-circuits", &["engine", "circuits"]),
        ("engine-jobs", &["engine", "jobs"]),
        ("engine-job", &["engine", "job"]),
        ("engine-wait", &["engine", "wait"]),
        ("engine-get", &["engine", "get"]),
        ("engine-register", &["engine", "register"]),
        ("engine-unregister", &["engine", "unregister"]),
        ("engine-preload", &["engine", "preload"]),
        ("engine-evict", &["engine", "evict"]),
        ("engine-pin", &["engine", "pin"]),
        ("engine-unpin", &["engine", "unpin"]),
        ("engine-prove", &["engine", "prove"]),
        ("engine-cancel", &["engine", "cancel"]),
        ("engine-top", &["engine", "top"]),
        ("engine-timeline", &["engine", "timeline"]),
        ("partition", &["partition"]),
        ("partition-setup", &["partition", "setup"]),
        (
            "partition-setup-merkle-tree",
            &["partition", "setup", "merkle-tree"],
        ),
        (
            "partition-setup-squarings",
            &["partition", "setup", "squarings"],
        ),
        ("partition-prove", &["partition", "prove"]),
        ("partition-verify", &["partition", "verify"]),
        ("partition-info", &["partition", "info"]),
        ("partition-publish", &["partition", "publish"]),
        ("partition-register", &["partition", "register"]),
        ("rv32", &["rv32"]),
        ("rv32-run", &["rv32", "run"]),
        ("rv32-setup", &["rv32", "setup"]),
        ("rv32-prove", &["rv32", "prove"]),
        ("rv32-verify", &["rv32", "verify"]),
        ("vkd", &["vkd"]),
        ("vkd-init", &["vkd", "init"]),
        ("vkd-update", &["vkd", "update"]),
        ("vkd-info", &["vkd", "info"]),
        ("vkd-setup", &["vkd", "setup"]),
        ("vkd-prove", &["vkd", "prove"]),
        ("vkd-lookup", &["vkd", "lookup"]),
        ("vkd-verify", &["vkd", "verify"]),
        ("vkd-verify-key", &["vkd", "verify", "key"]),
        ("vkd-verify-chain", &["vkd", "verify", "chain"]),
        ("vkd-serve", &["vkd", "serve"]),
        ("vkd-witness", &["vkd", "witness"]),
        ("vkd-publish", &["vkd", "publish"]),
        ("doctor", &["doctor"]),
        ("completions", &["completions"]),
        ("man", &["man"]),
        ("version", &["--version"]),
    ];
    for &(name, command) in commands {
        let mut program = proofmill(folder.path());
        program.args(command);
        if name != "version" {
            program.arg("--help");
        }
        // Help shows values from the environment; the tests' key directory must not appear in it.
        program.env_remove("PROOFMILL_KEYS");
        let ran = finish(&mut program).succeeded();
        assert!(ran.stderr.is_empty(), "{ran:?}");
        snapshot(&format!("help-{name}"), &ran.stdout);
    }
}

/// A command, its exit code and what it said.
pub(crate) fn record_output(text: &mut String, args: &[&str], ran: &Finished) {
    assert!(ran.stdout.is_empty(), "{ran:?}");
    writeln!(text, "$ proofmill {}", args.join(" ")).expect("a string");
    writeln!(text, "{}[{}]\n", ran.stderr, ran.code.unwrap_or(-1)).expect("a string");
}

#[test]
fn typical_errors() {
    let folder = folder();
    let here = folder.path();
    std::fs::write(
        here.join("broken.toml"),
        "name = \"x\"\n[[source]]\nname = 7\n",
    )
    .expect("written");
    std::fs::write(here.join("a-file"), "").expect("written");
    std::fs::create_dir(here.join("other")).expect("made");
    std::fs::write(here.join("other/letter"), "dear").expect("written");
    std::fs::write(here.join("seven.bin"), [7, 255, 7, 7, 7, 7, 7]).expect("written");
    std::os::unix::fs::symlink(repository("examples/fan-out"), here.join("fan-out"))
        .expect("linked");
    std::os::unix::fs::symlink(repository("examples/fan-in"), here.join("fan-in")).expect("linked");
    run(here, ["run", "fan-out/workflow.toml", "--state", "done"]).succeeded();

    let mut text = String::new();
    let commands: [&[&str]; 31] = [
        &["frobnicate"],
        &["run"],
        &["run", "absent.toml"],
        &["run", "broken.toml"],
        &["run", "fan-in/workflow.toml", "--state", "other"],
        &["run", "fan-in/workflow.toml", "--state", "done"],
        &["run", "fan-in/workflow.toml", "--state", "a-file"],
        &["run", "fan-in/workflow.toml", "--workers", "prove"],
        &["run", "fan-in/workflow.toml", "--workers", "prove=0"],
        &["run", "fan-in/workflow.toml", "--workers", "shine=2"],
        &["check", "broken.toml"],
        &["demo", "--headers", "absent"],
        &["demo", "--headers", "seven.bin"],
        &["demo", "--chunk", "0"],
        &["demo", "--metrics", "here"],
        &["--log", "proofmill=loud", "demo"],
        &["status"],
        &["status", "--state", "absent"],
        &["status", "--state", "other"],
        &["tasks", "--state", "done", "--stage", "shine"],
        &["dlq", "show", "prove/7", "--state", "done"],
        &["dlq", "show", "prove/7/../../etc", "--state", "done"],
        &["dlq", "retry", "--state", "done"],
        &["dlq", "retry", "prove-part/3/0", "--state", "done"],
        &["dlq", "drop", "join/3/0", "--state", "done"],
        &["cancel", "join/3/0", "--state", "done"],
        &["scale", "--state", "done"],
        &["scale", "--state", "done", "--serve", "127.0.0.1:0"],
        &["scale", "--serve", "127.0.0.1:0", "--client-ca", "ca.pem"],
        &[
            "submit",
            "--queue",
            "shine",
            "--block",
            "1",
            "broken.toml",
            "--state",
            "done",
        ],
        &[
            "submit", "--queue", "blocks", "--block", "1", "absent", "--state", "done",
        ],
    ];
    for args in commands {
        let ran = run(here, args);
        assert!(!ran.stderr.contains("panicked"), "{ran:?}");
        record_output(&mut text, args, &ran);
    }
    snapshot("errors", &text);
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = folder();
    let pages = folder.path().join("share/man1");
    let ran = run(
        folder.path(),
        ["man".as_ref(), "--out".as_ref(), pages.as_os_str()],
    )
    .succeeded();
    assert!(ran.stdout.is_empty() && ran.stderr.is_empty(), "{ran:?}");
    let read = |name: &str| std::fs::read_to_string(pages.join(name)).expect("a page");
    assert!(read("proofmill.1").contains("proofmill\\-coordinator(1)"));
    let serve = read("proofmill-engine-serve.1");
    assert!(
        serve.contains("\\-\\-budget") && serve.contains("PROOFMILL_ENGINE_STATE"),
        "{serve}"
    );
    let hidden = pages.join("proofmill-supervise-programs.1");
    assert!(
        !hidden.exists(),
        "a page of a command that help does not list"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_failure_and_a_full_disk_is() {
    let folder = folder();
    let here = folder.path();
    let file = repository("examples/fan-out/workflow.toml");
    run(here, ["run".as_ref(), file.as_os_str()]).succeeded();
    let commands: [&[&str]; 8] = [
        &["status"],
        &["status", "--json"],
        &["queues"],
        &["tasks"],
        &["dlq", "list"],
        &["completions", "bash"],
        &["check", "--graph", "dot", "WORKFLOW"],
        &["--help"],
    ];
    for args in commands {
        let mut command = proofmill(here);
        for arg in args {
            match *arg {
                "WORKFLOW" => command.arg(&file),
                arg => command.arg(arg),
            };
        }
        // Warnings about the workflow, which have nothing to do with who reads.
        let warned = finish(&mut command).stderr;
        // The reading end is closed before the program starts.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut child = command
            .stdout(writer)
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the program starts");
        let status = child.wait().expect("a status");
        let mut stderr = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().expect("piped"), &mut stderr)
            .expect("text");
        assert_eq!((status.code(), stderr), (Some(0), warned), "{args:?}");
    }
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("a full device");
    let mut command = proofmill(here);
    command
        .arg("status")
        .stdout(full)
        .stderr(std::process::Stdio::null());
    assert_eq!(command.status().expect("it runs").code(), Some(1));
}

#[test]
fn a_run_whose_standard_error_nobody_reads_ends_all_the_same() {
    let folder = folder();
    let file = repository("examples/fan-out/workflow.toml");
    let mut command = proofmill(folder.path());
    command.arg("--log").arg("trace").arg("run").arg(file);
    // Trace lines fill the pipe many times over.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut child = command
        .stdout(std::process::Stdio::null())
        .stderr(writer)
        .spawn()
        .expect("the program starts");
    drop(command);
    let status = crate::support::eventually("it ends", || child.try_wait().expect("a status"));
    drop(reader);
    assert_eq!(status.code(), Some(0));
}

/// Nothing listens on the address, so the run fails after its first lines.
#[test]
fn a_run_says_which_bus_it_uses() {
    let folder = folder();
    let file = repository("examples/fan-out/workflow.toml");
    let begin = |environment: Option<&str>, argument: Option<&str>| {
        let mut command = proofmill(folder.path());
        command.arg("run").arg(&file);
        command.args(["--connect-timeout", "1ms"]);
        command.args(argument.into_iter().flat_map(|url| ["--bus", url]));
        command.envs(environment.map(|url| ("PROOFMILL_BUS", url)));
        let run = finish(&mut command).failed(1, "cannot connect");
        assert!(!run.stderr.contains("secret"), "{}", run.stderr);
        let mut lines = run.stderr.lines();
        let line = lines.find(|line| line.starts_with("bus: "));
        line.expect("the bus is printed").to_owned()
    };
    let url = "nats://user:secret@127.0.0.1:9,127.0.0.1:10";
    let shown = "bus: nats://127.0.0.1:9, nats://127.0.0.1:10";
    assert_eq!(begin(Some(url), None), format!("{shown} (PROOFMILL_BUS)"));
    assert_eq!(begin(None, Some(url)), shown);
    assert_eq!(
        begin(Some(url), Some("nats://127.0.0.1:11")),
        "bus: nats://127.0.0.1:11"
    );
}
