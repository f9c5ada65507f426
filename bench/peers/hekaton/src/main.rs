//! Hekaton's research code (Pratyush/hekaton-system), as a peer of `proofmill-bench`.
//!
//! ```sh
//! proofmill-bench-hekaton aggregate PROOFS RUNS
//! proofmill-bench-hekaton prove PARTS HASHES PORTALS RUNS
//! ```
//!
//! `prove` runs Hekaton's coordinator and workers in one process, one part after the other. It keeps each part's state
//! from the commitment to the proof. The last line is `{"ms": [...]}`; keys are not timed. `RAYON_NUM_THREADS` sets the
//! number of threads.

use std::time::Instant;

use ark_bls12_381::{Bls12_381 as E, Fr, G1Projective, G2Projective};
use ark_cp_groth16::Proof;
use ark_ec::CurveGroup;
use ark_ff::UniformRand;
use ark_ip_proofs::ip_commitment::{IPCommitment, snarkpack::TIPPCommitment};
use ark_ip_proofs::tipa::TIPA;
use distributed_prover::CircuitWithPortals;
use distributed_prover::aggregation::AggProvingKey;
use distributed_prover::coordinator::{CoordinatorStage0State, G16ProvingKeyGenerator};
use distributed_prover::poseidon_util::{
    PoseidonTreeConfig as Tree, PoseidonTreeConfigVar as TreeVar, gen_merkle_params,
};
use distributed_prover::tree_hash_circuit::{MerkleTreeCircuit, MerkleTreeCircuitParams};
use distributed_prover::util::{G16ProvingKey, ProtoTranscript};
use distributed_prover::worker::{process_stage0_request_get_cb, process_stage1_request_with_cb};
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;
use sha2::Sha256;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers = arguments.iter().skip(1);
    let numbers: Vec<usize> = numbers.map(|text| text.parse().expect("numbers")).collect();
    let ms = match (arguments.first().map(String::as_str), &numbers[..]) {
        (Some("aggregate"), [proofs, runs]) => aggregate(*proofs, *runs),
        (Some("prove"), [parts, hashes, portals, runs]) => prove(*parts, *hashes, *portals, *runs),
        _ => panic!("aggregate PROOFS RUNS, or prove PARTS HASHES PORTALS RUNS"),
    };
    println!("{{\"ms\": {ms:?}}}");
}

fn parameters(parts: usize, hashes: usize, portals: usize) -> MerkleTreeCircuitParams {
    MerkleTreeCircuitParams {
        num_leaves: parts / 2,
        num_sha_iters_per_subcircuit: hashes,
        num_portals_per_subcircuit: portals,
    }
}

fn ms(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}

/// Milliseconds of each run of the commitment to all parts' commitments and of the aggregation, which checks its
/// result. The parts' proofs are random points, as a release build does not check them and their validity does not
/// change the work.
fn aggregate(proofs: usize, runs: usize) -> Vec<f64> {
    let rng = &mut rand::thread_rng();
    let circuit = <MerkleTreeCircuit as CircuitWithPortals<Fr>>::new(&parameters(4, 1, 1));
    let generator =
        G16ProvingKeyGenerator::<Tree, TreeVar, E, _>::new(circuit, gen_merkle_params());
    let key = generator.gen_pk(&mut *rng, 0);
    let (tipp_key, _) = TIPA::<E, Sha256>::setup(proofs, &mut *rng).expect("a power of two");
    let key = AggProvingKey::new(tipp_key, |_| &key);
    let mut random_g1_points = |count: usize| -> Vec<_> {
        let points: Vec<G1Projective> = (0..count).map(|_| G1Projective::rand(&mut *rng)).collect();
        G1Projective::normalize_batch(&points)
    };
    let [a, c, d] = [
        random_g1_points(proofs),
        random_g1_points(proofs),
        random_g1_points(proofs),
    ];
    let b: Vec<G2Projective> = (0..proofs).map(|_| G2Projective::rand(&mut *rng)).collect();
    let b = G2Projective::normalize_batch(&b);
    let part_proofs: Vec<Proof<E>> = (0..proofs)
        .map(|i| Proof {
            a: a[i],
            b: b[i],
            c: c[i],
            ds: vec![d[i]],
        })
        .collect();
    let inputs: Vec<Fr> = (0..3).map(|_| Fr::rand(rng)).collect();
    let d: Vec<G1Projective> = d.into_iter().map(Into::into).collect();
    (0..runs)
        .map(|_| {
            let began = Instant::now();
            let com_d =
                TIPPCommitment::<E>::commit_only_left(&key.tipp_pk.pk.ck, &d).expect("as many");
            let mut transcript = ProtoTranscript::new(b"aggregation");
            key.agg_subcircuit_proofs(&mut transcript, &com_d, &part_proofs, &inputs);
            ms(began)
        })
        .collect()
}

/// The keys of the five kinds of parts that Hekaton's setup has.
struct Keys {
    parts: usize,
    /// The first leaf, another leaf, a parent, the root, the part that fills up.
    kinds: [G16ProvingKey<E>; 5],
}

impl Keys {
    fn of(&self, part: usize) -> &G16ProvingKey<E> {
        let kind = match part {
            0 => 0,
            part if part < self.parts / 2 => 1,
            part if part < self.parts - 2 => 2,
            part if part == self.parts - 2 => 3,
            _ => 4,
        };
        &self.kinds[kind]
    }
}

/// Milliseconds of each run, from the witness to the aggregate.
fn prove(parts: usize, hashes: usize, portals: usize, runs: usize) -> Vec<f64> {
    assert!(
        parts > 4,
        "with four parts or fewer there are not five kinds"
    );
    let rng = &mut rand::thread_rng();
    let parameters = parameters(parts, hashes, portals);
    let blank = <MerkleTreeCircuit as CircuitWithPortals<Fr>>::new(&parameters);
    let generator = G16ProvingKeyGenerator::<Tree, TreeVar, E, _>::new(blank, gen_merkle_params());
    let representatives = [0, 1, parts - 3, parts - 2, parts - 1];
    let kinds = representatives.map(|part| generator.gen_pk(&mut *rng, part));
    let keys = Keys { parts, kinds };
    let (tipp_key, _) = TIPA::<E, Sha256>::setup(parts, &mut *rng).expect("a power of two");
    let aggregation = AggProvingKey::new(tipp_key, |part| keys.of(part));
    (0..runs)
        .map(|_| {
            let circuit =
                <MerkleTreeCircuit as CircuitWithPortals<Fr>>::rand(&mut *rng, &parameters);
            let began = Instant::now();
            prove_once(circuit, &keys, &aggregation);
            ms(began)
        })
        .collect()
}

fn prove_once(circuit: MerkleTreeCircuit, keys: &Keys, aggregation: &AggProvingKey<'_, E>) {
    let rng = &mut rand::thread_rng();
    let tree = gen_merkle_params();
    let began = Instant::now();
    let state = CoordinatorStage0State::<E, _>::new::<Tree>(circuit);
    eprintln!("trace {:.0} ms", ms(began));
    let began = Instant::now();
    let mut responses = Vec::new();
    let mut builders = Vec::new();
    for part in 0..keys.parts {
        let request = state.gen_request(part).to_owned();
        let (response, builder) = process_stage0_request_get_cb::<
            _,
            TreeVar,
            _,
            MerkleTreeCircuit,
            _,
        >(&mut *rng, tree.clone(), keys.of(part), request);
        responses.push(response);
        builders.push(builder);
    }
    eprintln!("commit {:.0} ms", ms(began));
    let began = Instant::now();
    let state = state.process_stage0_responses(&aggregation.tipp_pk, tree, &responses);
    eprintln!("tree {:.0} ms", ms(began));
    let began = Instant::now();
    let mut proofs = Vec::new();
    let mut constraints = 0;
    for (part, (mut builder, response)) in builders.into_iter().zip(&responses).enumerate() {
        // The same derivation as in Hekaton's worker (mpi-snark/src/worker.rs).
        let randomness = Fr::rand(&mut ChaCha12Rng::from_seed(response.com_seed));
        let request = state.gen_request(part).to_owned();
        let system = builder.cs.map(|cs| cs);
        proofs.push(process_stage1_request_with_cb(
            &mut *rng,
            builder,
            response.com,
            randomness,
            request,
        ));
        constraints += system.num_constraints();
    }
    let elapsed = ms(began);
    eprintln!("prove {elapsed:.0} ms, {constraints} constraints in all parts");
    let began = Instant::now();
    state.into_agg_state().gen_agg_proof(aggregation, &proofs);
    eprintln!("aggregate {:.0} ms", ms(began));
}
