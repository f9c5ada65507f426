//! Errors about wrong files name the file and the fault, and nothing is written.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::artefacts::{Circuit, EDDSA, MERKLE, PRODUCT};
use super::proofs::{prove, prove_with, read_json, verify};
use crate::support::{Finished, folder, names, run};

#[test]
fn a_proof_or_a_signal_that_was_changed_is_not_valid() {
    let folder = folder();
    let here = folder.path();
    prove(&PRODUCT, here, &[]).succeeded();
    let proof = read_json(&here.join("proof.json"));
    let swapped = json!({
        "pi_a": proof["pi_c"], "pi_b": proof["pi_b"], "pi_c": proof["pi_a"],
        "protocol": "groth16", "curve": "bls12381",
    });
    let cases: [(&str, Value, Value); 7] = [
        ("does not verify", proof.clone(), json!(["1156"])),
        (
            "0 public inputs: the circuit has 1",
            proof.clone(),
            json!([]),
        ),
        (
            "2 public inputs: the circuit has 1",
            proof.clone(),
            json!(["1155", "0"]),
        ),
        // The same signal again, with the field's prime added.
        (
            "[0]: not a number",
            proof.clone(),
            json!([
                "52435875175126190479447740508185965837690552500527637822603658699938581185668"
            ]),
        ),
        ("does not verify", swapped, json!(["1155"])),
        (
            "pi_a: not a point of the curve",
            changed(&proof, "pi_a", 0),
            json!(["1155"]),
        ),
        (
            "pi_b: not a point of the curve",
            in_pi_b(&proof),
            json!(["1155"]),
        ),
    ];
    for (why, proof, public) in cases {
        std::fs::write(here.join("p.json"), proof.to_string()).expect("written");
        std::fs::write(here.join("s.json"), public.to_string()).expect("written");
        let ran = verify(&PRODUCT, here, &["p.json", "s.json"]).failed(1, "the proof is not valid");
        assert!(
            ran.stdout.starts_with("INVALID  p.json with s.json: "),
            "{ran:?}"
        );
        assert!(ran.stdout.contains(why), "no {why:?} in {ran:?}");
    }
}

/// One of a point's coordinates, with another last digit.
fn changed(proof: &Value, element: &str, coordinate: usize) -> Value {
    let mut proof = proof.clone();
    let other = another(&proof[element][coordinate]);
    proof[element][coordinate] = other;
    proof
}

fn in_pi_b(proof: &Value) -> Value {
    let mut proof = proof.clone();
    let other = another(&proof["pi_b"][1][0]);
    proof["pi_b"][1][0] = other;
    proof
}

fn another(number: &Value) -> Value {
    let mut digits = number.as_str().expect("digits").to_owned();
    let last = digits.pop().expect("a digit");
    digits.push(if last == '1' { '2' } else { '1' });
    digits.into()
}

#[test]
fn files_that_are_cut_short_say_where() {
    let folder = folder();
    let here = folder.path();
    for (file, is_key) in [(MERKLE.key(), true), (MERKLE.witness(), false)] {
        let bytes = std::fs::read(&file).expect("a file");
        // In the head, in the first sections, in the points or values, at the very end.
        for length in [0, 6, 30, 200, bytes.len() / 2, bytes.len() - 1] {
            let cut = here.join("cut");
            std::fs::write(&cut, &bytes[..length]).expect("written");
            let [key, witness] = match is_key {
                true => [cut, MERKLE.witness()],
                false => [MERKLE.key(), cut],
            };
            let ran = refused(&key, &witness, here, "cut");
            if length > 100 {
                assert!(ran.stderr.contains("section"), "{length}: {}", ran.stderr);
            }
            assert!(ran.stderr.contains("byte"), "{length}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_point_that_is_not_on_the_curve_says_where() {
    let folder = folder();
    let here = folder.path();
    let mut key = std::fs::read(MERKLE.key()).expect("a key");
    let middle = section(&key, 8).start + 64 * 100 + 7;
    key[middle] ^= 1;
    std::fs::write(here.join("bent"), key).expect("written");
    let bent = here.join("bent");
    let ran = refused(&bent, &MERKLE.witness(), here, "not on its curve");
    assert!(ran.stderr.contains("section"), "{ran:?}");
    run(here, ["zkey", "check", "bent"]).failed(1, "not on its curve");
}

/// Where a section's content lies in a container of iden3.
fn section(file: &[u8], wanted: u32) -> std::ops::Range<usize> {
    let mut at = 12;
    loop {
        let kind = u32::from_le_bytes(file[at..at + 4].try_into().expect("4 bytes"));
        let length = u64::from_le_bytes(file[at + 4..at + 12].try_into().expect("8 bytes"));
        let start = at + 12;
        let end = start + usize::try_from(length).expect("a length");
        if kind == wanted {
            return start..end;
        }
        at = end;
    }
}

#[test]
fn a_witness_of_another_circuit_is_refused() {
    let folder = folder();
    let here = folder.path();
    refused(&MERKLE.key(), &EDDSA.witness(), here, "another circuit");
    // Another curve.
    let ran = refused(&MERKLE.key(), &PRODUCT.witness(), here, "field");
    assert!(ran.stderr.contains("product.wtns"), "{ran:?}");
}

#[test]
fn a_witness_that_satisfies_nothing_is_refused() {
    let folder = folder();
    let here = folder.path();
    let bytes = std::fs::read(MERKLE.witness()).expect("a witness");
    let values = section(&bytes, 2);
    // The root, a leaf, and a value deep inside.
    for index in [1, 2, values.len() / 32 - 1] {
        let mut other = bytes.clone();
        other[values.start + 32 * index] ^= 1;
        std::fs::write(here.join("wrong.wtns"), other).expect("written");
        refused(&MERKLE.key(), &here.join("wrong.wtns"), here, "wrong.wtns");
    }
}

#[test]
fn files_of_another_kind_are_named() {
    let folder = folder();
    let here = folder.path();
    refused(
        &MERKLE.witness(),
        &MERKLE.key(),
        here,
        "another kind of file",
    );
    refused(
        &MERKLE.r1cs(),
        &MERKLE.witness(),
        here,
        "another kind of file",
    );
    let absent = PathBuf::from("absent.zkey");
    refused(
        &absent,
        &MERKLE.witness(),
        here,
        "absent.zkey: No such file",
    );
    run(
        here,
        [
            "setup".as_ref(),
            MERKLE.witness().as_os_str(),
            "-o".as_ref(),
            "k".as_ref(),
        ],
    )
    .failed(1, "another kind of file");
    assert!(names(here).is_empty(), "{:?}", names(here));
}

#[test]
fn where_nothing_can_be_written_nothing_is_left() {
    let folder = folder();
    let here = folder.path();
    std::fs::create_dir(here.join("public.json")).expect("made");
    prove(&PRODUCT, here, &[]).failed(1, "public.json");
    assert!(
        !here.join("proof.json").exists(),
        "a proof without its signals"
    );
}

/// Asserts that proving fails with `what` and writes nothing.
#[track_caller]
fn refused(key: &Path, witness: &Path, folder: &Path, what: &str) -> Finished {
    let before = names(folder);
    let ran = prove_with(key, witness, folder, &[]).failed(1, what);
    assert_eq!(names(folder), before, "{ran:?}");
    ran
}

/// The other circuits' verifying keys reject a proof as well.
#[test]
fn a_proof_of_another_circuit_is_not_valid() {
    let folder = folder();
    let here = folder.path();
    prove(&MERKLE, here, &[]).succeeded();
    let pair = ["proof.json", "public.json"];
    let other: [(&Circuit, &str); 2] = [
        (&EDDSA, "1 public inputs: the circuit has 4"),
        (
            &PRODUCT,
            "a proof over bn254, where the key is over bls12-381",
        ),
    ];
    for (circuit, why) in other {
        let ran = verify(circuit, here, &pair).failed(1, "the proof is not valid");
        assert!(ran.stdout.contains(why), "{ran:?}");
    }
}
