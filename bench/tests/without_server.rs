//! Experiments on a cluster where nats-server is not installed: an error that says how to install it.

use std::process::Command;

#[test]
fn an_experiment_says_how_to_install_the_server() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let missing = dir.path().join("nats-server");
    for arguments in [
        "latency --bus jetstream",
        "ordering --bus jetstream",
        "cluster priority --bus jetstream",
        "cluster nodes --bus jetstream --servers 3",
        "cluster idle --bus jetstream",
        "cluster chaos",
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_proofmill-bench"))
            .args(arguments.split(' '))
            .arg("--dir")
            .arg(dir.path())
            .env("PROOFMILL_NATS_SERVER", &missing)
            .output()
            .expect("the program starts");
        let expected = format!(
            "error: {} is not there: run `make nats-server` (it needs Go), or name the program with \
             PROOFMILL_NATS_SERVER\n",
            missing.display()
        );
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            expected,
            "{arguments}"
        );
        assert_eq!(output.status.code(), Some(1), "{arguments}");
    }
}
