//! Compatibility of proofs: snarkjs verifies Proofmill's, Proofmill verifies snarkjs's.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::artefacts::{Circuit, EDDSA, MERKLE, PRODUCT, SHA256};
use super::tools::{home, snarkjs};
use crate::support::{Finished, files, finish, folder, proofmill};

#[test]
fn a_merkle_proof() {
    both_ways(&MERKLE);
}

#[test]
fn a_signature() {
    let public = both_ways(&EDDSA);
    assert_eq!(public[0], "1", "the signature was to be checked");
    assert_eq!(public[3], "20261121");
}

#[test]
fn sha256_of_64_bytes() {
    let public = both_ways(&SHA256);
    let input = read_json(&home().join("inputs/sha256.json"));
    let bytes: Vec<u8> = serde_json::from_value(input["bytes"].clone()).expect("bytes");
    let digest: Vec<String> = Sha256::digest(bytes).iter().map(u8::to_string).collect();
    assert_eq!(public, json!(digest));
}

#[test]
fn a_product_over_bls12_381() {
    assert_eq!(both_ways(&PRODUCT), json!(["1155"]));
}

/// With a key that snarkjs made. Returns the public signals.
fn both_ways(circuit: &Circuit) -> Value {
    let folder = folder();
    let here = folder.path();

    let ran = prove(circuit, here, &[]).succeeded();
    assert!(ran.stdout.is_empty(), "{ran:?}");
    let names: Vec<String> = files(here).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["proof.json", "public.json"]);
    snarkjs_verifies(circuit, here, "proof.json", "public.json");
    verify(circuit, here, &["proof.json", "public.json"]).succeeded();

    let (key, witness) = (circuit.key(), circuit.witness());
    let [key, witness] = [&key, &witness].map(|path| path.to_string_lossy());
    let theirs = ["theirs.json", "theirs.public.json"];
    let args = ["groth16", "prove", &key, &witness, theirs[0], theirs[1]];
    snarkjs(here, args).succeeded();
    let ran = verify(circuit, here, &theirs).succeeded();
    assert!(ran.stdout.contains("theirs.json"), "{ran:?}");

    let public = read_json(&here.join("public.json"));
    assert_eq!(public, read_json(&here.join(theirs[1])));
    public
}

#[test]
fn every_proof_is_blinded_anew() {
    let folder = folder();
    let here = folder.path();
    prove(&MERKLE, here, &[]).succeeded();
    let first = read_json(&here.join("proof.json"));
    prove(&MERKLE, here, &[]).succeeded();
    let second = read_json(&here.join("proof.json"));
    for element in ["pi_a", "pi_b", "pi_c"] {
        assert_ne!(first[element], second[element], "{element}");
    }
    snarkjs_verifies(&MERKLE, here, "proof.json", "public.json");
}

#[test]
fn the_short_form_threads_and_the_summary() {
    let folder = folder();
    let here = folder.path();
    let mut command = proofmill(here);
    command
        .arg("prove")
        .args([MERKLE.key(), MERKLE.witness()])
        .args(["p.json", "s.json", "--threads", "1", "--json"]);
    let summary = finish(&mut command).succeeded().json();
    assert_eq!(summary["curve"], "bn254");
    assert_eq!(summary["public_signals"], 1);
    assert_eq!(summary["threads"], 1);
    assert!(summary["total_ms"].as_f64() > Some(0.0), "{summary}");
    let stages = summary["stages"].as_array().expect("stages");
    assert!(stages.len() > 3, "{summary}");
    snarkjs_verifies(&MERKLE, here, "p.json", "s.json");
}

#[test]
fn many_proofs_are_verified_together_with_a_verdict_for_each() {
    let folder = folder();
    let here = folder.path();
    prove(&MERKLE, here, &[]).succeeded();
    let mut wrong = read_json(&here.join("public.json"));
    wrong[0] = json!("7");
    std::fs::write(here.join("wrong.json"), wrong.to_string()).expect("written");
    let mut pairs = vec!["proof.json", "public.json"];
    verify(&MERKLE, here, &pairs.repeat(5)).succeeded();

    pairs.extend(["proof.json", "wrong.json", "proof.json", "public.json"]);
    let ran = verify(&MERKLE, here, &pairs).failed(1, "1 of 3 proofs is not valid");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{ran:?}");
    assert!(lines[0].starts_with("valid") && lines[2].starts_with("valid"));
    assert!(lines[1].starts_with("INVALID") && lines[1].contains("wrong.json"));

    let mut all: Vec<&str> = pairs.clone();
    all.push("--json");
    let answer = verify(&MERKLE, here, &all).failed(1, "").json();
    assert_eq!(
        (&answer["valid"], &answer["invalid"]),
        (&json!(2), &json!(1))
    );
    let verdicts: Vec<bool> = answer["proofs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["valid"].as_bool().expect("a verdict"))
        .collect();
    assert_eq!(verdicts, [true, false, true]);
}

/// Runs `proofmill prove` with snarkjs's key into `proof.json` and `public.json` of `folder`.
pub(super) fn prove(circuit: &Circuit, folder: &Path, more: &[&str]) -> Finished {
    prove_with(&circuit.key(), &circuit.witness(), folder, more)
}

/// The same with any key and any witness.
pub(super) fn prove_with(key: &Path, witness: &Path, folder: &Path, more: &[&str]) -> Finished {
    let mut command = proofmill(folder);
    command.arg("prove").arg("--zkey").arg(key);
    command.arg("--witness").arg(witness);
    command.args(["--proof", "proof.json", "--public", "public.json"]);
    finish(command.args(more))
}

/// Runs `proofmill verify` with the key that snarkjs exported.
pub(super) fn verify(circuit: &Circuit, folder: &Path, files: &[&str]) -> Finished {
    let mut command = proofmill(folder);
    command
        .arg("verify")
        .arg("--vk")
        .arg(circuit.verifying_key());
    finish(command.args(files))
}

#[track_caller]
pub(super) fn snarkjs_verifies(circuit: &Circuit, folder: &Path, proof: &str, public: &str) {
    let ran = snarkjs_verdict(circuit, folder, proof, public).succeeded();
    assert!(ran.stdout.contains("OK!"), "{ran:?}");
}

/// Runs snarkjs's own verification.
pub(super) fn snarkjs_verdict(
    circuit: &Circuit,
    folder: &Path,
    proof: &str,
    public: &str,
) -> Finished {
    let key = circuit.verifying_key();
    let args = ["groth16", "verify", &key.to_string_lossy(), public, proof];
    snarkjs(folder, args)
}

pub(super) fn read_json(path: &Path) -> Value {
    let text = std::fs::read(path).expect("a file");
    serde_json::from_slice(&text).expect("JSON")
}
