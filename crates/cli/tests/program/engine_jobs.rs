//! Jobs of an engine whose client has gone, and jobs that failed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;

use crate::engine::{fixtures, serve};
use crate::support::{Running, eventually, folder, proofmill, run};

/// A script that fails as circom's witness generators do, with a stack.
const FAILS: &str = "#!/bin/sh\ncat >&2 <<'END'\n/app/witness_calculator.js:167\n    throw new Error(err);\n\
                     \n\nError: Assert Failed.\nError in template Main line: 4\n    at main (b.js:1)\nEND\nexit 1\n";

/// A script in `folder`.
fn script(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
    path.to_str().expect("text").to_owned()
}

/// The ids of an engine's jobs.
fn jobs(folder: &Path) -> Vec<String> {
    let listed = run(folder, ["engine", "jobs", "--json"]).succeeded().json();
    let ids = listed.as_array().expect("a list").iter();
    ids.map(|job| job["id"].as_str().expect("an id").to_owned())
        .collect()
}

#[test]
fn a_failed_generator_is_one_line_in_tables_and_shown_in_full_by_engine_job() {
    let folder = folder();
    let here = folder.path();
    fixtures(here);
    // However deep the program lies, the reason is in sight.
    let deep = here.join("deep/".repeat(30));
    fs::create_dir_all(&deep).expect("made");
    let generator = format!(
        "bad={} {{input}} {{output}}",
        script(&deep, "bad.sh", FAILS)
    );
    let more = [
        "--generator",
        &generator,
        "--generator-stderr",
        "--generator-memory",
        "1MiB",
    ];
    let engine = serve(here, &more);
    fs::write(here.join("input.json"), "{}").expect("written");
    let prove = ["engine", "prove", "circuit", "input.json"];
    let prove = prove
        .into_iter()
        .chain(["--generator", "bad", "-o", "p.json"]);
    run(here, prove).failed(1, "at main (b.js:1)");
    let job = jobs(here).pop().expect("a job");

    let table = run(here, ["engine", "jobs"]).succeeded().stdout;
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(table.contains("Error: Assert Failed."), "{table}");
    assert!(
        !table.contains("b.js") && !table.contains("throw new"),
        "{table}"
    );
    let frame = run(here, ["engine", "top", "--once"]).succeeded().stdout;
    assert!(frame.contains("Error: Assert Failed."), "{frame}");
    assert!(!frame.contains("b.js"), "{frame}");
    let whole = run(here, ["engine", "job", &job]).succeeded().stdout;
    for expected in [
        "failed",
        "at main (b.js:1)",
        "throw new Error(err);",
        "0 of 1",
    ] {
        assert!(whole.contains(expected), "no {expected:?} in {whole}");
    }
    let json = run(here, ["engine", "job", &job, "--json"])
        .succeeded()
        .json();
    assert!(
        json["failure"]
            .as_str()
            .is_some_and(|why| why.contains("b.js")),
        "{json}"
    );
    run(here, ["engine", "wait", &job]).failed(1, "failed: partition 0");
    run(here, ["engine", "get", &job, "-o", "p.json"]).failed(1, "Assert Failed");
    assert!(!here.join("p.json").exists());
    engine.signal(Signal::TERM);
    engine.end().1.succeeded();
}

#[test]
fn the_proof_of_a_client_that_lost_its_engine_is_fetched_later() {
    let folder = folder();
    let here = folder.path();
    fixtures(here);
    // It waits for the gate, and then has the witness.
    let text = format!(
        "#!/bin/sh\nwhile [ ! -e {0}/gate ]; do sleep 0.05; done\ncp {0}/witness.wtns \"$2\"\n",
        here.display()
    );
    let generator = format!(
        "slow={} {{input}} {{output}}",
        script(here, "slow.sh", &text)
    );
    let more = ["--generator", &generator, "--generator-memory", "1MiB"];
    let engine = serve(here, &more);
    fs::write(here.join("input.json"), "{}").expect("written");
    let prove = [
        "engine",
        "prove",
        "circuit",
        "input.json",
        "--generator",
        "slow",
    ];
    let outputs = ["-o", "p.json", "--public", "u.json"];
    let client = Running::start(proofmill(here).args(prove).args(outputs));
    let job = eventually("the job is there", || jobs(here).pop());

    run(here, ["engine", "get", &job, "-o", "p.json"]).failed(1, "0 of 1 proven");
    let wait = ["engine", "wait", &job, "--timeout", "1"];
    run(here, wait).failed(1, "has not ended after 1 s");
    engine.kill();
    let lost = client.end().1;
    let command = format!("proofmill engine get {job} -o p.json --public u.json");
    let lost = lost.failed(1, &command);
    assert!(
        lost.stderr
            .contains(&format!("proofmill engine wait {job}")),
        "{lost:?}"
    );

    let engine = serve(here, &more);
    fs::write(here.join("gate"), "").expect("written");
    let done = run(here, ["engine", "wait", &job]).succeeded().stdout;
    assert!(done.contains("done, 1 proof"), "{done}");
    let words = command.split(' ').skip(1);
    run(here, words).succeeded();
    let verify = ["verify", "--vk", "vk.json", "p.json", "u.json"];
    run(here, verify).succeeded();
    // With the key the engine need not be believed.
    let checked = [
        "engine", "get", &job, "-o", "q.json", "--vk", "vk.json", "--json",
    ];
    let told = run(here, checked).succeeded().json();
    assert_eq!(told["job"], *job);
    let second = ["engine", "get", &job, "-o", "r.json", "--partition", "1"];
    run(here, second).failed(1, "1 proof, and no proof 1");
    let nobody = "00".repeat(16);
    run(here, ["engine", "get", &nobody, "-o", "r.json"]).failed(1, "never submitted");
    run(here, ["engine", "job", "nonsense"]).failed(1, "not an id: expected 32");
    assert!(!here.join("r.json").exists());
    engine.signal(Signal::TERM);
    engine.end().1.succeeded();
}

#[test]
fn errors_for_unknown_names_list_the_known_ones() {
    let folder = folder();
    let here = folder.path();
    fixtures(here);
    let file = ["engine", "serve", "--circuits", "keys/circuit.zkey"];
    let refused =
        run(here, file).failed(2, "a file, where a folder of keys or NAME=FILE is expected");
    assert!(
        refused
            .stderr
            .contains("--circuits circuit=keys/circuit.zkey"),
        "{refused:?}"
    );
    let engine = serve(here, &["--generator", "mul=true {input} {output}"]);
    fs::write(here.join("input.json"), " {\"secret\": 12345}").expect("written");
    let prove = |circuit: &str, more: &[&str]| {
        let args = ["engine", "prove", circuit, "input.json", "-o", "p.json"];
        run(here, args.iter().chain(more))
    };
    let json = prove("circuit", &[]).failed(1, "JSON, where a witness (.wtns) is expected");
    assert!(
        json.stderr.contains("--generator") && json.stderr.contains("there is mul"),
        "{json:?}"
    );
    assert!(!json.stderr.contains("12345"), "{json:?}");
    prove("absent", &["--generator", "mul"]).failed(1, "no circuit absent is registered");
    prove("absent", &["--generator", "mul"]).failed(1, "there is circuit");
    prove("circuit", &["--generator", "sub"]).failed(1, "there is mul");
    let too_much =
        prove("circuit", &["--generator", "mul"]).failed(1, "of memory and the budget is");
    assert!(
        too_much
            .stderr
            .contains("1024.0 MiB for its generator (--generator-memory)"),
        "{too_much:?}"
    );
    run(here, ["engine", "preload", "absent"]).failed(1, "there is circuit");
    engine.signal(Signal::TERM);
    engine.end().1.succeeded();
    let preload = ["engine", "serve", "--preload", "absent"];
    run(here, preload).failed(1, "there is circuit");
}

#[test]
fn a_timeline_states_the_origin_of_its_last_seconds() {
    let folder = folder();
    let here = folder.path();
    fixtures(here);
    let engine = serve(here, &[]);
    let prove = ["engine", "prove", "circuit", "witness.wtns", "-o", "p.json"];
    run(here, prove).succeeded();
    let timeline = ["engine", "timeline", "--svg", "w.svg", "--last", "60"];
    let told = run(here, timeline).succeeded().stdout;
    assert!(
        told.contains("--last 60 counts from the last event; the last event was"),
        "{told}"
    );
    let svg = fs::read_to_string(here.join("w.svg")).expect("written");
    assert!(
        svg.contains("<title>Proving engine: 1 partition over"),
        "{svg}"
    );
    assert!(svg.contains(">seconds</text>"), "{svg}");
    engine.signal(Signal::TERM);
    engine.end().1.succeeded();
}
