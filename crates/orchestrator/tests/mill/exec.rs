//! Emissions through a program.

use std::path::Path;

use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::shutdown::Level;
use rustix::process::{Pid, test_kill_process};

use crate::support::{Background, PATIENCE, Script};

/// A workflow that emits messages submitted to `blocks`, to a program with this text.
fn workflow(dir: &Path, script: &str, more: &str) -> String {
    // Read by a shell: a program that this process has written is busy while another test forks.
    let program = dir.join("publish.sh");
    std::fs::write(&program, format!("set -eu\n{script}\n")).expect("written");
    format!(
        r#"
        name = "published"
        [[source]]
        name = "in"
        kind = "submit"
        output = "blocks"
        [sequencer]
        input = "blocks"
        [[sequencer.sink]]
        kind = "exec"
        program = "/bin/sh"
        args = ["{}", "{}"]
        backoff = {{ initial = "1ms", max = "5ms" }}
        {more}
        "#,
        program.display(),
        dir.join("published").display()
    )
}

const WRITE: &str = r#"
echo "$PROOFMILL_WORKFLOW $PROOFMILL_BLOCK $PROOFMILL_LAST_BLOCK $PROOFMILL_PART \
$PROOFMILL_IDEMPOTENCY_KEY $PROOFMILL_ATTEMPT $payload" >> "$1"
# Block 1 is taken at its third attempt.
[ "$PROOFMILL_BLOCK" != 1 ] || [ "$PROOFMILL_ATTEMPT" -ge 3 ]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_run_for_each_emission_in_order_until_it_says_that_it_is_taken() {
    for (more, read) in [
        ("", "payload=$(cat)"),
        ("input = \"file\"", "payload=$(cat \"$2\")"),
    ] {
        let dir = tempfile::tempdir().expect("temporary directory");
        let text = workflow(dir.path(), &format!("{read}{WRITE}"), more);
        let mut mill = Background::start(&text, &Script::open(), dir.path(), true).await;
        for block in 0..3 {
            let payload = format!("[{block}]");
            assert_eq!(mill.submit("blocks", block, payload).await, Reply::Accepted);
        }
        for block in 0..3 {
            assert_eq!(mill.next().await.first, block);
        }
        mill.stop.raise(Level::Drain);
        mill.ended().await;
        let published = std::fs::read_to_string(dir.path().join("published"));
        let line = |block: u64, attempt: u32| {
            let key = format!("published/sequencer/{block}/0");
            format!("published {block} {block} 0 {key} {attempt} [{block}]\n")
        };
        let expected = [(0, 1), (1, 1), (1, 2), (1, 3), (2, 1)];
        let expected: String = expected
            .map(|(block, attempt)| line(block, attempt))
            .concat();
        assert_eq!(published.expect("written"), expected, "{read}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_runs_is_killed_on_stop_and_its_emission_comes_again() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let waits = "echo $$ > \"$1.pid\"; mv \"$1.pid\" \"$1\"; while :; do sleep 0.05; done";
    let text = workflow(dir.path(), waits, "");
    let mill = Background::start(&text, &Script::open(), dir.path(), true).await;
    assert_eq!(mill.submit("blocks", 0, "7").await, Reply::Accepted);
    let published = dir.path().join("published");
    let pid = eventually("it runs", || std::fs::read_to_string(&published).ok()).await;
    let pid = Pid::from_raw(pid.trim().parse().expect("a number")).expect("a process");
    mill.stop.raise(Level::Stop);
    assert_eq!(mill.ended().await.status.next_block, Some(0));
    eventually("it is gone", || test_kill_process(pid).err()).await;

    let text = workflow(dir.path(), &format!("payload=$(cat){WRITE}"), "");
    let mut mill = Background::start(&text, &Script::open(), dir.path(), true).await;
    assert_eq!(mill.next().await.first, 0);
    mill.stop.raise(Level::Drain);
    mill.ended().await;
}

/// Runs this test again, in a process with secrets in its environment.
fn with_secrets(test: &str) -> bool {
    const INNER: &str = "PROOFMILL_TEST_INNER";
    if std::env::var_os(INNER).is_some() {
        return true;
    }
    let (_, module) = module_path!().split_once("::").expect("a module");
    let ran = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", &format!("{module}::{test}"), "--nocapture"])
        .env(INNER, "1")
        .env("PROOFMILL_BUS", "nats://mill:hunter2@bus:4222")
        .env("PROOFMILL_TOKEN", "hunter2")
        .env("AWS_SECRET_ACCESS_KEY", "hunter2")
        .env("WANTED", "wanted")
        .output();
    let ran = ran.expect("it starts");
    let stdout = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && stdout.contains("1 passed"),
        "{ran:?}"
    );
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_reaches_the_programs_of_stages_and_sinks() {
    if !with_secrets("no_secret_reaches_the_programs_of_stages_and_sinks") {
        return;
    }
    let dir = tempfile::tempdir().expect("temporary directory");
    let stage = r#"
        [[dispatcher]]
        name = "prove"
        input = "blocks"
        output = "proofs"
        executor = { kind = "process", program = "/bin/sh", args = ["-c", 'env > "$OUT"; cp "$2" "$4"', "x"], inherit_env = ["WANTED"], env = { OUT = "STAGE" } }
    "#;
    let stage = stage.replace("STAGE", dir.path().join("stage").to_str().expect("text"));
    let sink = "env > \"$1\"; cat > /dev/null";
    let text = workflow(dir.path(), sink, "inherit_env = [\"WANTED\"]");
    let text = text.replace(
        "[sequencer]\n        input = \"blocks\"",
        &format!("{stage}\n[sequencer]\n        input = \"proofs\""),
    );
    assert!(text.contains("dispatcher"), "{text}");
    let mut mill = Background::start(&text, &Script::open(), dir.path(), true).await;
    assert_eq!(mill.submit("blocks", 0, "7").await, Reply::Accepted);
    mill.next().await;
    for program in ["stage", "published"] {
        let seen = std::fs::read_to_string(dir.path().join(program)).expect("written");
        assert!(!seen.contains("hunter2"), "{program}: {seen}");
        assert!(
            !seen.contains("AWS_") && !seen.contains("PROOFMILL_BUS"),
            "{seen}"
        );
        assert!(seen.contains("WANTED=wanted"), "{program}: {seen}");
        assert!(
            seen.contains("PATH=") && seen.contains("PROOFMILL_BLOCK=0"),
            "{seen}"
        );
    }
    mill.stop.raise(Level::Drain);
    mill.ended().await;
}

async fn eventually<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(tokio::time::Instant::now() < until, "never: {what}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
