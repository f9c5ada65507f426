//! Draining and stopping.

use std::time::{Duration, Instant};

use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::role_counts::role_counts;
use proofmill_orchestrator::shutdown::Level;

use crate::support::{Background, PATIENCE, Script, one_stage, stage};

fn text() -> String {
    one_stage("shutdown", "workers = 2", "")
}

async fn with_two_under_way(script: &Script, state: &std::path::Path) -> Background {
    let mill = Background::start(&text(), script, state, true).await;
    for block in 0..10 {
        assert_eq!(mill.submit("blocks", block, "{}").await, Reply::Accepted);
    }
    mill.until("two are leased", |core| core.status().stages[0].leased == 2)
        .await;
    // A prover that has not begun would not notice that it is cancelled.
    script
        .until("two have begun", |script| script.begun().len() >= 2)
        .await;
    mill
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_finishes_what_is_under_way_and_leases_nothing_more() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let script = Script::closed();
    let mut mill = with_two_under_way(&script, dir.path()).await;
    mill.stop.raise(Level::Drain);
    mill.until("it drains", |core| core.status().draining).await;
    assert_eq!(mill.submit("blocks", 10, "{}").await, Reply::Draining);
    script.open_below(u64::MAX);
    assert_eq!(mill.next().await.first, 0);
    assert_eq!(mill.next().await.first, 1);
    let summary = mill.ended().await;
    assert!(summary.interrupted && !summary.is_complete());
    assert_eq!(stage(&summary.status, "prove").counters.completed, 2);
    assert_eq!(
        (summary.status.live, summary.status.next_block),
        (8, Some(2))
    );
    assert_eq!(script.begun().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_hands_back_what_is_under_way_without_counting_an_attempt() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let script = Script::closed();
    let mill = with_two_under_way(&script, dir.path()).await;
    mill.stop.raise(Level::Drain);
    mill.until("it drains", |core| core.status().draining).await;
    let began = Instant::now();
    mill.stop.raise(Level::Stop);
    let summary = mill.ended().await;
    assert!(
        began.elapsed() < PATIENCE / 3,
        "a stop does not wait for the provers"
    );
    assert!(summary.interrupted);
    assert_eq!(
        (summary.status.live, stage(&summary.status, "prove").leased),
        (10, 0)
    );
    assert_eq!(stage(&summary.status, "prove").counters.failed, 0);
    // The mill has not waited until they noticed.
    script
        .until("the provers were told", |script| script.cancelled() == 2)
        .await;

    script.open_below(u64::MAX);
    let mut mill = Background::start(&text(), &script, dir.path(), true).await;
    for block in 0..10 {
        assert_eq!(mill.next().await.first, block);
    }
    let tried = mill
        .handle
        .examine(|core| core.tasks(|_| true))
        .await
        .expect("an answer");
    assert!(tried.iter().all(|task| task.attempts.is_empty()));
    mill.stop.raise(Level::Drain);
    assert!(mill.ended().await.status.live == 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_lets_waiting_producers_go() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let queue = "[[queue]]\nname = \"blocks\"\nq_max = 2";
    let text = one_stage("shutdown", "workers = 2", queue);
    let script = Script::closed();
    let mill = Background::start(&text, &script, dir.path(), true).await;
    let plan = mill.handle.plan().clone();
    let queue = plan.queue_named("blocks").expect("a queue");
    let mut answers = Vec::new();
    for block in 0..6 {
        let request = crate::support::request(queue, block);
        answers.push(
            mill.handle
                .source()
                .submit_later(request)
                .await
                .expect("the coordinator runs"),
        );
    }
    mill.until("producers wait", |core| {
        core.status().producers_waiting == 2
    })
    .await;
    mill.stop.raise(Level::Drain);
    let mut replies = Vec::new();
    for answer in answers {
        replies.push(
            tokio::time::timeout(PATIENCE, answer)
                .await
                .expect("an answer")
                .expect("one"),
        );
    }
    assert_eq!(
        replies
            .iter()
            .filter(|reply| **reply == Reply::Accepted)
            .count(),
        4
    );
    assert_eq!(
        replies
            .iter()
            .filter(|reply| **reply == Reply::Draining)
            .count(),
        2
    );
    mill.stop.raise(Level::Stop);
    mill.ended().await;
}

/// A workflow whose blocks, up to `end`, come from a source. Its queue has room for two.
fn with_source(name: &str, end: u64) -> String {
    format!(
        r#"
        name = "{name}"
        [[source]]
        name = "numbers"
        kind = "range"
        end = {end}
        output = "blocks"
        [[queue]]
        name = "blocks"
        q_max = 2
        [[dispatcher]]
        name = "prove"
        input = "blocks"
        output = "proofs"
        executor = {{ kind = "native", prover = "test" }}
        workers = 1
        [sequencer]
        input = "proofs"
        "#
    )
}

/// Waits until the source has heard that its messages below this position are recorded.
async fn until_recorded(workflow: &str, position: u64) {
    let source = role_counts().source(&workflow.into(), &"numbers".into());
    let recording = async {
        while source.next() < Some(position) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let recorded = tokio::time::timeout(PATIENCE, recording).await;
    recorded.expect("they are recorded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_counts_what_it_submitted_before_a_stop() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let script = Script::closed();
    let mill = Background::start(&with_source("stopped", 9), &script, dir.path(), false).await;
    mill.until("the source waits for room", |core| {
        core.status().producers_waiting > 0
    })
    .await;
    until_recorded("stopped", 1).await;
    // Without a drain before, so that it still waits when the stop comes.
    mill.stop.raise(Level::Stop);
    let summary = mill.ended().await;
    let source = &summary.sources["numbers"];
    assert!(summary.interrupted && !source.ended, "{summary:?}");
    assert!(source.accepted > 0, "{summary:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ends_while_it_drains_was_not_interrupted() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let script = Script::closed();
    let mut mill =
        Background::start(&with_source("completed", 0), &script, dir.path(), false).await;
    script
        .until("the last block has begun", |script| {
            script.begun().len() == 1
        })
        .await;
    // The last acknowledgement is awaited at the source's end.
    until_recorded("completed", 1).await;
    mill.stop.raise(Level::Drain);
    mill.until("it drains", |core| core.status().draining).await;
    script.open_below(u64::MAX);
    assert_eq!(mill.next().await.first, 0);
    let summary = mill.ended().await;
    assert!(summary.is_complete(), "{summary:?}");
}
