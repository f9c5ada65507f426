//! The roles, each in a process of its own.

use std::fs;
use std::time::{Duration, Instant};

use proofmill_nats_server::NatsServer;

use crate::support::{LONG_LEASE, PATIENCE, Roles, proved, wait_for};

pub(crate) const WORKFLOW: &str = r#"
    name = "chain"
    [[source]]
    name = "blocks"
    kind = "range"
    end = END
    output = "blocks"
    [[dispatcher]]
    name = "prove"
    input = "blocks"
    output = "proofs"
    workers = 2
    executor = { kind = "native", prover = "slow" }
    [[collector]]
    name = "gather"
    inputs = ["proofs"]
    output = "groups"
    strategy = { kind = "sequential", n = 2 }
    [[dispatcher]]
    name = "verify"
    input = "groups"
    output = "verified"
    executor = { kind = "native", prover = "slow" }
    [sequencer]
    input = "verified"
"#;

#[test]
fn blocks_go_through_processes_of_their_own() {
    let server = NatsServer::start();
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(
        dir.path().join("workflow.toml"),
        WORKFLOW.replace("END", "99"),
    )
    .expect("written");
    let mut roles = Roles::new(server.url(), 1, dir.path());
    roles.lease_ttl = LONG_LEASE;
    roles.start_all(&[
        "coordinator-1",
        "dispatcher-1",
        "dispatcher-2",
        "collector-1",
        "collector-2",
        "sequencer-1",
    ]);
    roles.start("source-1");
    wait_for(dir.path(), 99, PATIENCE, &roles);
    for (task, counts) in proved(dir.path()) {
        assert_eq!(counts, (1, 1), "{task}");
    }
    // The source has ended.
    let began = Instant::now();
    let source = roles.running.get_mut("source-1").expect("it was started");
    while source.try_wait().expect("a child").is_none() {
        assert!(began.elapsed() < PATIENCE, "the source does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
}
