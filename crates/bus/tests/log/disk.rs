//! Tests of the disk: full, limited, damaged.

use std::fs;
use std::path::Path;
use std::process::Command;

use proofmill_bus::{
    AppendError, EmbeddedLog, Log, Op, OpenError, Options, ReadError, Seq, until_durable,
};

use crate::scenario::{block_on, check_prefix, entries, key};

const DIR: &str = "PROOFMILL_TEST_FULL_DIR";

/// The child process of [`a_full_disk_stops_the_log`]; does nothing in a normal test run.
#[test]
fn child_fills_the_disk() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let log = EmbeddedLog::open(dir, Options::default()).unwrap();
    block_on(async {
        let mut watermark = log.durable();
        let mut durable = Seq(0);
        let failure = loop {
            let name = format!("record.{}", durable.0);
            let seq = log
                .append(vec![Op::put(key(&name), vec![7; 4000])])
                .await
                .unwrap();
            match until_durable(&mut watermark, seq).await {
                Ok(()) => durable = seq,
                Err(AppendError::Failed(failure)) => break failure,
                Err(other) => panic!("{other}"),
            }
        };
        assert_eq!(failure.durable, durable);
        assert_eq!(watermark.borrow().seq, durable);
        let refused = log.append(vec![Op::put(key("more"), "")]).await;
        assert!(
            matches!(refused, Err(AppendError::Failed(_))),
            "{refused:?}"
        );
        let waiting = until_durable(&mut watermark, durable.next()).await;
        assert!(
            matches!(waiting, Err(AppendError::Failed(_))),
            "{waiting:?}"
        );
        until_durable(&mut watermark, durable).await.unwrap();
        assert_eq!(log.close().await, Err(failure.clone()));
        println!("stopped {durable}; {failure}");
    });
}

#[test]
fn a_full_disk_stops_the_log() {
    let dir = tempfile::tempdir().unwrap();
    // A limit on the size of files fails writes as a full disk does, once its signal is ignored.
    let child = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -f 3000; exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "disk::child_fills_the_disk", "--nocapture"])
        .env(DIR, dir.path())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success(),
        "{output}{}",
        String::from_utf8_lossy(&child.stderr)
    );
    let (_, rest) = output.split_once("stopped ").expect("the child reports");
    let (durable, message) = rest.split_once("; ").unwrap();
    let durable: u64 = durable.parse().unwrap();
    assert!(durable > 20, "only {durable} records fitted");
    assert!(
        message.contains("has stopped at record") && message.contains("free space"),
        "{message}"
    );
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    let found = block_on(entries(&log)).len() as u64;
    assert!(
        found == durable || found == durable + 1,
        "{found} found, {durable} durable"
    );
}

fn size(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).unwrap();
    files
        .map(|file| file.unwrap().metadata().map_or(0, |meta| meta.len()))
        .sum()
}

#[test]
fn superseded_and_deleted_records_leave_the_disk() {
    const LIVE: u64 = 2000;
    let dir = tempfile::tempdir().unwrap();
    // The groups are small: in larger ones most records would be removed before they are written.
    let options = Options::default().with_max_pending_bytes(200_000);
    let log = EmbeddedLog::open(dir.path(), options).unwrap();
    let mut peak = 0;
    block_on(async {
        for n in 0..150_000 {
            let mut ops = vec![
                Op::put(key(&format!("task.{n}")), vec![n as u8; 400]),
                Op::put(key(&format!("part.{}", n % 100)), vec![n as u8; 400]),
            ];
            if n >= LIVE {
                ops.push(Op::delete(key(&format!("task.{}", n - LIVE))));
            }
            log.append(ops).await.unwrap();
            if n % 5000 == 0 {
                peak = peak.max(size(dir.path()));
            }
        }
        log.close().await.unwrap();
    });
    let end = size(dir.path());
    // 120 MB of values were written; the write-ahead log takes at most 32 MiB and one group.
    assert!(peak < 45_000_000, "{peak} bytes at the peak");
    assert!(end < 4_000_000, "{end} bytes at the end");
    drop(log);
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    assert_eq!(block_on(entries(&log)).len(), 2100);
}

#[test]
fn a_file_that_was_large_shrinks_when_opened() {
    let dir = tempfile::tempdir().unwrap();
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    block_on(async {
        let names: Vec<_> = (0..60).map(|n| key(&format!("large.{n}"))).collect();
        for name in &names {
            let seq = log
                .append(vec![Op::put(name.clone(), vec![1; 500_000])])
                .await
                .unwrap();
            until_durable(&mut log.durable(), seq).await.unwrap();
        }
        log.append(names.into_iter().skip(1).map(Op::delete).collect())
            .await
            .unwrap();
    });
    drop(log);
    assert!(size(dir.path()) > 30_000_000);
    drop(EmbeddedLog::open(dir.path(), Options::default()).unwrap());
    assert!(size(dir.path()) < 1_000_000);
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    assert_eq!(block_on(entries(&log)).len(), 1);
}

fn closed_log(records: u64) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    block_on(async {
        for n in 0..records {
            log.append(vec![Op::put(key(&format!("k.{n}")), "something")])
                .await
                .unwrap();
        }
    });
    drop(log);
    dir
}

fn alter(dir: &Path, sql: &str) {
    rusqlite::Connection::open(dir.join("log.sqlite"))
        .unwrap()
        .execute_batch(sql)
        .unwrap();
}

fn open_error(dir: &Path) -> OpenError {
    EmbeddedLog::open(dir, Options::default()).expect_err("it opened")
}

#[test]
fn damage_is_found_and_named() {
    for (sql, says) in [
        (
            "UPDATE records SET value = x'00' WHERE seq = 3",
            "record 3 is corrupt: the checksum",
        ),
        (
            "UPDATE records SET key = 'k.x' WHERE seq = 3",
            "record 3 is corrupt: the checksum",
        ),
        (
            "UPDATE records SET key = 'k x' WHERE seq = 3",
            "record 3 is corrupt: key has ' '",
        ),
        (
            "UPDATE records SET seq = 9 WHERE seq = 3",
            "record 9 is corrupt: the checksum",
        ),
        (
            "DELETE FROM records WHERE seq = 3",
            "4 live records found of 5",
        ),
        (
            "UPDATE head SET seq = 4",
            "the record of how many records there are has a wrong checksum",
        ),
        ("DROP TABLE head", "no such table"),
    ] {
        let dir = closed_log(5);
        alter(dir.path(), sql);
        let error = open_error(dir.path());
        assert!(
            matches!(error, OpenError::Damaged { .. }),
            "{sql}: {error:?}"
        );
        assert!(error.to_string().contains(says), "{sql}: {error}");
    }
}

#[test]
fn damage_under_an_open_log_is_found_by_reading() {
    let dir = closed_log(5);
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    alter(dir.path(), "UPDATE records SET value = x'00' WHERE seq = 3");
    alter(dir.path(), "DELETE FROM records WHERE seq = 5");
    block_on(async {
        use futures_util::StreamExt;
        assert!(log.get(&key("k.0")).await.unwrap().is_some());
        for (name, at) in [("k.2", 3), ("k.4", 5)] {
            match log.get(&key(name)).await {
                Err(ReadError::Corrupt { seq, .. }) => assert_eq!(seq, Seq(at)),
                other => panic!("{other:?}"),
            }
        }
        let replayed: Vec<_> = log.replay().collect().await;
        assert!(
            matches!(replayed.last(), Some(Err(ReadError::Corrupt { .. }))),
            "{replayed:?}"
        );
    });
}

#[test]
fn other_formats_are_refused() {
    let dir = closed_log(1);
    alter(dir.path(), "PRAGMA user_version = 3");
    // The mark beside it shows that it was a log of this version.
    assert!(matches!(open_error(dir.path()), OpenError::Damaged { .. }));
    fs::remove_file(dir.path().join("high-water")).unwrap();
    let error = open_error(dir.path());
    assert!(
        matches!(
            error,
            OpenError::UnknownFormat {
                found: 3,
                known: 2,
                ..
            }
        ),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .contains("has log format 3, this build reads format 2"),
        "{error}"
    );

    alter(dir.path(), "PRAGMA application_id = 7");
    assert!(matches!(
        open_error(dir.path()),
        OpenError::NotALog { found: 7, .. }
    ));

    fs::write(dir.path().join("log.sqlite"), vec![b'x'; 5000]).unwrap();
    assert!(matches!(open_error(dir.path()), OpenError::Damaged { .. }));

    let foreign = tempfile::tempdir().unwrap();
    alter(foreign.path(), "CREATE TABLE other (x)");
    assert!(matches!(
        open_error(foreign.path()),
        OpenError::NotALog { found: 0, .. }
    ));
}

#[test]
fn an_empty_log_is_a_prefix() {
    let dir = closed_log(0);
    assert_eq!(check_prefix(dir.path()), None);
}
