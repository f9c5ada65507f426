//! Batches of which every prefix can be recognised, written and checked by the crash tests.

use std::path::Path;

use futures_util::TryStreamExt;
use proofmill_bus::{EmbeddedLog, Entry, Key, Log, Op, Options, Seq};

/// Batch `n` puts `task.n`, supersedes `head` and deletes the task this many batches before.
pub(crate) const WINDOW: u64 = 40;
const OPS: u64 = 3;

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

pub(crate) fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

pub(crate) fn batch(n: u64) -> Vec<Op> {
    let gone = n
        .checked_sub(WINDOW)
        .map_or("task.none".to_owned(), |old| format!("task.{old}"));
    vec![
        Op::put_new(key(&format!("task.{n}")), value(n)),
        Op::put(key("head"), n.to_string()),
        Op::delete(key(&gone)),
    ]
}

/// Number of the batch that ends at `seq`.
pub(crate) fn batch_ending(seq: Seq) -> Option<u64> {
    assert_eq!(seq.0 % OPS, 0, "the watermark is inside a batch");
    (seq.0 / OPS).checked_sub(1)
}

fn value(n: u64) -> Vec<u8> {
    (0..100 + n % 700).map(|i| (n + i) as u8).collect()
}

pub(crate) async fn entries(log: &dyn Log) -> Vec<Entry> {
    log.replay().try_collect().await.unwrap()
}

/// A write-ahead log without the reserved space after its last frame, so that random damage hits a
/// frame.
pub(crate) fn without_room(mut wal: Vec<u8>) -> Vec<u8> {
    const HEADER: usize = 32;
    const FRAME: usize = 24 + 4096;
    let used = wal
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1);
    let frames = used.saturating_sub(HEADER).div_ceil(FRAME);
    wal.truncate(HEADER + frames * FRAME);
    wal
}

/// Opens the log and checks that it contains the batches up to some number, whole and in order, and
/// nothing else; returns that number.
pub(crate) fn check_prefix(dir: &Path) -> Option<u64> {
    let log = EmbeddedLog::open(dir, Options::default()).unwrap();
    block_on(async {
        let last = check_entries(&log).await;
        if let Some(last) = last {
            assert_eq!(log.durable().borrow().seq, Seq((last + 1) * OPS));
        }
        last
    })
}

/// As [`check_prefix`], for an open log.
pub(crate) async fn check_entries(log: &dyn Log) -> Option<u64> {
    let found = entries(log).await;
    let head = log.get(&key("head")).await.unwrap();
    let Some(head) = head else {
        assert_eq!(found, []);
        return None;
    };
    let last: u64 = std::str::from_utf8(&head.value).unwrap().parse().unwrap();
    let mut expected: Vec<Entry> = ((last + 1).saturating_sub(WINDOW)..=last)
        .map(|n| Entry {
            seq: Seq(n * OPS + 1),
            key: key(&format!("task.{n}")),
            value: value(n).into(),
        })
        .collect();
    let value = last.to_string().into();
    expected.push(Entry {
        seq: Seq(last * OPS + 2),
        key: key("head"),
        value,
    });
    assert_eq!(found, expected, "not the batches up to {last}");
    Some(last)
}
