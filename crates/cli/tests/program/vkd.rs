//! `proofmill vkd`: directories, keys' states, and epochs that are proved, each command a process of its own.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use proofmill_directory::chain::EpochRecord;
use proofmill_directory::{Digest, KeyDigest};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Finished, Running, eventually, folder, proofmill, run};

/// Levels of the tree whose epochs are proved: those of a directory, 128, would take minutes.
const DEPTH: &str = "3";
/// Parts of a batch of two updates, with one level in each part.
const PARTS: usize = 6;
/// Bytes that begin a journal, and those of a commitment's and a proof's record, over BN254.
const HEAD: usize = 128;
const COMMITMENT: usize = 53;
const PROOF: usize = 149;

fn vkd(here: &Path, args: &[&str]) -> Finished {
    run(here, [&["vkd"], args].concat())
}

/// Updates as lines.
pub(crate) fn lines(updates: &[(&str, &str)]) -> String {
    let lines = updates
        .iter()
        .map(|(key, value)| json!({ "key": key, "value": value }).to_string() + "\n");
    lines.collect()
}

/// Adds an epoch, through a pipe.
pub(crate) fn update(here: &Path, text: &str) -> Finished {
    let mut command = proofmill(here);
    command.args(["vkd", "update", "directory", "--json"]);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(text.as_bytes()).expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Finished {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

fn root_of(answer: &Value) -> String {
    answer["root"].as_str().expect("a root").to_owned()
}

/// A directory of two epochs; returns the root after the second.
fn two_epochs(here: &Path) -> String {
    vkd(here, &["init", "directory"]).succeeded();
    let first = lines(&[("alice", "a0"), ("bob", "b0"), ("alice", "a1")]);
    let first = update(here, &first).succeeded().json();
    assert_eq!(
        (&first["epoch"], &first["inserted"], &first["replaced"]),
        (&1.into(), &2.into(), &1.into())
    );
    let second = "{\"key_hex\": \"00ff\", \"value_hex\": \"ff00\"}\n";
    fs::write(here.join("second"), second).expect("written");
    let second = vkd(here, &["update", "directory", "second", "--json"]).succeeded();
    assert!(second.stderr.contains("1 inserted, 0 replaced"));
    assert_eq!(second.json()["root_before"], first["root"]);
    root_of(&second.json())
}

#[test]
fn keys_are_looked_up_and_their_states_verified() {
    let folder = folder();
    let here = folder.path();
    let root = two_epochs(here);
    let info = vkd(here, &["info", "directory", "--json"]).succeeded();
    let info = info.json();
    assert_eq!((&info["keys"], &info["epoch"]), (&3.into(), &2.into()));
    assert_eq!(root_of(&info), root);
    let shown = vkd(here, &["info", "directory"]).succeeded().stdout;
    assert!(shown.contains("proved epochs  none"), "{shown}");

    let cases: [(&[&str], &[&str], Value); 3] = [
        (
            &["alice"],
            &["--value", "a1"],
            json!({"version": 1, "value": "a1"}),
        ),
        (
            &["00ff", "--key-hex"],
            &["--value-hex", "ff00"],
            json!({"version": 0, "value_hex": "ff00"}),
        ),
        (&["eve"], &[], Value::Null),
    ];
    for (key, value, state) in cases {
        for proof in ["proof", "proof.json"] {
            let args = [&["lookup", "directory"][..], key, &["-o", proof, "--json"]].concat();
            let answer = vkd(here, &args).succeeded();
            assert_eq!(answer.json()["state"], state);
            fs::write(here.join("answer"), &answer.stdout).expect("written");
            let with = |proof| {
                let verify = ["verify", "key", "--root", &root, "--json"];
                let args = [&verify[..], &["--key"], key, value, &[proof]].concat();
                vkd(here, &args)
            };
            for proof in [proof, "answer"] {
                let verified = with(proof).succeeded().json();
                assert_eq!(verified["present"], !state.is_null(), "{verified}");
                assert_eq!(verified["version"], state["version"], "{verified}");
            }
        }
    }
}

/// Verifies the state of alice's key.
fn verify_alice(here: &Path, root: &str, more: &[&str]) -> Finished {
    let args = ["verify", "key", "--root", root, "--key", "alice"];
    vkd(here, &[&args, more].concat())
}

#[test]
fn changed_states_roots_and_proofs_are_refused() {
    let folder = folder();
    let here = folder.path();
    let root = two_epochs(here);
    vkd(here, &["lookup", "directory", "alice", "-o", "proof"]).succeeded();
    let lookup = ["lookup", "directory", "alice", "-o", "proof.json", "--json"];
    let answer = vkd(here, &lookup).succeeded().json();
    verify_alice(here, &root, &["proof"]).succeeded();

    // Another root, key or value.
    let other_root = "0f".repeat(32);
    verify_alice(here, &other_root, &["proof"]).failed(1, "not valid: the proof leads to the root");
    let bob = ["verify", "key", "--root", &root, "--key", "bob", "proof"];
    vkd(here, &bob).failed(1, "not valid");
    verify_alice(here, &root, &["proof", "--value", "a0"]).failed(1, "another value");

    // Another version, value or path.
    let refused = |changed: &Value| {
        fs::write(here.join("changed"), changed.to_string()).expect("written");
        let refused = verify_alice(here, &root, &["changed", "--json"]);
        assert_eq!(refused.json()["valid"], false, "{refused:?}");
        refused.failed(1, "not valid")
    };
    let proof = &answer["proof"];
    let mut changed = proof.clone();
    changed["leaf"]["present"]["version"] = 2.into();
    refused(&changed);
    let mut changed = proof.clone();
    changed["leaf"]["present"]["value"] = other_root.clone().into();
    refused(&changed);
    let mut changed = proof.clone();
    changed["siblings"][0] = other_root.into();
    refused(&changed);
    let mut changed = proof.clone();
    changed["leaf"] = "absent".into();
    refused(&changed);
    // A server's answer whose proof is right, and whose state is not.
    for (field, to) in [("version", 2.into()), ("value", Value::from("a0"))] {
        let mut changed = answer.clone();
        changed["state"][field] = to;
        refused(&changed);
    }
    let mut changed = answer.clone();
    changed["state"] = Value::Null;
    refused(&changed);

    // What is damaged gives no verdict.
    let whole = fs::read(here.join("proof")).expect("read");
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    for bytes in [&damaged[..], &whole[..60], b"{", b""] {
        fs::write(here.join("changed"), bytes).expect("written");
        let no_verdict = verify_alice(here, &root, &["changed"]);
        assert_eq!(no_verdict.code, Some(3), "{no_verdict:?}");
    }
    verify_alice(here, &root, &["absent-file"]).failed(3, "absent-file");
    verify_alice(here, "12", &["proof"]).failed(2, "64 lower-case hexadecimal digits");
}

#[test]
fn mistakes_are_explained() {
    let folder = folder();
    let here = folder.path();
    vkd(here, &["info", "directory"]).failed(1, "`proofmill vkd init` makes a directory");
    vkd(here, &["init", "directory"]).succeeded();
    vkd(here, &["init", "directory"]).failed(1, "there are files in it");
    update(here, "").failed(1, "0 updates");
    let bad = lines(&[("alice", "1")]) + "{\"key\": \"bob\"}\n";
    let told = update(here, &bad).failed(1, "standard input: line 2: ");
    assert!(told.stderr.contains("nothing was changed"), "{told:?}");
    let info = vkd(here, &["info", "directory", "--json"]).succeeded();
    assert_eq!(info.json()["epoch"], 0, "none of the updates was made");
    let levels = ["setup", "--updates", "1", "--levels", "3", "-o", "keys"];
    vkd(here, &levels).failed(2, "it must be a divisor of the tree's 128");
    let squarings = ["partition", "setup", "squarings", "--parts", "1", "-o"];
    run(here, squarings.iter().chain(&["other"])).succeeded();
    let other = ["prove", "directory", "--keys", "other"];
    vkd(here, &other).failed(1, "`proofmill vkd setup` makes keys for a key directory");
    let chain = ["verify", "chain", "--key", "other/verifying.key"];
    vkd(here, &[&chain[..], &["directory"]].concat()).failed(3, "no record of an epoch after 0");
    let from = [&chain[..], &["--from", "7", "directory"]].concat();
    vkd(here, &from).failed(2, "NUMBER:ROOT");
    let lookup = ["lookup", "directory", "0x", "--key-hex", "-o", "proof"];
    vkd(here, &lookup).failed(2, "with --key-hex");
}

/// Names of keys with different paths of three bits.
fn names() -> Vec<String> {
    let mut free = [true; 8];
    let names = (0..).map(|number: u32| number.to_string());
    let names = names.filter(|name| {
        let path = KeyDigest::of(name.as_bytes()).0.0[0] >> 5;
        std::mem::take(&mut free[usize::from(path)])
    });
    names.take(8).collect()
}

/// A directory of a small tree with epochs of three updates, one and one; and keys for batches of two.
fn small_directory(here: &Path) {
    let made = vkd(here, &["init", "directory", "--depth", DEPTH]);
    made.succeeded();
    let names = names();
    let first = [(&*names[0], "1"), (&*names[1], "1"), (&*names[0], "2")];
    for updates in [&first[..], &[(&*names[2], "1")], &[(&*names[1], "2")]] {
        update(here, &lines(updates)).succeeded();
    }
    let setup = ["setup", "--updates", "2", "--levels", "1"];
    let setup = [&setup[..], &["--depth", DEPTH, "-o", "keys", "--json"]].concat();
    let made = vkd(here, &setup).succeeded().json();
    assert_eq!(
        (&made["parts"], &made["classes"]),
        (&PARTS.into(), &3.into())
    );
    let info = run(here, ["partition", "info", "keys", "--json"]).succeeded();
    let sizes = json!({"key-directory": {"depth": 3, "updates": 2, "levels": 1}});
    assert_eq!(info.json()["circuit"], sizes);
}

const PROVE: [&str; 5] = ["prove", "directory", "--keys", "keys", "--json"];

/// Starts to prove, and ends the prover once the journal of a batch of the first epoch has so many bytes. From then
/// on it is stopped: it proves no more while this test waits for its turn of the processor.
fn prove_until(here: &Path, batch: usize, bytes: usize, signal: Signal) {
    let running = Running::start(proofmill(here).arg("vkd").args(PROVE));
    let journal = format!("directory/proving/0000000001/{batch:06}.journal");
    eventually("some records", || {
        let length = fs::metadata(here.join(&journal)).map_or(0, |file| file.len() as usize);
        (length >= bytes).then_some(())
    });
    running.signal(Signal::STOP);
    if signal == Signal::KILL {
        running.kill();
        return;
    }
    // Two provers would do the same work twice.
    vkd(here, &PROVE).failed(1, "is proving");
    running.signal(signal);
    running.signal(Signal::CONT);
    let (status, ran) = running.end();
    assert_eq!(status.code(), Some(130), "{ran:?}");
    assert!(ran.stderr.contains("run the same command again"), "{ran:?}");
    let told = ran.json();
    assert_eq!(told["epochs"], json!([]), "none was published: {told}");
}

/// Killed while it commits to parts of the first batch, stopped with Ctrl-C while it proves parts of the second: what was
/// done is not done again.
fn prove_in_spite_of_kills(here: &Path) {
    prove_until(here, 0, HEAD + 2 * COMMITMENT, Signal::KILL);
    let proofs = HEAD + PARTS * COMMITMENT + PROOF;
    prove_until(here, 1, proofs, Signal::INT);
    let proved = vkd(here, &[&PROVE[..], &["--epoch", "1"]].concat());
    let proved = proved.succeeded().json();
    let resumed = &proved["resumed"];
    assert_eq!(resumed["batches"], 1, "{proved}");
    assert_eq!(resumed["commitments"], PARTS, "{proved}");
    assert!(resumed["proofs"].as_u64() >= Some(1), "{proved}");
    let epoch = &proved["epochs"][0];
    assert_eq!(
        (&epoch["updates"], &epoch["batches"]),
        (&3.into(), &2.into())
    );
    assert!(!here.join("directory/proving/0000000001").exists());
    let again = vkd(here, &[&PROVE[..], &["--epoch", "1"]].concat());
    let again = again.succeeded();
    assert!(again.stderr.contains("has its record already"), "{again:?}");
}

/// The second epoch is proved by a workflow, from the file of its witness.
fn prove_elsewhere(here: &Path) {
    let epoch = ["directory", "--keys", "keys", "--epoch", "2"];
    let write = [&["witness"], &epoch[..], &["--batch", "0", "-o", "witness"]].concat();
    vkd(here, &write).succeeded();
    let none = [&["witness"], &epoch[..], &["--batch", "1", "-o", "other"]].concat();
    vkd(here, &none).failed(1, "epoch 2 has no batch 1");
    let prove = [
        "partition",
        "prove",
        "keys",
        "--witness",
        "witness",
        "--proof",
        "batch.proof",
        "--public",
        "batch.json",
    ];
    // A witness that was changed is refused before anything is proved.
    let whole = fs::read(here.join("witness")).expect("read");
    let mut changed = whole.clone();
    changed[100] ^= 1;
    fs::write(here.join("witness"), changed).expect("written");
    run(here, prove).failed(1, "a damaged witness of a batch of updates");
    fs::write(here.join("witness"), whole).expect("written");
    run(here, prove.iter().chain(&["--workflow", "batch.toml"])).succeeded();
    run(here, ["run", "batch.toml"]).succeeded();
    let verify = ["partition", "verify", "--key", "keys/verifying.key"];
    let verify = [&verify[..], &["--public", "batch.json", "batch.proof"]].concat();
    run(here, verify).succeeded();

    // Proofs of other batches make no record.
    let publish = |number, proofs: &[&str]| {
        let epoch = ["directory", "--keys", "keys", "--epoch", number];
        vkd(here, &[&["publish"], &epoch[..], proofs].concat())
    };
    publish("3", &["batch.proof"]).failed(1, "not valid for batch 0");
    publish("2", &["batch.proof", "batch.proof"]).failed(1, "2 proofs, where epoch 2 has 1 batch");
    let info = vkd(here, &["info", "directory"]).succeeded();
    assert!(info.stdout.contains("proved epochs  1\n"), "{info:?}");
    publish("2", &["batch.proof"]).succeeded();
}

fn verify_chain(here: &Path, more: &[&str]) -> Finished {
    let args = ["verify", "chain", "--key", "keys/verifying.key", "--json"];
    vkd(here, &[&args[..], &["--depth", DEPTH], more].concat())
}

#[test]
fn epochs_are_proved_and_their_chain_is_verified() {
    let folder = folder();
    let here = folder.path();
    small_directory(here);
    prove_in_spite_of_kills(here);
    prove_elsewhere(here);
    let rest = vkd(here, &PROVE).succeeded().json();
    assert_eq!(rest["epochs"][0]["number"], 3, "{rest}");
    let info = vkd(here, &["info", "directory", "--json"])
        .succeeded()
        .json();
    assert_eq!(info["proved"], json!({"epochs": 3, "ranges": [[1, 3]]}));

    let verified = verify_chain(here, &["directory"]).succeeded().json();
    assert_eq!(verified["epochs"], 3);
    assert_eq!(verified["last"], json!({"number": 3, "root": info["root"]}));
    // From an epoch that was verified before.
    let records = [1, 2, 3].map(|number| {
        let path = here.join(format!("directory/records/{number:010}"));
        EpochRecord::load(&path).expect("a record")
    });
    let from = format!("1:{}", records[0].root_after());
    let verified = verify_chain(here, &["--from", &from, "directory"]);
    assert_eq!(verified.succeeded().json()["epochs"], 2);
    let wrong = format!("1:{}", records[1].root_after());
    verify_chain(here, &["--from", &wrong, "directory"]).failed(1, "begins with the root");
    false_records_are_refused(here, &records[0]);

    // A client takes the root from the chain, and the state of a key under it.
    let (names, root) = (names(), root_of(&info));
    let lookup = ["lookup", "directory", &names[1], "-o", "proof"];
    vkd(here, &lookup).succeeded();
    let key = ["verify", "key", "--root", &root, "--key", &names[1]];
    let key = [
        &key[..],
        &["--depth", DEPTH, "--value", "2", "proof", "--json"],
    ]
    .concat();
    assert_eq!(vkd(here, &key).succeeded().json()["version"], 1);
    // Of the directory's own depth it is no proof.
    vkd(here, &[&key[..6], &["proof"]].concat()).failed(1, "not valid");
}

fn false_records_are_refused(here: &Path, first: &EpochRecord) {
    let verify = |record: &EpochRecord| {
        let json = serde_json::to_string(record).expect("JSON");
        fs::write(here.join("record.json"), json).expect("written");
        verify_chain(here, &["record.json"])
    };
    assert_eq!(verify(first).succeeded().json()["valid"], true);
    let refused = |change: &dyn Fn(&mut EpochRecord), why| {
        let mut record = first.clone();
        change(&mut record);
        let refused = verify(&record);
        assert_eq!(refused.json()["valid"], false, "{refused:?}");
        refused.failed(1, why);
    };
    let other = Digest([7; 32]);
    refused(
        &|record| record.number = 2,
        "epoch 2 where epoch 1 must follow",
    );
    refused(&|record| record.root_before = other, "begins with the root");
    refused(&|record| record.batches[0].root_after = other, "batch 0");
    refused(&|record| record.batches[1].root_after = other, "batch 1");
    refused(&|record| record.batches.swap(0, 1), "batch 0");
    refused(&|record| record.batches.clear(), "has no batch");
    refused(&|record| record.batches[0].proof[40] ^= 1, "batch 0");

    // A file that is damaged gives no verdict, and a missing epoch is no chain.
    let path = here.join("directory/records/0000000002");
    let whole = fs::read(&path).expect("read");
    let mut damaged = whole.clone();
    damaged[50] ^= 1;
    fs::write(&path, damaged).expect("written");
    verify_chain(here, &["directory"]).failed(3, "checksum");
    fs::remove_file(&path).expect("removed");
    let gap = verify_chain(here, &["directory"]).failed(1, "epoch 3 where epoch 2 must follow");
    assert!(gap.stderr.contains("valid up to epoch 1"), "{gap:?}");
    fs::write(&path, whole).expect("written");
    verify_chain(here, &["directory"]).succeeded();
}
