//! A log that can no longer be written ends the mill, with the reason.

use std::process::Command;

use proofmill_orchestrator::coordinator::CoordinatorError;
use proofmill_orchestrator::mill::MillError;

use crate::support::{Background, Script};

const DIR: &str = "PROOFMILL_TEST_FULL_MILL";

const TEXT: &str = r#"
    name = "full-disk"
    [[source]]
    name = "blocks"
    kind = "range"
    end = 99999
    payload = { block = "{block}", pad = "PAD" }
    output = "blocks"
    [[dispatcher]]
    name = "prove"
    input = "blocks"
    workers = 2
    executor = { kind = "native", prover = "test" }
"#;

/// The child of [`a_full_disk_ends_the_mill_with_the_reason`]; does nothing in a normal run.
#[tokio::test(flavor = "multi_thread")]
async fn child_fills_the_disk() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let text = TEXT.replace("PAD", &"x".repeat(4000));
    // No task passes: submitted messages stay, and fill the disk.
    let mill = Background::start(&text, &Script::closed(), dir.as_ref(), false).await;
    let ended = tokio::time::timeout(crate::support::PATIENCE, mill.run).await;
    let error = ended
        .expect("it ends")
        .expect("no panic")
        .expect_err("the log has failed");
    assert!(
        matches!(error, MillError::Coordinator(CoordinatorError::Log(_))),
        "{error:?}"
    );
    println!("stopped: {error}");
}

#[test]
fn a_full_disk_ends_the_mill_with_the_reason() {
    let dir = tempfile::tempdir().expect("temporary directory");
    // A limit on file sizes makes writes fail as on a full disk, once its signal is ignored.
    let child = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -f 4000; exec "$0" "$@""#])
        .arg(std::env::current_exe().expect("this test's own file"))
        .args([
            "--exact",
            "log_failure::child_fills_the_disk",
            "--nocapture",
        ])
        .env(DIR, dir.path())
        .output()
        .expect("the child runs");
    let output = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{output}{errors}");
    assert!(
        output.contains("stopped: the log has failed: "),
        "{output}{errors}"
    );
    assert!(
        output.contains("free space"),
        "it says what to do: {output}"
    );
}
