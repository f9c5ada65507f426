//! Records of the log that cannot be applied.

use bytes::Bytes;
use proofmill_bus::Seq;
use proofmill_orchestrator::core::{Core, CoreOptions, Now};
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::origin::Origins;
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::record::{RECORD_VERSION, Record, TaskRecord};

use crate::support::Draft;

/// An attack: one record that cannot be applied keeps every coordinator from starting.
#[test]
fn a_record_that_cannot_be_applied_is_set_aside_and_replay_goes_on() {
    let task = |stage: &str, block: u64, last: u64| {
        Record::Task(TaskRecord {
            id: TaskId {
                stage: stage.into(),
                block,
                part: Part::whole(),
            },
            queue: "in".into(),
            last,
            group: None,
            needs: None,
            payload: Payload::json("1"),
            at_ms: 0,
            origins: Origins::default(),
            trace: proofmill_orchestrator::traces::TaskTrace::default(),
        })
        .encode()
    };
    // A dead letter whose payload is ten thousand nested groups.
    let mut nested = vec![RECORD_VERSION, 3];
    nested.extend(b"\x05prove\x07\x010\x02in\x07\x00\x00");
    nested.extend([2, 0, 1, 0].repeat(10_000));
    let records: [(&str, Bytes); 8] = [
        ("task.prove.0.0", task("prove", 0, 0)),
        ("nonsense", task("prove", 1, 1)),
        (
            "task.prove.2.0",
            Bytes::from_static(&[RECORD_VERSION, 0xff, 0xff]),
        ),
        ("task.prove.3.0", Record::Cursor(9).encode()),
        ("task.prove.4.0", task("prove", 5, 5)),
        ("task.prove.6.0", task("prove", 6, 1)),
        ("dead.prove.7.0", nested.into()),
        ("task.prove.8.0", task("prove", 8, 8)),
    ];
    let mill = Draft::default()
        .work("prove", "in", &["out"])
        .sequence("out")
        .mill();
    let mut core = Core::new(mill.core.plan().clone(), CoreOptions::default());
    for ((key, value), seq) in records.iter().zip(1..) {
        core.replay(key, value, Seq(seq)).expect("replay goes on");
    }
    core.start(Now::default());
    let live: Vec<String> = core
        .tasks(|_| true)
        .iter()
        .map(|task| task.record.id.to_string())
        .collect();
    assert_eq!(live, ["prove/0/0", "prove/8/0"]);
    let aside: Vec<&str> = core.set_aside().iter().map(|(key, _)| &**key).collect();
    let bad = [1, 2, 3, 4, 5, 6].map(|at| records[at].0);
    assert_eq!(aside, bad);
    // A record of another release, or of another workflow file, is not ignored.
    let other_version = Bytes::from_static(&[99, 0]);
    let refused = core.replay("task.prove.9.0", &other_version, Seq(9));
    assert!(
        refused
            .expect_err("refused")
            .to_string()
            .contains("release")
    );
    assert!(
        core.replay("task.gone.9.0", &task("gone", 9, 9), Seq(9))
            .is_err()
    );
}
