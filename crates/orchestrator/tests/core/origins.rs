//! Origins of payloads: recorded by the core, whatever workers claim.

use std::time::Duration;

use proofmill_orchestrator::conversation::{Output, WorkerEvent, WorkerResult};
use proofmill_orchestrator::grouping::Sequential;
use proofmill_orchestrator::origin::{Origins, digest_of_payload, digest_of_several};
use proofmill_orchestrator::payload::Payload;

use crate::support::{Draft, Mill};

/// The live task of a stage, and its origins.
fn task_of(mill: &Mill, stage: &str) -> (String, Origins) {
    let views = mill.core.tasks(|_| true);
    let mut views = views.iter();
    let found = views.find(|view| &*view.record.id.stage == stage);
    let record = &found.expect("a live task").record;
    (record.id.to_string(), record.origins.clone())
}

fn origins(mill: &Mill, stage: &str) -> Origins {
    task_of(mill, stage).1
}

fn digest(json: &str) -> [u8; 32] {
    digest_of_payload(&Payload::json(json.to_owned()))
}

#[test]
fn what_was_submitted_is_known_at_every_stage_and_over_a_restart() {
    let draft = Draft::default().work("prove", "in", &["proofs"]);
    let draft = draft.work("verify", "proofs", &["verified"]);
    let mut mill = draft.sequence("verified").mill();
    mill.join("w", 1);
    mill.send("in", Mill::message(3, 4, "{\"headers\":1}"));
    assert_eq!(origins(&mill, "prove")[0].stage, None);
    mill.complete_with("w", "prove/3/0", 1, &[None], "{\"lie\":1}");
    mill.restart(Duration::ZERO);
    let proof = origins(&mill, "verify");
    assert_eq!(proof.len(), 1);
    assert_eq!(proof[0].digest, digest("{\"headers\":1}"));
    assert_eq!((proof[0].first, proof[0].last), (3, 4));
    assert_eq!(proof[0].stage.as_deref(), Some("prove"));
}

#[test]
fn a_group_has_the_origins_of_its_members_and_what_is_made_of_it_a_digest_of_them() {
    let sequential = Sequential {
        n: 2,
        inputs: vec!["proofs".into()],
        partial: false,
    };
    let draft = Draft::default().work("prove", "in", &["proofs"]);
    let draft = draft.collect("gather", &["proofs"], &["groups"], sequential, None, None);
    let draft = draft.work("aggregate", "groups", &["aggregates"]);
    let mut mill = draft.sequence("aggregates").mill();
    mill.join("w", 1);
    for block in [1, 0] {
        let json = format!("{{\"block\":{block}}}");
        mill.send("in", Mill::message(block, block, &json));
        mill.complete("w", &format!("prove/{block}/0"), 1);
    }
    let (aggregate, group) = task_of(&mill, "aggregate");
    let digests: Vec<[u8; 32]> = group.iter().map(|origin| origin.digest).collect();
    assert_eq!(digests, [digest("{\"block\":0}"), digest("{\"block\":1}")]);
    mill.complete("w", &aggregate, 1);
    // The sequencer has it by now; the message that it was given is one.
    let made = origins(&mill, "emit");
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].digest, digest_of_several(&group));
    assert_eq!((made[0].first, made[0].last, made[0].payloads), (0, 1, 1));
    assert_eq!(made[0].stage.as_deref(), Some("aggregate"));
}

#[test]
fn a_worker_that_hands_in_a_group_of_its_own_making_is_refused() {
    let draft = Draft::default().work("verify", "in", &["verified"]);
    let mut mill = draft.sequence("verified").mill();
    mill.join("w", 1);
    mill.block("in", 0);
    let lease = mill.lease("w", "verify/0/0", 1);
    mill.tell(WorkerEvent::Complete(WorkerResult {
        worker: "w".into(),
        lease,
        outputs: vec![Output {
            element: None,
            payload: Payload::Group {
                by_queue: true,
                members: vec![("anything".into(), Payload::json("1"))],
            },
            grouping: Vec::new(),
        }],
        ran: Duration::ZERO,
    }));
    assert!(mill.emitted.is_empty());
    assert!(mill.has_key("dead.verify.0.0"));
}
