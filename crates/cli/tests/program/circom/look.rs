//! Output of commands on keys and proofs, and errors about wrong files.

use std::fmt::Write;
use std::path::Path;

use super::proofs::read_json;
use crate::support::{folder, repository, run};
use crate::usage::{record_output, snapshot};

/// A folder with links to what circom and snarkjs made of a small circuit.
fn with_fixtures() -> tempfile::TempDir {
    let folder = folder();
    for curve in ["bn254", "bls12_381"] {
        let fixtures = repository("crates/groth16/tests/fixtures").join(curve);
        std::os::unix::fs::symlink(fixtures, folder.path().join(curve)).expect("linked");
    }
    folder
}

#[test]
fn what_a_key_holds() {
    let folder = with_fixtures();
    let here = folder.path();
    let mut text = String::new();
    for curve in ["bn254", "bls12_381"] {
        let key = format!("{curve}/circuit.zkey");
        let ran = run(here, ["zkey", "info", &key]).succeeded();
        assert!(ran.stderr.is_empty(), "{ran:?}");
        writeln!(text, "$ proofmill zkey info {key}\n{}", ran.stdout).expect("a string");
        let answer = run(here, ["zkey", "info", &key, "--json"])
            .succeeded()
            .json();
        writeln!(text, "$ proofmill zkey info {key} --json\n{answer:#}\n").expect("a string");
    }
    snapshot("zkey-info", &text);
}

#[test]
fn a_key_is_checked_and_exported() {
    let folder = with_fixtures();
    let here = folder.path();
    for curve in ["bn254", "bls12_381"] {
        let key = format!("{curve}/circuit.zkey");
        let ran = run(here, ["zkey", "check", &key]).succeeded();
        assert!(ran.stdout.contains("is a whole key over"), "{ran:?}");
        let vk = format!("{curve}.vk.json");
        let ran = run(here, ["zkey", "export-vk", &key, &vk]).succeeded();
        assert!(ran.stdout.is_empty() && ran.stderr.is_empty(), "{ran:?}");
        let theirs = here.join(curve).join("verification_key.json");
        assert_eq!(read_json(&here.join(vk)), read_json(&theirs));
    }
}

#[test]
fn a_card_that_is_not_there_is_an_error_and_none_are_needed() {
    let folder = with_fixtures();
    let here = folder.path();
    let prove = |devices: &str| {
        let args = [
            "bn254/circuit.zkey",
            "bn254/witness.wtns",
            "proof.json",
            "public.json",
        ];
        run(here, [&["prove", "--devices", devices][..], &args].concat())
    };
    let ran = prove("cuda:4096");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("--devices: no device"), "{ran:?}");
    assert!(ran.stderr.contains("proofmill doctor"), "{ran:?}");
    let ran = prove("gpu");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("expected auto, cpu, cards"), "{ran:?}");
    assert!(!here.join("proof.json").exists());
    for devices in ["cpu", "auto"] {
        prove(devices).succeeded();
    }
}

#[test]
fn typical_errors() {
    let folder = with_fixtures();
    let here = folder.path();
    cut(here, "bn254/circuit.zkey", "short.zkey", 4_000);
    cut(here, "bn254/circuit.zkey", "head.zkey", 9);
    cut(here, "bn254/witness.wtns", "short.wtns", 300);
    std::fs::write(here.join("broken.json"), "{ \"pi_a\": [\"7\", \"x\"").expect("written");
    std::fs::write(here.join("seven.json"), "[\"7\", \"7\"]").expect("written");

    const PAIR: [&str; 2] = ["bn254/proof.json", "bn254/public.json"];
    const VERIFY: [&str; 3] = ["verify", "--vk", "bn254/verification_key.json"];
    let verify = |files: &[&'static str]| [&VERIFY[..], files].concat();
    let prove = |key: &'static str, witness: &'static str| {
        vec!["prove", key, witness, "new.proof.json", "new.public.json"]
    };
    let commands: Vec<Vec<&str>> = vec![
        vec!["prove"],
        vec!["prove", "--zkey", "bn254/circuit.zkey"],
        vec!["prove", "bn254/circuit.zkey", "bn254/witness.wtns"],
        prove("absent.zkey", "bn254/witness.wtns"),
        prove("head.zkey", "bn254/witness.wtns"),
        prove("short.zkey", "bn254/witness.wtns"),
        prove("bn254/circuit.zkey", "short.wtns"),
        prove("bn254/witness.wtns", "bn254/circuit.zkey"),
        prove("bn254/circuit.zkey", "bls12_381/witness.wtns"),
        prove("bn254/circuit.zkey", "absent.wtns"),
        vec!["verify"],
        verify(&["bn254/proof.json"]),
        verify(&["bn254/proof.json", "bn254/public.json", "seven.json"]),
        vec!["verify", "--vk", "bn254/proof.json", PAIR[0], PAIR[1]],
        vec!["verify", "--vk", "absent.json", PAIR[0], PAIR[1]],
        vec!["zkey"],
        vec!["zkey", "info", "bn254/circuit.r1cs"],
        vec!["zkey", "check", "short.zkey"],
        vec![
            "zkey",
            "export-vk",
            "bn254/circuit.zkey",
            "no/such/folder/vk.json",
        ],
        vec!["setup", "bn254/circuit.r1cs"],
        vec!["setup", "bn254/circuit.zkey", "-o", "new.zkey"],
        vec!["setup", "absent.r1cs", "-o", "new.zkey"],
        vec![
            "setup",
            "bn254/circuit.r1cs",
            "-o",
            "new.zkey",
            "--ptau",
            "bn254/circuit.zkey",
        ],
        vec![
            "setup",
            "bn254/circuit.r1cs",
            "-o",
            "new.zkey",
            "--verify-ptau",
        ],
        vec!["prove", "--threads", "0", "a", "b", "c", "d"],
    ];
    let mut text = String::new();
    for args in commands {
        let ran = run(here, &args);
        assert!(!ran.stderr.contains("panicked"), "{ran:?}");
        record_output(&mut text, &args, &ran);
    }
    // Verdicts are what was asked for, on standard output.
    for files in [
        &["bn254/proof.json", "seven.json"][..],
        &["bn254/public.json", "bn254/proof.json"],
        &["broken.json", "bn254/public.json"],
        &["absent.json", "bn254/public.json"],
        &[
            "bls12_381/proof.json",
            "bls12_381/public.json",
            PAIR[0],
            PAIR[1],
        ],
    ] {
        let args = verify(files);
        let ran = run(here, &args);
        writeln!(text, "$ proofmill {}", args.join(" ")).expect("a string");
        let code = ran.code.unwrap_or(-1);
        writeln!(text, "{}{}[{code}]\n", ran.stdout, ran.stderr).expect("a string");
    }
    snapshot("errors-circom", &text);
    let new: Vec<_> = std::fs::read_dir(here)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| name.to_string_lossy().contains("new"))
        .collect();
    assert!(new.is_empty(), "{new:?}");
}

fn cut(folder: &Path, from: &str, to: &str, length: usize) {
    let bytes = std::fs::read(folder.join(from)).expect("a file");
    std::fs::write(folder.join(to), &bytes[..length]).expect("written");
}
