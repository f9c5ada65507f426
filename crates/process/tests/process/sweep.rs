//! Tests of what the executor ends and removes of a process that was killed.

use std::collections::BTreeSet;
use std::fs;
use std::future::pending;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proofmill_process::{ProcessExecutor, ProcessSpec, Swept};
use tokio::time::sleep;

use crate::support::{Bench, FAMILY, SCRUBBED, assert_gone, runs, task, until};

/// The note about the process group of a run; `None` if there is no run.
fn note(bench: &Bench) -> Option<String> {
    let paths = fs::read_dir(bench.scratch()).ok()?;
    let mut paths = paths.map(|entry| entry.unwrap().path());
    let path = paths.find(|path| {
        path.extension()
            .is_some_and(|extension| extension == "group")
    })?;
    fs::read_to_string(path).ok()
}

/// Runs [`victim`] in a process of its own until `count` process ids are written, kills it, and returns the
/// ids.
async fn orphans(bench: &Bench, script: &str, count: usize) -> Vec<i32> {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sweep::victim", "--ignored"])
        .env("VICTIM_SCRIPT", script)
        .env("VICTIM_DIR", bench.root.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pids = bench.wait_for_pids("pids", count).await;
    // The note is written after the program has started, and removed at the end of the run.
    until(|| note(bench).is_none_or(|note| note.contains('\n'))).await;
    victim.kill().unwrap();
    victim.wait().unwrap();
    pids
}

#[test]
#[ignore = "not a test: the process that the sweep tests kill"]
fn victim() {
    let Some(dir) = std::env::var_os("VICTIM_DIR") else {
        return;
    };
    let mut spec = ProcessSpec::new("/bin/sh");
    spec.args = vec![
        "-c".into(),
        std::env::var("VICTIM_SCRIPT").unwrap(),
        "prover".into(),
    ];
    spec.env.insert("DIR".into(), dir.to_str().unwrap().into());
    let executor = ProcessExecutor::new(spec, Path::new(&dir).join("scratch")).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(executor.run(&task(), b"", pending()));
}

#[tokio::test]
async fn sweep_ends_what_a_killed_process_left() {
    let escaped = "setsid sh -c 'echo $$ >> $DIR/pids; sleep 600; :' &";
    for (script, count) in [
        (format!("trap '' TERM HUP; {FAMILY}"), 3),
        (SCRUBBED.to_owned(), 2),
        // A process that left the group, and a leader that has gone.
        (
            format!("{escaped} sleep 60 >/dev/null & echo $! >> $DIR/pids"),
            2,
        ),
    ] {
        let bench = Bench::new();
        let pids = orphans(&bench, &script, count).await;
        if count == 3 {
            assert!(pids.iter().all(|&pid| runs(pid)), "{pids:?}");
        }
        let swept = ProcessExecutor::sweep(&bench.scratch()).await.unwrap();
        until(|| !pids.iter().any(|&pid| runs(pid))).await;
        if count == 3 {
            // The three processes that wrote their ids, and possibly the `sleep` of the last.
            assert_eq!(swept.directories, 1);
            assert!((3..=4).contains(&swept.processes), "{swept:?}");
        }
        bench.assert_clean();
        assert_eq!(
            ProcessExecutor::sweep(&bench.scratch()).await.unwrap(),
            Swept::default()
        );
    }
}

#[tokio::test]
async fn sweep_spares_strangers() {
    let bench = Bench::new();
    assert_eq!(
        ProcessExecutor::sweep(&bench.scratch()).await.unwrap(),
        Swept::default()
    );
    let pids = orphans(&bench, FAMILY, 3).await;
    let note = note(&bench).unwrap();
    // A process that was given the number of a leader that has gone: the start time differs. It is in clock ticks
    // of 10 ms, which the leader may not have lived.
    sleep(Duration::from_millis(50)).await;
    let mut stranger = Command::new("/bin/sleep");
    let mut stranger = stranger.arg("600").process_group(0).spawn().unwrap();
    let forged = note.replacen(&pids[0].to_string(), &stranger.id().to_string(), 1);
    assert_ne!(note, forged);
    let other = bench.scratch().join("run-1-1");
    fs::create_dir(&other).unwrap();
    fs::write(other.with_extension("group"), forged).unwrap();
    // Folders that are not scratch directories stay.
    fs::create_dir(bench.scratch().join("precious")).unwrap();
    fs::create_dir(bench.path("elsewhere")).unwrap();
    symlink(bench.path("elsewhere"), bench.scratch().join("run-2-2")).unwrap();

    let start = Instant::now();
    let swept = ProcessExecutor::sweep(&bench.scratch()).await.unwrap();
    assert_eq!(swept.directories, 2);
    // As long as a sweep waits.
    assert_gone(&pids, start.elapsed(), Duration::from_secs(5)).await;
    assert!(runs(stranger.id() as i32));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert!(bench.path("elsewhere").exists());
    let left: BTreeSet<_> = fs::read_dir(bench.scratch())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, BTreeSet::from(["precious".into(), "run-2-2".into()]));
}
