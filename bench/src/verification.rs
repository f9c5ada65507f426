//! Groth16 proofs under one key, checked as a batch, against single verifications.
//!
//! All contenders start from points that are on their curves, as decoding yields them. All but arkworks
//! test that the points are in their subgroups: our time includes the test, gnark's verifier does it
//! itself, and that of arkworks takes it for granted.

use std::sync::Arc;

use ark_groth16::{Groth16, prepare_verifying_key};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_groth16::{PreparedVerifyingKey, Proof, Prover, SnarkCurve, verify_batch};
use proofmill_kernels::in_subgroup_each;
use proofmill_r1cs::{Assignment, R1cs};
use rayon::ThreadPool;
use serde_json::{Map, Value};

use crate::groth16::Sized;
use crate::peers::{arkworks, gnark};
use crate::versus::{
    COMPARISON_HELP, Comparison, Contender, Contenders, Curve, Options, PeerAnswer, time,
};

/// Number of multiplications in the circuit, on which the time of verification does not depend.
const CONSTRAINTS: usize = 6;

/// Arguments of `proofmill-bench verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPARISON_HELP)]
pub(crate) struct Args {
    /// The curve: bls12-381 or bn254
    #[arg(long, value_enum, default_value = "bls12-381")]
    curve: Curve,
    /// Batches of so many proofs; a list makes a comparison for each
    #[arg(long, value_delimiter = ',', default_value = "256", value_name = "LIST",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: Vec<u16>,
    #[command(flatten)]
    options: Options,
}

/// Valid proofs of one statement, all blinded differently.
struct Input<E: SnarkCurve> {
    key: PreparedVerifyingKey<E>,
    inputs: Vec<E::ScalarField>,
    proofs: Vec<Proof<E>>,
}

/// Compares and reports.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.options.prepare()?;
    let compare = match args.curve {
        Curve::Bls12_381 => compare::<ark_bls12_381::Bls12_381>,
        Curve::Bn254 => compare::<ark_bn254::Bn254>,
        Curve::Bls12_377 | Curve::Grumpkin => {
            anyhow::bail!("no verifier for {}: bls12-381 or bn254", args.curve.name())
        }
    };
    let mut comparisons = Vec::new();
    for batch in &args.batch {
        for threads in args.options.threads() {
            comparisons.push(compare(args, *batch, threads)?);
        }
    }
    let title = "Groth16 proofs under one key: ours as a batch, others' one by one";
    args.options.print(title, &comparisons);
    Ok(())
}

fn compare<E: SnarkCurve>(args: &Args, batch: u16, threads: usize) -> anyhow::Result<Comparison> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()?;
    let input = Input::<E>::new(batch.into())?;
    let mut settings: Map<String, Value> = Map::new();
    settings.insert("curve".to_owned(), args.curve.name().into());
    settings.insert("proofs".to_owned(), batch.into());
    settings.insert("threads".to_owned(), threads.into());

    // Weights from a fixed seed are safe here, as all proofs are our own.
    let mut rng = StdRng::seed_from_u64(3);
    let ours = Contender::in_process(
        "proofmill",
        || pool.install(|| time(|| input.verify_batched(&mut rng))),
        verdict,
    );
    let mut contenders = Contenders::new(&args.options, settings, ours);
    contenders.add_peer("arkworks", || Ok(input.arkworks(&pool)))?;
    let job = ["verify", args.curve.name()];
    contenders.add_peer("gnark", || {
        gnark::offer(&[("gnark", &job)], threads, |file| input.write(file))
    })?;
    contenders.run()
}

fn verdict(valid: usize) -> String {
    format!("{valid} are valid")
}

// === impl Input ===

impl<E: SnarkCurve> Input<E> {
    fn new(count: usize) -> anyhow::Result<Self> {
        let circuit = Sized::Chain {
            constraints: CONSTRAINTS,
        };
        let r1cs = Arc::new(R1cs::from_circuit(circuit)?);
        let assignment = Assignment::from_circuit(circuit)?;
        // The secrets of the key come from a fixed seed, which is fine as the key is only for measurements.
        let rng = &mut StdRng::seed_from_u64(1);
        let key = proofmill_groth16::setup::<E>(&r1cs, rng)?;
        let prover = Prover::new(&key, &r1cs)?;
        let proofs: Result<_, _> = (0..count)
            .map(|_| prover.prove(assignment.z(), rng).map(|(proof, _)| proof))
            .collect();
        Ok(Self {
            key: PreparedVerifyingKey::from(key.vk.clone()),
            inputs: assignment.inputs().to_vec(),
            proofs: proofs?,
        })
    }

    /// Checks all proofs as one batch, and returns the number of valid ones.
    fn verify_batched(&self, rng: &mut StdRng) -> usize {
        let first: Vec<_> = self
            .proofs
            .iter()
            .flat_map(|proof| [proof.a, proof.c])
            .collect();
        let second: Vec<_> = self.proofs.iter().map(|proof| proof.b).collect();
        let first = in_subgroup_each::<E::G1>(&first);
        let second = in_subgroup_each::<E::G2>(&second);
        let in_subgroup = first.as_chunks::<2>().0.iter().zip(second);
        let in_subgroup = in_subgroup.map(|([a, c], b)| *a && b && *c);
        let proofs: Vec<_> = self
            .proofs
            .iter()
            .map(|proof| (&self.inputs[..], proof))
            .collect();
        let verdicts = verify_batch(&self.key, &proofs, rng);
        let valid = verdicts.iter().zip(in_subgroup);
        valid
            .filter(|(verdict, in_subgroup)| verdict.is_ok() && *in_subgroup)
            .count()
    }

    fn arkworks<'a>(&'a self, pool: &'a ThreadPool) -> PeerAnswer<'a> {
        let key = prepare_verifying_key(&arkworks::verifying_key(self.key.vk()));
        let proofs: Vec<_> = self
            .proofs
            .iter()
            .map(|proof| ark_groth16::Proof::<E> {
                a: proof.a,
                b: proof.b,
                c: proof.c,
            })
            .collect();
        let valid = move || {
            let verify = |proof| Groth16::<E>::verify_proof(&key, proof, &self.inputs);
            let verdicts = proofs.iter().map(verify);
            verdicts
                .filter(|verdict| matches!(verdict, Ok(true)))
                .count()
        };
        PeerAnswer::Runs(vec![Contender::in_process(
            "ark-groth16",
            move || pool.install(|| time(&valid)),
            verdict,
        )])
    }

    fn write(&self, file: &mut gnark::InputFile) -> anyhow::Result<()> {
        let vk = self.key.vk();
        file.point(&vk.alpha_g1)?;
        for point in [&vk.beta_g2, &vk.gamma_g2, &vk.delta_g2] {
            file.point(point)?;
        }
        file.points(&vk.instance)?;
        file.number(self.proofs.len())?;
        for proof in &self.proofs {
            file.point(&proof.a)?;
            file.point(&proof.b)?;
            file.point(&proof.c)?;
            file.fields(&self.inputs)?;
        }
        Ok(())
    }
}
