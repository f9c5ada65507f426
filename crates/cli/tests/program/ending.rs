//! The end of a mill: killed, by a signal, or after losing its state; and its last output.

use std::path::Path;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Running, eventually, folder, proofmill, repository, run};

/// A program for the blocks of a workflow. It notes its process, and one that has left its group, and
/// ends when there is a file `go-BLOCK`.
const PROGRAM: &str = r#"#!/bin/sh
here=$(dirname "$0")
block=$(sed 's/[^0-9]//g' "$2")
setsid sleep 600 &
echo "$! $$" > "$here/new-$block" && mv "$here/new-$block" "$here/pids-$block"
while ! [ -e "$here/go-$block" ]; do sleep 0.05; done
cp "$2" "$4"
"#;

const WORKFLOW: &str = r#"
    name = "ending"
    [[source]]
    name = "blocks"
    kind = "range"
    end = 1
    output = "blocks"
    [[dispatcher]]
    name = "prove"
    input = "blocks"
    output = "proofs"
    executor = { kind = "process", program = "./hang.sh" }
    [sequencer]
    input = "proofs"
    directory = "proofs"
"#;

fn prepare() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let program = folder.path().join("hang.sh");
    std::fs::write(&program, PROGRAM).expect("written");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, executable).expect("it is ours");
    std::fs::write(folder.path().join("workflow.toml"), WORKFLOW).expect("written");
    folder
}

fn start(folder: &Path, more: &[&str]) -> Running {
    let mut command = proofmill(folder);
    command.args(["run", "workflow.toml"]).args(more);
    Running::start(&mut command)
}

/// The processes that work on a block, once they run.
fn processes(folder: &Path, block: u64) -> Vec<i32> {
    let file = folder.join(format!("pids-{block}"));
    let text = eventually("the program runs", || std::fs::read_to_string(&file).ok());
    let pids = text
        .split_whitespace()
        .map(|pid| pid.parse().expect("a pid"));
    pids.collect()
}

/// Fields of `/proc/PID/stat` from the third on: state, parent. None if there is no such process.
fn stat(pid: i32) -> Option<(String, i32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// Whether a process runs; one that has ended may not have been reaped.
fn runs(pid: i32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != "Z" && state != "X")
}

fn all_end(pids: &[i32]) {
    eventually("the programs end", || {
        (!pids.iter().any(|pid| runs(*pid))).then_some(())
    });
}

/// The helper of a mill, which ends programs when the mill is killed.
fn helper(mill: i32) -> Option<i32> {
    let entries = std::fs::read_dir("/proc").expect("there").flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.find(|pid| {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
        stat(*pid).is_some_and(|(_, parent)| parent == mill)
            && command.is_ok_and(|command| command.contains("supervise-programs"))
    })
}

#[cfg(target_os = "linux")]
#[test]
fn programs_of_a_killed_mill_end_with_it_and_so_do_those_of_one_whose_helper_was_killed() {
    let folder = prepare();
    let mill = start(folder.path(), &[]);
    let first = processes(folder.path(), 0);
    let pid = mill.pid().as_raw_nonzero().get();
    let helped = helper(pid).expect("it has a helper");
    kill_process(Pid::from_raw(helped).expect("not zero"), Signal::KILL).expect("it runs");
    std::fs::write(folder.path().join("go-0"), "").expect("written");
    let second = processes(folder.path(), 1);
    all_end(&first);
    assert!(second.iter().all(|pid| runs(*pid)), "{second:?}");
    assert_ne!(helper(pid), Some(helped));
    mill.kill();
    // Nobody starts a mill anew, which would end them too.
    all_end(&second);
}

#[test]
fn a_drain_reports_what_it_waits_for_and_has_a_time_limit() {
    let folder = prepare();
    let mill = start(folder.path(), &[]);
    let pids = processes(folder.path(), 0);
    mill.signal(Signal::TERM);
    let said = mill.line("waiting for 1 task: prove/0/0 at prove-0");
    assert!(said.contains("stopping in"), "{said}");
    mill.signal(Signal::TERM);
    mill.end().1.failed(130, "nothing is lost");
    all_end(&pids);
    // With a limit of its own: a short one may pass before the report where the mill waits long for its turn of the
    // processor.
    std::fs::remove_file(folder.path().join("pids-0")).expect("removed");
    let mill = start(folder.path(), &["--drain-timeout", "1s"]);
    let pids = processes(folder.path(), 0);
    mill.signal(Signal::TERM);
    let (_, ran) = mill.end();
    let ran = ran.failed(130, "not finished within 1.0 s (--drain-timeout)");
    assert!(ran.stderr.contains("nothing is lost"), "{ran:?}");
    all_end(&pids);
    // It was handed back untried, and is done when there is time.
    for block in [0, 1] {
        std::fs::write(folder.path().join(format!("go-{block}")), "").expect("written");
    }
    run(folder.path(), ["run", "workflow.toml"]).succeeded();
}

#[test]
fn a_mill_whose_state_is_removed_ends_with_an_error_also_while_it_drains() {
    for drains in [false, true] {
        let folder = prepare();
        let mill = start(folder.path(), &[]);
        let pids = processes(folder.path(), 0);
        if drains {
            mill.signal(Signal::TERM);
            mill.line("finishing the work under way");
        }
        let removed = Instant::now();
        let state = folder.path().join(".proofmill/ending");
        eventually("it is removed", || std::fs::remove_dir_all(&state).ok());
        let (_, ran) = mill.end();
        ran.failed(
            1,
            ".proofmill/ending was removed or replaced while the mill ran",
        );
        assert!(removed.elapsed().as_secs() < 60, "{:?}", removed.elapsed());
        all_end(&pids);
    }
}

#[test]
fn a_run_prints_the_folder_of_the_proofs() {
    let folder = folder();
    let workflow = repository("examples/sequential/workflow.toml");
    let ran = proofmill(folder.path())
        .args(["run", "--json", "--state", "here"])
        .arg(workflow)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&ran.stderr);
    let line = said
        .lines()
        .find(|line| line.contains("emitted, in chain order: "));
    let directory = line.and_then(|line| line.rsplit(": ").next()).expect(&said);
    let proofs = std::fs::read_dir(folder.path().join(directory)).expect("it is there");
    assert!(proofs.count() > 1, "{directory}");
    let json: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert_eq!(json["directory"], directory);
}
