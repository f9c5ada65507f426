//! Sinks that fail for a while, and sinks that take several messages at once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::mill::Options;
use proofmill_orchestrator::plan::Backoff;
use proofmill_orchestrator::shutdown::{self, Level};
use proofmill_orchestrator::sink::{Emitted, Sink, SinkError};

use crate::support::{Background, PATIENCE, Script, one_stage, open, workflow};

#[tokio::test(flavor = "multi_thread")]
async fn emissions_wait_for_the_sink_and_then_leave_in_order() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = one_stage("sink", "", "directory = \"emitted\"");
    let mut mill = Background::start(&text, &Script::open(), dir.path(), true).await;
    assert_eq!(mill.submit("blocks", 0, "{}").await, Reply::Accepted);
    assert_eq!(mill.next().await.first, 0);

    // Permissions would not stop a test that runs as root; a missing directory does.
    let (emitted, away) = (dir.path().join("emitted"), dir.path().join("away"));
    std::fs::rename(&emitted, &away).expect("renamed");
    for block in 1..4 {
        assert_eq!(mill.submit("blocks", block, "{}").await, Reply::Accepted);
    }
    mill.until("all are proved", |core| {
        core.status().stages[0].counters.completed == 4
    })
    .await;
    let early = tokio::time::timeout(Duration::from_millis(300), mill.emitted.recv()).await;
    assert!(early.is_err(), "nothing leaves without its file: {early:?}");
    mill.until("the cursor is at block 1, and moves no further", |core| {
        core.status().next_block == Some(1)
    })
    .await;

    std::fs::rename(&away, &emitted).expect("renamed back");
    for block in 1..4 {
        assert_eq!(mill.next().await.first, block);
        assert!(
            emitted
                .join(format!("{block:010}-{block:010}.json"))
                .exists()
        );
    }
    mill.stop.raise(Level::Drain);
    let summary = mill.ended().await;
    assert_eq!(
        (summary.status.live, summary.status.next_block),
        (0, Some(4))
    );
}

/// Text of a workflow that emits the blocks from 0 to `end` as they come from their source.
fn range_to_sequencer(end: u64) -> String {
    format!(
        r#"
        name = "range"
        [[source]]
        name = "in"
        kind = "range"
        end = {end}
        output = "blocks"
        [sequencer]
        input = "blocks"
        "#
    )
}

/// Batches that a sink was given, and the number of attempts that are still to fail; those with the block of the second field are
/// refused once they are alone. The last field is the time for which messages wait for others.
#[derive(Clone, Default)]
struct Batches(Arc<Mutex<(Vec<Vec<u64>>, u32)>>, Option<u64>, Duration);

impl Sink for Batches {
    fn put<'a>(&'a mut self, emitted: &'a Emitted) -> BoxFuture<'a, Result<(), SinkError>> {
        self.put_all(std::slice::from_ref(emitted))
    }

    fn put_all<'a>(&'a mut self, emitted: &'a [Emitted]) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(async move {
            // The others wait meanwhile.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let mut state = self.0.lock().expect("no panic holds it");
            let firsts = emitted.iter().map(|emitted| emitted.first);
            state.0.push(firsts.collect());
            let is_refused = |emitted: &Emitted| Some(emitted.first) == self.1;
            if emitted.iter().any(is_refused) && (emitted.len() > 1 || state.1 > 0) {
                state.1 = state.1.saturating_sub(u32::from(emitted.len() == 1));
                return Err(SinkError::refused("the test", "wrong"));
            }
            let fails = state.1 > 0;
            state.1 = state.1.saturating_sub(1);
            match fails {
                true => Err(SinkError::new("the test", "not yet")),
                false => Ok(()),
            }
        })
    }

    fn batch_max(&self) -> usize {
        4
    }

    fn batch_wait(&self) -> Duration {
        self.2
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            initial: Duration::from_millis(1),
            max: Duration::from_millis(1),
            factor: 1.0,
            jitter: 0.0,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_takes_several_messages_at_once_and_the_same_again_after_an_error() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = range_to_sequencer(29);
    let batches = Batches::default();
    batches.0.lock().expect("no panic holds it").1 = 3;
    let options = || Options {
        sinks: vec![Box::new(batches.clone())],
        ..Options::in_directory(dir.path())
    };
    let mill = open(&workflow(&text), &Script::open(), options).await;
    let (_stop, shutdown) = shutdown::channel();
    let summary = mill.run(shutdown).await.expect("no error");
    assert_eq!(summary.status.next_block, Some(30));
    let taken = batches.0.lock().expect("no panic holds it").0.clone();
    assert_eq!(taken[0], taken[1], "{taken:?}");
    assert_eq!(taken[0], taken[3], "{taken:?}");
    let stored: Vec<u64> = taken[3..].iter().flatten().copied().collect();
    assert_eq!(stored, (0..30).collect::<Vec<u64>>(), "{taken:?}");
    let longest = taken.iter().map(Vec::len).max();
    assert_eq!(longest, Some(4), "{taken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_before_one_that_a_sink_refuses_are_stored() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = range_to_sequencer(11);
    let batches = Batches(Arc::default(), Some(6), Duration::ZERO);
    let options = || Options {
        sinks: vec![Box::new(batches.clone())],
        ..Options::in_directory(dir.path())
    };
    let mill = open(&workflow(&text), &Script::open(), options).await;
    let (_stop, shutdown) = shutdown::channel();
    let summary = mill.run(shutdown).await.expect("no error");
    assert_eq!(summary.status.next_block, Some(12));
    let taken = batches.0.lock().expect("no panic holds it").0.clone();
    // A batch with block 6 is refused, then each of it comes alone.
    let refused = taken
        .iter()
        .position(|batch| batch.len() > 1 && batch.contains(&6));
    let Some(at) = refused else {
        // It came alone from the start.
        assert!(taken.contains(&vec![6]), "{taken:?}");
        return;
    };
    for (offset, block) in taken[at].iter().enumerate() {
        assert_eq!(taken[at + 1 + offset], [*block], "{taken:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_wait_for_a_full_batch_until_the_mill_drains() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let batches = Batches(Arc::default(), None, Duration::from_secs(3600));
    let options = || Options {
        sinks: vec![Box::new(batches.clone())],
        ..Options::in_directory(dir.path())
    };
    let mill = open(&workflow(&range_to_sequencer(9)), &Script::open(), options).await;
    let (stop, shutdown) = shutdown::channel();
    let handle = mill.handle().clone();
    let running = tokio::spawn(mill.run(shutdown));
    let taken = || batches.0.lock().expect("no panic holds it").0.clone();
    let two_batches = async {
        loop {
            let status = handle.operator().status().await;
            if status.expect("the coordinator runs").next_block == Some(8) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let taken_in_time = tokio::time::timeout(PATIENCE, two_batches).await;
    taken_in_time.expect("two batches are taken");
    // Nothing moves while two of a batch of four are there.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(taken(), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    stop.raise(Level::Drain);
    let ended = tokio::time::timeout(PATIENCE, running).await;
    ended
        .expect("in time")
        .expect("no panic")
        .expect("no error");
    assert_eq!(taken().concat(), (0..10).collect::<Vec<u64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_does_not_fill_up_waits_no_longer_than_it_may() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let batches = Batches(Arc::default(), None, Duration::from_millis(50));
    let options = || Options {
        sinks: vec![Box::new(batches.clone())],
        ..Options::in_directory(dir.path())
    };
    let mill = open(&workflow(&range_to_sequencer(5)), &Script::open(), options).await;
    let (_stop, shutdown) = shutdown::channel();
    let ended = tokio::time::timeout(PATIENCE, mill.run(shutdown)).await;
    ended.expect("in time").expect("no error");
    let taken = batches.0.lock().expect("no panic holds it").0.clone();
    assert_eq!(taken.concat(), (0..6).collect::<Vec<u64>>());
}
