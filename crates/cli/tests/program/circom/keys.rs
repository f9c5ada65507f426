//! Compatibility of keys: snarkjs proves with Proofmill's keys, and both read the same values from snarkjs's keys.

use std::path::Path;

use super::artefacts::{Circuit, EDDSA, MERKLE, PRODUCT, SHA256};
use super::proofs::{prove_with, read_json};
use super::tools::snarkjs;
use crate::support::{Finished, finish, folder, proofmill};

#[test]
fn snarkjs_proves_a_merkle_proof_with_our_key() {
    snarkjs_proves_with_our_key(&MERKLE, &[]);
}

#[test]
fn snarkjs_proves_a_signature_with_our_key() {
    snarkjs_proves_with_our_key(&EDDSA, &[]);
}

#[test]
fn snarkjs_proves_a_digest_with_our_key() {
    snarkjs_proves_with_our_key(&SHA256, &[]);
}

#[test]
fn snarkjs_proves_a_product_over_bls12_381_with_our_key() {
    snarkjs_proves_with_our_key(&PRODUCT, &[]);
}

#[test]
fn snarkjs_proves_with_our_key_of_given_powers_of_tau() {
    for circuit in [&MERKLE, &PRODUCT] {
        let powers = circuit.powers_of_tau();
        snarkjs_proves_with_our_key(circuit, &["--ptau", &powers.to_string_lossy()]);
    }
}

/// Our key, our verifying key: snarkjs proves and verifies with them, and so do we.
fn snarkjs_proves_with_our_key(circuit: &Circuit, more: &[&str]) {
    let folder = folder();
    let here = folder.path();
    setup(circuit, here, more).succeeded();
    export(&here.join("ours.zkey"), here).succeeded();
    let witness = circuit.witness();
    let args = [
        "groth16",
        "prove",
        "ours.zkey",
        &witness.to_string_lossy(),
        "theirs.json",
        "public.json",
    ];
    snarkjs(here, args).succeeded();
    snarkjs(
        here,
        ["groth16", "verify", "vk.json", "public.json", "theirs.json"],
    )
    .succeeded();
    prove_with(&here.join("ours.zkey"), &witness, here, &[]).succeeded();
    snarkjs(
        here,
        ["groth16", "verify", "vk.json", "public.json", "proof.json"],
    )
    .succeeded();
    let pairs = ["theirs.json", "public.json", "proof.json", "public.json"];
    finish(
        proofmill(here)
            .args(["verify", "--vk", "vk.json"])
            .args(pairs),
    )
    .succeeded();
}

#[test]
fn snarkjs_finds_our_key_to_follow_from_circuit_and_powers_of_tau() {
    for circuit in [&MERKLE, &PRODUCT] {
        let folder = folder();
        let here = folder.path();
        let (r1cs, powers) = (circuit.r1cs(), circuit.powers_of_tau());
        let [r1cs, powers] = [&r1cs, &powers].map(|path| path.to_string_lossy());
        setup(circuit, here, &["--ptau", &powers, "--name", "ours"]).succeeded();
        let args = ["zkey", "verify", &r1cs, &powers, "ours.zkey"];
        let ran = snarkjs(here, args).succeeded();
        assert!(ran.stdout.contains("ZKey Ok!"), "{ran:?}");
    }
}

#[test]
fn snarkjs_contributes_to_our_key() {
    let folder = folder();
    let here = folder.path();
    setup(&MERKLE, here, &[]).succeeded();
    let args = [
        "zkey",
        "contribute",
        "ours.zkey",
        "more.zkey",
        "--name=test",
        "-e=test",
    ];
    snarkjs(here, args).succeeded();
    export(&here.join("more.zkey"), here).succeeded();
    prove_with(&here.join("more.zkey"), &MERKLE.witness(), here, &[]).succeeded();
    snarkjs(
        here,
        ["groth16", "verify", "vk.json", "public.json", "proof.json"],
    )
    .succeeded();
}

#[test]
fn the_exported_verifying_key_is_the_one_that_snarkjs_exports() {
    for circuit in [&MERKLE, &EDDSA, &SHA256, &PRODUCT] {
        let folder = folder();
        export(&circuit.key(), folder.path()).succeeded();
        let ours = read_json(&folder.path().join("vk.json"));
        assert_eq!(
            ours,
            read_json(&circuit.verifying_key()),
            "{}",
            circuit.name
        );
    }
}

/// Runs `proofmill setup` into `ours.zkey` of `folder`.
fn setup(circuit: &Circuit, folder: &Path, more: &[&str]) -> Finished {
    let mut command = proofmill(folder);
    command
        .arg("setup")
        .arg(circuit.r1cs())
        .args(["-o", "ours.zkey"]);
    finish(command.args(more))
}

/// Runs `proofmill zkey export-vk` into `vk.json` of `folder`.
fn export(key: &Path, folder: &Path) -> Finished {
    finish(
        proofmill(folder)
            .args(["zkey", "export-vk"])
            .arg(key)
            .arg("vk.json"),
    )
}
