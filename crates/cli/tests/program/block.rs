//! `proofmill block`: the history of a block, while the mill runs and after it was killed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use proofmill_nats_server::NatsServer;
use rustix::process::Signal;
use serde_json::Value;

use crate::cluster_roles;
use crate::operate::{Site, THREE, blocks, site};
use crate::support::{Finished, Running, answered, emitted, eventually, finish, names, proofmill};

/// Time after which the log has recorded the start of an attempt; an attempt that has just started is not recorded.
const BEGUN_AFTER: Duration = Duration::from_secs(1);

fn outcome(status: &Value, what: &str) -> Value {
    let history = status["history"].as_array().expect("a list").iter();
    let mut found = history.filter(|entry| entry["what"] == what);
    let entry = found
        .next()
        .unwrap_or_else(|| panic!("no {what}: {status}"));
    entry.clone()
}

fn state(site: &Site, block: u64) -> String {
    let status = site.json(&["block", &block.to_string()]);
    status["state"].as_str().expect("a word").to_owned()
}

fn failed_once(site: &Site, block: u64) {
    // The first attempt ends with 3, which is worth another.
    let script = fs::read_to_string(site.file("prove.sh")).expect("read");
    let once = format!(
        "#!/bin/sh\nif [ \"$PROOFMILL_BLOCK$PROOFMILL_ATTEMPT\" = {block}1 ]; then\n\
         echo 'not yet' >&2; exit 3; fi\n"
    );
    let script = script.replacen("#!/bin/sh\n", &once, 1);
    fs::write(site.file("prove.sh"), script).expect("written");
}

/// A mill that was killed after blocks 0 and 1 were emitted; block 2 is dead, 3 waits behind it, and 4 hangs.
fn killed() -> Site {
    let source = "kind = \"range\"\nstart = 0\nend = 4";
    // One of them hangs, perhaps while block 1 waits to be tried again.
    let stage = "workers = 2\nbackoff = { initial = \"10ms\" }";
    let site = site(source, stage);
    failed_once(&site, 1);
    site.mark("poison-2");
    site.mark("hang-4");
    let mill = Running::start(&mut site.mill(&["--stay"]));
    site.pids();
    eventually("block 1 has left and block 3 is proved", || {
        let is_queued = site.json(&["block", "3"])["tasks"][0]["phase"] == "queued";
        (is_queued && state(&site, 1) == "emitted").then_some(())
    });
    check(&site, true);
    std::thread::sleep(BEGUN_AFTER);
    // It may have had no processor meanwhile: when it has answered twice, it has recorded what was due before.
    for _ in 0..2 {
        assert_eq!(state(&site, 4), "running");
    }
    mill.kill();
    site
}

/// Checks the answer for each block, with the mill running or stopped.
fn check(site: &Site, running: bool) {
    let states = ["emitted", "emitted", "dead", "waiting"];
    for (block, expected) in (0..).zip(states) {
        assert_eq!(state(site, block), expected, "block {block}");
    }
    assert_eq!(state(site, 99), "never_seen");
    if running {
        assert_eq!(state(site, 4), "running");
    }

    let one = site.json(&["block", "1"]);
    let proved = outcome(&one, "completed");
    let step = &proved["step"];
    assert_eq!(step["task"], "prove/1/0");
    let worker = step["workers"][0]["worker"].as_str().expect("a name");
    assert!(worker.starts_with("prove"), "{worker}");
    assert_eq!(step["workers"][0]["attempt"], 2, "{one}");
    assert_eq!(step["failed_attempts"], 1, "{one}");
    let failure = &step["failures"][0];
    assert!(
        failure["reason"]
            .as_str()
            .is_some_and(|it| it.contains('3')),
        "{one}"
    );
    for time in [
        "waited_ms",
        "leased_ms",
        "ran_ms",
        "recorded_ms",
        "accepted_ms",
    ] {
        assert!(step[time].is_u64(), "{time}: {one}");
    }
    assert!(
        step["ran_ms"].as_u64() <= step["leased_ms"].as_u64(),
        "{one}"
    );
    let left = outcome(&one, "emitted");
    let place = left["places"][0].as_str().expect("a place");
    let file = place.strip_prefix("file ").expect("a file");
    let expected = site.file("state/proofs").join(emitted(1, 1));
    let real = |path: &Path| fs::canonicalize(path).expect("it is there");
    assert_eq!(real(Path::new(file)), real(&expected));
    assert!(left["at_ms"].as_u64() >= proved["at_ms"].as_u64(), "{one}");

    let two = site.json(&["block", "2"]);
    assert_eq!(two["dead_letters"][0]["task"], "prove/2/0", "{two}");
    assert!(outcome(&two, "died")["reason"].is_string(), "{two}");
    let three = site.json(&["block", "3"]);
    let task = &three["tasks"][0];
    let expected = "block 2, the next to be emitted: prove/2/0 is in the dead-letter queue";
    assert_eq!(task["waits_for"], expected, "{three}");
    let dead = &task["why"]["lower_block"]["state"]["dead"]["task"];
    assert_eq!(*dead, "prove/2/0", "{three}");

    let shown = site.ask(&["block", "1"]).succeeded().stdout;
    for part in [
        "block 1: emitted",
        "prove/1/0",
        "completed",
        "attempt 1 by",
        file,
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    let shown = site.ask(&["block", "3"]).succeeded().stdout;
    assert_eq!(shown.contains("the mill is stopped"), !running, "{shown}");
    let table = site.ask(&["block", "0-99"]).succeeded().stdout;
    assert_eq!(table.lines().count(), 101, "{table}");
    let short = site.json(&["block", "0-3"]);
    let of = |block: usize| short[block]["state"].as_str().expect("a word").to_owned();
    assert_eq!((0..4).map(of).collect::<Vec<_>>(), states);
}

#[test]
fn every_state_of_a_block_is_shown_while_the_mill_runs_and_after_a_kill() {
    let site = killed();
    check(&site, false);

    site.ask(&["dlq", "drop", "prove/2/0"]).succeeded();
    assert_eq!(state(&site, 2), "dropped");
    let shown = site.ask(&["block", "2"]).succeeded().stdout;
    assert!(shown.contains("submitted again"), "{shown}");
    fs::write(site.file("proof.json"), r#"{"block": 2, "by": "hand"}"#).expect("written");
    let submit = ["submit", "--queue", "proofs", "--block", "2", "proof.json"];
    site.ask(&submit).succeeded();
    assert_eq!(state(&site, 2), "waiting");
    finish(&mut site.mill(&[])).succeeded();
    assert_eq!(site.proofs(), blocks(0..=4));
    for block in 0..=4 {
        assert_eq!(state(&site, block), "emitted", "block {block}");
    }
    // Nothing of before the kill is forgotten.
    let two = site.json(&["block", "2"]);
    outcome(&two, "died");
    outcome(&two, "dropped");
    outcome(&two, "emitted");
    assert_eq!(
        outcome(&site.json(&["block", "1"]), "completed")["step"]["failed_attempts"],
        1
    );
}

#[test]
fn counters_go_on_where_a_killed_mill_left_them() {
    let site = killed();
    let counters = |status: &Value, stage: usize| status["stages"][stage]["counters"].clone();
    let stopped = site.json(&["status"]);
    let prove = counters(&stopped, 0);
    assert_eq!(
        (&prove["accepted"], &prove["completed"]),
        (&5.into(), &3.into()),
        "{stopped}"
    );
    // With the attempt at block 4: it ended with the mill.
    assert_eq!(
        (&prove["failed"], &prove["died"]),
        (&3.into(), &1.into()),
        "{stopped}"
    );
    assert_eq!(counters(&stopped, 1)["emitted"], 2, "{stopped}");

    fs::remove_file(site.file("poison-2")).expect("removed");
    site.ask(&["dlq", "retry", "--all"]).succeeded();
    let summary = finish(&mut site.mill(&[])).succeeded().json();
    let prove = counters(&summary["status"], 0);
    assert_eq!(prove["completed"], 5, "{summary}");
    assert_eq!(counters(&summary["status"], 1)["emitted"], 5, "{summary}");
    // A clean stop loses none of them.
    let after = site.json(&["status"]);
    for stage in 0..2 {
        let (before, after) = (counters(&summary["status"], stage), counters(&after, stage));
        assert_eq!(before, after);
    }
}

#[test]
fn the_history_is_bounded_by_the_workflow_file() {
    let site = site("kind = \"range\"\nstart = 0\nend = 39", "");
    let file = site.file("workflow.toml");
    let workflow = fs::read_to_string(&file).expect("read");
    let bounded = format!("{workflow}[history]\nsteps = 20\nkeep = \"1h\"\n");
    fs::write(&file, bounded).expect("written");
    finish(&mut site.mill(&[])).succeeded();
    let told = |block: u64| {
        let status = site.json(&["block", &block.to_string()]);
        assert_eq!(status["state"], "emitted", "{status}");
        status["history"].as_array().expect("a list").len()
    };
    let entries: usize = (0..40).map(told).sum();
    // A record goes whole: as many proofs as ended between two emissions, and an emission.
    assert!(entries <= 20, "{entries} entries are kept");
    assert_eq!((told(0), told(39)), (0, 2));
    assert_eq!(state(&site, 99), "never_seen");
    let shown = site.ask(&["block", "0"]).succeeded().stdout;
    assert!(shown.contains("its history is no longer kept"), "{shown}");

    let wrong = workflow + "[history]\nsteps = -1\nfor = \"1h\"\n";
    fs::write(&file, wrong).expect("written");
    let ran = finish(proofmill(site.path()).args(["check", "workflow.toml"]));
    for part in ["steps", "there is no field `for` here"] {
        assert!(ran.stderr.contains(part), "{ran:?}");
    }
}

#[test]
fn an_invalid_block_number_is_a_usage_error() {
    let site = site(THREE, "");
    for wrong in ["x", "5-", "5-3", "0-1000", "+1", "99999999999999999999"] {
        let ran = site.ask(&["block", wrong]);
        ran.failed(2, &format!("invalid value '{wrong}' for '<BLOCK>'"));
    }
    site.ask(&["block", "1"]).failed(1, "no state directory");
}

#[test]
fn a_block_on_a_cluster_is_shown_by_the_leader() {
    let server = NatsServer::start();
    let folder = cluster_roles::prepare(4);
    let role = |args: &[&str]| {
        let mut command = proofmill(folder.path());
        command.env("PROOFMILL_BUS", server.url()).args(args);
        command
    };
    let start = |name: &str| Running::start(&mut role(&[name, "workflow.toml"]));
    let first = start("coordinator");
    let others = ["sequencer", "dispatcher", "source"].map(start);
    let proofs = folder.path().join(".proofmill/roles/proofs");
    eventually("all have left", || {
        (names(&proofs).len() == 2).then_some(())
    });
    let ask = |args: &[&str]| -> Finished {
        let mut command = role(args);
        command.args(["--workflow", "roles", "--json"]);
        answered(|| finish(&mut command))
    };
    let check = || {
        let status = eventually("it is emitted", || {
            let ran = ask(&["block", "3"]);
            let status = (ran.code == Some(0)).then(|| ran.json())?;
            (status["state"] == "emitted").then_some(status)
        });
        let grouped = outcome(&status, "grouped");
        let task = grouped["step"]["task"].as_str().expect("a task");
        assert!(task.starts_with("gather/3/"), "{status}");
        let left = outcome(&status, "emitted");
        let place = left["places"][0].as_str().expect("a place");
        assert!(place.ends_with("0000000002-0000000003.json"), "{status}");
        let counters = ask(&["status"]).succeeded().json()["stages"].clone();
        let completed = counters.as_array().into_iter().flatten();
        let completed = completed.map(|stage| stage["counters"]["completed"].as_u64());
        assert_eq!(completed.map(Option::unwrap_or_default).sum::<u64>(), 6);
    };
    check();
    // Another one leads, from the stream alone.
    first.kill();
    let second = start("coordinator");
    check();
    second.signal(Signal::TERM);
    second.end();
    for role in others {
        role.kill();
    }
}
