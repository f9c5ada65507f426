//! What an operator does with dead letters.

use proofmill_orchestrator::core::Reply;
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::shutdown::Level;

use crate::support::{Background, Script};

const TEXT: &str = r#"
    name = "dead"
    [[source]]
    name = "in"
    kind = "submit"
    output = "blocks"
    [[dispatcher]]
    name = "prove"
    input = "blocks"
    output = "proofs"
    executor = { kind = "native", prover = "test" }
    [sequencer]
    input = "proofs"
"#;

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
    let mut mill = Background::start(TEXT, &script, dir.path(), true).await;
    for block in 0..4 {
        assert_eq!(mill.submit("blocks", block, "{}").await, Reply::Accepted);
    }
    mill.until("two are dead", |core| core.status().dead == 2)
        .await;
    let (reason, attempts) = mill
        .handle
        .inspect(|core| {
            let dead = core.dead_letter(&task(1)).expect("block 1 is dead");
            (dead.reason.clone(), dead.attempts.clone())
        })
        .await
        .expect("the coordinator runs");
    assert_eq!(reason, "permanent failure: block 1 is cursed");
    assert_eq!((attempts.len(), &*attempts[0].worker), (1, "prove-0"));
    assert_eq!(mill.next().await.first, 0);

    // It stays dead over a restart, and is the same message when it comes again.
    mill.crash().await;
    let mut mill = Background::start(TEXT, &script, dir.path(), true).await;
    let again = mill.submit("blocks", 1, "{}").await;
    assert!(
        matches!(&again, Reply::IsDead { why, .. } if why.contains("cursed")),
        "{again:?}"
    );

    assert_eq!(
        mill.handle.retry_dead(task(2)).await.expect("an answer"),
        Reply::NotFound
    );
    script.curse(1, false);
    assert_eq!(
        mill.handle.retry_dead(task(1)).await.expect("an answer"),
        Reply::Accepted
    );
    let mut next = mill.next().await.first;
    if next == 0 {
        // The message at the cursor may come again after a crash.
        next = mill.next().await.first;
    }
    assert_eq!((next, mill.next().await.first), (1, 2));

    assert_eq!(
        mill.handle.drop_dead(task(3)).await.expect("an answer"),
        Reply::Accepted
    );
    assert_eq!(
        mill.handle.drop_dead(task(3)).await.expect("an answer"),
        Reply::NotFound
    );
    assert_eq!(mill.submit("blocks", 3, "{}").await, Reply::Duplicate);
    mill.stop.raise(Level::Drain);
    let summary = mill.ended().await;
    assert_eq!((summary.status.dead, summary.status.live), (0, 0));
}
