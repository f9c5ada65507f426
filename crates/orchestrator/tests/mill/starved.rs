//! Programs on machines that run out of a resource: failures of the program are told apart from failures of
//! the machine. Each machine is a child process of this test, with limits or a small disk of its own.

use std::fs;
use std::future::pending;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use proofmill_process::MissingResource;
use proofmill_process::{Attempt, Outcome, ProcessExecutor, ProcessSpec, TaskContext};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::PATIENCE;

/// Environment variable with the folder for a child's files; not set in a normal run.
const DIR: &str = "PROOFMILL_TEST_STARVED";

/// Mount option with the size of the small disk.
const DISK: &str = "size=8m";

fn executor(root: &Path, script: &str) -> ProcessExecutor {
    let mut spec = ProcessSpec::new("/bin/sh");
    spec.args = vec!["-c".to_owned(), script.to_owned()];
    ProcessExecutor::new(spec, root.to_owned()).expect("an executor")
}

/// Runs a script; `$1` is the path of the input, `$3` that of the output.
async fn run(root: &Path, script: &str) -> Attempt {
    let task = TaskContext {
        id: "prove/1/0".into(),
        attempt: 1,
        block: 1,
    };
    let executor = executor(root, script);
    executor.run(&task, &[b'1'; 4000], pending()).await
}

fn missing(attempt: &Attempt) -> Option<MissingResource> {
    match &attempt.outcome {
        Outcome::Machine(failure) => Some(failure.missing),
        _ => None,
    }
}

/// Waits until no file of a run is left: a killed program is reaped by a thread.
async fn is_left_empty(root: &Path) {
    let began = std::time::Instant::now();
    while fs::read_dir(root).expect("there").next().is_some() {
        assert!(began.elapsed() < PATIENCE, "something is left");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn child_dir() -> Option<PathBuf> {
    std::env::var_os(DIR).map(PathBuf::from)
}

/// Runs one of the tests below in a child process.
fn in_child(mut command: Command, name: &str, dir: &Path) {
    let child = command
        .arg(std::env::current_exe().expect("this test's own file"))
        .args(["--exact", &format!("starved::{name}"), "--nocapture"])
        .env(DIR, dir)
        .output()
        .expect("the child runs");
    let output = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{output}{errors}");
    assert!(output.contains("all was tried"), "{output}{errors}");
}

/// The child of [`without_descriptors_a_program_is_not_charged_and_nothing_is_left_behind`].
#[tokio::test(flavor = "multi_thread")]
async fn child_without_descriptors() {
    let Some(root) = child_dir() else { return };
    const COPY: &str = "cp \"$1\" \"$3\"";
    assert!(run(&root, COPY).await.outcome.is_success());
    let before = getrlimit(Resource::Nofile);
    let open = fs::read_dir("/dev/fd").expect("there").count() as u64;
    // Limits from too few to begin with, through too few half-way through a start, to enough.
    let mut lacking = 0;
    let mut limit = 3;
    loop {
        let current = Some(limit);
        setrlimit(Resource::Nofile, Rlimit { current, ..before }).expect("lowered");
        let attempt = run(&root, COPY).await;
        let probed = executor(&root, COPY).probe().await;
        setrlimit(Resource::Nofile, before).expect("raised");
        is_left_empty(&root).await;
        if attempt.outcome.is_success() && probed.is_ok() {
            break;
        }
        if !attempt.outcome.is_success() {
            assert_eq!(
                missing(&attempt),
                Some(MissingResource::Descriptors),
                "{attempt:?}"
            );
            lacking += 1;
            let failure = probed.expect_err("a probe opens more than a run");
            assert_eq!(failure.missing, MissingResource::Descriptors, "{failure}");
        }
        limit += 1;
        assert!(limit < open + 200, "it never works: {attempt:?}");
    }
    assert!(lacking > 3, "{lacking}");
    println!("all was tried");
}

#[test]
fn without_descriptors_a_program_is_not_charged_and_nothing_is_left_behind() {
    let dir = tempfile::tempdir().expect("temporary directory");
    // `exec` in a shell starts the test's own file directly.
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$@\""]);
    in_child(command, "child_without_descriptors", dir.path());
}

/// Fills the disk until `left` bytes are free.
fn fill_but(root: &Path, left: u64) -> PathBuf {
    let path = root.join("ballast");
    let mut file = fs::File::create(&path).expect("made");
    while file.write_all(&[1; 4096]).is_ok() {}
    let size = file.metadata().expect("known").len();
    file.set_len(size.saturating_sub(left)).expect("cut");
    path
}

/// The child of [`on_a_full_disk_a_program_is_charged_only_with_what_it_fills_itself`].
#[tokio::test(flavor = "multi_thread")]
async fn child_with_a_small_disk() {
    let Some(disk) = child_dir() else { return };
    let root = disk.join("scratch");
    const LARGE: &str = "head -c 300000 /dev/zero > \"$3\"";
    assert!(run(&root, LARGE).await.outcome.is_success());

    // No room at all: not even for the input.
    let ballast = fill_but(&disk, 0);
    let attempt = run(&root, LARGE).await;
    assert_eq!(
        missing(&attempt),
        Some(MissingResource::DiskSpace),
        "{attempt:?}"
    );
    let failure = executor(&root, LARGE)
        .probe()
        .await
        .expect_err("it is full");
    assert_eq!(failure.missing, MissingResource::DiskSpace, "{failure}");
    is_left_empty(&root).await;
    fs::remove_file(ballast).expect("removed");

    // The program begins, and has no room for its output.
    let ballast = fill_but(&disk, 100_000);
    let attempt = run(&root, LARGE).await;
    assert_eq!(
        missing(&attempt),
        Some(MissingResource::DiskSpace),
        "{attempt:?}"
    );
    assert!(attempt.exit.is_some_and(|code| code != 0), "{attempt:?}");
    // It hides that, and leaves no output.
    let hidden = format!("({LARGE}) || rm \"$3\"; exit 0");
    let attempt = run(&root, &hidden).await;
    assert_eq!(
        missing(&attempt),
        Some(MissingResource::DiskSpace),
        "{attempt:?}"
    );
    // It hides that, and leaves half the output; `disk_full` of the attempt is set.
    let attempt = run(&root, &format!("({LARGE}); exit 0")).await;
    assert!(
        attempt.outcome.is_success() && attempt.disk_full.is_some(),
        "{attempt:?}"
    );
    // Its own verdict about the input is accepted.
    let attempt = run(&root, "exit 65").await;
    assert!(
        matches!(attempt.outcome, Outcome::Permanent { .. }),
        "{attempt:?}"
    );
    fs::remove_file(ballast).expect("removed");

    // The program fills the disk by itself.
    let attempt = run(&root, "cat /dev/zero > \"$3\"").await;
    assert!(
        matches!(attempt.outcome, Outcome::Failed { .. }),
        "{attempt:?}"
    );
    assert!(attempt.disk_full.is_none(), "{attempt:?}");
    // The program fails although the disk has room.
    let attempt = run(&root, "exit 1").await;
    assert!(
        matches!(attempt.outcome, Outcome::Failed { .. }),
        "{attempt:?}"
    );
    executor(&root, LARGE).probe().await.expect("there is room");
    println!("all was tried");
}

#[test]
fn on_a_full_disk_a_program_is_charged_only_with_what_it_fills_itself() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mount = format!("mount -t tmpfs -o {DISK} proofmill-test \"$0\" && exec \"$@\"");
    let in_namespace = || {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &mount]).arg(dir.path());
        command
    };
    let tried = in_namespace().arg("true").stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        eprintln!("not run: `unshare -rm` with a tmpfs of its own is not allowed here");
        return;
    }
    in_child(in_namespace(), "child_with_a_small_disk", dir.path());
}
