//! A circuit proved in parts, against the same circuit proved in one piece by the same prover.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ff::PrimeField;
use ark_std::rand::RngCore;
use ark_std::rand::rngs::OsRng;
use proofmill_aggregation::Srs;
use proofmill_groth16::mirage::{ProvingKey, Setup};
use proofmill_groth16::{PreparedVerifyingKey, ResidentForm, ResidentKey, setup, verify};
use proofmill_partition::applications::{BigMerkleTree, Squarings};
use proofmill_partition::proof::{ClassKeys, Index, Journal, PartitionCurve, Prover, Step};
use proofmill_partition::{Monolithic, Partition, PartitionedCircuit};
use proofmill_r1cs::{Assignment, R1cs};
use rayon::ThreadPool;
use serde_json::{Map, Value};

use crate::versus::{COMPARISON_HELP, Comparison, Contender, Contenders, Curve, Options, Sample};

/// Arguments of `proofmill-bench partition`.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPARISON_HELP)]
pub(crate) struct Args {
    /// The circuit that is proved
    #[arg(long, value_enum, default_value_t = Circuit::Squarings)]
    circuit: Circuit,
    /// The curve: bn254 or bls12-381
    #[arg(long, value_enum, default_value_t = Curve::Bn254)]
    curve: Curve,
    /// Parts; for a Merkle tree a power of two
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    parts: u32,
    /// Values that each part hands on to the next
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    portals: u32,
    /// Constraints of each part of squarings, about: a power of two is not exceeded
    #[arg(long, default_value_t = 17, value_parser = clap::value_parser!(u8).range(10..=24),
          value_name = "LOG2")]
    log_constraints: u8,
    /// Hashes in each part of a Merkle tree
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1 << 10))]
    hashes: u32,
    /// Keys of classes with prepared points, in so many times their own bytes; the key of one piece stays as it is
    #[arg(long, value_name = "MEMORY_FACTOR",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    prepared: Option<u16>,
    #[command(flatten)]
    options: Options,
}

/// A circuit in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Circuit {
    /// Repeated squarings: each value is like a random number
    Squarings,
    /// A Merkle tree of SHA-256, as Hekaton's benchmark has it: nearly all values are bits
    MerkleTree,
}

/// Name of the contender that proves the circuit in one piece.
const ONE_PIECE_NAME: &str = "in one piece";

/// A circuit with its witness, its keys and its partition.
struct InParts<E: PartitionCurve, C> {
    circuit: C,
    index: Index<E>,
    srs: Srs<E>,
    keys: ClassKeys<E>,
    /// Seconds in which the keys were loaded and prepared.
    keys_loaded_in_s: f64,
    constraints: usize,
}

/// The same circuit in one piece, with its key.
struct InOnePiece<E: PartitionCurve, C> {
    circuit: C,
    key: ResidentKey<E>,
    verifier: PreparedVerifyingKey<E>,
    constraints: usize,
}

/// Compares and reports.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.options.prepare()?;
    let comparisons = match args.curve {
        Curve::Bn254 => compare_all::<Bn254>(args),
        Curve::Bls12_381 => compare_all::<Bls12_381>(args),
        _ => anyhow::bail!("circuits in parts are proved over bn254 and bls12-381"),
    }?;
    let title = "A circuit in parts, against the same circuit in one piece";
    args.options.print(title, &comparisons);
    Ok(())
}

fn compare_all<E: PartitionCurve>(args: &Args) -> anyhow::Result<Vec<Comparison>> {
    match args.circuit {
        Circuit::Squarings => compare_circuit::<E, _>(args, squarings(args)?),
        Circuit::MerkleTree => compare_circuit::<E, _>(args, merkle_tree(args)?),
    }
}

/// Repeated squarings, as many as fit in the parts' constraints. A squaring takes one constraint; the memory check
/// and the states of a part take five for each access, and some thousands.
fn squarings<F: PrimeField>(args: &Args) -> anyhow::Result<Squarings<F>> {
    let portals = args.portals as usize;
    let squaring_constraints = (1usize << args.log_constraints)
        .saturating_sub(4 << 10)
        .saturating_sub(13 * portals);
    let squarings_per_value = (squaring_constraints / portals).max(1);
    let values = (0..u64::from(args.portals)).map(|value| F::from(3 + value));
    Ok(Squarings::new(
        args.parts as usize,
        squarings_per_value,
        values.collect(),
    )?)
}

fn merkle_tree<F: PrimeField>(args: &Args) -> anyhow::Result<BigMerkleTree<F>> {
    anyhow::ensure!(
        args.parts.is_power_of_two() && args.parts >= 4,
        "a Merkle tree has 4, 8, 16 … parts: {} are asked for",
        args.parts
    );
    let leaf = |_| std::array::from_fn(|_| OsRng.next_u32());
    let leaves = (0..args.parts / 2).map(leaf).collect();
    Ok(BigMerkleTree::new(
        leaves,
        args.hashes as usize,
        args.portals as usize,
    )?)
}

fn compare_circuit<E: PartitionCurve, C>(args: &Args, circuit: C) -> anyhow::Result<Vec<Comparison>>
where
    C: PartitionedCircuit<E::ScalarField> + Clone + Sync,
{
    let parts = InParts::<E, C>::new(circuit.clone(), args.prepared)?;
    let whole = InOnePiece::<E, C>::new(circuit)?;
    let compared = args.options.threads().map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()?;
        compare(args, &parts, &whole, &pool)
    });
    compared.collect()
}

fn compare<E: PartitionCurve, C>(
    args: &Args,
    parts: &InParts<E, C>,
    whole: &InOnePiece<E, C>,
    pool: &ThreadPool,
) -> anyhow::Result<Comparison>
where
    C: PartitionedCircuit<E::ScalarField> + Sync,
{
    let mut settings: Map<String, Value> = Map::new();
    if args.circuit == Circuit::MerkleTree {
        settings.insert("hashes".to_owned(), args.hashes.into());
    }
    settings.insert("curve".to_owned(), args.curve.name().into());
    settings.insert("parts".to_owned(), args.parts.into());
    settings.insert("portals".to_owned(), args.portals.into());
    settings.insert("constraints".to_owned(), parts.constraints.into());
    settings.insert("threads".to_owned(), pool.current_num_threads().into());
    if let Some(factor) = args.prepared {
        settings.insert("prepared".to_owned(), factor.into());
    }
    let ours = Contender::new("in parts", |_| pool.install(|| parts.prove()));
    let mut contenders = Contenders::new(&args.options, settings, ours);
    contenders.add_contender(Contender::new(ONE_PIECE_NAME, |_| {
        pool.install(|| whole.prove())
    }));
    let mut comparison = contenders.run()?;
    let rate = |constraints: usize, ms: f64| constraints as f64 / ms;
    let ours = rate(parts.constraints, comparison.ours.ms.p50());
    let in_one_piece = comparison
        .peers
        .iter()
        .find(|peer| peer.name == ONE_PIECE_NAME);
    let in_one_piece = in_one_piece.context("it takes part")?;
    let theirs = rate(whole.constraints, in_one_piece.ms.p50());
    comparison.notes.push(format!(
        "{} constraints in all parts, {ours:.1} thousand a second; {} in one piece, {theirs:.1} thousand a second: \
         {:.1} %; keys of classes {} MB, held in {:.1} s with all cores, of one piece {} MB",
        parts.constraints,
        whole.constraints,
        100.0 * ours / theirs,
        parts.keys.bytes() / 1_000_000,
        parts.keys_loaded_in_s,
        whole.key.bytes() / 1_000_000,
    ));
    Ok(comparison)
}

// === impl InParts ===

impl<E: PartitionCurve, C: PartitionedCircuit<E::ScalarField>> InParts<E, C> {
    fn new(circuit: C, prepared: Option<u16>) -> anyhow::Result<Self> {
        let partition = Partition::new(&circuit)?;
        let srs = Srs::setup(partition.num_parts().next_power_of_two().max(2), &mut OsRng)?;
        let setup = Setup::<E>::new(&mut OsRng);
        let keys = partition.classes().iter().map(|class| {
            let key = setup.key(class.committed_system()?, &mut OsRng)?;
            anyhow::Ok(key)
        });
        let keys = keys.collect::<anyhow::Result<Vec<_>>>()?;
        let of_classes = keys.iter().map(ProvingKey::vk).collect();
        let largest = keys.iter().map(ProvingKey::size_in_bytes).max();
        let residency = prepared.map_or(ResidentForm::Plain, |factor| ResidentForm::Prepared {
            memory_limit: largest.unwrap_or(0) * usize::from(factor),
        });
        let began = Instant::now();
        let held = ClassKeys::hold(&partition, keys, residency)?;
        let keys_loaded_in_s = began.elapsed().as_secs_f64();
        let sizes = (0..partition.num_parts()).map(|part| {
            let class = &partition.classes()[partition.class_of(part)?];
            anyhow::Ok(class.system().num_constraints())
        });
        let constraints = sizes.sum::<anyhow::Result<usize>>()?;
        Ok(Self {
            circuit,
            index: Index::new(partition, of_classes, &srs)?,
            srs,
            keys: held,
            keys_loaded_in_s,
            constraints,
        })
    }

    /// Measures one proof, from the witness to the end of the proof's verification.
    fn prove(&self) -> anyhow::Result<Sample> {
        let prover = Prover {
            index: &self.index,
            srs: &self.srs,
            keys: &self.keys,
        };
        let mut journal = Journal::in_memory(&mut OsRng);
        let began = Instant::now();
        // The beginning of each of the four stages.
        let mut begun = [None; 4];
        let progress = |step| {
            let stage = match step {
                Step::Trace => 0,
                Step::Commit { .. } => 1,
                Step::Prove { .. } => 2,
                _ => 3,
            };
            begun[stage].get_or_insert(began.elapsed());
            ControlFlow::Continue(())
        };
        prover.prove(&self.circuit, &mut journal, &mut OsRng, progress)?;
        let total = began.elapsed();
        let mut ends = begun[1..]
            .iter()
            .map(|at| at.unwrap_or(total))
            .chain([total]);
        let names = ["trace", "commit", "prove", "aggregate"];
        let stages = names.into_iter().zip(begun).map(|(name, start)| {
            let end = ends.next().unwrap_or(total);
            let spent = end.saturating_sub(start.unwrap_or(end));
            (name, spent.as_secs_f64() * 1e3)
        });
        Ok(Sample {
            ms: vec![total.as_secs_f64() * 1e3],
            stages: stages.collect(),
            ..Sample::default()
        })
    }
}

// === impl InOnePiece ===

impl<E: PartitionCurve, C: PartitionedCircuit<E::ScalarField>> InOnePiece<E, C> {
    fn new(circuit: C) -> anyhow::Result<Self> {
        let system = R1cs::from_circuit(Monolithic::new(&circuit))?;
        let constraints = system.num_constraints();
        let key = setup::<E>(&system, &mut OsRng)?;
        let verifier = key.vk.clone().into();
        let key = ResidentKey::new(key, Arc::new(system), ResidentForm::Plain)?;
        Ok(Self {
            circuit,
            key,
            verifier,
            constraints,
        })
    }

    /// Measures one proof, from the witness to the end of the proof's verification.
    fn prove(&self) -> anyhow::Result<Sample> {
        let began = Instant::now();
        let assignment = Assignment::from_circuit(Monolithic::new(&self.circuit))?;
        let synthesised = began.elapsed();
        let (proof, _) = self.key.prover().prove(assignment.z(), &mut OsRng)?;
        verify(&self.verifier, &self.circuit.public_inputs(), &proof).context("our own proof")?;
        let total = began.elapsed();
        Ok(Sample {
            ms: vec![total.as_secs_f64() * 1e3],
            stages: vec![
                ("synthesise", synthesised.as_secs_f64() * 1e3),
                ("prove", (total - synthesised).as_secs_f64() * 1e3),
            ],
            ..Sample::default()
        })
    }
}
