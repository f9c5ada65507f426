//! Tests of properties that only the embedded log has: one holder, threads, snapshots, limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{FutureExt, StreamExt, TryStreamExt};
use proofmill_bus::{
    AppendError, EmbeddedLog, Key, Log, MAX_BATCH_OPS, MAX_VALUE_BYTES, MemoryLog, Op, OpenError,
    Options, ReadError, Seq, until_durable,
};

use crate::scenario::{block_on, entries, key};

fn open(dir: &tempfile::TempDir) -> EmbeddedLog {
    EmbeddedLog::open(dir.path(), Options::default()).unwrap()
}

#[test]
fn one_holder_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir);
    let error = EmbeddedLog::open(dir.path(), Options::default()).unwrap_err();
    assert!(matches!(&error, OpenError::Locked(lock) if lock.pid == Some(std::process::id())));
    let says = format!("is open in process {}", std::process::id());
    assert!(error.to_string().contains(&says), "{error}");
    block_on(log.close()).unwrap();
    // A closed log releases the directory although the handle still exists.
    drop(open(&dir));
    drop(log);
    drop(open(&dir));
}

#[test]
fn files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("a/log");
    let log = EmbeddedLog::open(&dir, Options::default()).unwrap();
    block_on(log.append(vec![Op::put(key("a"), "b")])).unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    let mut files = 0;
    for file in std::fs::read_dir(&dir).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        files += 1;
    }
    assert!(files >= 3, "{files} files");
}

#[test]
fn a_closed_log_says_so_and_keeps_what_it_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir);
    block_on(async {
        for n in 0..500 {
            log.append(vec![Op::put(key(&format!("k.{n}")), "v")])
                .await
                .unwrap();
        }
        log.close().await.unwrap();
        log.close().await.unwrap();
        assert_eq!(log.durable().borrow().seq, Seq(500));
        let append = log.append(vec![Op::put(key("late"), "v")]).await;
        assert!(matches!(append, Err(AppendError::Closed)));
        assert!(matches!(log.get(&key("k.1")).await, Err(ReadError::Closed)));
        assert!(matches!(
            log.replay().next().await,
            Some(Err(ReadError::Closed))
        ));
    });
    drop(log);
    assert_eq!(block_on(entries(&open(&dir))).len(), 500);
}

#[test]
fn one_of_many_wins_each_key() {
    const KEYS: usize = 200;
    const THREADS: usize = 8;
    let dir = tempfile::tempdir().unwrap();
    let log: Arc<dyn Log> = Arc::new(open(&dir));
    let wins: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (log, wins) = (log.clone(), wins.clone());
            std::thread::spawn(move || {
                block_on(async {
                    for n in 0..KEYS {
                        let result = key(&format!("result.{n}"));
                        let mine = key(&format!("mine.{thread}.{n}"));
                        let ops = vec![
                            Op::put(mine.clone(), "me"),
                            Op::put_new(result.clone(), thread.to_string()),
                        ];
                        match log.append(ops).await {
                            Ok(_) => wins[n].fetch_add(1, Ordering::Relaxed),
                            Err(AppendError::Conflict { key }) => {
                                assert_eq!(key, result);
                                // No part of a refused batch is in the log.
                                assert_eq!(log.get(&mine).await.unwrap(), None);
                                0
                            }
                            Err(other) => panic!("{other}"),
                        };
                    }
                });
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert!(wins.iter().all(|wins| wins.load(Ordering::Relaxed) == 1));
    assert_eq!(block_on(entries(&*log)).len(), 2 * KEYS);
    drop(log);
    assert_eq!(block_on(entries(&open(&dir))).len(), 2 * KEYS);
}

#[test]
fn accepted_is_visible_at_once_and_append_never_waits() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir);
    for n in 0..2000_u64 {
        let name = key(&format!("k.{}", n % 7));
        let seq = log
            .append(vec![Op::put(name.clone(), n.to_string())])
            .now_or_never();
        assert_eq!(seq.expect("ready at once").unwrap(), Seq(n + 1));
        let found = log
            .get(&name)
            .now_or_never()
            .expect("ready at once")
            .unwrap()
            .unwrap();
        assert_eq!((found.seq, found.value), (Seq(n + 1), n.to_string().into()));
        let live: Vec<Seq> = block_on(entries(&log))
            .iter()
            .map(|entry| entry.seq)
            .collect();
        let expected: Vec<Seq> = ((n + 1).saturating_sub(6).max(1)..=n + 1)
            .map(Seq)
            .collect();
        assert_eq!(live, expected);
    }
}

#[test]
fn a_replay_shows_the_moment_of_its_call() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir);
    let name = |n: u64| key(&format!("k.{n}"));
    block_on(async {
        for n in 0..1000 {
            log.append(vec![Op::put(name(n), n.to_string())])
                .await
                .unwrap();
        }
        until_durable(&mut log.durable(), Seq(1000)).await.unwrap();
        log.append(vec![Op::put(name(5), "new"), Op::delete(name(6))])
            .await
            .unwrap();
        let expected = entries(&log).await;
        assert_eq!(expected.len(), 999);
        let mut replay = log.replay();
        let first = replay.try_next().await.unwrap().unwrap();
        for n in 0..1000 {
            let seq = log
                .append(vec![Op::delete(name(n)), Op::put(name(n + 5000), "")])
                .await;
            if n % 100 == 0 {
                until_durable(&mut log.durable(), seq.unwrap())
                    .await
                    .unwrap();
            }
        }
        until_durable(&mut log.durable(), Seq(3002)).await.unwrap();
        let mut found = vec![first];
        found.extend(replay.try_collect::<Vec<_>>().await.unwrap());
        assert_eq!(found, expected);
        assert_eq!(entries(&log).await.len(), 1000);
    });
}

#[test]
fn appends_beyond_the_limit_wait_for_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default().with_max_pending_bytes(20_000);
    let log = Arc::new(EmbeddedLog::open(dir.path(), options).unwrap());
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let log = log.clone();
            std::thread::spawn(move || {
                block_on(async {
                    for n in 0..200 {
                        let name = key(&format!("k.{thread}.{n}"));
                        // Even a batch larger than the limit gets its turn.
                        let bytes = if n % 50 == 49 { 30_000 } else { 1900 };
                        let seq = log
                            .append(vec![Op::put(name, vec![1; bytes])])
                            .await
                            .unwrap();
                        // Ten batches fit; the watermark is published a little after space is
                        // freed.
                        let durable = log.durable().borrow().seq;
                        assert!(seq.0 <= durable.0 + 25, "{seq} accepted, {durable} durable");
                    }
                });
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    block_on(until_durable(&mut log.durable(), Seq(800))).unwrap();
}

#[test]
fn limits_come_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let embedded = open(&dir);
    let memory = MemoryLog::new();
    let logs: [&dyn Log; 2] = [&embedded, &memory];
    for log in logs {
        block_on(async {
            let small = Op::put(key("small"), "");
            let large = Op::put(key("large"), vec![0; MAX_VALUE_BYTES + 1]);
            for ops in [
                vec![small.clone(), large],
                vec![small.clone(); MAX_BATCH_OPS + 1],
            ] {
                let refused = log.append(ops).await;
                assert!(
                    matches!(refused, Err(AppendError::TooLarge { .. })),
                    "{refused:?}"
                );
            }
            assert_eq!(log.get(&key("small")).await.unwrap(), None);
            assert_eq!(log.append(vec![]).await.unwrap(), Seq(0));
            let most = vec![Op::put(
                Key::new("k".repeat(512)).unwrap(),
                vec![9; MAX_VALUE_BYTES],
            )];
            assert_eq!(log.append(most).await.unwrap(), Seq(1));
            assert_eq!(
                log.append(vec![small; MAX_BATCH_OPS]).await.unwrap(),
                Seq(1001)
            );
            assert_eq!(log.append(vec![]).await.unwrap(), Seq(1001));
            until_durable(&mut log.durable(), Seq(1001)).await.unwrap();
            assert_eq!(entries(log).await.len(), 2);
        });
    }
}
