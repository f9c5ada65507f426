//! Keys under which anybody can prove anything: refused and named, unless they are allowed.

use std::path::Path;

use ark_bn254::{Fr, G1Affine, G2Affine};
use ark_ec::{AffineRepr, CurveGroup};
use proofmill_groth16::snarkjs::{
    ZkeyFile, inputs_to_json, proof_to_json, verifying_key_from_json, verifying_key_to_json,
};
use proofmill_groth16::{Bn254, PointCheck, Proof, VerifyingKey};
use rustix::process::Signal;

use crate::engine::serve;
use crate::support::{files, folder, repository, run};

/// Text in every refusal of a key to whose second phase nobody contributed.
const NAMED: &str =
    "gamma and delta are equal or opposite (nobody contributed to the second phase)";
const ALLOW: &str = "--allow-insecure-key";

/// A folder with a key as `snarkjs groth16 setup` leaves it, as `bad.zkey`, and a witness for it.
fn uncontributed() -> tempfile::TempDir {
    let folder = folder();
    for (from, to) in [
        ("groth16/tests/fixtures/setup/bn128_3.zkey", "bad.zkey"),
        (
            "groth16/tests/fixtures/setup/bn128_contributed.zkey",
            "good.zkey",
        ),
        ("r1cs/tests/fixtures/cube.wtns", "witness.wtns"),
    ] {
        let from = repository("crates").join(from);
        std::fs::copy(from, folder.path().join(to)).expect("copied");
    }
    folder
}

fn names(folder: &Path) -> Vec<String> {
    files(folder).into_iter().map(|(name, _)| name).collect()
}

/// The point of the public inputs.
fn input_point(key: &VerifyingKey<Bn254>, inputs: &[Fr]) -> G1Affine {
    let terms = key.instance[1..].iter().zip(inputs);
    let sum = terms.fold(key.instance[0].into_group(), |sum, (point, input)| {
        sum + *point * input
    });
    sum.into_affine()
}

/// Writes key, proof and public inputs as `vk.json`, `p.json` and `s.json`.
fn write(folder: &Path, key: &VerifyingKey<Bn254>, proof: &Proof<Bn254>, inputs: &[Fr]) {
    for (name, text) in [
        ("vk.json", verifying_key_to_json(key)),
        ("p.json", proof_to_json(proof)),
        ("s.json", inputs_to_json(inputs)),
    ] {
        std::fs::write(folder.join(name), text).expect("written");
    }
}

/// Makes a key degenerate, and the three elements of a proof that then holds for the inputs.
type Forge = fn(&mut VerifyingKey<Bn254>, &[Fr]) -> (G1Affine, G2Affine, G1Affine);

const VERIFY: [&str; 5] = ["verify", "--vk", "vk.json", "p.json", "s.json"];

#[test]
fn a_forged_proof_under_a_key_that_nobody_contributed_to_is_refused() {
    let folder = uncontributed();
    let here = folder.path();
    let bytes = std::fs::read(here.join("bad.zkey")).expect("a key");
    let key: VerifyingKey<Bn254> = ZkeyFile::parse(&bytes)
        .and_then(|file| file.verifying_key(PointCheck::Full))
        .expect("a key");
    // Of statements that are false: nobody has a witness for them.
    let inputs: Vec<Fr> = (1..key.instance.len() as u64)
        .map(|i| Fr::from(1_000_000 + i))
        .collect();
    let forged = Proof {
        a: key.alpha_g1,
        b: key.beta_g2,
        c: (-input_point(&key, &inputs).into_group()).into_affine(),
    };
    write(here, &key, &forged, &inputs);
    let ran = run(here, VERIFY).failed(1, NAMED);
    assert!(ran.stdout.is_empty(), "{ran:?}");
    assert!(ran.stderr.contains(ALLOW), "{ran:?}");
    // The equation holds: nothing but the key gives it away.
    let ran = run(here, VERIFY.iter().chain(&[ALLOW])).succeeded();
    assert!(ran.stdout.starts_with("valid"), "{ran:?}");
    assert!(ran.stderr.contains("warning"), "{ran:?}");
}

#[test]
fn forged_proofs_under_other_degenerate_keys_are_refused() {
    let folder = folder();
    let here = folder.path();
    let sound = repository("crates/groth16/tests/fixtures/bn254/verification_key.json");
    let sound = verifying_key_from_json::<Bn254>(&std::fs::read(sound).expect("a key"));
    let sound = sound.expect("a key");
    let inputs = [Fr::from(6), Fr::from(28)];
    let cases: [(&str, Forge); 6] = [
        ("alpha is the point at infinity", |key, inputs| {
            key.alpha_g1 = G1Affine::zero();
            (input_point(key, inputs), key.gamma_g2, G1Affine::zero())
        }),
        ("beta is the point at infinity", |key, inputs| {
            key.beta_g2 = G2Affine::zero();
            (input_point(key, inputs), key.gamma_g2, G1Affine::zero())
        }),
        ("gamma is the point at infinity", |key, _| {
            key.gamma_g2 = G2Affine::zero();
            (key.alpha_g1, key.beta_g2, G1Affine::zero())
        }),
        ("nobody contributed to the powers of tau", |key, inputs| {
            key.beta_g2 = key.gamma_g2;
            let a = (key.alpha_g1 + input_point(key, inputs)).into_affine();
            (a, key.beta_g2, G1Affine::zero())
        }),
        ("beta and delta are equal", |key, inputs| {
            key.beta_g2 = key.delta_g2;
            let c = (-key.alpha_g1.into_group()).into_affine();
            (input_point(key, inputs), key.gamma_g2, c)
        }),
        ("3 public-input points", |key, _| {
            key.instance.fill(G1Affine::zero());
            (key.alpha_g1, key.beta_g2, G1Affine::zero())
        }),
    ];
    for (name, forge) in cases {
        let mut key = sound.clone();
        let (a, b, c) = forge(&mut key, &inputs);
        write(here, &key, &Proof { a, b, c }, &inputs);
        let ran = run(here, VERIFY).failed(1, name);
        assert!(ran.stdout.is_empty(), "{ran:?}");
        run(here, VERIFY.iter().chain(&[ALLOW])).succeeded();
    }
    // Without δ nothing binds C.
    let mut key = sound.clone();
    key.delta_g2 = G2Affine::zero();
    let (a, b, c) = (key.alpha_g1, key.beta_g2, key.alpha_g1);
    write(here, &key, &Proof { a, b, c }, &inputs);
    run(here, VERIFY).failed(1, "delta is the point at infinity");
}

#[test]
fn an_insecure_key_is_not_proved_with_unless_it_is_allowed() {
    let folder = uncontributed();
    let here = folder.path();
    let before = names(here);
    let prove = |key, more: &[&str]| {
        let args = ["prove", "--engine", "off", key, "witness.wtns", "p.json"];
        run(here, args.iter().chain(&["s.json"]).chain(more))
    };
    prove("bad.zkey", &[]).failed(1, NAMED);
    assert_eq!(names(here), before, "something was written");
    let ran = prove("bad.zkey", &[ALLOW]).succeeded();
    assert!(ran.stderr.contains("warning"), "{ran:?}");
    let ran = run(here, ["zkey", "export-vk", "bad.zkey", "vk.json"]).succeeded();
    assert!(ran.stderr.contains(NAMED), "{ran:?}");
    run(here, VERIFY).failed(1, NAMED);
    run(here, VERIFY.iter().chain(&[ALLOW])).succeeded();
    for key in ["bad.zkey", "vk.json"] {
        run(here, ["zkey", "export-solidity", key, "v.sol"]).failed(1, NAMED);
    }
    assert!(!here.join("v.sol").exists());

    prove("good.zkey", &[]).succeeded();
    let args = ["zkey", "export-vk", "good.zkey", "vk.json", "--force"];
    run(here, args).succeeded();
    run(here, VERIFY).succeeded();
}

#[test]
fn an_insecure_key_is_named_by_check_and_info() {
    let folder = uncontributed();
    let here = folder.path();
    run(here, ["zkey", "check", "bad.zkey"]).failed(1, NAMED);
    run(here, ["zkey", "check", "bad.zkey", ALLOW]).succeeded();
    run(here, ["zkey", "check", "good.zkey"]).succeeded();
    let ran = run(here, ["zkey", "info", "bad.zkey"]).succeeded();
    assert!(ran.stdout.contains("INSECURE"), "{ran:?}");
    assert!(ran.stdout.contains(NAMED), "{ran:?}");
    let info = |key| {
        run(here, ["zkey", "info", key, "--json"])
            .succeeded()
            .json()
    };
    assert_eq!(info("bad.zkey")["weaknesses"][0], NAMED);
    assert_eq!(info("good.zkey")["weaknesses"], serde_json::json!([]));
}

#[test]
fn an_engine_takes_no_insecure_key_unless_it_is_allowed() {
    let folder = uncontributed();
    let here = folder.path();
    let bad = ["engine", "serve", "--circuits", "bad=bad.zkey"];
    run(here, bad).failed(1, NAMED);

    std::fs::create_dir(here.join("keys")).expect("made");
    std::fs::copy(here.join("good.zkey"), here.join("keys/good.zkey")).expect("copied");
    let engine = serve(here, &[]);
    let register = ["engine", "register", "bad", "--zkey", "bad.zkey"];
    run(here, register).failed(1, NAMED);
    engine.signal(Signal::TERM);
    engine.end().1.succeeded();

    // One that was taken while that was allowed is not loaded any more when it is not.
    let engine = serve(here, &[ALLOW, "--circuits", "bad=bad.zkey"]);
    let prove = |more: &[&str]| {
        let address = "unix:.proofmill/engine/engine.sock";
        let args = ["prove", "--engine", address, "bad.zkey", "witness.wtns"];
        run(here, args.iter().chain(&["p.json", "s.json"]).chain(more))
    };
    // Whoever asks the engine looks for himself.
    prove(&[]).failed(1, NAMED);
    assert!(!here.join("p.json").exists());
    prove(&[ALLOW]).succeeded();
    engine.signal(Signal::TERM);
    engine.end().1.succeeded();
    let engine = serve(here, &[]);
    run(here, ["engine", "preload", "bad"]).failed(1, NAMED);
    engine.signal(Signal::TERM);
    engine.end().1.succeeded();
}
