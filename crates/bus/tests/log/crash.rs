//! Tests of processes that die, and of write-ahead logs that end in garbage.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use proofmill_bus::{EmbeddedLog, Log, Options, until_durable};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::scenario::{batch, batch_ending, block_on, check_prefix, without_room};

const DIR: &str = "PROOFMILL_TEST_CRASH_DIR";
const FIRST: &str = "PROOFMILL_TEST_CRASH_FIRST";

/// The child process of [`a_killed_writer_loses_nothing_durable`]; does nothing in a normal test
/// run.
#[test]
fn child_appends_until_killed() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    // A small limit, so that the process dies in the middle of commits, not of appends.
    let log = EmbeddedLog::open(dir, Options::default().with_max_pending_bytes(100_000)).unwrap();
    let mut watermark = log.durable();
    std::thread::spawn(move || {
        block_on(async {
            while watermark.changed().await.is_ok() {
                println!("durable {}", watermark.borrow().seq);
            }
        });
    });
    block_on(async {
        for n in first.. {
            log.append(batch(n)).await.unwrap();
        }
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "kills at random moments")]
fn a_killed_writer_loses_nothing_durable() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = StdRng::seed_from_u64(20_261_121);
    let mut first = 0;
    for round in 0..30 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "crash::child_appends_until_killed",
                "--nocapture",
            ])
            .env(DIR, dir.path())
            .env(FIRST, first.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let mut last: Option<u64> = None;
        // Sometimes the child dies while it opens the log; otherwise it writes some batches first, however
        // slow the machine is.
        let begun = (round % 5 != 0).then_some((first + 25) * 3);
        while last < begun
            && let Some(line) = lines.next()
        {
            last = last.max(promised_by(&line));
        }
        let killer = std::thread::spawn({
            let pause = Duration::from_micros(random.random_range(0..60_000));
            move || {
                std::thread::sleep(pause);
                child.kill().unwrap();
                child.wait().unwrap();
            }
        });
        for line in lines {
            last = last.max(promised_by(&line));
        }
        killer.join().unwrap();
        let found = check_prefix(dir.path());
        let promised = last.map(|seq| seq / 3 - 1);
        assert!(
            found >= promised,
            "round {round}: {promised:?} was durable, {found:?} is there"
        );
        first = found.map_or(0, |last| last + 1);
    }
    assert!(first > 500, "only {first} batches were written in all");
}

/// The position that a line of the child says is durable; the first line is the test harness's own. A line may
/// be cut by the kill: a shorter number is an earlier promise.
fn promised_by(line: &str) -> Option<u64> {
    let (_, seq) = line.rsplit_once("durable ")?;
    seq.parse().ok()
}

/// A log whose batches are all in the write-ahead log, as after a loss of power: the high-water
/// mark is still the earlier one.
fn crashed(to: &Path, batches: u64) {
    let dir = tempfile::tempdir().unwrap();
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    fs::copy(dir.path().join("high-water"), to.join("high-water")).unwrap();
    block_on(async {
        for n in 0..batches {
            let seq = log.append(batch(n)).await.unwrap();
            until_durable(&mut log.durable(), seq).await.unwrap();
        }
    });
    fs::copy(dir.path().join("log.sqlite"), to.join("log.sqlite")).unwrap();
    let wal = fs::read(dir.path().join("log.sqlite-wal")).unwrap();
    fs::write(to.join("log.sqlite-wal"), without_room(wal)).unwrap();
}

fn copy(from: &Path, to: &Path) {
    for file in ["log.sqlite", "log.sqlite-wal", "high-water"] {
        fs::copy(from.join(file), to.join(file)).unwrap();
    }
}

#[test]
fn a_torn_tail_costs_a_suffix() {
    const BATCHES: u64 = 60;
    let source = tempfile::tempdir().unwrap();
    crashed(source.path(), BATCHES);
    let sound = fs::read(source.path().join("log.sqlite-wal")).unwrap();
    let mut random = StdRng::seed_from_u64(1);
    let (mut whole, mut partial) = (0, 0);
    for trial in 0..120 {
        let dir = tempfile::tempdir().unwrap();
        copy(source.path(), dir.path());
        let reach = match trial % 3 {
            0 => random.random_range(0..200),
            1 => random.random_range(0..20_000),
            _ => random.random_range(0..sound.len()),
        };
        let tail = sound.len() - reach.min(sound.len());
        let mut torn = sound.clone();
        let mut touched = reach;
        match trial % 5 {
            0 => torn.truncate(tail),
            1 => torn[tail..].fill(0),
            2 => random.fill(&mut torn[tail..]),
            3 => {
                let at = random.random_range(tail.min(torn.len() - 1)..torn.len());
                torn[at] ^= 1 << random.random_range(0..8);
            }
            _ => {
                torn.extend([0xa5; 9000]);
                touched = 0;
            }
        }
        fs::write(dir.path().join("log.sqlite-wal"), &torn).unwrap();
        let left = check_prefix(dir.path()).map_or(0, |last| last + 1);
        if left == BATCHES {
            whole += 1
        } else {
            partial += 1
        }
        // A batch takes at least one page, so at most the damaged pages' batches are lost, and the
        // batch that contains the first damaged byte.
        let allowed = if touched == 0 {
            0
        } else {
            (touched as u64).div_ceil(4096) + 1
        };
        assert!(
            left + allowed >= BATCHES,
            "trial {trial}: {left} left, {touched} bytes torn"
        );
        // The log continues from there.
        let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
        let seq = block_on(log.append(batch(left))).unwrap();
        assert_eq!(batch_ending(seq), Some(left));
        drop(log);
        assert_eq!(check_prefix(dir.path()), Some(left));
    }
    assert!(
        whole > 0 && partial > 40,
        "{whole} whole, {partial} partial"
    );
}
