//! Operators' decisions about dead letters.

use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::core::Core;
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::shutdown::Level;

use crate::support::{Background, Script, one_stage, request};

fn text() -> String {
    one_stage("dead", "", "")
}

fn task(block: u64) -> TaskId {
    TaskId {
        stage: "prove".into(),
        block,
        part: Part::whole(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_says_why_and_is_retried_or_dropped() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let script = Script::open();
    script.curse(1, true);
    script.curse(3, true);
    let mut mill = Background::start(&text(), &script, dir.path(), true).await;
    for block in 0..4 {
        assert_eq!(mill.submit("blocks", block, "{}").await, Reply::Accepted);
    }
    mill.until("two are dead", |core| core.status().dead == 2)
        .await;
    let (reason, attempts) = mill
        .handle
        .examine(|core| {
            let dead = core.dead_letter(&task(1)).expect("block 1 is dead");
            (dead.reason.clone(), dead.attempts.clone())
        })
        .await
        .expect("the coordinator runs");
    assert_eq!(reason, "permanent failure: block 1 is cursed");
    assert_eq!((attempts.len(), &*attempts[0].worker), (1, "prove-0"));
    assert_eq!(mill.next().await.first, 0);

    // The task stays dead over a restart, and its message is recognised when it comes again.
    mill.crash().await;
    let mut mill = Background::start(&text(), &script, dir.path(), true).await;
    let again = mill.submit("blocks", 1, "{}").await;
    assert!(
        matches!(&again, Reply::IsDead { why, .. } if why.contains("cursed")),
        "{again:?}"
    );

    assert_eq!(
        mill.handle
            .operator()
            .retry_dead(task(2))
            .await
            .expect("an answer"),
        Reply::NotFound
    );
    script.curse(1, false);
    assert_eq!(
        mill.handle
            .operator()
            .retry_dead(task(1))
            .await
            .expect("an answer"),
        Reply::Accepted
    );
    let mut next = mill.next().await.first;
    if next == 0 {
        // The message at the cursor may come again after a crash.
        next = mill.next().await.first;
    }
    assert_eq!((next, mill.next().await.first), (1, 2));

    assert_eq!(
        mill.handle
            .operator()
            .drop_dead(task(3))
            .await
            .expect("an answer"),
        Reply::Accepted
    );
    assert_eq!(
        mill.handle
            .operator()
            .drop_dead(task(3))
            .await
            .expect("an answer"),
        Reply::NotFound
    );
    let again = mill.submit("blocks", 3, "{}").await;
    assert!(matches!(again, Reply::Duplicate { .. }), "{again:?}");
    mill.stop.raise(Level::Drain);
    let summary = mill.ended().await;
    assert_eq!((summary.status.dead, summary.status.live), (0, 0));
}

/// Payloads that did not come from a source of the workflow carry any label that their sender chose.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_member_that_pretends_to_be_two_is_one_failure_and_not_two_members() {
    let dir = tempfile::tempdir().expect("temporary directory");
    // The program runs once for each group that was taken for complete.
    let text = r#"
        name = "injected"
        [[source]]
        name = "in"
        kind = "submit"
        output = "proofs"
        [[collector]]
        name = "gather"
        inputs = ["proofs"]
        output = "groups"
        strategy = { kind = "sequential", n = 2 }
        [[dispatcher]]
        name = "count"
        input = "groups"
        output = "counts"
        r_max = 0
        executor = { kind = "process", program = "/bin/sh", args = ["-c", 'cat "$2" >> RAN; cp "$2" "$4"', "x"] }
        [sequencer]
        input = "counts"
    "#;
    let ran = dir.path().join("ran");
    let text = text.replace("RAN", ran.to_str().expect("text"));
    let script = Script::open();
    let mut mill = Background::start(&text, &script, dir.path(), true).await;
    let queue = mill.handle.plan().queue_named("proofs").expect("a queue");
    for (block, payload) in [(0, "0"), (1, "1"), (2, "2"), (3, "3,4")] {
        let mut request = request(queue, block);
        request.message.payload = Payload::json(payload.as_bytes());
        let reply = mill.handle.source().submit(request).await;
        assert_eq!(reply.expect("an answer"), Reply::Accepted);
    }
    let sound = mill.next().await;
    assert_eq!((sound.first, &sound.bytes[..]), (0, &b"[0,1]"[..]));
    mill.until("the group is dead", |core| core.status().dead == 1)
        .await;
    let reasons = |core: &Core| {
        core.dead_letters()
            .map(|dead| dead.reason.clone())
            .collect()
    };
    let reasons: Vec<String> = mill.handle.examine(reasons).await.expect("it runs");
    let [reason] = &reasons[..] else {
        panic!("{reasons:?}");
    };
    assert!(reason.contains("member 1 of the group"), "{reason}");
    assert_eq!(std::fs::read_to_string(ran).expect("written"), "[0,1]");
    mill.stop.raise(Level::Stop);
    mill.ended().await;
}
