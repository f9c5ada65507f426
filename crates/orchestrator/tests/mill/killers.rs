//! Tasks whose program ends the whole process.

use std::path::Path;
use std::process::Command;

use proofmill_orchestrator::executor::{Context, Json, Prover, ProverError};
use proofmill_orchestrator::mill::{Mill, Options, Registry};
use proofmill_orchestrator::shutdown;
use serde_json::Value;

use crate::support::workflow;

const DIR: &str = "PROOFMILL_TEST_KILLER_DIR";
const TEXT: &str = "PROOFMILL_TEST_KILLER_TEXT";

/// A prover that aborts the process at block 1.
struct Abort;

impl Prover for Abort {
    type Input = Json<Value>;
    type Output = Json<Value>;

    fn prove(&self, context: &Context, input: Json<Value>) -> Result<Json<Value>, ProverError> {
        if context.first == 1 {
            std::process::abort();
        }
        Ok(input)
    }
}

#[test]
#[ignore = "not a test: the process that its own tasks end"]
fn victim() {
    let (Some(dir), Ok(text)) = (std::env::var_os(DIR), std::env::var(TEXT)) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut registry = Registry::default();
        registry.prover("test", |_| Ok(Abort));
        let options = Options::in_directory(Path::new(&dir));
        let mill = Mill::open(&workflow(&text), registry, options).await;
        let (_trigger, shutdown) = shutdown::channel();
        let ran = mill.expect("a mill").run(shutdown).await;
        assert_eq!(ran.expect("it ends").status.dead, 1);
    });
}

/// The file of a workflow with `executor` and a range of three blocks, of which the second one ends the process.
fn text(executor: &str) -> String {
    format!(
        r#"
        name = "killers"
        [[source]]
        name = "blocks"
        kind = "range"
        end = 2
        output = "blocks"
        [[dispatcher]]
        name = "prove"
        input = "blocks"
        output = "proofs"
        workers = 1
        r_max = 2
        backoff = {{ initial = "1ms", max = "5ms" }}
        executor = {executor}
        [sequencer]
        input = "proofs"
        directory = "emitted"
        "#
    )
}

/// Restarts the process until it ends by itself, and returns the number of times that it was killed.
fn run_to_the_end(dir: &Path, text: &str) -> u32 {
    for deaths in 0..12 {
        let victim = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "killers::victim", "--ignored", "--nocapture"])
            .env(DIR, dir)
            .env(TEXT, text)
            .output()
            .expect("it runs");
        if victim.status.success() {
            return deaths;
        }
    }
    panic!("it is tried for ever");
}

fn check(executor: &str) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = text(executor);
    let deaths = run_to_the_end(dir.path(), &text);
    // Three attempts; the beginning of the first may have been lost with the process.
    assert!((3..=4).contains(&deaths), "{deaths} deaths");
    let emitted = std::fs::read_dir(dir.path().join("emitted")).expect("a directory");
    let emitted: Vec<_> = emitted
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .collect();
    // Block 2 waits for block 1.
    assert_eq!(emitted, ["0000000000-0000000000.json"]);
    // The task is dead for good: the next run does not start it.
    assert_eq!(run_to_the_end(dir.path(), &text), 0);
}

/// A native prover that aborts the process.
#[test]
fn a_task_that_aborts_the_process_dies_after_r_max() {
    check(r#"{ kind = "native", prover = "test" }"#);
}

/// A child process that kills its parent.
#[test]
fn a_task_whose_program_kills_its_parent_dies_after_r_max() {
    check(
        r#"{ kind = "process", program = "/bin/sh", args = ["-c", 'grep -q "\"block\":1" "$2" && kill -9 $PPID; cp "$2" "$4"', "prove"] }"#,
    );
}
