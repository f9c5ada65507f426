//! Proofs of circomlib's circuits through the verification service, beside snarkjs's own verdicts.

use std::fs;
use std::path::Path;

use proofmill_api::verifier::RequestBody;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::artefacts::{Circuit, EDDSA, MERKLE};
use super::proofs::{prove, read_json, snarkjs_verdict, snarkjs_verifies};
use super::tools::snarkjs;
use crate::support::folder;
use crate::verifier::{KIND, connect, serve};

/// Sizes of batches that are tried.
const SIZES: [usize; 6] = [1, 2, 5, 16, 33, 64];

/// A proof with its public signals, as JSON.
#[derive(Clone)]
struct Claimed {
    proof: Value,
    public: Value,
}

/// Proofs under one key.
struct Proofs {
    circuit: &'static Circuit,
    valid: Vec<Claimed>,
    tampered: Vec<Claimed>,
}

/// Two proofs by snarkjs and one by Proofmill, and copies with one field changed, each with snarkjs's verdict.
fn proofs(circuit: &'static Circuit) -> Proofs {
    let folder = folder();
    let here = folder.path();
    prove(circuit, here, &[]).succeeded();
    snarkjs_verifies(circuit, here, "proof.json", "public.json");
    let mut valid = vec![claimed(here)];
    let (key, witness) = (circuit.key(), circuit.witness());
    let [key, witness] = [&key, &witness].map(|path| path.to_string_lossy());
    for _ in 0..2 {
        let args = [
            "groth16",
            "prove",
            &key,
            &witness,
            "proof.json",
            "public.json",
        ];
        snarkjs(here, args).succeeded();
        snarkjs_verifies(circuit, here, "proof.json", "public.json");
        valid.push(claimed(here));
    }
    let (first, other) = (&valid[0], &valid[1]);
    let mut tampered = Vec::new();
    for element in ["pi_a", "pi_b", "pi_c"] {
        let mut one = first.clone();
        one.proof[element] = other.proof[element].clone();
        tampered.push(one);
    }
    for signal in 0..first.public.as_array().expect("a list").len() {
        let mut one = first.clone();
        one.public[signal] = json!("7");
        tampered.push(one);
    }
    for one in &tampered {
        write(here, one);
        let ran = snarkjs_verdict(circuit, here, "proof.json", "public.json");
        assert!(
            ran.code != Some(0) && ran.stdout.contains("Invalid proof"),
            "{ran:?}"
        );
    }
    Proofs {
        circuit,
        valid,
        tampered,
    }
}

fn claimed(folder: &Path) -> Claimed {
    Claimed {
        proof: read_json(&folder.join("proof.json")),
        public: read_json(&folder.join("public.json")),
    }
}

fn write(folder: &Path, claimed: &Claimed) {
    let files = [
        ("proof.json", &claimed.proof),
        ("public.json", &claimed.public),
    ];
    for (name, content) in files {
        fs::write(folder.join(name), content.to_string()).expect("written");
    }
}

/// Batches from new sources, under two keys.
#[test]
fn false_ones_among_proofs_of_circomlib_are_named() {
    let folder = folder();
    let all = [&MERKLE, &EDDSA].map(proofs);
    let verifier = serve(folder.path(), &[]);
    let mut client = connect(folder.path());
    let keys = all
        .each_ref()
        .map(|proofs| client.add_key_of(&fs::read(proofs.circuit.verifying_key()).expect("a key")));
    let rng = &mut StdRng::seed_from_u64(11);
    for size in SIZES {
        for bad in [0, 1, 2.min(size), size / 2, size] {
            let mut is_bad: Vec<_> = (0..size).map(|place| place < bad).collect();
            is_bad.shuffle(rng);
            let source = rng.random::<u64>().to_string();
            let mut first = None;
            for is_bad in &is_bad {
                let which = rng.random_range(0..all.len());
                let of = if *is_bad {
                    &all[which].tampered
                } else {
                    &all[which].valid
                };
                let chosen = of.choose(rng).expect("some");
                let request = client.ask(RequestBody::Verify {
                    kind: KIND,
                    key: Some(&keys[which]),
                    statement: chosen.public.to_string().as_bytes(),
                    proof: chosen.proof.to_string().as_bytes(),
                    source: &source,
                    priority: 0,
                    deadline_ms: None,
                });
                first.get_or_insert(request);
            }
            let first = first.expect("a request");
            let mut results: Vec<_> = is_bad.iter().map(|_| client.result()).collect();
            results.sort_by_key(|result| result.request_id);
            for (place, (result, is_bad)) in results.iter().zip(&is_bad).enumerate() {
                assert_eq!(result.request_id, first + place as u64);
                assert_eq!(
                    result.status,
                    u8::from(*is_bad),
                    "{size}, {bad}: {result:?}"
                );
            }
        }
    }
    verifier.signal(Signal::TERM);
    verifier.end().1.succeeded();
}
