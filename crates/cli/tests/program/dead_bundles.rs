//! Bundles of dead letters, and running them again where neither the mill nor its files are.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use proofmill_nats_server::NatsServer;
use rustix::process::Signal;

use crate::support::{Finished, Running, answered, eventually, finish, folder, proofmill, run};

const SECRET: &str = "swordfish";

/// A workflow whose program fails in another way for each block from 1 to 4, in a folder of its own. The input of
/// block 4 is a blob.
fn site() -> tempfile::TempDir {
    let site = folder();
    let workflow = format!(
        r#"name = "bundled"
defaults = {{ r_max = 1, backoff = {{ initial = "10ms", max = "10ms" }} }}
[[source]]
name = "blocks"
kind = "jsonl"
file = "blocks.jsonl"
output = "blocks"
[[dispatcher]]
name = "prove"
input = "blocks"
output = "proofs"
executor = {{ kind = "process", program = "./prove.sh", args = ["--level", "3"], env = {{ PROVER_TOKEN = "{SECRET}" }} }}
[sequencer]
input = "proofs"
directory = "proofs"
"#
    );
    let lines: Vec<String> = (0..5)
        .map(|block| {
            let pad = "x".repeat(if block == 4 { 100_000 } else { 1 });
            format!(r#"{{"block": {block}, "payload": {{"block": {block}, "pad": "{pad}"}}}}"#)
        })
        .collect();
    fs::write(site.path().join("workflow.toml"), workflow).expect("written");
    fs::write(site.path().join("blocks.jsonl"), lines.join("\n")).expect("written");
    program(&site.path().join("prove.sh"), PROVE);
    site
}

/// Its last line of output names the scratch directory, which differs from run to run.
const PROVE: &str = r#"#!/bin/sh
block=$(sed -n 's/.*"block":[ ]*\([0-9]*\).*/\1/p' "$4")
echo "$PROOFMILL_TASK_ID attempt $PROOFMILL_ATTEMPT, $(wc -c < "$4") bytes"
case $block in
    1) echo "constraint 12 of $4 is not satisfied" >&2; exit 3 ;;
    2) kill -SEGV $$ ;;
    3) echo "the witness is malformed" >&2; exit 65 ;;
    4) echo "no output, $1 $2" >&2; exit 0 ;;
esac
printf '{"block": %s}' "$block" > "$6"
"#;

fn program(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
}

/// The program on a fresh machine, as far as a process can be on one: an empty folder and home, and no variable of
/// this process.
fn fresh(folder: &Path) -> Command {
    let mut command = proofmill(folder);
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", folder);
    command
}

fn replay(folder: &Path, bundle: &Path, more: &[&str]) -> Finished {
    let mut command = fresh(folder);
    command.args(["dlq", "replay"]).arg(bundle).args(more);
    finish(&mut command)
}

/// Runs the mill to its end, where four of five blocks are dead letters.
fn run_to_the_end(site: &Path) {
    let ran = run(site, ["run", "workflow.toml", "--state", "state"]);
    ran.failed(1, "4 tasks are in the dead-letter queue");
}

#[test]
fn a_bundle_fails_the_same_way_on_a_fresh_machine() {
    let (site, elsewhere) = (site(), folder());
    run_to_the_end(site.path());
    let bundle = elsewhere.path().join("all.bundle");
    let name = bundle.to_str().expect("text");
    let make = [
        "dlq",
        "bundle",
        "--all",
        "--with-program",
        "--state",
        "state",
        "-o",
        name,
    ];
    let made = run(site.path(), make).succeeded();
    assert!(made.stdout.contains("4 dead letters"), "{made:?}");
    run(site.path(), make).failed(2, "already exists");
    let bytes = fs::read(&bundle).expect("read");
    let holds = |text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
    assert!(
        holds("PROVER_TOKEN") && !holds(SECRET),
        "names, and no values"
    );
    let mode = fs::metadata(&bundle).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The machine of the mill is gone.
    drop(site);

    let again = replay(elsewhere.path(), &bundle, &["--keep", "kept", "--json"]).succeeded();
    let json = again.json();
    let letters = json["letters"].as_array().expect("a list");
    assert_eq!(letters.len(), 4, "{json}");
    let exits = [Some(3), None, Some(65), Some(0)];
    for (letter, exit) in letters.iter().zip(exits) {
        assert_eq!(letter["verdict"], "same", "{letter}");
        assert_eq!(letter["now"]["exit"].as_i64(), exit, "{letter}");
        assert_eq!(letter["program"]["is_recorded"], true, "{letter}");
        assert_eq!(letter["unset_variables"][0], "PROVER_TOKEN", "{letter}");
    }
    let kept = |name: &str| fs::read(elsewhere.path().join("kept").join(name)).expect(name);
    assert!(kept("4/input").len() > 100_000);
    assert_eq!(kept("3/stderr"), b"the witness is malformed\n");

    let text = replay(elsewhere.path(), &bundle, &["--task", "prove/2/0"])
        .succeeded()
        .stdout;
    assert!(
        text.starts_with("prove/2/0: the same failure, as in attempt 2\n"),
        "{text}"
    );
    assert!(text.contains("killed by signal 11 (SIGSEGV)"), "{text}");
    replay(elsewhere.path(), &bundle, &["--task", "prove/9/0"])
        .failed(2, "does not hold prove/9/0");
    let strict = replay(
        elsewhere.path(),
        &bundle,
        &["--task", "prove/3/0", "--strict"],
    );
    strict.succeeded();
}

#[test]
fn another_program_has_another_result_and_a_missing_one_none() {
    let (site, elsewhere) = (site(), folder());
    run_to_the_end(site.path());
    let bundle = elsewhere.path().join("one.bundle");
    let name = bundle.to_str().expect("text");
    let make = ["dlq", "bundle", "prove/1/0", "--state", "state", "-o", name];
    run(site.path(), make).succeeded();
    run(
        site.path(),
        ["dlq", "bundle", "prove/0/0", "--state", "state"],
    )
    .failed(1, "no dead letter");
    run(site.path(), ["dlq", "bundle", "--state", "state"]).failed(2, "required");
    // The recorded program is run where it is, unless it has changed.
    replay(elsewhere.path(), &bundle, &[]).succeeded();
    program(&site.path().join("prove.sh"), &PROVE.replace("12", "13"));
    let changed =
        replay(elsewhere.path(), &bundle, &[]).failed(1, "1 of 1 task had another result");
    assert!(
        changed.stdout.contains("prove/1/0: another failure"),
        "{changed:?}"
    );
    assert!(
        changed
            .stdout
            .contains("another program than the recorded one"),
        "{changed:?}"
    );
    drop(site);

    let missing = replay(elsewhere.path(), &bundle, &[]).failed(3, "could not be run again");
    assert!(missing.stderr.contains("--with-program"), "{missing:?}");
    program(
        &elsewhere.path().join("mended.sh"),
        "#!/bin/sh\necho '[1]' > \"$6\"\n",
    );
    let mended = replay(elsewhere.path(), &bundle, &["--program", "mended.sh"]);
    let mended = mended.failed(1, "1 of 1 task had another result");
    assert!(
        mended.stdout.contains("no failure: it succeeded"),
        "{mended:?}"
    );
    program(&elsewhere.path().join("prove.sh"), PROVE);
    replay(elsewhere.path(), &bundle, &["--program", "prove.sh"]).succeeded();
}

#[test]
fn a_damaged_bundle_is_refused_and_runs_nothing() {
    let (site, elsewhere) = (site(), folder());
    run_to_the_end(site.path());
    let make = [
        "dlq",
        "bundle",
        "prove/1/0",
        "--with-program",
        "--state",
        "state",
    ];
    run(site.path(), make).succeeded();
    let bytes = fs::read(site.path().join("prove-1-0.bundle")).expect("read");
    let bundle = elsewhere.path().join("damaged.bundle");
    // The header, every section, and the checksum.
    for at in (0..bytes.len()).step_by(bytes.len() / 40) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        fs::write(&bundle, damaged).expect("written");
        let ran = replay(elsewhere.path(), &bundle, &[]).failed(3, "damaged.bundle: ");
        assert_eq!(ran.stdout, "", "byte {at}");
    }
    fs::write(&bundle, &bytes[..bytes.len() / 2]).expect("written");
    replay(elsewhere.path(), &bundle, &[]).failed(3, "damaged.bundle: ");
    replay(elsewhere.path(), &elsewhere.path().join("none"), &[]).failed(3, "none: ");
}

#[test]
fn a_signal_ends_the_program_that_is_run_again() {
    let (site, elsewhere) = (site(), folder());
    run_to_the_end(site.path());
    run(
        site.path(),
        ["dlq", "bundle", "prove/1/0", "--state", "state"],
    )
    .succeeded();
    let here = elsewhere.path();
    let hang = format!(
        "#!/bin/sh\necho $$ > '{}/pid'\nexec sleep 1000\n",
        here.display()
    );
    program(&here.join("hang.sh"), &hang);
    let mut command = fresh(here);
    let bundle = site.path().join("prove-1-0.bundle");
    command
        .args(["dlq", "replay", "--program", "hang.sh"])
        .arg(bundle);
    let running = Running::start(&mut command);
    let pid = eventually("the program runs", || {
        fs::read_to_string(here.join("pid"))
            .ok()?
            .trim()
            .parse::<i32>()
            .ok()
    });
    running.signal(Signal::INT);
    let (_, ended) = running.end();
    ended.failed(130, "stopped before the end");
    eventually("the program is gone", || {
        (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
}

#[test]
fn a_bundle_made_over_the_bus_fails_the_same_way_and_is_in_the_coordinators_audit_log() {
    let server = NatsServer::start();
    let url = server.url();
    let (site, elsewhere) = (site(), folder());
    let roles: Vec<Running> = ["coordinator", "dispatcher", "sequencer", "source"]
        .into_iter()
        .map(|role| {
            let mut command = proofmill(site.path());
            command.args([role, "workflow.toml", "--bus", &url]);
            if role == "coordinator" {
                command.args(["--audit-log", "audit"]);
            }
            Running::start(&mut command)
        })
        .collect();
    let ask = |args: &[&str]| {
        let mut command = proofmill(elsewhere.path());
        command
            .env("USER", "alice")
            .args(args)
            .args(["--workflow", "bundled", "--bus", &url]);
        answered(|| finish(&mut command))
    };
    eventually("four letters are dead", || {
        let listed = ask(&["dlq", "list", "--json"]);
        let listed = (listed.code == Some(0)).then(|| listed.json())?;
        (listed.as_array().map(Vec::len) == Some(4)).then_some(())
    });
    ask(&["dlq", "bundle", "--all", "--with-program"]).succeeded();
    ask(&["dlq", "retry", "prove/9/0"]).failed(1, "prove/9/0");
    let audit = fs::read_to_string(site.path().join("audit/bundled/audit.jsonl"));
    let audit = audit.expect("an audit log");
    let ended = audit.lines().filter_map(|line| {
        let entry: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let text = |name: &str| entry[name].as_str().expect("text").to_owned();
        assert!(text("who").starts_with("alice@"), "{entry}");
        assert_eq!(entry["via"], "bus");
        Some((text("action"), text("target"), entry["done"].as_bool()?))
    });
    let wanted = [
        ("bundle", "all dead letters, with programs", true),
        ("retry", "prove/9/0", false),
    ];
    let wanted = wanted.map(|(action, target, done)| (action.to_owned(), target.to_owned(), done));
    assert_eq!(ended.collect::<Vec<_>>(), wanted);
    drop((roles, server, site));
    let bundle = elsewhere.path().join("dead-letters.bundle");
    let again = replay(elsewhere.path(), &bundle, &["--json"]).succeeded();
    assert_eq!(
        again.json()["letters"].as_array().map(Vec::len),
        Some(4),
        "{again:?}"
    );
}
