//! Machines that run out of resources: full disks, and processes without free descriptors. In each
//! workflow `r_max` is 0, so a single failed attempt would leave a dead task.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proofmill_nats_server::NatsServer;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;

use crate::operate::blocks;
use crate::support::{Finished, Running, answered, eventually, finish, folder, names, proofmill};

/// Healthy tasks.
const TASKS: u64 = 113;

/// Workers.
const WORKERS: usize = 4;

/// Programs that begin before the machine fails. The last of them and later ones wait until it has: otherwise all may
/// have ended by then where the test waits long for its turn of the processor.
const BEFORE: usize = 20;

/// A folder with a workflow whose program copies its input and notes the attempt. From [`BEFORE`] attempts on it waits
/// for a file `failing`.
fn prepare(payload: usize) -> tempfile::TempDir {
    let folder = folder();
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("the folder can be written");
    };
    write(
        "workflow.toml",
        r#"
        name = "machine"
        [[source]]
        name = "file"
        kind = "jsonl"
        file = "blocks.jsonl"
        output = "blocks"
        [[dispatcher]]
        name = "prove"
        input = "blocks"
        output = "proofs"
        workers = WORKERS
        r_max = 0
        executor = { kind = "process", program = "./prove.sh" }
        [sequencer]
        input = "proofs"
        directory = "proofs"
    "#
        .replace("WORKERS", &WORKERS.to_string())
        .as_str(),
    );
    let here = folder.path().display();
    write(
        "prove.sh",
        &format!(
            "#!/bin/sh\necho \"$PROOFMILL_ATTEMPT\" >> '{here}/attempts'\n\
             while [ ! -e '{here}/failing' ] && [ \"$(wc -l < '{here}/attempts')\" -ge {BEFORE} ]\n\
             do sleep 0.05; done\nsleep 0.1\nexec cp \"$2\" \"$4\"\n"
        ),
    );
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path().join("prove.sh"), executable).expect("it is ours");
    let pad = "x".repeat(payload);
    let lines = (0..TASKS).map(|block| {
        format!(r#"{{"block": {block}, "payload": {{"block": {block}, "pad": "{pad}"}}}}"#)
    });
    write("blocks.jsonl", &lines.collect::<Vec<_>>().join("\n"));
    folder
}

/// The numbers of the attempts that programs have begun so far.
fn attempts(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("attempts")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn when_begun(folder: &Path) {
    eventually("programs begin", || {
        (attempts(folder).len() >= BEFORE).then_some(())
    });
}

/// Lets the programs go on that wait until the machine fails.
fn go_on(folder: &Path) {
    fs::write(folder.join("failing"), "").expect("the folder can be written");
}

/// That nothing was lost, and no attempt charged, in a status.
fn check_unharmed(status: &Value) {
    assert_eq!(status["dead"], 0, "{status}");
    assert_eq!(status["stages"][0]["counters"]["failed"], 0, "{status}");
}

/// The reasons of the workers that are paused, once there are some.
fn paused(what: &str, ask: impl Fn() -> Finished) -> Vec<String> {
    let status = eventually(what, || {
        let status = ask().succeeded().json();
        let paused = status["paused"].as_array().is_some_and(|it| !it.is_empty());
        paused.then_some(status)
    });
    check_unharmed(&status);
    let workers = status["paused"].as_array().into_iter().flatten();
    workers
        .map(|worker| worker["reason"].as_str().expect("text").to_owned())
        .collect()
}

/// Fills the file system that `folder` is on, as far as it goes now.
fn fill(folder: &Path) {
    let mut options = fs::OpenOptions::new();
    let ballast = options.append(true).create(true);
    let mut ballast = ballast.open(folder.join("ballast")).expect("made");
    let block = [1_u8; 4096];
    while ballast.write_all(&block).is_ok() {}
}

/// Whether a user may have mounts of its own here. A test that needs it says so if not.
pub(crate) fn has_namespaces() -> bool {
    let mount = "mount -t tmpfs -o size=1m proofmill-test /tmp";
    let tried = Command::new("unshare")
        .args(["-rm", "sh", "-c", mount])
        .stderr(Stdio::null())
        .status();
    tried.is_ok_and(|status| status.success())
}

#[test]
fn a_full_disk_costs_no_task_an_attempt_and_all_go_on_when_there_is_room() {
    if !has_namespaces() {
        eprintln!("not run: `unshare -rm` with a tmpfs of its own is not allowed here");
        return;
    }
    let folder = prepare(20_000);
    let state = folder.path().join("state");
    let scratch = state.join("scratch");
    fs::create_dir_all(&scratch).expect("made");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).expect("it is ours");
    let program = proofmill(folder.path());
    let mut command = Command::new("unshare");
    command
        .args(["-rm", "sh", "-c"])
        .arg(r#"mount -t tmpfs -o size=4m,mode=700 proofmill-test "$0" && exec "$@""#)
        .arg(&scratch)
        .arg(program.get_program())
        .args(["run", "workflow.toml", "--state", "state", "--log", "info"])
        .current_dir(folder.path());
    let running = Running::start(&mut command);
    when_begun(folder.path());
    // The same process as `unshare` was; what is mounted there is seen through it alone.
    let root = PathBuf::from(format!("/proc/{}/root", running.pid()));
    let mounted = root.join(scratch.strip_prefix("/").expect("absolute"));
    let ask = || {
        let mut command = proofmill(folder.path());
        finish(command.args(["status", "--state", "state", "--json"]))
    };
    fill(&mounted);
    go_on(folder.path());
    // Programs that end make room again, in which others go on: until none is left that does.
    let reasons = eventually("no worker goes on", || {
        fill(&mounted);
        let reasons = paused("workers without room pause", ask);
        (reasons.len() == WORKERS).then_some(reasons)
    });
    assert!(
        reasons
            .iter()
            .all(|reason| reason.starts_with("no disk space: ")),
        "{reasons:?}"
    );
    running.line("paused: this machine has failed");
    // So that it is tried again some times.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let mut command = proofmill(folder.path());
    let shown = finish(command.args(["status", "--state", "state"])).succeeded();
    assert!(shown.stdout.contains("no disk space"), "{shown:?}");
    let status = ask().succeeded().json();
    check_unharmed(&status);
    assert!(status["live"].as_u64() > Some(0), "{status}");

    fs::remove_file(mounted.join("ballast")).expect("removed");
    let (ended, ran) = running.end();
    assert!(ended.success(), "{ran:?}");
    assert!(ran.stderr.contains("resumed"), "{ran:?}");
    assert_eq!(names(&state.join("proofs")), blocks(0..=TASKS - 1));
    let attempts = attempts(folder.path());
    assert!(attempts.iter().all(|number| number == "1"), "{attempts:?}");
}

/// Limits how many descriptors a running process may have open; returns what the limit was.
fn limit_descriptors(pid: Pid, limit: u64) -> u64 {
    let own = getrlimit(Resource::Nofile);
    let before = prlimit(
        Some(pid),
        Resource::Nofile,
        Rlimit {
            current: Some(limit),
            maximum: own.maximum,
        },
    );
    before.expect("its own user may").current.expect("a limit")
}

#[test]
fn a_dispatcher_without_descriptors_costs_no_task_an_attempt_and_says_why_over_the_bus() {
    let server = NatsServer::start();
    let folder = prepare(20_000);
    let role = |args: &[&str]| {
        let mut command = proofmill(folder.path());
        command.env("PROOFMILL_BUS", server.url()).args(args);
        command
    };
    let start = |name: &str| Running::start(&mut role(&[name, "workflow.toml", "--log", "info"]));
    let roles = ["coordinator", "sequencer", "source"].map(start);
    let dispatcher = start("dispatcher");
    when_begun(folder.path());
    // Fewer than it has: nothing can be opened any more, and what is open stays.
    let before = limit_descriptors(dispatcher.pid(), 8);
    go_on(folder.path());
    let args = ["status", "--workflow", "machine", "--json"];
    let ask = || answered(|| finish(&mut role(&args)));
    let reasons = paused("workers without descriptors pause", ask);
    assert!(
        reasons
            .iter()
            .all(|reason| reason.starts_with("no file descriptors: ")),
        "{reasons:?}"
    );
    std::thread::sleep(std::time::Duration::from_secs(3));
    let status = ask().succeeded().json();
    check_unharmed(&status);
    assert!(status["live"].as_u64() > Some(0), "{status}");
    limit_descriptors(dispatcher.pid(), before);
    let proofs = folder.path().join(".proofmill/machine/proofs");
    eventually("all proofs", || {
        (names(&proofs).len() as u64 == TASKS).then_some(())
    });
    assert_eq!(names(&proofs), blocks(0..=TASKS - 1));
    check_unharmed(&ask().succeeded().json());
    let attempts = attempts(folder.path());
    assert!(attempts.iter().all(|number| number == "1"), "{attempts:?}");
    dispatcher.kill();
    for role in roles {
        role.kill();
    }
}
