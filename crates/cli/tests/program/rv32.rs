//! `proofmill rv32`: proofs of executions from files alone, each command a process of its own.

use std::fs;
use std::path::Path;

use crate::support::{Finished, folder, run};

/// The test programs, as built.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../rv32/programs/built");

const PROVE: [&str; 9] = [
    "rv32",
    "prove",
    "fibonacci.elf",
    "--stdin",
    "n",
    "--proof",
    "proof",
    "--public",
    "public.json",
];
const VERIFY: [&str; 7] = [
    "rv32",
    "verify",
    "fibonacci.elf.keys",
    "--public",
    "public.json",
    "proof",
    "--json",
];

/// A program and an input in a folder: `fibonacci.elf` and `n`.
fn fibonacci(here: &Path, n: u32) {
    for name in ["fibonacci.elf", "sort.elf"] {
        fs::copy(Path::new(PROGRAMS).join(name), here.join(name)).expect("copied");
    }
    fs::write(here.join("n"), n.to_le_bytes()).expect("written");
}

fn verify(here: &Path, more: &[&str]) -> Finished {
    run(here, VERIFY.iter().chain(more))
}

#[test]
fn an_execution_is_proved_and_its_statement_verified() {
    let folder = folder();
    let here = folder.path();
    fibonacci(here, 12);
    let ran = run(
        here,
        ["rv32", "run", "fibonacci.elf", "--stdin", "n", "--json"],
    );
    let ran = ran.succeeded().json();
    assert_eq!(
        (&ran["exit_code"], &ran["output"]),
        (&0.into(), &"90000000".into())
    );
    // Keys are made on the way, and used again.
    let proved = run(here, PROVE).succeeded();
    assert!(
        proved.stderr.contains("they are for development"),
        "{proved:?}"
    );
    let again = run(here, PROVE).succeeded();
    assert!(!again.stderr.contains("for development"), "{again:?}");

    let verified = verify(here, &["--program", "fibonacci.elf", "-o", "output"]);
    let verified = verified.succeeded().json();
    assert_eq!(verified["key_is_of_the_program"], true);
    let statement = &verified["statement"];
    assert_eq!(statement["program"], ran["program"]);
    assert_eq!(
        (&statement["exit_code"], &statement["output"]),
        (&ran["exit_code"], &ran["output"])
    );
    assert!(statement["input"].is_null(), "it is secret");
    assert_eq!(
        fs::read(here.join("output")).expect("the output"),
        144u32.to_le_bytes()
    );
    // It is an ordinary proof of a circuit in parts.
    let key = "fibonacci.elf.keys/verifying.key";
    let ordinary = [
        "partition",
        "verify",
        "--key",
        key,
        "--public",
        "public.json",
        "proof",
    ];
    run(here, ordinary).succeeded();

    // Another program, and other statements.
    verify(here, &["--program", "sort.elf"]).failed(1, "not for sort.elf");
    let public = fs::read(here.join("public.json")).expect("public inputs");
    let inputs: Vec<String> = serde_json::from_slice(&public).expect("an array");
    assert_eq!(
        inputs[..3],
        ["0", "4", "144"],
        "exit code, length and words of the output"
    );
    for (index, value) in [(0, "1"), (1, "3"), (1, "5"), (2, "145"), (3, "1")] {
        let mut changed = inputs.clone();
        changed[index] = value.to_owned();
        let changed = serde_json::to_vec(&changed).expect("JSON");
        fs::write(here.join("public.json"), changed).expect("written");
        verify(here, &[]).failed(1, "not valid");
    }
    fs::write(here.join("public.json"), &public).expect("written");
    verify(here, &[]).succeeded();
}

#[test]
fn what_keys_are_not_for_is_refused_before_anything_is_proved() {
    let folder = folder();
    let here = folder.path();
    fibonacci(here, 3);
    let setup = [
        "rv32",
        "setup",
        "fibonacci.elf",
        "--stdin",
        "n",
        "-o",
        "fibonacci.elf.keys",
    ];
    run(here, setup.iter().chain(&["--steps-per-part", "16"])).succeeded();
    // A longer execution.
    fs::write(here.join("n"), 1_000u32.to_le_bytes()).expect("written");
    run(here, PROVE).failed(1, "does not halt within");
    // A longer input; the program halts with another exit code, which has a proof where the input fits.
    fs::write(here.join("n"), [1; 1_000]).expect("written");
    run(here, PROVE).failed(1, "bytes of input, and the shape has room for");
    fs::write(here.join("n"), 3u32.to_le_bytes()).expect("written");
    run(here, PROVE.iter().chain(&["--public-input"])).failed(2, "for secret inputs");
    let other = [
        &["rv32", "prove", "sort.elf"],
        &PROVE[3..],
        &["--keys", "fibonacci.elf.keys"],
    ];
    run(here, other.concat()).failed(1, "keys of another program");
    // A file that is no program.
    run(here, ["rv32", "run", "n"]).failed(1, "n: ");
    assert!(!here.join("proof").exists() && !here.join("proof.journal").exists());
}

/// The input is part of the statement, and the parts are proved by stages of a workflow.
#[test]
fn an_execution_with_a_public_input_is_proved_by_a_workflow() {
    let folder = folder();
    let here = folder.path();
    fibonacci(here, 7);
    let setup = [
        "rv32",
        "setup",
        "fibonacci.elf",
        "--stdin",
        "n",
        "-o",
        "fibonacci.elf.keys",
    ];
    run(
        here,
        setup
            .iter()
            .chain(&["--steps-per-part", "32", "--public-input"]),
    )
    .succeeded();
    let workflow = ["--public-input", "--workflow", "far.toml"];
    run(here, PROVE.iter().chain(&workflow)).succeeded();
    run(here, ["run", "far.toml"]).succeeded();
    let verified = verify(here, &["--program", "fibonacci.elf"])
        .succeeded()
        .json();
    assert_eq!(verified["statement"]["input"], "07000000");
    assert_eq!(verified["statement"]["output"], "0d000000");
}
