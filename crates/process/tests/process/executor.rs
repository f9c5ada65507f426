//! Tests of the process executor with real programs: shell scripts that behave in every way that a prover
//! may.

use std::fs;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofmill_process::{
    Attempt, Outcome, ProcessError, ProcessExecutor, ProcessSpec, TaskContext,
};

use crate::support::{Bench, FAMILY, PATIENCE, SCRUBBED, assert_gone, runs, task, until};

/// Longest time that a run which was ended early waits until its processes are gone, as in the executor.
const EXIT_WAIT_MAX: Duration = Duration::from_millis(500);

fn reason(attempt: &Attempt) -> &str {
    match &attempt.outcome {
        Outcome::Failed { reason }
        | Outcome::Permanent { reason }
        | Outcome::CouldNotStart { reason } => reason,
        other => panic!("no reason in {other:?}"),
    }
}

#[tokio::test]
async fn success_returns_the_output_and_leaves_nothing() {
    let bench = Bench::new();
    let attempt = bench
        .run(bench.script(
            "cp \"$2\" \"$4\"; echo \"$1 $3 $PROOFMILL_TASK_ID $PROOFMILL_ATTEMPT $PROOFMILL_BLOCK\"
             [ \"$PROOFMILL_SCRATCH\" = \"$(pwd -P)\" ] && echo at home; cat; echo oops >&2",
        ))
        .await;
    assert_eq!(attempt.outcome, Outcome::Succeeded("input".into()));
    assert_eq!((attempt.exit, attempt.signal), (Some(0), None));
    assert_eq!(
        attempt.stdout.to_string(),
        "--input-path --output-path prove/17 3 17\nat home\n"
    );
    assert_eq!(attempt.stderr.to_string(), "oops\n");
    assert!(attempt.wall > Duration::ZERO && attempt.spawned_after > Duration::ZERO);
    bench.assert_clean();
}

#[tokio::test]
async fn large_input_and_output_pass_whole() {
    let bench = Bench::new();
    let input: Vec<u8> = (0..3_000_000u32).flat_map(|i| i.to_le_bytes()).collect();
    let executor = bench.executor(bench.script("cp \"$2\" \"$4\"; mkdir -p a/b; : > a/b/c"));
    let attempt = executor.run(&task(), &input, pending()).await;
    assert_eq!(attempt.outcome, Outcome::Succeeded(input.into()));
    bench.assert_clean();
}

#[tokio::test]
async fn short_flags_and_relative_programs_work() {
    let bench = Bench::new();
    let mut spec = bench.script("echo \"$@\" > \"$4\"");
    spec.input_flag = "-i".into();
    spec.output_flag = "-o".into();
    // Resolved in the current directory, not in the scratch directory.
    let up = "../".repeat(std::env::current_dir().unwrap().components().count());
    spec.program = format!("{up}bin/sh").into();
    let attempt = bench.run(spec).await;
    let Outcome::Succeeded(output) = attempt.outcome else {
        panic!("{:?}", attempt.outcome)
    };
    let words: Vec<&str> = str::from_utf8(&output)
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!((words[0], words[2], words.len()), ("-i", "-o", 4));
    assert!(words[1].ends_with("/input.json") && Path::new(words[1]).is_absolute());
    assert!(words[3].ends_with("/output.json") && Path::new(words[3]).is_absolute());
}

#[tokio::test]
async fn exit_codes_mean_what_they_should() {
    let bench = Bench::new();
    let attempt = bench
        .run(bench.script("echo bad header >&2; echo x > \"$4\"; exit 65"))
        .await;
    assert_eq!(
        attempt.outcome,
        Outcome::Permanent {
            reason: "exited with code 65 (EX_DATAERR): bad header".into()
        }
    );
    assert_eq!(attempt.exit, Some(65));
    let attempt = bench.run(bench.script("echo only stdout; exit 3")).await;
    assert_eq!(
        attempt.outcome,
        Outcome::Failed {
            reason: "exited with code 3: only stdout".into()
        }
    );
    let attempt = bench.run(bench.script("kill -SEGV $$")).await;
    assert_eq!((attempt.exit, attempt.signal), (None, Some(11)));
    assert_eq!(reason(&attempt), "killed by signal 11 (SIGSEGV)");
    let attempt = bench.run(bench.script("kill -KILL $$")).await;
    assert!(reason(&attempt).starts_with("killed by signal 9 (SIGKILL) from outside"));
    bench.assert_clean();
}

#[tokio::test]
async fn exit_zero_without_a_fitting_output_is_a_failure() {
    let bench = Bench::new();
    let attempt = bench.run(bench.script("exit 0")).await;
    assert!(
        reason(&attempt).contains("left no output file"),
        "{}",
        reason(&attempt)
    );

    let sized = |size: u64| {
        let mut spec = bench.script(&format!("head -c {size} /dev/zero > \"$4\""));
        spec.output_limit = 1000;
        spec
    };
    let attempt = bench.run(sized(1000)).await;
    assert!(attempt.outcome.is_success(), "{}", attempt.outcome);
    let attempt = bench.run(sized(1001)).await;
    assert!(reason(&attempt).contains("1001 bytes, over the limit of 1000"));

    for other in [
        "mkdir \"$4\"",
        "mkfifo \"$4\"",
        "ln -s /etc/hostname \"$4\"",
    ] {
        let attempt = bench.run(bench.script(other)).await;
        assert!(
            reason(&attempt).contains("not a regular file"),
            "{other}: {}",
            attempt.outcome
        );
    }
    bench.assert_clean();
}

#[tokio::test]
async fn timeout_kills_those_without_an_environment_too() {
    let bench = Bench::new();
    let start = Instant::now();
    let (attempt, _) = bench
        .time_out(&bench.script(SCRUBBED), |_| bench.pids("pids").len() == 2)
        .await;
    let waited = start.elapsed().saturating_sub(attempt.wall);
    assert_eq!(attempt.outcome, Outcome::TimedOut);
    let pids = bench.pids("pids");
    assert_eq!(pids.len(), 2);
    assert_gone(&pids, waited, EXIT_WAIT_MAX).await;
}

#[tokio::test]
async fn timeout_kills_the_whole_family() {
    let bench = Bench::new();
    let start = Instant::now();
    let (attempt, limit) = bench
        .time_out(&bench.script(FAMILY), |_| bench.pids("pids").len() == 3)
        .await;
    let waited = start.elapsed().saturating_sub(attempt.wall);
    assert_eq!(attempt.outcome, Outcome::TimedOut);
    // The family would sleep for ten minutes.
    let longest = limit + PATIENCE;
    assert!(
        (limit..longest).contains(&attempt.wall),
        "{:?}",
        attempt.wall
    );
    assert_eq!(attempt.signal, Some(15));
    let pids = bench.pids("pids");
    assert_eq!(pids.len(), 3);
    assert_gone(&pids, waited, EXIT_WAIT_MAX).await;
    bench.assert_clean();
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_is_killed_after_the_grace_period() {
    let bench = Bench::new();
    let spec = bench.script("trap '' TERM; echo deaf; while :; do sleep 0.02; done");
    let is_deaf = |attempt: &Attempt| !attempt.stdout.is_empty();
    let (attempt, limit) = bench.time_out(&spec, is_deaf).await;
    assert_eq!(
        (&attempt.outcome, attempt.signal),
        (&Outcome::TimedOut, Some(9))
    );
    assert!(
        attempt.wall >= limit + spec.kill_grace,
        "{:?}",
        attempt.wall
    );
    assert_eq!(attempt.stdout.to_string(), "deaf\n");
}

#[tokio::test]
async fn a_program_may_use_the_grace_period() {
    let bench = Bench::new();
    let mut spec =
        bench.script("trap 'echo saved; kill $!; exit 0' TERM; echo x > \"$4\"; sleep 600 & wait");
    spec.kill_grace = 2 * PATIENCE;
    let is_saved = |attempt: &Attempt| !attempt.stdout.is_empty();
    let (attempt, limit) = bench.time_out(&spec, is_saved).await;
    assert_eq!(
        (&attempt.outcome, attempt.exit),
        (&Outcome::TimedOut, Some(0))
    );
    assert_eq!(attempt.stdout.to_string(), "saved\n");
    // Its exit ends the wait, not the end of the grace period.
    assert!(attempt.wall < limit + spec.kill_grace, "{:?}", attempt.wall);
}

#[tokio::test]
async fn a_stopped_program_is_ended_too() {
    let bench = Bench::new();
    let mut spec = bench.script("kill -STOP $$");
    spec.time_limit = Some(Duration::from_millis(100));
    spec.kill_grace = Duration::from_secs(30);
    let attempt = bench.run(spec).await;
    assert_eq!(
        (&attempt.outcome, attempt.signal),
        (&Outcome::TimedOut, Some(15))
    );
}

#[tokio::test]
async fn cancelling_kills_the_whole_family() {
    let bench = Bench::new();
    let executor = bench.executor(bench.script(FAMILY));
    let (cancel, mut cancelled) = tokio::sync::watch::channel(false);
    let (task, family) = (task(), async {
        let pids = bench.wait_for_pids("pids", 3).await;
        cancel.send(true).unwrap();
        pids
    });
    let stop = async move {
        let _ = cancelled.wait_for(|&cancelled| cancelled).await;
    };
    let start = Instant::now();
    let (attempt, pids) = tokio::join!(executor.run(&task, b"", stop), family);
    let waited = start.elapsed().saturating_sub(attempt.wall);
    assert_eq!(attempt.outcome, Outcome::Cancelled);
    assert_gone(&pids, waited, EXIT_WAIT_MAX).await;
    // A task that is cancelled before it begins is not started.
    let attempt = executor.run(&task, b"", std::future::ready(())).await;
    assert_eq!(attempt.outcome, Outcome::Cancelled);
    assert_eq!(bench.pids("pids").len(), 3);
    bench.assert_clean();
}

#[tokio::test]
async fn dropping_the_future_kills_the_whole_family_and_cleans_up() {
    let bench = Bench::new();
    for script in [FAMILY, &format!("trap '' TERM; {FAMILY}")] {
        let _ = fs::remove_file(bench.path("pids"));
        let executor = bench.executor(bench.script(script));
        let task = task();
        let pids = tokio::select! {
            attempt = executor.run(&task, b"", pending()) => panic!("ended: {:?}", attempt.outcome),
            pids = bench.wait_for_pids("pids", 3) => pids,
        };
        until(|| !pids.iter().any(|&pid| runs(pid))).await;
        until(|| fs::read_dir(bench.scratch()).unwrap().next().is_none()).await;
        // Reaped as well as dead.
        until(|| !Path::new(&format!("/proc/{}", pids[0])).exists()).await;
    }
}

#[test]
fn a_runtime_that_goes_away_takes_its_programs_along() {
    let bench = Bench::new();
    let executor = Arc::new(bench.executor(bench.script(&format!("trap '' TERM; {FAMILY}"))));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.spawn(async move { executor.run(&task(), b"", pending()).await });
    let pids = runtime.block_on(bench.wait_for_pids("pids", 3));
    drop(runtime);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        until(|| !pids.iter().any(|&pid| runs(pid))).await;
        until(|| fs::read_dir(bench.scratch()).unwrap().next().is_none()).await;
    });
}

#[tokio::test]
async fn what_the_leader_leaves_behind_cannot_hold_up_the_run() {
    let bench = Bench::new();
    for holder in ["sleep 600 &", "setsid sleep 600 &"] {
        let _ = fs::remove_file(bench.path("pids"));
        let script = format!("{holder} echo $! >> $DIR/pids; echo proof > \"$4\"; sleep 0.05");
        let start = Instant::now();
        let attempt = bench.run(bench.script(&script)).await;
        assert_eq!(attempt.outcome, Outcome::Succeeded("proof\n".into()));
        // The wait for the streams does not count as the program's run time.
        assert!(attempt.wall + Duration::from_millis(250) <= start.elapsed());
        assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
        let pids = bench.pids("pids");
        assert_eq!(pids.len(), 1);
        until(|| !runs(pids[0])).await;
    }
    // A process that holds no stream is ended as well.
    let _ = fs::remove_file(bench.path("pids"));
    let quiet = "sleep 600 >/dev/null 2>&1 & echo $! >> $DIR/pids; echo proof > \"$4\"";
    let attempt = bench.run(bench.script(quiet)).await;
    assert!(attempt.outcome.is_success());
    let pids = bench.pids("pids");
    until(|| !runs(pids[0])).await;
    bench.assert_clean();
}

#[tokio::test]
async fn huge_output_on_both_streams_is_drained_and_bounded() {
    let bench = Bench::new();
    let mut spec = bench.script(
        "(echo out-first; head -c 30000000 /dev/zero | tr '\\0' o; echo; echo out-last) &
         (echo err-first; head -c 30000000 /dev/zero | tr '\\0' e; echo; echo err-last) >&2
         wait; echo done > \"$4\"",
    );
    spec.capture_limit = 1000;
    let attempt = bench.run(spec).await;
    assert!(attempt.outcome.is_success(), "{}", attempt.outcome);
    for (kept, word) in [(&attempt.stdout, "out"), (&attempt.stderr, "err")] {
        assert_eq!(kept.written(), 30_000_000 + 10 + 10);
        assert_eq!((kept.head.len(), kept.tail.len()), (500, 500));
        let text = kept.to_string();
        assert!(text.starts_with(&format!("{word}-first\n")), "{word}");
        assert!(text.ends_with(&format!("\n{word}-last\n")), "{word}");
        assert!(text.contains("[… 29999020 bytes dropped …]"));
    }
}

#[tokio::test]
async fn output_that_is_not_utf8_is_kept_as_it_is() {
    let bench = Bench::new();
    let attempt = bench
        .run(bench.script("printf 'bad \\377\\376 bytes\\n' >&2; exit 1"))
        .await;
    assert_eq!(&attempt.stderr.head[..], b"bad \xff\xfe bytes\n");
    assert_eq!(
        reason(&attempt),
        "exited with code 1: bad \u{fffd}\u{fffd} bytes"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_memory_limit_holds_and_is_named() {
    let bench = Bench::new();
    // The shell holds the whole input line in memory.
    let script = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x} > \"$4\"";
    let mut spec = bench.script(&format!("sleep 0.02; {script}"));
    let mut attempt = bench.run(spec.clone()).await;
    for _ in 0..5 {
        // No sample is taken while the machine stalls, and the program may be through by then.
        if attempt.peak_rss > Some(1 << 20) {
            break;
        }
        attempt = bench.run(spec.clone()).await;
    }
    assert_eq!(attempt.outcome, Outcome::Succeeded("200000000\n".into()));
    assert!(attempt.peak_rss.unwrap() > 1 << 20);
    // The limit, in KiB as the shell has it, is set when the program has been started.
    spec.args[1] = format!("until [ \"$(ulimit -v)\" = 65536 ]; do sleep 0.02; done; {script}");
    spec.time_limit = Some(PATIENCE);
    spec.memory_limit = Some(64 << 20);
    let attempt = bench.run(spec.clone()).await;
    let reason = reason(&attempt);
    assert!(reason.contains("its limit is 67108864 bytes"), "{reason}");
    // A failure unrelated to memory is not attributed to it.
    spec.args[1] = "sleep 0.02; echo no such header >&2; exit 1".into();
    let attempt = bench.run(spec).await;
    assert_eq!(
        attempt.outcome.to_string(),
        "failed: exited with code 1: no such header"
    );
}

#[tokio::test]
async fn programs_that_cannot_start_say_why() {
    let bench = Bench::new();
    // Written by another process: a file that this one writes is busy while another test forks.
    let file = |name: &str, line: &str, mode: &str| {
        let path = bench.path(name);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "echo \"$1\" > \"$0\"; chmod \"$2\" \"$0\""]);
        assert!(
            shell
                .arg(&path)
                .args([line, mode])
                .status()
                .unwrap()
                .success()
        );
        path
    };
    for (program, expected) in [
        (bench.path("absent"), "does not exist"),
        ("no-such-prover-anywhere".into(), "is not in PATH"),
        (file("plain", "#!/bin/sh", "644"), "is not executable"),
        (bench.path(""), "is not executable"),
        (file("lost", "#!/no/such/shell", "755"), "interpreter"),
    ] {
        let attempt = bench.run(ProcessSpec::new(&program)).await;
        assert!(
            matches!(attempt.outcome, Outcome::CouldNotStart { .. }),
            "{program:?}"
        );
        assert!(
            reason(&attempt).contains(expected),
            "{program:?}: {}",
            reason(&attempt)
        );
        assert_eq!((attempt.exit, attempt.signal), (None, None));
    }
    let nul = TaskContext {
        id: "a\0b".into(),
        ..task()
    };
    let attempt = bench
        .executor(bench.script(":"))
        .run(&nul, b"", pending())
        .await;
    assert!(
        reason(&attempt).contains("cannot start"),
        "{}",
        reason(&attempt)
    );
    bench.assert_clean();
    fs::remove_dir(bench.scratch()).unwrap();
    let executor = bench.executor(bench.script(":"));
    fs::remove_dir(bench.scratch()).unwrap();
    let attempt = executor.run(&task(), b"", pending()).await;
    // Not a failure of the task.
    let Outcome::Machine(failure) = attempt.outcome else {
        panic!("{:?}", attempt.outcome);
    };
    let said = failure.to_string();
    assert!(said.contains("cannot make a scratch directory"), "{said}");
}

#[test]
fn specs_that_cannot_work_are_refused() {
    let bench = Bench::new();
    type Change = fn(&mut ProcessSpec);
    let changes: [(&str, Change); 10] = [
        ("program", |spec| spec.program = PathBuf::new()),
        ("args", |spec| spec.args.push("a\0".into())),
        ("inherit_env", |spec| spec.inherit_env.push("A=B".into())),
        ("env", |spec| {
            drop(spec.env.insert("A=B".into(), String::new()))
        }),
        ("env", |spec| {
            drop(spec.env.insert(String::new(), String::new()))
        }),
        ("input_flag", |spec| spec.input_flag.clear()),
        ("output_flag", |spec| {
            spec.output_flag = spec.input_flag.clone()
        }),
        ("time_limit", |spec| spec.time_limit = Some(Duration::ZERO)),
        ("memory_limit", |spec| spec.memory_limit = Some(0)),
        ("output_limit", |spec| spec.output_limit = 0),
    ];
    for (expected, change) in changes {
        let mut spec = bench.script(":");
        change(&mut spec);
        match ProcessExecutor::new(spec, bench.scratch()) {
            Err(ProcessError::InvalidSpec { field, .. }) => assert_eq!(field, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
    fs::write(bench.path("file"), "").unwrap();
    let error = ProcessExecutor::new(bench.script(":"), bench.path("file/scratch")).unwrap_err();
    assert!(
        error.to_string().contains("cannot use scratch root"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_runs_at_once_do_not_mix() {
    let bench = Bench::new();
    let script = "cat \"$2\" > \"$4\"; echo \"$PROOFMILL_TASK_ID\"; sleep 0.1";
    let executor = Arc::new(bench.executor(bench.script(script)));
    let runs: Vec<_> = (0..50u64)
        .map(|block| {
            let executor = executor.clone();
            tokio::spawn(async move {
                let task = TaskContext {
                    id: format!("t{block}"),
                    attempt: 1,
                    block,
                };
                executor
                    .run(&task, block.to_string().as_bytes(), pending())
                    .await
            })
        })
        .collect();
    for (block, run) in runs.into_iter().enumerate() {
        let attempt = run.await.unwrap();
        assert_eq!(
            attempt.outcome,
            Outcome::Succeeded(block.to_string().into())
        );
        assert_eq!(attempt.stdout.to_string(), format!("t{block}\n"));
    }
    bench.assert_clean();
}
