//! `proofmill engine`, and `proofmill prove` through it, with the fixtures of the prover's tests.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::Signal;
use serde_json::Value;

use crate::operate::get_as;
use crate::support::{Finished, Running, eventually, files, folder, proofmill, repository, run};

/// A circuit's key and a witness, as files in `folder`.
pub(crate) fn fixtures(folder: &Path) {
    let from = repository("crates/groth16/tests/fixtures/bn254");
    std::fs::create_dir(folder.join("keys")).expect("made");
    for (name, to) in FIXTURES {
        std::fs::copy(from.join(name), folder.join(to)).expect("copied");
    }
}

const FIXTURES: [(&str, &str); 3] = [
    ("circuit.zkey", "keys/circuit.zkey"),
    ("witness.wtns", "witness.wtns"),
    ("verification_key.json", "vk.json"),
];

/// An engine in `folder` that has its circuits.
pub(crate) fn serve(folder: &Path, more: &[&str]) -> Running {
    let args = ["engine", "serve", "--circuits", "keys", "--budget", "1GiB"];
    let engine = Running::start(proofmill(folder).args(args).args(more));
    engine.line("the engine answers on");
    engine
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let args = args.iter().chain(&["--json"]);
    run(folder, args).succeeded().json()
}

fn ended(engine: Running) -> Finished {
    engine.signal(Signal::TERM);
    engine.end().1.succeeded()
}

#[test]
fn a_workflow_has_its_tasks_proved_by_an_engine() {
    let folder = folder();
    let here = folder.path();
    fixtures(here);
    let example = here.join("examples/engines");
    std::fs::create_dir_all(&example).expect("made");
    let file = example.join("workflow.toml");
    let from = repository("examples/engines/workflow.toml");
    std::fs::copy(from, &file).expect("copied");
    let graph = run(
        here,
        [
            "check",
            "examples/engines/workflow.toml",
            "--graph",
            "mermaid",
        ],
    );
    let graph = graph.succeeded().stdout;
    assert!(graph.contains("engine: multiplier"), "{graph}");

    let mill = Running::start(proofmill(here).arg("run").arg(&file));
    let witness = std::fs::read(here.join("witness.wtns")).expect("a witness");
    let payload = serde_json::to_vec(&STANDARD.encode(witness)).expect("JSON");
    std::fs::write(here.join("witness.json"), payload).expect("written");
    let state = here.join(".proofmill/engines");
    let status = ["status", "--state", ".proofmill/engines"];
    eventually("the mill answers", || {
        let answer = run(here, status).stdout;
        answer.contains(": running").then_some(())
    });
    let submit = ["submit", "--state", ".proofmill/engines"];
    let of = ["--queue", "witnesses", "--block", "0", "witness.json"];
    run(here, submit.iter().chain(&of)).succeeded();
    // Only now: the task waits for an engine.
    let engine = Running::start(proofmill(here).args([
        "engine",
        "serve",
        "--circuits",
        "multiplier=keys/circuit.zkey",
    ]));
    let proofs = state.join("proofs");
    let proved = eventually("a proof has left", || {
        let last = files(&proofs).pop();
        last.filter(|(name, _)| name.ends_with(".json"))
    });
    let proved: Value = serde_json::from_slice(&proved.1).expect("JSON");
    assert_eq!(proved["curve"], "bn254", "{proved}");
    for (field, name) in [("proof", "proof.json"), ("public", "public.json")] {
        std::fs::write(here.join(name), proved[field].to_string()).expect("written");
    }
    let verify = ["verify", "--vk", "vk.json", "proof.json", "public.json"];
    run(here, verify).succeeded();
    let jobs = json(here, &["engine", "jobs"]);
    assert!(jobs.to_string().contains("prove/0-"), "{jobs}");
    mill.signal(Signal::TERM);
    mill.end();
    ended(engine);
}

#[test]
fn an_engine_proves_and_shows_its_jobs() {
    let folder = folder();
    let here = folder.path();
    fixtures(here);
    let engine = serve(here, &["--http", "127.0.0.1:0", "--preload", "circuit"]);
    let socket = std::fs::metadata(here.join(".proofmill/engine/engine.sock")).expect("there");
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    let circuits = json(here, &["engine", "circuits"]);
    assert_eq!(circuits[0]["name"], "circuit");

    let prove = [
        "engine",
        "prove",
        "circuit",
        "witness.wtns",
        "-o",
        "proof.json",
    ];
    let prove: Vec<&str> = prove
        .into_iter()
        .chain(["--public", "public.json"])
        .collect();
    let made = json(here, &prove);
    assert_eq!(made["existing"], false);
    run(
        here,
        ["verify", "--vk", "vk.json", "proof.json", "public.json"],
    )
    .succeeded();

    // `prove` finds the engine, and insists on it when told to.
    let files = ["keys/circuit.zkey", "witness.wtns", "p.json", "u.json"];
    let found = json(here, &[&["prove"], &files[..]].concat());
    assert!(found["engine_job"].is_string(), "{found}");
    run(here, ["verify", "--vk", "vk.json", "p.json", "u.json"]).succeeded();
    let alone = json(here, &[&["prove", "--engine", "off"], &files[..]].concat());
    assert!(alone["engine_job"].is_null(), "{alone}");
    let address = "unix:.proofmill/engine/engine.sock";
    let insists = json(
        here,
        &[&["prove", "--engine", address], &files[..]].concat(),
    );
    assert!(insists["engine_job"].is_string(), "{insists}");

    let jobs = json(here, &["engine", "jobs"]);
    assert_eq!(jobs.as_array().map(Vec::len), Some(3));
    assert_eq!(json(here, &["engine", "status"])["counts"]["done"], 3);
    let frame = run(here, ["engine", "top", "--once"]).succeeded().stdout;
    for expected in ["3 done", "circuit", "prove", "memory"] {
        assert!(frame.contains(expected), "no {expected:?} in {frame}");
    }
    let timeline = [
        "engine",
        "timeline",
        "--out",
        "trace.json",
        "--svg",
        "w.svg",
    ];
    run(here, timeline).succeeded();
    let svg = std::fs::read_to_string(here.join("w.svg")).expect("written");
    assert!(svg.ends_with("</svg>\n"), "{svg}");
    let trace = std::fs::read(here.join("trace.json")).expect("written");
    let trace: Value = serde_json::from_slice(&trace).expect("JSON");
    assert!(trace["traceEvents"].is_array());
    ended(engine);
    run(here, ["engine", "status"]).failed(1, "no engine answers");
}

#[test]
fn requests_to_an_engine_by_an_unknown_host_name_are_refused() {
    let folder = folder();
    let here = folder.path();
    fixtures(here);
    let args = [
        "engine",
        "serve",
        "--circuits",
        "keys",
        "--http",
        "127.0.0.1:0",
    ];
    let engine = Running::start(proofmill(here).args(args));
    let line = engine.line("the engine answers on");
    let address = line.split("http://").nth(1).expect("an address").trim();
    for path in ["/status", "/timeline", "/metrics", "/healthz"] {
        for headers in ["host: evil.example", "host: localhost\r\norigin: null"] {
            let refused = get_as(address, path, headers);
            assert!(refused.starts_with("HTTP/1.1 403 "), "{path}: {refused}");
        }
        let told = get_as(address, path, "host: localhost");
        assert!(told.starts_with("HTTP/1.1 200 "), "{path}: {told}");
    }
    ended(engine);
}

#[test]
fn circuits_are_changed_and_refusals_give_advice() {
    let folder = folder();
    let here = folder.path();
    fixtures(here);
    let engine = serve(here, &[]);
    let register = ["engine", "register", "again", "--zkey"];
    let other = repository("crates/groth16/tests/fixtures/bls12_381/circuit.zkey");
    let other = other.to_str().expect("text");
    run(here, register.into_iter().chain([other])).succeeded();
    let taken = register.into_iter().chain(["keys/circuit.zkey"]);
    run(here, taken).failed(1, "is taken by another circuit");
    let same = ["engine", "register", "third", "--zkey", "keys/circuit.zkey"];
    run(here, same).failed(1, "as \"circuit\"");
    run(here, ["engine", "preload", "circuit"]).succeeded();
    run(here, ["engine", "pin", "circuit"]).succeeded();
    run(here, ["engine", "evict", "circuit"]).failed(1, "pinned");
    run(here, ["engine", "unpin", "circuit"]).succeeded();
    assert!(json(here, &["engine", "evict", "circuit"])["bytes"].as_u64() > Some(0));
    run(here, ["engine", "unregister", "again"]).succeeded();
    let nobody = "00".repeat(16);
    run(here, ["engine", "cancel", &nobody]).failed(1, "never submitted");
    let wrong = [
        "engine",
        "prove",
        "absent",
        "witness.wtns",
        "-o",
        "proof.json",
    ];
    run(here, wrong).failed(1, "absent");
    for (no_witness, why) in [
        ("vk.json", "JSON, where a witness"),
        ("keys/circuit.zkey", "another kind of file"),
    ] {
        let prove = ["engine", "prove", "circuit", no_witness, "-o", "proof.json"];
        run(here, prove).failed(1, why);
    }
    assert!(!here.join("proof.json").exists());
    let second = ["engine", "serve", "--state", "other", "--socket"];
    let second = second.into_iter().chain([".proofmill/engine/engine.sock"]);
    run(here, second).failed(1, "listens");
    ended(engine);
    let exposed = ["engine", "serve", "--listen", "0.0.0.0:0"];
    run(here, exposed).failed(1, "can be reached from other machines");
    run(here, ["engine", "serve", "--circuits", "absent"]).failed(1, "absent");
    run(here, ["engine", "serve", "--budget", "lots"]).failed(2, "8GiB");
    run(here, ["engine", "status", "--engine", "nowhere"]).failed(2, "unix:PATH");
}
