//! Operating a mill: inspecting it, repairing it, stopping it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{
    Finished, Running, emitted, eventually, finish, folder, headers, names, proofmill, raw,
    repository, run,
};

/// A workflow of one stage whose program does what files in its folder say.
pub(crate) struct Site {
    folder: tempfile::TempDir,
}

/// A site whose source has the table `source`; `stage` adds settings to the stage's table.
pub(crate) fn site(source: &str, stage: &str) -> Site {
    let site = Site { folder: folder() };
    let workflow = format!(
        r#"name = "site"
[[source]]
name = "blocks"
{source}
output = "blocks"
[[queue]]
name = "blocks"
q_max = 8
[[dispatcher]]
name = "prove"
input = "blocks"
output = "proofs"
executor = {{ kind = "process", program = "./prove.sh" }}
{stage}
[sequencer]
input = "proofs"
directory = "proofs"
"#
    );
    let script = format!(
        r#"#!/bin/sh
here='{}'
block=$(sed -n 's/.*"block":[ ]*\([0-9]*\).*/\1/p' "$2")
echo "$block" >> "$here/began"
if [ -e "$here/poison-$block" ]; then echo "block $block is bad" >&2; exit 65; fi
if [ -e "$here/hang-$block" ]; then
    sleep 1000 &
    echo "$$ $!" > "$here/hang-$block" && mv "$here/hang-$block" "$here/pids"
    wait
fi
while [ -e "$here/gate" ]; do sleep 0.05; done
printf '{{"block": %s}}' "$block" > "$4"
"#,
        site.path().display()
    );
    fs::write(site.file("workflow.toml"), workflow).expect("written");
    fs::write(site.file("prove.sh"), script).expect("written");
    fs::set_permissions(site.file("prove.sh"), fs::Permissions::from_mode(0o755)).expect("set");
    site
}

// === impl Site ===

impl Site {
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn mark(&self, name: &str) {
        fs::write(self.file(name), "").expect("written");
    }

    fn unmark(&self, name: &str) {
        fs::remove_file(self.file(name)).expect("removed");
    }

    pub(crate) fn mill(&self, more: &[&str]) -> Command {
        let mut command = proofmill(self.path());
        command
            .args(["run", "workflow.toml", "--state", "state", "--json"])
            .args(more);
        command
    }

    pub(crate) fn ask(&self, args: &[&str]) -> Finished {
        run(
            self.path(),
            args.iter().copied().chain(["--state", "state"]),
        )
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        run(
            self.path(),
            args.iter().copied().chain(["--state", "state", "--json"]),
        )
        .succeeded()
        .json()
    }

    pub(crate) fn proofs(&self) -> Vec<String> {
        names(&self.file("state/proofs"))
    }

    /// The blocks whose program was started, in order.
    fn began(&self) -> Vec<u64> {
        let text = fs::read_to_string(self.file("began")).unwrap_or_default();
        text.lines()
            .map(|line| line.parse().expect("a block"))
            .collect()
    }

    fn when_begun(&self, count: usize) {
        eventually("a program begins", || {
            (self.began().len() >= count).then_some(())
        });
    }

    /// The hanging program and its child.
    pub(crate) fn pids(&self) -> [Pid; 2] {
        let text = eventually("the program hangs", || {
            fs::read_to_string(self.file("pids")).ok()
        });
        let mut pids = text
            .split_whitespace()
            .map(|pid| Pid::from_raw(pid.parse().expect("a process id")).expect("not zero"));
        [pids.next().expect("two"), pids.next().expect("two")]
    }
}

/// Whether a process runs; one that has ended and that nobody has asked about does not.
pub(crate) fn runs(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| {
        !stat
            .rsplit(") ")
            .next()
            .unwrap_or_default()
            .starts_with(['Z', 'X'])
    })
}

pub(crate) fn blocks(spans: std::ops::RangeInclusive<u64>) -> Vec<String> {
    spans.map(|block| emitted(block, block)).collect()
}

pub(crate) const THREE: &str = "kind = \"range\"\nstart = 0\nend = 2";

#[test]
fn dead_letters_of_a_stopped_mill() {
    let site = site(THREE, "");
    site.mark("poison-1");
    let ran = finish(&mut site.mill(&[])).failed(1, "1 task is in the dead-letter queue");
    assert!(
        ran.stderr
            .contains("help: proofmill dlq list --state state"),
        "{}",
        ran.stderr
    );
    assert_eq!(site.proofs(), blocks(0..=0));

    let list = site.json(&["dlq", "list"]);
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(list[0]["task"], "prove/1/0");
    assert_eq!(
        list[0]["attempts"], 1,
        "a permanent failure is not tried again"
    );
    let list = site.ask(&["dlq", "list"]).succeeded().stdout;
    assert!(list.starts_with("TASK       ATTEMPTS  SINCE"), "{list}");
    let shown = site.ask(&["dlq", "show", "prove/1/0"]).succeeded().stdout;
    for part in [
        "queue     blocks",
        "exit code 65",
        "stderr | block 1 is bad",
        "JSON)\n{",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    let status = site.json(&["status"]);
    assert_eq!(
        (&status["dead"], &status["running"]),
        (&1.into(), &false.into()),
        "{status}"
    );
    let queues = site.json(&["queues"]);
    assert_eq!(
        (&queues[0]["queue"], &queues[0]["dead"]),
        (&"blocks".into(), &1.into())
    );

    // Still bad: back it goes, with its attempts counted anew.
    let ran = site.ask(&["dlq", "retry", "--all"]).succeeded();
    assert_eq!(
        ran.stdout,
        "1 task back in their queues; they run when the mill runs\n"
    );
    assert_eq!(site.json(&["dlq", "list"]), Value::Array(Vec::new()));
    finish(&mut site.mill(&[])).failed(1, "1 task is in the dead-letter queue");
    // Mended.
    site.unmark("poison-1");
    site.ask(&["dlq", "retry", "prove/1/0"]).succeeded();
    finish(&mut site.mill(&[])).succeeded();
    assert_eq!(site.proofs(), blocks(0..=2));
    assert_eq!(site.began().iter().filter(|block| **block == 1).count(), 3);
    assert_eq!(site.began().len(), 5, "the others ran once");
}

#[test]
fn a_dropped_block_is_made_good_by_a_submitted_proof() {
    let site = site(THREE, "");
    site.mark("poison-1");
    finish(&mut site.mill(&[])).failed(1, "1 task is in the dead-letter queue");
    let dropped = site
        .ask(&["dlq", "drop", "prove/1/0", "prove/1/0"])
        .succeeded();
    assert_eq!(dropped.stdout, "1 task dropped\n");
    site.ask(&["dlq", "drop", "prove/1/0"])
        .failed(1, "no dead letter prove/1/0");
    let ran = finish(&mut site.mill(&[])).failed(1, "no task can continue");
    assert!(
        ran.stderr.contains("help: proofmill tasks --state state"),
        "{}",
        ran.stderr
    );
    let tasks = site.json(&["tasks", "--stage", "sequencer"]);
    assert_eq!(
        (&tasks[0]["task"], &tasks[0]["phase"]),
        (&"sequencer/2/0".into(), &"queued".into())
    );
    fs::write(site.file("proof.json"), r#"{"block": 1, "by": "hand"}"#).expect("written");
    let submit = ["submit", "--queue", "proofs", "--block", "1", "proof.json"];
    let told = site.ask(&submit).succeeded().stdout;
    assert_eq!(told, "accepted; it runs when the mill runs\n");
    finish(&mut site.mill(&[])).succeeded();
    assert_eq!(site.proofs(), blocks(0..=2));
    let file = fs::read_to_string(site.file("state/proofs").join(emitted(1, 1))).expect("read");
    assert_eq!(file, r#"{"block": 1, "by": "hand"}"#);
}

fn get(address: &str, path: &str) -> String {
    get_as(address, path, "host: localhost")
}

/// Response to a GET request with these headers.
pub(crate) fn get_as(address: &str, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\n{headers}\r\nconnection: close\r\n\r\n"
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer
}

#[test]
fn operations_reach_a_running_mill() {
    let site = site(THREE, "");
    site.mark("poison-1");
    site.mark("gate");
    let mill = Running::start(&mut site.mill(&["--stay", "--metrics", "127.0.0.1:0"]));
    let line = mill.line("metrics on http://");
    let address = line
        .split("http://")
        .nth(1)
        .expect("an address")
        .trim_end_matches("/metrics");
    let page = get_as(address, "/", "host: localhost");
    assert!(
        page.contains("href=\"/metrics\"") && page.contains("docs/operate.md"),
        "{page}"
    );
    site.when_begun(1);

    let socket = site.file("state/control.sock");
    let mode = eventually("the socket", || fs::metadata(&socket).ok())
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mode = fs::metadata(site.file("state"))
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);

    let status = site.json(&["status"]);
    assert_eq!(status["running"], true, "{status}");
    assert_eq!(status["stages"][0]["leased"], 1, "{status}");
    let tasks = site.ask(&["tasks", "--limit", "1"]).succeeded().stdout;
    assert!(
        tasks.contains("prove/0/0") && tasks.contains("leased"),
        "{tasks}"
    );
    assert!(tasks.contains("--limit shows more"), "{tasks}");
    assert_eq!(
        site.json(&["tasks", "--block", "2"])
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    finish(&mut site.mill(&[])).failed(1, "is open in process");

    assert!(get(address, "/healthz").ends_with("\r\n\r\nok\n"));
    // A page in a browser that gave this machine its own name.
    for headers in ["host: evil.example", "host: localhost\r\norigin: null"] {
        let refused = get_as(address, "/metrics", headers);
        assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    }
    let page = get(address, "/metrics");
    let waiting = "proofmill_tasks_leased{workflow=\"site\",stage=\"prove\"} 1";
    assert!(page.contains(waiting), "{page}");
    assert!(page.trim_end().ends_with("# EOF"), "{page}");

    site.unmark("gate");
    eventually("the bad block is dead", || {
        (site.json(&["dlq", "list"]).as_array().map(Vec::len) == Some(1)).then_some(())
    });
    assert!(
        site.ask(&["dlq", "show", "prove/1/0"])
            .succeeded()
            .stdout
            .contains("is bad")
    );
    site.unmark("poison-1");
    let told = site.ask(&["dlq", "retry", "--all"]).succeeded().stdout;
    assert_eq!(told, "1 task back in their queues\n");
    eventually("all have left", || {
        (site.proofs() == blocks(0..=2)).then_some(())
    });

    fs::write(site.file("three.json"), r#"{"block": 3}"#).expect("written");
    let submit = ["submit", "--queue", "blocks", "--block", "3", "three.json"];
    assert_eq!(site.ask(&submit).succeeded().stdout, "accepted\n");
    eventually("it has left", || {
        (site.proofs() == blocks(0..=3)).then_some(())
    });
    assert_eq!(
        site.ask(&submit).succeeded().stdout,
        "known already: nothing to do\n"
    );
    fs::write(site.file("three.json"), "{").expect("written");
    site.ask(&submit).failed(1, "three.json: not JSON");

    mill.signal(Signal::TERM);
    let (_, ran) = mill.end();
    let ran = ran.succeeded();
    assert_eq!(ran.json()["status"]["live"], 0);
    assert!(!socket.exists(), "the socket is gone with the mill");
}

#[test]
fn ctrl_c_finishes_running_tasks_and_starts_no_others() {
    let site = site(THREE, "");
    site.mark("gate");
    let mill = Running::start(&mut site.mill(&[]));
    site.when_begun(1);
    mill.signal(Signal::INT);
    mill.line("finishing the work under way");
    // The line comes a moment before.
    eventually("it drains", || {
        (site.json(&["status"])["draining"] == true).then_some(())
    });
    site.unmark("gate");
    let (_, ran) = mill.end();
    let ran = ran.failed(130, "nothing is lost");
    assert_eq!(ran.json()["interrupted"], true);
    assert_eq!(site.began(), [0]);
    assert_eq!(site.proofs(), blocks(0..=0), "what was finished has left");
    finish(&mut site.mill(&[])).succeeded();
    assert_eq!(site.began(), [0, 1, 2], "nothing ran twice");
    assert_eq!(site.proofs(), blocks(0..=2));
}

#[test]
fn a_second_ctrl_c_kills_programs_and_all_that_they_started() {
    let site = site(THREE, "");
    site.mark("hang-0");
    let mill = Running::start(&mut site.mill(&[]));
    let pids = site.pids();
    eventually("all blocks are there", || {
        (site.json(&["status"])["live"] == 3).then_some(())
    });
    mill.signal(Signal::INT);
    mill.line("finishing the work under way");
    assert!(
        pids.iter().all(|pid| runs(*pid)),
        "the first leaves them alone"
    );
    mill.signal(Signal::INT);
    mill.line("stopping now");
    let (_, ran) = mill.end();
    ran.failed(130, "3 tasks unfinished; nothing is lost");
    eventually("they are gone", || {
        (!pids.iter().any(|pid| runs(*pid))).then_some(())
    });
    finish(&mut site.mill(&[])).succeeded();
    assert_eq!(site.proofs(), blocks(0..=2));
}

#[test]
fn programs_of_a_killed_mill_do_not_outlive_its_next_run() {
    let site = site(THREE, "");
    site.mark("hang-0");
    let mill = Running::start(&mut site.mill(&[]));
    let pids = site.pids();
    mill.kill();
    let ran = site.ask(&["status"]).succeeded();
    assert!(
        ran.stdout.starts_with("workflow site: stopped"),
        "{}",
        ran.stdout
    );
    finish(&mut site.mill(&[])).succeeded();
    assert!(
        !pids.iter().any(|pid| runs(*pid)),
        "the next run ends what was left"
    );
    assert_eq!(site.proofs(), blocks(0..=2));
}

#[test]
fn a_program_that_stands_still_is_killed_at_its_time_limit_and_tried_again() {
    let site = site(THREE, "time_limit = \"2s\"");
    site.mark("hang-0");
    let mill = Running::start(&mut site.mill(&[]));
    let pids = site.pids();
    for pid in pids {
        // It has reached its limit already where this test waited long for its turn of the processor.
        let _ = kill_process(pid, Signal::STOP);
    }
    let (_, ran) = mill.end();
    let summary = ran.succeeded().json();
    // And so may other programs have.
    let retried = &summary["status"]["stages"][0]["counters"]["retried"];
    assert!(retried.as_u64() >= Some(1), "{summary}");
    eventually("they are gone", || {
        (!pids.iter().any(|pid| runs(*pid))).then_some(())
    });
    assert_eq!(site.proofs(), blocks(0..=2));
}

#[test]
fn an_interrupted_source_is_not_reported_as_done() {
    let slow = "kind = \"range\"\nstart = 0\nend = 100000\nrate = \"20/s\"";
    let site = site(slow, "");
    let mill = Running::start(&mut site.mill(&[]));
    eventually("some have left", || (site.proofs().len() > 3).then_some(()));
    mill.signal(Signal::INT);
    let (_, ran) = mill.end();
    let summary = ran.failed(130, "nothing is lost").json();
    assert_eq!(summary["sources"]["blocks"]["ended"], false, "{summary}");
}

#[test]
fn messages_are_submitted_to_a_mill_that_runs_and_to_one_that_does_not() {
    let folder = folder();
    let here = folder.path();
    let file = repository("examples/submit/workflow.toml");
    let submit = |block: &str| {
        fs::write(here.join("payload"), format!("{{\"block\": {block}}}")).expect("written");
        run(
            here,
            ["submit", "--queue", "blocks", "--block", block, "payload"],
        )
    };
    submit("0").failed(2, "no state directory under .proofmill");
    let start = || Running::start(proofmill(here).arg("run").arg(&file).arg("--json"));
    let proofs = here.join(".proofmill/submit/proofs");

    let mill = start();
    eventually("the mill answers", || {
        (submit("1").code == Some(0)).then_some(())
    });
    submit("0").succeeded();
    eventually("both have left", || {
        (names(&proofs) == blocks(0..=1)).then_some(())
    });
    mill.signal(Signal::INT);
    mill.end().1.succeeded();

    assert_eq!(
        submit("2").succeeded().stdout,
        "accepted; it runs when the mill runs\n"
    );
    let mill = start();
    eventually("it has left", || {
        (names(&proofs) == blocks(0..=2)).then_some(())
    });
    mill.signal(Signal::TERM);
    mill.end().1.succeeded();
}

#[test]
fn submitting_to_a_full_queue_of_a_stopped_mill_fails_at_once() {
    let site = site("kind = \"submit\"", "");
    let mill = Running::start(&mut site.mill(&[]));
    eventually("it answers", || {
        (site.ask(&["status"]).stdout.contains(": running")).then_some(())
    });
    mill.kill();
    fs::write(site.file("payload"), "{\"block\": 0}").expect("written");
    let submit = |block: u64| {
        let block = block.to_string();
        site.ask(&["submit", "--queue", "blocks", "--block", &block, "payload"])
    };
    for block in 0..8 {
        submit(block).succeeded();
    }
    submit(8).failed(1, "queue \"blocks\" is full: 8 tasks wait");
}

#[test]
fn a_state_directory_may_have_a_long_path() {
    let site = site(THREE, "");
    let state = site.file(&"long-".repeat(40));
    site.mark("gate");
    let mut command = proofmill(site.path());
    let mill = Running::start(
        command
            .args(["run", "workflow.toml", "--state"])
            .arg(&state),
    );
    site.when_begun(1);
    let status = || {
        let mut command = proofmill(site.path());
        finish(command.args(["status", "--state"]).arg(&state))
            .succeeded()
            .stdout
    };
    eventually("it answers", || {
        status().contains(": running").then_some(())
    });
    site.unmark("gate");
    let (_, ran) = mill.end();
    ran.succeeded();
    assert!(status().contains(": stopped"));
}

#[test]
fn keys_are_waited_for_and_ctrl_c_does_not_wait_for_them() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("headers"), raw(&headers(0, 0))).expect("written");
    let demo = |state: &str| {
        let mut command = proofmill(here);
        command.args([
            "demo",
            "--headers",
            "headers",
            "--chunk",
            "12",
            "--keys",
            "keys",
            "--state",
        ]);
        Running::start(command.arg(state))
    };
    let first = demo("one");
    first.line("generating the proving key");
    let second = demo("two");
    second.line("waiting for another process that generates the same key");
    for running in [second, first] {
        running.signal(Signal::INT);
        let (_, ran) = running.end();
        ran.failed(130, "stopped while the keys were made");
    }
    assert!(
        !names(&here.join("keys"))
            .iter()
            .any(|name| name.ends_with(".pk")),
        "cut short"
    );
}

#[test]
fn fresh_leaves_a_demo_alone_that_runs() {
    let folder = folder();
    let here = folder.path();
    // So many that some are left where this test waits long for its turn of the processor.
    fs::write(here.join("headers"), raw(&headers(0, 31))).expect("written");
    let demo = [
        "demo",
        "--headers",
        "headers",
        "--chunk",
        "1",
        "--state",
        "state",
    ];
    let running = Running::start(proofmill(here).args(demo));
    running.line("proving blocks 0 to 0");
    run(here, demo.iter().chain(&["--fresh"])).failed(1, "in use by a demo that runs");
    running.signal(Signal::INT);
    let (status, ran) = running.end();
    assert!(matches!(status.code(), Some(0 | 130)), "{ran:?}");
}
