//! `proofmill zkey export-solidity` and `proofmill calldata`, on circom's fixtures. The contracts themselves are tested on a
//! node, in `contracts/test`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Finished, folder, repository, run};

const CURVES: [&str; 2] = ["bn254", "bls12_381"];

/// A folder with the files that circom and snarkjs made of a small circuit.
fn with_fixtures(curve: &str) -> tempfile::TempDir {
    let folder = folder();
    let fixtures = repository("crates/groth16/tests/fixtures").join(curve);
    for file in [
        "circuit.zkey",
        "verification_key.json",
        "proof.json",
        "public.json",
    ] {
        fs::copy(fixtures.join(file), folder.path().join(file)).expect("copied");
    }
    folder
}

fn export(here: &Path, args: &[&str]) -> Finished {
    run(here, ["zkey", "export-solidity"].iter().chain(args))
}

fn read(here: &Path, name: &str) -> String {
    fs::read_to_string(here.join(name)).expect("a text")
}

fn write(here: &Path, name: &str, document: &Value) {
    fs::write(here.join(name), document.to_string()).expect("written");
}

fn parsed(here: &Path, name: &str) -> Value {
    serde_json::from_str(&read(here, name)).expect("JSON")
}

#[test]
fn a_contract_is_the_same_from_the_proving_and_the_verifying_key() {
    for curve in CURVES {
        let folder = with_fixtures(curve);
        let here = folder.path();
        for batch in [&[][..], &["--batch"]] {
            let of = |key, output| {
                let ran = export(here, &[&[key, output, "--name", "Fixture"], batch].concat());
                let ran = ran.succeeded();
                assert!(ran.stdout.is_empty() && ran.stderr.is_empty(), "{ran:?}");
                read(here, output)
            };
            let contract = of("circuit.zkey", "a.sol");
            assert_eq!(contract, of("verification_key.json", "b.sol"));
            assert!(contract.contains("\ncontract Fixture {\n"), "{contract}");
            let has_batch = contract.contains("function verifyProofs(");
            assert_eq!(has_batch, !batch.is_empty(), "{contract}");
        }
    }
}

#[test]
fn other_files_are_not_keys() {
    let folder = with_fixtures("bn254");
    let here = folder.path();
    let help = "a key is a .zkey";
    for (file, why) in [
        ("proof.json", "not a verifying key"),
        ("no.zkey", "No such file"),
    ] {
        let ran = export(here, &[file, "v.sol"]).failed(1, why);
        assert_eq!(ran.stderr.contains(help), file == "proof.json", "{ran:?}");
    }
    fs::write(here.join("text"), "no key").expect("written");
    export(here, &["text", "v.sol"]).failed(1, help);
    export(here, &["circuit.zkey", "circuit.zkey", "--force"]).failed(2, "would overwrite the key");
    assert!(!here.join("v.sol").exists());
}

#[test]
fn only_contracts_of_this_command_are_replaced() {
    let folder = with_fixtures("bn254");
    let here = folder.path();
    export(here, &["circuit.zkey", "v.sol"]).succeeded();
    export(here, &["circuit.zkey", "v.sol", "--batch"]).succeeded();
    assert!(read(here, "v.sol").contains("verifyProofs"));
    fs::write(here.join("v.sol"), "contract Mine {}\n").expect("written");
    export(here, &["circuit.zkey", "v.sol"]).failed(2, "v.sol already exists");
    assert_eq!(read(here, "v.sol"), "contract Mine {}\n");
    export(here, &["circuit.zkey", "v.sol", "--force"]).succeeded();
}

#[test]
fn calldata_in_three_forms_agree() {
    for curve in CURVES {
        let folder = with_fixtures(curve);
        let here = folder.path();
        let calldata = |more: &[&str]| {
            let args = ["calldata", "proof.json", "public.json"];
            let ran = run(here, args.iter().chain(more)).succeeded();
            ran.stdout.trim_end().to_owned()
        };
        let answer: Value = serde_json::from_str(&calldata(&["--json"])).expect("JSON");
        let data = calldata(&["--abi"]);
        assert_eq!(answer["calldata"], json!(data));
        assert_eq!(answer["selector"], json!(data[..10]));
        let text = calldata(&[]);
        for word in text.split("0x").skip(1) {
            let digits = word.split('"').next().expect("a quote ends it");
            assert!(data.contains(digits), "{digits} is not in {data}");
        }
        let batch = calldata(&["--batch", "--json"]);
        let batch: Value = serde_json::from_str(&batch).expect("JSON");
        assert_eq!(batch["proofs"], answer["proofs"]);
        assert_eq!(batch["inputs"], answer["inputs"]);
        assert_ne!(batch["selector"], answer["selector"]);
    }
}

#[test]
fn calldata_of_what_is_not_canonical_is_refused() {
    let folder = with_fixtures("bn254");
    let here = folder.path();
    let order = "21888242871839275222246405745257275088548364400416034343698204186575808495617";
    let calldata = |args: &[&str]| run(here, ["calldata"].iter().chain(args));
    for input in [json!(order), json!("01"), json!("-1"), json!(1)] {
        write(here, "bad.json", &json!([input]));
        calldata(&["proof.json", "bad.json"]).failed(1, "bad.json: ");
    }
    let good = parsed(here, "proof.json");
    let mut bad = good.clone();
    bad["pi_a"][0] = json!("1");
    write(here, "bad.json", &bad);
    calldata(&["bad.json", "public.json"]).failed(1, "not a point of the curve");
    calldata(&["proof.json"]).failed(2, "needs its public signals");
    let pairs = ["proof.json", "public.json", "proof.json", "public.json"];
    let ran = calldata(&pairs).failed(2, "2 proofs in one call");
    assert!(ran.stderr.contains("--batch"), "{ran:?}");
    calldata(&["proof.json", "public.json", "--abi", "--json"]).failed(2, "cannot be used with");

    let mut unnamed = good;
    unnamed.as_object_mut().expect("an object").remove("curve");
    write(here, "unnamed.json", &unnamed);
    calldata(&["unnamed.json", "public.json"]).failed(1, "name it with --curve");
    calldata(&["unnamed.json", "public.json", "--curve", "bn254"]).succeeded();
    calldata(&["proof.json", "public.json", "--curve", "bls12-381"])
        .failed(1, "a proof over bn254");
    write(here, "more.json", &json!(["1", "2", "3"]));
    let pairs = ["proof.json", "public.json", "proof.json", "more.json"];
    calldata(&[&["--batch"][..], &pairs].concat()).failed(1, "has 3 public inputs");
}
