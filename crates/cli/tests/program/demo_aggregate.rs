//! `proofmill demo --aggregate`: one proof of all chunks, and its verification from files alone.

use std::fs;
use std::path::{Path, PathBuf};

use proofmill_bitcoin::ChunkProof;
use proofmill_groth16::Bls12_381;
use proofmill_verifier::kinds::Groth16;
use serde_json::{Value, json};

use crate::support::{Finished, files, folder, headers, names, raw, run};

/// Bytes of the public inputs of a chunk: seven in a circuit for two headers.
const INPUT_BYTES: usize = 7 * 32;

/// Headers 10 to 14 in three chunks, the last with one header.
fn demo(here: &Path, more: &[&str]) -> Finished {
    fs::write(here.join("headers"), raw(&headers(10, 14))).expect("written");
    let words = [
        "demo",
        "--headers",
        "headers",
        "--chunk",
        "2",
        "--state",
        "state",
        "--json",
    ];
    run(here, words.iter().chain(more))
}

/// Splits words at spaces and runs the program.
fn words(here: &Path, words: &str) -> Finished {
    run(here, words.split_whitespace())
}

const VERIFY: &str = "aggregate verify --key aggregate.key --public range.public range.proof";

/// Verifies the files of a folder and nothing else, with the range.
fn verify(here: &Path) -> Finished {
    words(here, &format!("{VERIFY} --range range.json"))
}

/// A folder with copies of files.
fn copied(from: &[(String, Vec<u8>)]) -> tempfile::TempDir {
    let folder = folder();
    for (name, bytes) in from {
        fs::write(folder.path().join(name), bytes).expect("written");
    }
    folder
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("a file");
    change(&mut bytes);
    fs::write(path, bytes).expect("written");
}

#[track_caller]
fn invalid(ran: Finished, why: &str) {
    let ran = ran.failed(1, "the aggregate is not valid");
    assert!(ran.stdout.starts_with("INVALID"), "{ran:?}");
    assert!(ran.stdout.contains(why), "no {why:?} in {ran:?}");
}

#[test]
fn all_chunks_become_one_proof_that_is_verified_from_its_files_alone() {
    let folder = folder();
    let here = folder.path();
    let report = demo(here, &[]).succeeded().json();
    assert_eq!(report["range"], Value::Null);
    assert!(!here.join("state/range").exists());

    // A demo that has ended: the chunks are not proven again.
    let ran = demo(here, &["--aggregate"]).succeeded();
    let report = ran.json();
    assert_eq!(report["chunks_proved_now"], 0, "{report}");
    let range = &report["range"];
    let (first, last) = (headers(10, 10)[0], headers(14, 14)[0]);
    let statement = json!({
        "first": 10,
        "last": 14,
        "headers": 5,
        "chunks": 3,
        "prev_hash": first.prev_hash().to_string(),
        "last_hash": last.hash().to_string(),
        "work": format!("{:064x}", 5 * 0x1_0001_0001_u64),
    });
    assert_eq!(range["statement"], statement, "{report}");
    assert_eq!(range["made"], true, "{report}");
    assert!(ran.stderr.contains("it is for development"), "{ran:?}");
    assert!(
        ran.stderr.contains(&last.hash().to_string()),
        "the tip: {ran:?}"
    );
    let made = files(&here.join("state/range"));
    let proof = made.iter().find(|(name, _)| name == "range.proof");
    let proof = &proof.expect("a proof").1;
    assert_eq!(range["bytes"], proof.len(), "{report}");

    let elsewhere = copied(&made);
    let ran = verify(elsewhere.path()).succeeded();
    assert!(ran.stdout.contains("headers  5 in 3 chunks"), "{ran:?}");
    assert!(ran.stdout.contains("work     0x500050005\n"), "{ran:?}");
    let words_json = format!("{VERIFY} --range range.json --json");
    let verdict = words(elsewhere.path(), &words_json).succeeded().json();
    assert_eq!(verdict["valid"], true);
    assert_eq!(verdict["range"], statement);
    assert_eq!(verdict["key_digest"], range["key_digest"]);
    words(elsewhere.path(), "verify range.proof").succeeded();

    let again = demo(here, &["--aggregate"]).succeeded();
    assert!(again.stderr.contains("was made before, and is valid"));
    assert_eq!(again.json()["range"]["made"], false);
    assert_eq!(files(&here.join("state/range")), made);

    // Damaged files are made again: the proof of the same chunks is the same.
    for name in names(&here.join("state/range")) {
        change(&here.join("state/range").join(&name), |bytes| {
            bytes.truncate(bytes.len() - 1);
        });
        let again = demo(here, &["--aggregate"]).succeeded();
        assert!(again.stderr.contains("is made again"), "{again:?}");
        assert_eq!(again.json()["range"]["made"], true, "{name}");
        assert_eq!(files(&here.join("state/range")), made, "{name}");
    }
}

#[test]
fn tampered_files_are_refused() {
    let state = folder();
    demo(state.path(), &["--aggregate"]).succeeded();
    let made = files(&state.path().join("state/range"));
    let tampered = |name: &str, edit: &dyn Fn(&mut Vec<u8>)| {
        let folder = copied(&made);
        change(&folder.path().join(name), edit);
        folder
    };
    let unproven = "does not verify against these public inputs";

    // A proof that is cut short or changed.
    let cut = tampered("range.proof", &|bytes| bytes.truncate(bytes.len() - 1));
    invalid(verify(cut.path()), "bytes: an aggregate of 3 proofs has");
    let flipped = tampered("range.proof", &|bytes| {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
    });
    invalid(verify(flipped.path()), "");

    // Two chunks swapped: refused by the order of hashes, and by the proof.
    let swapped = tampered("range.public", &|bytes| {
        let (first, rest) = bytes.split_at_mut(INPUT_BYTES);
        first.swap_with_slice(&mut rest[..INPUT_BYTES]);
    });
    invalid(verify(swapped.path()), "chunk 1 begins after the header");
    invalid(words(swapped.path(), VERIFY), unproven);

    // A chunk left out.
    let left_out = tampered("range.public", &|bytes| {
        bytes.drain(INPUT_BYTES..2 * INPUT_BYTES);
    });
    invalid(verify(left_out.path()), "bytes of public inputs");

    // Each public input of the second chunk changed.
    for input in 0..7 {
        let changed = tampered("range.public", &|bytes| {
            bytes[INPUT_BYTES + 32 * input] ^= 1;
        });
        invalid(verify(changed.path()), "");
        invalid(words(changed.path(), VERIFY), unproven);
    }

    // Another range.
    let longer = tampered("range.json", &|bytes| {
        let mut range: Value = serde_json::from_slice(bytes).expect("JSON");
        range["headers"] = 6.into();
        *bytes = range.to_string().into_bytes();
    });
    invalid(
        verify(longer.path()),
        "the range states 6 as its number of headers, and the proofs are of 5",
    );
    let malformed = tampered("range.json", &|bytes| bytes.truncate(bytes.len() - 1));
    let ran = verify(malformed.path()).failed(3, "no verdict");
    assert!(ran.stdout.contains("not a range of headers"), "{ran:?}");
    fs::remove_file(malformed.path().join("range.json")).expect("removed");
    verify(malformed.path()).failed(3, "no verdict");
}

/// The verifying key of the demo's circuit for two headers.
fn verifying_key(keys: &Path) -> PathBuf {
    let entries = fs::read_dir(keys).expect("the keys");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    let found = paths.find(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("header-chain-2-") && name.ends_with(".vk"))
    });
    found.expect("a verifying key")
}

#[test]
fn valid_aggregates_of_swapped_or_fewer_chunks_are_not_the_range() {
    let folder = folder();
    let here = folder.path();
    demo(here, &["--aggregate"]).succeeded();
    for (number, (_, emitted)) in files(&here.join("state/proofs")).iter().enumerate() {
        let emitted: Value = serde_json::from_slice(emitted).expect("JSON");
        let chunk = hex::decode(emitted["proof"].as_str().expect("text")).expect("digits");
        let chunk = ChunkProof::from_bytes(&chunk).expect("a chunk's proof");
        let inputs = chunk.statement.to_inputs(2).expect("they fit");
        let public = Groth16::<Bls12_381>::compact_statement(&inputs);
        fs::write(here.join(format!("{number}.proof")), chunk.proof.to_bytes()).expect("written");
        fs::write(here.join(format!("{number}.public")), public).expect("written");
    }
    let keys = Path::new(env!("CARGO_TARGET_TMPDIR")).join("keys");
    let srs = keys.join("aggregation-bls12-381-64.srs");
    let (srs, vk) = (srs.display(), verifying_key(&keys).display().to_string());
    for (chunks, why) in [
        (&[0, 1, 2][..], None),
        (&[1, 0, 2], Some("chunk 1 begins after the header")),
        (&[0, 2], Some("chunk 1 begins after the header")),
        (
            &[0, 1],
            Some("states 3 as its number of chunks, and the proofs are of 2"),
        ),
        (
            &[1, 2],
            Some("states 3 as its number of chunks, and the proofs are of 2"),
        ),
    ] {
        let count = chunks.len();
        let paths: Vec<String> = chunks.iter().map(|it| format!("{it}.proof")).collect();
        let make = format!("aggregate key --srs {srs} --key {vk}:{count} -o all.key --force");
        words(here, &make).succeeded();
        let prove = format!(
            "aggregate prove --srs {srs} --key all.key --public all.public -o all.result {}",
            paths.join(" ")
        );
        words(here, &prove).succeeded();
        let verify = "aggregate verify --key all.key --public all.public all.result";
        words(here, verify).succeeded();
        let ran = words(here, &format!("{verify} --range state/range/range.json"));
        match why {
            None => drop(ran.succeeded()),
            Some(why) => invalid(ran, why),
        }
    }
    // The same string and key make the same key, byte for byte: a verifier need not trust that of the demo.
    let make = format!("aggregate key --srs {srs} --key {vk}:3 -o all.key --force");
    words(here, &make).succeeded();
    let own = fs::read(here.join("all.key")).expect("a key");
    let made = fs::read(here.join("state/range/aggregate.key")).expect("a key");
    assert!(own == made);
}
