//! `proofmill verify PATH...`: proofs of several kinds in files and folders.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Finished, folder, proofmill, repository, run};
use crate::verifier::{fixture, rollup_proof};

/// Puts a proof of snarkjs into a folder, with its statement; the key, too, if asked for.
fn snarkjs(folder: &Path, has_key: bool) {
    fs::create_dir_all(folder).expect("made");
    for name in ["proof.json", "public.json"] {
        fs::write(folder.join(name), fixture(name)).expect("written");
    }
    if has_key {
        let name = "verification_key.json";
        fs::write(folder.join(name), fixture(name)).expect("written");
    }
}

/// A blob of zeros with its proof: all points are the one at infinity.
fn blob() -> Vec<u8> {
    let mut infinity = [0; 48];
    infinity[0] = 0xc0;
    let mut bytes = b"PMKZ\x01\x01".to_vec();
    bytes.extend(infinity);
    bytes.extend(infinity);
    bytes.resize(bytes.len() + 131_072, 0);
    bytes
}

/// A folder with proofs of three kinds, four in all.
fn mixed(folder: &Path) {
    snarkjs(&folder.join("all/b"), false);
    snarkjs(&folder.join("all/a/deep"), false);
    fs::write(
        folder.join("all/verification_key.json"),
        fixture("verification_key.json"),
    )
    .expect("written");
    fs::create_dir_all(folder.join("all/rollup")).expect("made");
    fs::write(folder.join("all/rollup/proof"), rollup_proof()).expect("written");
    fs::write(folder.join("all/zeros.blob"), blob()).expect("written");
    fs::write(folder.join("all/README.md"), "no proof").expect("written");
}

/// The objects on standard output: of proofs, and of the summary.
fn objects(ran: &Finished) -> (Vec<Value>, Value) {
    let lines = ran.stdout.lines();
    let mut objects: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let summary = objects.pop().expect("a summary");
    (objects, summary)
}

fn make_false(path: &Path) {
    let text = fs::read_to_string(path).expect("a statement");
    assert!(text.contains("156"));
    fs::write(path, text.replace("156", "157")).expect("written");
}

#[test]
fn a_folder_of_several_kinds_is_verified_in_sorted_order() {
    let folder = folder();
    let here = folder.path();
    mixed(here);
    let ran = run(here, ["verify", "all"]).succeeded();
    assert!(ran.stdout.starts_with("4 proofs: 4 valid, in "), "{ran:?}");
    assert_eq!(ran.stdout.lines().count(), 1, "{ran:?}");

    let ran = run(here, ["verify", "all", "--json"]).succeeded();
    let (proofs, summary) = objects(&ran);
    let of = |name: &str| -> Vec<_> {
        proofs
            .iter()
            .map(|it| it[name].as_str().unwrap_or("none"))
            .collect()
    };
    assert_eq!(
        of("proof"),
        [
            "all/a/deep/proof.json",
            "all/b/proof.json",
            "all/rollup/proof",
            "all/zeros.blob"
        ]
    );
    assert_eq!(
        of("kind"),
        ["groth16-bn254", "groth16-bn254", "grumpkin-ipa", "kzg"]
    );
    let key = "all/verification_key.json";
    assert_eq!(of("key"), [key, key, "none", "none"]);
    assert_eq!(of("statement")[1], "all/b/public.json");
    assert!(proofs.iter().all(|it| it["valid"] == true), "{proofs:?}");
    for (name, count) in [
        ("proofs", 4),
        ("valid", 4),
        ("invalid", 0),
        ("unread", 0),
        ("others", 4),
    ] {
        assert_eq!(summary[name], count, "{name}: {summary}");
    }
}

#[test]
fn every_false_proof_is_named() {
    let folder = folder();
    let here = folder.path();
    mixed(here);
    make_false(&here.join("all/b/public.json"));
    let ran = run(here, ["verify", "all"]).failed(1, "1 of 4 proofs is not valid");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{ran:?}");
    assert!(
        lines[0].starts_with("INVALID  all/b/proof.json: "),
        "{ran:?}"
    );
    assert!(
        lines[1].starts_with("4 proofs: 3 valid, 1 not valid, in "),
        "{ran:?}"
    );

    make_false(&here.join("all/a/deep/public.json"));
    let mut rollup = rollup_proof();
    // The value that is claimed.
    rollup[11 * 32 - 1] ^= 1;
    fs::write(here.join("all/rollup/proof"), rollup).expect("written");
    let mut bent = blob();
    // An element of the blob, which is no longer zero.
    *bent.last_mut().expect("a byte") = 1;
    fs::write(here.join("all/zeros.blob"), bent).expect("written");
    let ran = run(here, ["verify", "all", "--json"]).failed(1, "4 of 4 proofs are not valid");
    let (proofs, summary) = objects(&ran);
    assert!(
        proofs
            .iter()
            .all(|it| it["valid"] == false && it["why"].is_string()),
        "{proofs:?}"
    );
    assert_eq!(summary["invalid"], 4);
}

#[test]
fn files_are_named_with_key_and_statement_or_find_them() {
    let folder = folder();
    let here = folder.path();
    snarkjs(&here.join("one"), true);
    run(here, ["verify", "one/proof.json"]).succeeded();
    // What belongs to a proof may be named beside it.
    let with_all = [
        "verify",
        "one/public.json",
        "one/proof.json",
        "one/verification_key.json",
    ];
    let ran = run(here, with_all).succeeded();
    assert!(ran.stdout.starts_with("1 proof: 1 valid"), "{ran:?}");
    for (from, to) in [
        ("proof.json", "p"),
        ("public.json", "s"),
        ("verification_key.json", "k"),
    ] {
        fs::copy(here.join("one").join(from), here.join(to)).expect("copied");
    }
    let ran = run(here, ["verify", "p"]).failed(3, "no verdict");
    assert!(
        ran.stdout.contains("unread   p: no verifying key"),
        "{ran:?}"
    );
    let ran = run(here, ["verify", "p", "--key", "k"]).failed(3, "no verdict");
    assert!(ran.stdout.contains("unread   p: no statement"), "{ran:?}");
    run(here, ["verify", "p", "--key", "k", "--inputs", "s"]).succeeded();
    let named = ["--kind", "groth16-bn254", "--key", "k", "--inputs", "s"];
    run(here, ["verify", "p"].iter().chain(&named)).succeeded();
    let other = ["--kind", "groth16-bls12-381", "--key", "k", "--inputs", "s"];
    let ran = run(here, ["verify", "p"].iter().chain(&other)).failed(3, "no verdict");
    assert!(ran.stdout.contains("the key k: "), "{ran:?}");
    // A key above is found from the folder where the command runs, and none beyond it.
    fs::copy(here.join("k"), here.join("vk.json")).expect("copied");
    snarkjs(&here.join("two"), false);
    run(here, ["verify", "two/proof.json"]).succeeded();
    let absolute = here.join("two");
    let absolute = absolute.to_str().expect("text");
    run(here, ["verify", absolute]).failed(3, "no verdict");
    fs::remove_file(here.join("p")).expect("removed");
    let above = here.to_str().expect("text");
    run(here, ["verify", above]).succeeded();

    let several = ["verify", "one", "two", "--inputs", "s"];
    run(here, several).failed(2, "--inputs is the statement of one proof, and there are 2");
    run(here, ["verify", "p", "--kind", "spells"]).failed(2, "known are groth16-bn254");
    run(here, ["verify", "p", "--allow-insecure-key"]).failed(2, "goes with --vk");
    run(here, ["verify", "--vk", "k", "p", "s", "--kind", "kzg"]).failed(2, "cannot be used with");
}

#[test]
fn other_files_and_unreadable_files_get_no_verdict() {
    let folder = folder();
    let here = folder.path();
    mixed(here);
    for (path, why) in [
        ("absent", "No such file"),
        ("all/README.md", "name the kind with --kind"),
        ("all/b/public.json", "not a proof of snarkjs"),
        (
            "all/verification_key.json",
            "a verifying key (JSON), not a proof",
        ),
        ("/dev/zero", "a device"),
    ] {
        let ran = run(here, ["verify", path]).failed(3, "no verdict");
        let line = format!("unread   {path}: ");
        assert!(
            ran.stdout.starts_with(&line) && ran.stdout.contains(why),
            "{ran:?}"
        );
    }
    fs::create_dir_all(here.join("none/below")).expect("made");
    run(here, ["verify", "none"]).failed(3, "no proofs found: 0 files");
    fs::write(here.join("none/below/letter"), "dear").expect("written");
    let made = std::process::Command::new("mkfifo")
        .arg(here.join("none/pipe"))
        .status();
    assert!(made.expect("mkfifo").success());
    std::os::unix::fs::symlink("..", here.join("none/up")).expect("linked");
    fs::write(here.join("none/.proof"), rollup_proof()).expect("written");
    let ran = run(here, ["verify", "none"]).failed(3, "no proofs found: 3 files");
    assert!(ran.stderr.contains("--kind"), "{ran:?}");

    // Of a folder the others have theirs.
    let proof = fs::read(here.join("all/b/proof.json")).expect("a proof");
    fs::write(here.join("all/b/proof.json"), &proof[..proof.len() / 2]).expect("written");
    fs::remove_file(here.join("all/a/deep/public.json")).expect("removed");
    let ran = run(here, ["verify", "all"]).failed(3, "no verdict on 2 of 4 proofs");
    assert!(
        ran.stdout
            .contains("unread   all/b/proof.json: cut short: "),
        "{ran:?}"
    );
    assert!(
        ran.stdout
            .contains("unread   all/a/deep/proof.json: no statement"),
        "{ran:?}"
    );
    assert!(
        ran.stdout
            .contains("4 proofs: 2 valid, 2 without a verdict"),
        "{ran:?}"
    );
    make_false(&here.join("all/b/public.json"));
    fs::write(here.join("all/b/proof.json"), proof).expect("written");
    let ran = run(here, ["verify", "all"]).failed(1, "1 of 4 proofs is not valid; no verdict on 1");
    assert!(ran.stdout.contains("INVALID  all/b/proof.json"), "{ran:?}");
    // More than is ever read.
    fs::write(
        here.join("huge.proof"),
        [b"PMKZ".as_slice(), &[0; 5 << 20]].concat(),
    )
    .expect("written");
    let ran = run(here, ["verify", "huge.proof"]).failed(3, "no verdict");
    assert!(ran.stdout.contains("the most that is read"), "{ran:?}");
    // A name that moves no cursor.
    let name = "\u{1b}[2J.proof";
    fs::write(here.join(name), "nothing").expect("written");
    let ran = run(here, ["verify", name]).failed(3, "no verdict");
    assert!(!ran.stdout.contains('\u{1b}'), "{ran:?}");
}

#[test]
fn compact_proofs_are_recognized_by_length_and_name() {
    use proofmill_groth16::snarkjs::{inputs_from_json, proof_from_json};
    use proofmill_groth16::{Bls12_381, Bn254, SnarkCurve};
    use proofmill_verifier::kinds::Groth16;

    fn write<E: SnarkCurve>(folder: &Path, curve: &str) {
        let from = repository("crates/groth16/tests/fixtures").join(curve);
        let read = |name: &str| fs::read(from.join(name)).expect("a fixture");
        let proof = proof_from_json::<E>(&read("proof.json")).expect("a proof");
        let inputs = inputs_from_json::<E::ScalarField>(&read("public.json")).expect("inputs");
        fs::create_dir_all(folder).expect("made");
        fs::write(folder.join("a.proof"), proof.to_bytes()).expect("written");
        let statement = Groth16::<E>::compact_statement(&inputs);
        fs::write(folder.join("a.public"), statement).expect("written");
        fs::write(folder.join("vk.json"), read("verification_key.json")).expect("written");
    }
    let folder = folder();
    let here = folder.path();
    write::<Bn254>(&here.join("bn254"), "bn254");
    write::<Bls12_381>(&here.join("bls"), "bls12_381");
    let ran = run(here, ["verify", "bn254", "bls", "--json"]).succeeded();
    let (proofs, _) = objects(&ran);
    let kinds: Vec<_> = proofs.iter().map(|it| it["kind"].as_str()).collect();
    assert_eq!(kinds, [Some("groth16-bn254"), Some("groth16-bls12-381")]);
    let path = here.join("bls/a.public");
    let mut statement = fs::read(&path).expect("a statement");
    statement[0] ^= 1;
    fs::write(path, statement).expect("written");
    run(here, ["verify", "bls"]).failed(1, "the proof is not valid");
}

#[test]
fn an_interrupt_reports_the_verdicts_so_far_and_the_number_of_undecided_proofs() {
    let folder = folder();
    let here = folder.path();
    // So many that the pipe does not hold their verdicts: the program waits until this test reads, however late it does.
    let count = 2000;
    let path = |number: u64| here.join(format!("many/{number:04}.proof"));
    fs::create_dir(here.join("many")).expect("made");
    fs::write(path(0), rollup_proof()).expect("written");
    for number in 1..count {
        fs::hard_link(path(0), path(number)).expect("linked");
    }
    let mut command = proofmill(here);
    command.args(["verify", "many", "--json", "--threads", "1"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut first = String::new();
    stdout.read_line(&mut first).expect("a line");
    assert!(first.contains("\"valid\":true"), "{first}");
    // It may have ended already, which the counts below would show.
    let _ = kill_process(Pid::from_child(&child), Signal::INT);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("text");
    let output = child.wait_with_output().expect("an end");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    let ran = Finished {
        code: output.status.code(),
        stdout: format!("{first}{rest}"),
        stderr,
    };
    let (proofs, summary) = objects(&ran);
    let undecided = summary["undecided"].as_u64().expect("a count");
    assert!(undecided > 0, "{summary}");
    assert_eq!(proofs.len() as u64 + undecided, count, "{summary}");
    assert_eq!(
        summary["valid"].as_u64(),
        Some(proofs.len() as u64),
        "{summary}"
    );
    let said = format!("stopped: no verdict on {undecided} of {count} proofs");
    assert!(ran.stderr.contains(&said), "{ran:?}");
}
