//! `proofmill partition`: circuits in parts from files alone, each command a process of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proofmill_nats_server::NatsServer;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Finished, Running, eventually, finish, folder, proofmill, run};

const PROVE: [&str; 9] = [
    "partition",
    "prove",
    "keys",
    "--witness",
    "witness",
    "--proof",
    "proof",
    "--public",
    "public.json",
];
pub(crate) const VERIFY: [&str; 7] = [
    "partition",
    "verify",
    "--key",
    "keys/verifying.key",
    "--public",
    "public.json",
    "proof",
];

fn setup(here: &Path, circuit: &[&str]) -> Finished {
    let args = ["partition", "setup"].iter().chain(circuit);
    run(here, args.chain(&["-o", "keys", "--json"])).succeeded()
}

/// Keys for so many parts, each of a few squarings, and a witness.
pub(crate) fn squarings(here: &Path, parts: usize) {
    let parts = parts.to_string();
    setup(here, &["squarings", "--parts", &parts, "--squarings", "2"]);
    fs::write(here.join("witness"), [7; 32]).expect("written");
}

#[test]
fn an_interrupted_setup_leaves_nothing() {
    let folder = folder();
    let here = folder.path();
    // These keys take half a minute.
    let circuit = ["squarings", "--parts", "2", "--squarings", "300000"];
    let setup = ["partition", "setup"].iter().chain(&circuit);
    let running = Running::start(proofmill(here).args(setup).args(["-o", "keys"]));
    let entries = || fs::read_dir(here).expect("a folder").count();
    eventually("its folder", || (entries() > 0).then_some(()));
    running.signal(Signal::INT);
    let (status, ran) = running.end();
    assert_eq!(status.code(), Some(130), "{ran:?}");
    assert!(ran.stderr.contains("keys are removed"), "{ran:?}");
    assert_eq!(entries(), 0);
}

/// Bytes that begin a journal, and those of a commitment's and a proof's record, over BN254.
const HEAD: usize = 128;
const COMMITMENT: usize = 53;
const PROOF: usize = 149;

/// The commitments and proofs in a journal.
fn records(here: &Path, parts: usize) -> (usize, usize) {
    let length = fs::metadata(here.join("proof.journal")).map_or(0, |file| file.len() as usize);
    let records = length.saturating_sub(HEAD);
    let commitments = (records / COMMITMENT).min(parts);
    let proofs = records.saturating_sub(parts * COMMITMENT) / PROOF;
    (commitments, proofs)
}

#[test]
fn any_number_of_parts_is_proved_and_verified_from_files() {
    for parts in [1, 2, 3, 7, 33] {
        let folder = folder();
        let here = folder.path();
        squarings(here, parts);
        let proved = run(here, PROVE.iter().chain(&["--json"])).succeeded();
        assert_eq!(proved.json()["parts"], parts);
        assert!(!here.join("proof.journal").exists(), "removed at the end");
        // What the verifier needs is elsewhere.
        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir_all(elsewhere.join("keys")).expect("made");
        for name in ["keys/verifying.key", "public.json", "proof"] {
            fs::copy(here.join(name), elsewhere.join(name)).expect("copied");
        }
        let verified = run(&elsewhere, VERIFY.iter().chain(&["--json"])).succeeded();
        assert_eq!(verified.json()["valid"], true, "{parts} parts");
    }
}

#[test]
fn a_tree_is_proved_over_either_curve() {
    for curve in ["bn254", "bls12-381"] {
        let folder = folder();
        let here = folder.path();
        let tree = [
            "merkle-tree",
            "--levels",
            "1",
            "--portals",
            "3",
            "--curve",
            curve,
        ];
        let made = setup(here, &tree).json();
        assert_eq!((&made["parts"], &made["classes"]), (&4.into(), &4.into()));
        fs::write(here.join("witness"), [9; 128]).expect("written");
        run(here, PROVE).succeeded();
        run(here, VERIFY).succeeded();
        let info = run(here, ["partition", "info", "keys", "--no-times", "--json"])
            .succeeded()
            .json();
        for class in info["classes"].as_array().expect("classes") {
            let cost = class["constraints_an_access"].as_u64().expect("a number");
            // One more where a portal is set.
            assert!(cost < 13, "{class}");
        }
        let size = fs::metadata(here.join("proof")).expect("a proof").len();
        assert_eq!(info["verifying_key"]["proof_bytes"], size);
        assert_eq!(info["verifying_key"]["digest"], made["digest"]);
        for path in ["keys", "keys/verifying.key", "proof"] {
            let told = run(here, ["partition", "info", path, "--no-times"]).succeeded();
            assert!(told.stdout.contains(curve), "{told:?}");
        }
    }
}

/// Killed twice on the way, and stopped once with Ctrl-C: no part is committed to or proved twice. There are many
/// parts, so that a kill comes before the end even where this test waits long for its turn of the processor.
#[test]
fn a_killed_prover_goes_on_where_it_was() {
    let parts = 100;
    let folder = folder();
    let here = folder.path();
    squarings(here, parts);
    let until = |begun: (usize, usize), signal: Signal| {
        let running = Running::start(proofmill(here).args(PROVE));
        eventually("some records", || {
            (records(here, parts) >= begun).then_some(())
        });
        match signal {
            Signal::KILL => drop(running.kill()),
            signal => {
                running.signal(signal);
                let (status, ran) = running.end();
                assert_eq!(status.code(), Some(130), "{ran:?}");
                assert!(ran.stderr.contains("run the same command again"), "{ran:?}");
            }
        }
        records(here, parts)
    };
    // All may be committed to when the kill comes: then it is proved from the beginning again.
    let mut begun = (0..5).map(|_| {
        // There is none at first.
        let _ = fs::remove_file(here.join("proof.journal"));
        until((5, 0), Signal::KILL).0
    });
    let in_the_middle = 5..parts;
    assert!(
        begun.any(|commitments| in_the_middle.contains(&commitments)),
        "each time all was committed to"
    );
    let second = until((parts, 3), Signal::KILL);
    let third = until((parts, second.1 + 3), Signal::INT);
    assert!(third.1 < parts, "it was not done yet");
    // Every record is of another part: twice the same would be more records than parts in the end.
    let went_on = run(here, PROVE.iter().chain(&["--json"])).succeeded();
    let resumed = &went_on.json()["resumed"];
    assert_eq!(resumed["commitments"], parts);
    assert_eq!(resumed["proofs"], third.1);
    run(here, VERIFY).succeeded();
}

/// Times are estimates, of which the relations are tested.
#[test]
fn info_tells_portals_and_times_on_cores() {
    let folder = folder();
    let here = folder.path();
    let size = ["--parts", "20", "--squarings", "50", "--portals", "4"];
    setup(here, &[&["squarings"], &size[..]].concat());
    let info = ["partition", "info", "keys"];
    let told = run(
        here,
        info.iter().chain(&["--cores", "1,2,20,1000", "--json"]),
    )
    .succeeded()
    .json();
    // Each of four lanes crosses 19 borders, is set before and read after; the last part reads the sum.
    let portals = &told["portals"];
    assert_eq!(portals["wires"], 19 * 4);
    assert_eq!(portals["accesses"], 19 * 8 + 1);
    assert_eq!(portals["accesses_of_a_part_least"], 4);
    assert_eq!(portals["accesses_of_a_part_most"], 8);
    assert_eq!(portals["transfers_of_a_part_most"], 0);
    let times = &told["times"];
    let basis = times["basis"].as_str().expect("a basis");
    assert!(basis.starts_with("estimated"), "{basis}");
    let seconds = |of: &Value, name: &str| of[name].as_f64().expect("seconds");
    let path = &times["critical_path"];
    let steps = [
        "keys_s",
        "trace_s",
        "commit_s",
        "challenge_s",
        "prove_s",
        "aggregate_s",
    ];
    let sum: f64 = steps.iter().map(|step| seconds(path, step)).sum();
    assert!((sum - seconds(path, "total_s")).abs() < 1e-4, "{path}");
    let on_cores = times["on_cores"].as_array().expect("a list");
    let cores: Vec<&Value> = on_cores.iter().map(|of| &of["cores"]).collect();
    assert_eq!(cores, [1, 2, 20, 1000]);
    let proofs: Vec<f64> = on_cores.iter().map(|of| seconds(of, "prove_s")).collect();
    assert!(proofs[0] > proofs[1] && proofs[1] > proofs[2], "{times}");
    for step in steps {
        assert_eq!(on_cores[3][step], path[step], "{step}");
        assert_eq!(on_cores[2][step], path[step], "{step}");
    }

    let told = run(here, info).succeeded();
    for beginning in ["portals ", "critical path ", "on 1 core ", "on 1024 cores "] {
        let found = told.stdout.lines().any(|line| line.starts_with(beginning));
        assert!(found, "{beginning}: {told:?}");
    }
    let told = run(here, info.iter().chain(&["--no-times"])).succeeded();
    assert!(!told.stdout.contains("critical path"), "{told:?}");
    run(here, info.iter().chain(&["--cores", "0"])).failed(2, "from 1 to");
}

/// The bound is for all of the process's memory, and too little is refused before there is a journal. The form is the
/// fastest that fits; keys are prepared where a class has parts enough.
#[test]
fn memory_is_bounded() {
    let (few, many) = (folder(), folder());
    // A large key, whose forms differ by more than the program itself from run to run, and one that is soon prepared.
    for (folder, parts, squarings) in [(&few, "6", "2000"), (&many, "24", "200")] {
        let size = ["--parts", parts, "--squarings", squarings, "--portals", "8"];
        setup(folder.path(), &[&["squarings"], &size[..]].concat());
        fs::write(folder.path().join("witness"), [7; 8 * 32]).expect("written");
    }
    let here = few.path();
    let info = run(here, ["partition", "info", "keys", "--no-times", "--json"])
        .succeeded()
        .json();
    let of = |name: &str| info["memory"][name].as_u64().expect("bytes");
    // Pages of the program itself are not as many in each run.
    let margin = 3 << 20;
    assert!(
        of("mapped_bytes") + 2 * margin < of("plain_bytes"),
        "{info}"
    );
    let made = run(here, PROVE.iter().chain(&["--json"]))
        .succeeded()
        .json();
    assert_eq!(made["memory"]["keys"], "plain", "{made}");
    let own = made["memory"]["expected_bytes"].as_u64().expect("bytes") - of("plain_bytes");
    let with = |here: &Path, memory: u64| {
        let memory = format!("{memory}B");
        run(here, PROVE.iter().chain(&["--json", "--memory", &memory]))
    };
    for (memory, why) in [
        (1, "alone take"),
        (own + of("mapped_bytes") - margin, "at least"),
    ] {
        let told = with(here, memory).failed(1, why);
        assert!(told.stderr.contains("give it more memory"), "{told:?}");
        assert!(!here.join("proof.journal").exists());
    }
    for (here, memory, keys) in [
        (here, own + of("mapped_bytes") + margin, "mapped"),
        (here, own + of("plain_bytes") + margin, "plain"),
        (many.path(), 1 << 30, "prepared"),
    ] {
        let made = with(here, memory).succeeded().json();
        assert_eq!(made["memory"]["keys"], keys, "{made}");
        let of = |name: &str| made["memory"][name].as_u64().expect("bytes");
        assert!(of("expected_bytes") <= memory, "{made}");
        assert!(of("peak_bytes") <= memory, "{made}");
        run(here, VERIFY).succeeded();
    }
}

/// `proofmill verify` finds them among others, with the public inputs in JSON or in bytes.
#[test]
fn proofs_are_found_in_folders_and_by_their_path() {
    for curve in ["bn254", "bls12-381"] {
        let folder = folder();
        let here = folder.path();
        setup(here, &["squarings", "--parts", "3", "--curve", curve]);
        fs::write(here.join("witness"), [7; 32]).expect("written");
        run(here, PROVE).succeeded();
        let all = here.join("all");
        fs::create_dir(&all).expect("made");
        fs::copy(here.join("keys/verifying.key"), all.join("verifying.key")).expect("copied");
        // The same proof under the names that a statement may have.
        let names = [
            ("proof", "public.json"),
            ("a.proof", "a.json"),
            ("b.proof", "b.public.json"),
        ];
        for (proof, public) in names {
            fs::copy(here.join("proof"), all.join(proof)).expect("copied");
            fs::copy(here.join("public.json"), all.join(public)).expect("copied");
        }
        let ran = run(here, ["verify", "all"]).succeeded();
        assert!(ran.stdout.starts_with("3 proofs: 3 valid"), "{ran:?}");
        let ran = run(here, ["verify", "all/a.proof", "--json"]).succeeded();
        let first: Value =
            serde_json::from_str(ran.stdout.lines().next().expect("a line")).expect("JSON");
        assert_eq!(first["kind"], format!("partition-{curve}"));
        assert_eq!(first["statement"], "all/a.json");
        assert_eq!(first["key"], "all/verifying.key");
        let named = [
            "verify",
            "proof",
            "--key",
            "keys/verifying.key",
            "--inputs",
            "public.json",
        ];
        run(here, named).succeeded();
        let told = run(here, ["verify", "proof"]).failed(3, "no verdict");
        assert!(
            told.stdout.contains("no verifying.key beside it"),
            "{told:?}"
        );

        // In bytes, of which the first is the number's lowest.
        fs::remove_file(all.join("a.json")).expect("removed");
        let mut bytes = [0; 32];
        bytes[0] = 1;
        fs::write(all.join("a.public"), bytes).expect("written");
        let said = run(here, ["verify", "all"]).failed(1, "1 of 3 proofs is not valid");
        assert!(
            said.stdout.starts_with("INVALID  all/a.proof: "),
            "{said:?}"
        );
        fs::write(all.join("b.public.json"), "[\"1\"]").expect("written");
        run(here, ["verify", "all"]).failed(1, "2 of 3 proofs are not valid");
        // What is no list of numbers is nobody's statement.
        fs::write(all.join("b.public.json"), "[\"1\"").expect("written");
        let told = run(here, ["verify", "all/b.proof"]).failed(3, "no verdict");
        assert!(told.stdout.contains("cut short"), "{told:?}");
    }
}

#[test]
fn changed_proofs_and_statements_are_refused() {
    let folder = folder();
    let here = folder.path();
    squarings(here, 3);
    run(here, PROVE).succeeded();
    let public = fs::read_to_string(here.join("public.json")).expect("read");
    let mut inputs: Vec<String> = serde_json::from_str(&public).expect("JSON");
    inputs[0] = "1".to_owned();
    fs::write(here.join("public.json"), Value::from(inputs).to_string()).expect("written");
    run(here, VERIFY).failed(1, "not valid");
    let refused = run(here, VERIFY.iter().chain(&["--json"]));
    assert_eq!(refused.json()["valid"], false);
    fs::write(here.join("public.json"), "[]").expect("written");
    run(here, VERIFY).failed(1, "0 public inputs");
    fs::write(here.join("public.json"), &public).expect("written");
    run(here, VERIFY).succeeded();

    for name in ["proof", "keys/verifying.key"] {
        let path = here.join(name);
        let whole = fs::read(&path).expect("read");
        let mut changed = whole.clone();
        changed[100] ^= 1;
        for bytes in [&changed[..], &whole[..60], &[]] {
            fs::write(&path, bytes).expect("written");
            let args = VERIFY;
            let refused = run(here, args);
            assert_eq!(refused.code, Some(3), "{name}: {refused:?}");
        }
        fs::write(&path, &whole).expect("written");
    }
    run(here, VERIFY).succeeded();

    // Keys of two setups do not go together.
    let other = crate::support::folder();
    squarings(other.path(), 3);
    for name in ["class-1.pk", "class-1.vk", "string.srs", "verifying.key"] {
        let path = here.join("keys").join(name);
        let own = fs::read(&path).expect("read");
        fs::copy(other.path().join("keys").join(name), &path).expect("copied");
        let refused = run(here, PROVE);
        assert_eq!(refused.code, Some(1), "{name}: {refused:?}");
        assert!(!refused.stderr.contains("panicked"), "{refused:?}");
        fs::write(&path, own).expect("written");
        let _ = fs::remove_file(here.join("proof.journal"));
    }
    run(here, PROVE).succeeded();
}

#[test]
fn mistakes_are_explained() {
    let folder = folder();
    let here = folder.path();
    squarings(here, 2);
    let again = [
        "partition",
        "setup",
        "squarings",
        "--parts",
        "2",
        "-o",
        "keys",
    ];
    run(here, again).failed(2, "keys already exists");
    fs::write(here.join("witness"), [7; 31]).expect("written");
    run(here, PROVE).failed(1, "31 bytes, where the keys are for 1 values of 32 bytes");
    fs::create_dir(here.join("empty")).expect("made");
    run(here, ["partition", "info", "empty"]).failed(1, "circuit.json");
    run(here, ["partition", "info", "witness"]).failed(1, "witness");
    // A journal of another witness.
    fs::write(here.join("witness"), [7; 32]).expect("written");
    fs::write(here.join("proof.journal"), "something else").expect("written");
    run(here, PROVE).failed(1, "not a journal of a partitioned proof");
    assert_eq!(
        fs::read(here.join("proof.journal")).expect("read"),
        b"something else"
    );
}

/// Writes a workflow for the proof of so many parts.
pub(crate) fn workflow(here: &Path) -> Finished {
    run(here, PROVE.iter().chain(&["--workflow", "parts.toml"])).succeeded()
}

#[test]
fn a_workflow_proves_the_parts_on_this_machine() {
    let folder = folder();
    let here = folder.path();
    squarings(here, 7);
    workflow(here);
    let mode = fs::metadata(here.join("parts.toml.job")).expect("a job");
    assert_eq!(mode.permissions().mode() & 0o077, 0, "the seed is secret");
    run(here, ["check", "parts.toml"]).succeeded();
    run(here, ["run", "parts.toml"]).succeeded();
    run(here, VERIFY).succeeded();
    // The job goes on with the same keys only.
    fs::remove_dir_all(here.join("keys")).expect("removed");
    setup(here, &["squarings", "--parts", "8", "--squarings", "2"]);
    fs::remove_dir_all(here.join(".proofmill")).expect("removed");
    run(here, ["run", "parts.toml"]).failed(1, "8 tasks are in the dead-letter queue");
    let dead = run(here, ["dlq", "list"]).succeeded();
    assert!(dead.stdout.contains("the workflow of"), "{dead:?}");
}

/// Every part is proved by an engine, whose proofs become those of commitments that the engine knows nothing of.
#[test]
fn an_engine_proves_the_parts() {
    let folder = folder();
    let here = folder.path();
    let parts = 7;
    squarings(here, parts);
    let engine = Running::start(proofmill(here).args(["engine", "serve", "--budget", "1GiB"]));
    engine.line("the engine answers on");
    let registered = run(here, ["partition", "register", "keys", "--json"]).succeeded();
    let circuits = registered.json()["circuits"].clone();
    let first = circuits[0].as_str().expect("a circuit");
    assert!(first.starts_with("part-"), "{first}");
    let at = [
        "--workflow",
        "parts.toml",
        "--at",
        "unix:.proofmill/engine/engine.sock",
    ];
    run(here, PROVE.iter().chain(&at)).succeeded();
    run(here, ["check", "parts.toml"]).succeeded();
    run(here, ["run", "parts.toml"]).succeeded();
    run(here, VERIFY).succeeded();
    let listed = run(here, ["engine", "circuits", "--json"])
        .succeeded()
        .json();
    let made = listed.as_array().expect("a list").iter();
    let made = made.map(|circuit| circuit["proofs"].as_u64().expect("a number"));
    assert_eq!(made.sum::<u64>(), parts as u64, "{listed}");
    drop(engine);
}

#[test]
fn a_workflow_has_more_parts_than_a_group() {
    let folder = folder();
    let here = folder.path();
    squarings(here, 483);
    workflow(here);
    run(here, ["check", "parts.toml"]).succeeded();
    // What it is for 483 parts, made for as many as are proved in seconds.
    let text = fs::read_to_string(here.join("parts.toml")).expect("a workflow");
    let digests = |text: &str| {
        let of = |name: &str| {
            let after = text.split_once(&format!("{name} = \"")).expect("named").1;
            after.split_once('"').expect("ended").0.to_owned()
        };
        ["partition", "published"].map(of)
    };
    let many = digests(&text);
    for name in ["keys", "parts.toml", "parts.toml.job"] {
        let path = here.join(name);
        let removed = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        removed.expect("removed");
    }
    squarings(here, 7);
    workflow(here);
    let few = fs::read_to_string(here.join("parts.toml")).expect("a workflow");
    let mut text = text.replace("parts = 483, batch = 242", "parts = 7, batch = 3");
    text = text.replace("batches = 2 }", "batches = 3 }");
    for (many, few) in many.iter().zip(digests(&few)) {
        text = text.replace(many, &few);
    }
    fs::write(here.join("parts.toml"), text).expect("written");
    run(here, ["check", "parts.toml"]).succeeded();
    run(here, ["run", "parts.toml"]).succeeded();
    run(here, VERIFY).succeeded();
}

/// Neither the worker nor the coordinator has the keys; both fetch what they need from the bus, once.
#[test]
fn keys_are_fetched_from_the_bus() {
    let server = NatsServer::start();
    let folder = folder();
    let here = folder.path();
    squarings(here, 7);
    workflow(here);
    let text = fs::read_to_string(here.join("parts.toml")).expect("a workflow");
    let keys = here.join("keys").display().to_string();
    let far = text.replace(&keys, "/absent/keys");
    assert_ne!(text, far);
    fs::write(here.join("parts.toml"), far).expect("written");
    let on_bus = |args: &[&str]| {
        let mut command = proofmill(here);
        command.env("PROOFMILL_BUS", server.url()).args(args);
        command
    };
    let start = |args: &[&str]| Running::start(&mut on_bus(args));
    let _coordinator = start(&["coordinator", "parts.toml", "--keys", "coordinator"]);
    // The coordinator makes the store.
    let published = eventually("a store for the keys", || {
        let publish = ["partition", "publish", "keys", "--json"];
        let told = finish(&mut on_bus(&publish));
        (told.code == Some(0)).then(|| told.json())
    });
    let digest = published["published"]
        .as_str()
        .expect("a digest")
        .to_owned();
    assert!(text.contains(&digest), "the workflow names {digest}");
    let dispatcher = ["dispatcher", "parts.toml"];
    let trusted = ["trace", "challenge", "aggregate"];
    let stages = trusted.iter().flat_map(|stage| ["--stage", stage]);
    let _trusted = start(&dispatcher.into_iter().chain(stages).collect::<Vec<_>>());
    let worker = ["--stage", "commit", "--stage", "prove", "--keys", "worker"];
    let _worker = start(&[&dispatcher[..], &worker].concat());
    let _source = start(&["source", "parts.toml"]);
    let _sequencer = start(&["sequencer", "parts.toml"]);
    eventually("the proof", || here.join("proof").exists().then_some(()));
    run(here, VERIFY).succeeded();
    let has = |owner: &str, name: &str| {
        let path = here.join(owner).join("published").join(&digest);
        path.join(name).exists()
    };
    assert!(has("worker", "class-0.pk") && has("coordinator", "class-0.vk"));
    assert!(!has("worker", "string.srs"), "workers aggregate nothing");
    finish(&mut on_bus(&["partition", "publish", "keys", "--remove"])).succeeded();
    let again = finish(&mut on_bus(&["partition", "publish", "keys", "--remove"]));
    again.succeeded();
}

/// Three workers make two shards of the aggregation, one of them killed before; the proof is the one that verifies.
#[test]
fn workers_make_the_aggregation_in_shards() {
    // Workers that wait for their turn of the processor may answer later than the leader looks for them.
    assert!(
        (0..2).any(|_| is_aggregated_in_shards()),
        "no workers are found"
    );
}

/// Returns whether the leader found workers for the aggregation. In either case the proof is valid.
fn is_aggregated_in_shards() -> bool {
    let server = NatsServer::start();
    let folder = folder();
    let here = folder.path();
    squarings(here, 9);
    for wrong in ["1", "3", "2048"] {
        let shards = ["--workflow", "parts.toml", "--shards", wrong];
        run(here, PROVE.iter().chain(&shards)).failed(2, "a power of two from 2 to 1024");
    }
    let shards = ["--workflow", "parts.toml", "--shards", "4"];
    run(here, PROVE.iter().chain(&shards)).succeeded();
    run(here, ["check", "parts.toml"]).succeeded();
    let start = |args: &[&str]| {
        let mut command = proofmill(here);
        command.env("PROOFMILL_BUS", server.url());
        Running::start(command.env("PROOFMILL_LOG", "info").args(args))
    };
    let _coordinator = start(&["coordinator", "parts.toml"]);
    let trusted = ["trace", "challenge", "aggregate"];
    let stages = trusted.iter().flat_map(|stage| ["--stage", stage]);
    let dispatcher = ["dispatcher", "parts.toml"];
    let leader = start(&dispatcher.into_iter().chain(stages).collect::<Vec<_>>());
    let worker = ["--stage", "commit", "--stage", "prove"];
    let worker = [&dispatcher[..], &worker].concat();
    let workers = [start(&worker), start(&worker), start(&worker)];
    for worker in &workers {
        worker.line("ready");
    }
    let [killed, _second, _third] = workers;
    killed.kill();
    let _source = start(&["source", "parts.toml"]);
    let _sequencer = start(&["sequencer", "parts.toml"]);
    let by_workers = eventually("the aggregate", || {
        let lines = leader.stderr();
        let says = |what: &str| lines.iter().any(|line| line.contains(what));
        let alone = says("there are no two workers for the aggregation");
        (alone || says("workers made the aggregate")).then_some(!alone)
    });
    eventually("the proof", || here.join("proof").exists().then_some(()));
    run(here, VERIFY).succeeded();
    if !by_workers {
        return false;
    }
    // On one machine, without a bus, one process makes it.
    fs::remove_file(here.join("proof")).expect("removed");
    run(here, ["run", "parts.toml", "--state", "alone"]).succeeded();
    run(here, VERIFY).succeeded();
    true
}

/// Four workers on a server of their own: one is killed and one is stopped on the way, and so is the coordinator. The
/// proof is valid, and no finished part is committed to or proved twice.
#[test]
fn a_workflow_survives_its_workers_and_its_coordinator() {
    let server = NatsServer::start();
    let folder = folder();
    let here = folder.path();
    let parts = 65;
    squarings(here, parts);
    workflow(here);
    let start = |args: &[&str]| {
        let mut command = proofmill(here);
        command.env("PROOFMILL_BUS", server.url());
        Running::start(command.args(args))
    };
    let status = || {
        let mut command = proofmill(here);
        command.env("PROOFMILL_BUS", server.url());
        let told = finish(command.args(["status", "--workflow", "partition", "--json"]));
        (told.code == Some(0)).then(|| told.json())
    };
    let counter = |stage: &str, name: &str| {
        let status = status()?;
        let stages = status["stages"].as_array()?.clone();
        let found = stages.into_iter().find(|of| of["stage"] == stage)?;
        found["counters"][name].as_u64()
    };
    let completed = |stage: &str| counter(stage, "completed");
    let coordinator = start(&["coordinator", "parts.toml"]);
    let trusted = ["trace", "challenge", "aggregate"];
    let trusted: Vec<&str> = trusted
        .iter()
        .flat_map(|stage| ["--stage", stage])
        .collect();
    let _own = start(&[&["dispatcher", "parts.toml"][..], &trusted].concat());
    let _source = start(&["source", "parts.toml"]);
    let _sequencer = start(&["sequencer", "parts.toml"]);
    let worker = [
        "dispatcher",
        "parts.toml",
        "--stage",
        "commit",
        "--stage",
        "prove",
    ];
    let workers: [Running; 4] = std::array::from_fn(|_| start(&worker));
    eventually("some commitments", || {
        (completed("commit")? > parts as u64 / 4).then_some(())
    });
    let [killed, stopped, third, fourth] = workers;
    killed.kill();
    stopped.signal(Signal::STOP);
    eventually("some proofs", || (completed("prove")? > 5).then_some(()));
    coordinator.kill();
    let _successor = start(&["coordinator", "parts.toml"]);
    eventually("the proof", || here.join("proof").exists().then_some(()));
    run(here, VERIFY).succeeded();
    // One completion of each part, whatever died, and no second result of a finished one.
    for stage in ["commit", "prove"] {
        let counter = |name| eventually("a leader's answer", || counter(stage, name));
        assert_eq!(counter("completed"), parts as u64, "{stage}");
        assert_eq!(counter("stale_results"), 0, "{stage}");
    }
    stopped.signal(Signal::CONT);
    drop((stopped, third, fourth));
}
