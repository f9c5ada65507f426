//! Aggregates of Mirage and Groth16 proofs, against other provers that are given as commands.

use std::time::Instant;

use anyhow::Context;
use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{Field, UniformRand};
use ark_std::rand::rngs::{OsRng, StdRng};
use ark_std::rand::{CryptoRng, RngCore, SeedableRng};
use proofmill_aggregation::{
    Aggregate, AggregationCurve, Commitment, Groth16Index, MirageClass, MirageIndex, MirageParts,
    MirageStatement, Srs,
};
use proofmill_groth16::{Proof, VerifyingKey};
use proofmill_kernels::fixed_base;
use rayon::ThreadPool;
use serde_json::{Map, Value};

use crate::harness::Figures;
use crate::versus::{COMPARISON_HELP, Comparison, Contender, Contenders, Curve, Options, Sample};

/// Number of circuits under which the Mirage proofs are, as in the big Merkle tree.
const CLASSES: usize = 5;
/// Number of public inputs that all Mirage proofs share.
const SHARED_INPUTS: usize = 3;
/// Number of measured verifications of one aggregate.
const VERIFY_RUNS: usize = 9;

/// Arguments of `proofmill-bench aggregation`.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPARISON_HELP)]
pub(crate) struct Args {
    /// Proofs in one aggregate; a list makes a comparison for each
    #[arg(long, value_delimiter = ',', default_value = "256", value_name = "LIST",
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    proofs: Vec<u32>,
    /// The proofs that are aggregated
    #[arg(long, value_enum, default_value_t = System::Mirage)]
    system: System,
    /// The curve: bls12-381 or bn254
    #[arg(long, value_enum, default_value_t = Curve::Bls12_381)]
    curve: Curve,
    #[command(flatten)]
    options: Options,
}

/// A proof system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum System {
    /// Groth16 with a committed part of the witness, of five circuits
    Mirage,
    /// Groth16, under one key with one public input
    Groth16,
}

/// Valid Mirage proofs of one process, with their key.
struct MirageProofs<E: AggregationCurve> {
    case: MirageCase<E>,
    index: MirageIndex<E>,
}

/// Valid Mirage proofs, made from chosen logarithms instead of a circuit.
pub(crate) struct MirageCase<E: AggregationCurve> {
    pub(crate) srs: Srs<E>,
    pub(crate) parts: MirageParts<E>,
    /// Public inputs that all proofs share.
    pub(crate) inputs: Vec<E::ScalarField>,
    pub(crate) proofs: Vec<Proof<E>>,
    /// D of each proof.
    pub(crate) committed: Vec<E::G1Affine>,
}

/// Valid Groth16 proofs, made from chosen logarithms instead of a circuit.
struct Groth16Proofs<E: AggregationCurve> {
    srs: Srs<E>,
    index: Groth16Index<E>,
    inputs: Vec<Vec<E::ScalarField>>,
    proofs: Vec<Proof<E>>,
}

/// Compares and reports.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.options.prepare()?;
    let comparisons = match args.curve {
        Curve::Bls12_381 => compare_all::<Bls12_381>(args),
        Curve::Bn254 => compare_all::<Bn254>(args),
        _ => anyhow::bail!("proofs are aggregated over bls12-381 and bn254"),
    }?;
    let title = "Aggregation: one proof for many; our time excludes its verification, others' may \
                 include it";
    args.options.print(title, &comparisons);
    Ok(())
}

fn compare_all<E: AggregationCurve>(args: &Args) -> anyhow::Result<Vec<Comparison>> {
    let mut comparisons = Vec::new();
    for proofs in &args.proofs {
        let count = *proofs as usize;
        let work: Box<dyn Work> = match args.system {
            System::Mirage => Box::new(MirageProofs::<E>::new(count)?),
            System::Groth16 => Box::new(Groth16Proofs::<E>::new(count)?),
        };
        for threads in args.options.threads() {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()?;
            comparisons.push(compare(args, count, &*work, &pool)?);
        }
    }
    Ok(comparisons)
}

/// Proofs to aggregate.
trait Work: Sync {
    /// Aggregates the proofs; returns the times and the encoded aggregate.
    fn aggregate(&self) -> anyhow::Result<(Sample, Vec<u8>)>;

    /// Decodes an aggregate and returns whether it is valid.
    fn holds(&self, bytes: &[u8]) -> anyhow::Result<bool>;
}

fn compare(
    args: &Args,
    count: usize,
    work: &dyn Work,
    pool: &ThreadPool,
) -> anyhow::Result<Comparison> {
    let mut settings: Map<String, Value> = Map::new();
    settings.insert("proofs".to_owned(), count.into());
    settings.insert("system".to_owned(), args.system.name().into());
    settings.insert("curve".to_owned(), args.curve.name().into());
    settings.insert("threads".to_owned(), pool.current_num_threads().into());
    let mut bytes = Vec::new();
    let ours = Contender::new("proofmill", |_| {
        let (sample, made) = pool.install(|| work.aggregate())?;
        bytes = made;
        Ok(sample)
    });
    let mut comparison = Contenders::new(&args.options, settings, ours).run()?;
    let mut verifications = Vec::new();
    for _ in 0..VERIFY_RUNS {
        let began = Instant::now();
        let holds = pool.install(|| work.holds(&bytes))?;
        verifications.push(began.elapsed().as_secs_f64() * 1e3);
        anyhow::ensure!(holds, "our own aggregate does not hold");
    }
    comparison.notes.push(format!(
        "{count} proofs: {:.2} ms for each; {} bytes, verified from them in {:.1} ms (median of {VERIFY_RUNS})",
        comparison.ours.ms.p50() / count as f64,
        bytes.len(),
        Figures::of(verifications).p50(),
    ));
    Ok(comparison)
}

// === impl System ===

impl System {
    const fn name(self) -> &'static str {
        match self {
            Self::Mirage => "mirage",
            Self::Groth16 => "groth16",
        }
    }
}

// === impl MirageProofs ===

impl<E: AggregationCurve> MirageProofs<E> {
    fn new(count: usize) -> anyhow::Result<Self> {
        let case = MirageCase::new(count, &mut OsRng)?;
        Ok(Self {
            index: MirageIndex::new(&case.srs, case.parts.clone())?,
            case,
        })
    }
}

// === impl MirageCase ===

impl<E: AggregationCurve> MirageCase<E> {
    /// Proofs and parts that satisfy A·B = α·β + S·γ + C·δ + D·η for chosen logarithms, the same at every call, and a
    /// reference string with secrets of `srs_rng`.
    pub(crate) fn new(
        count: usize,
        srs_rng: &mut (impl RngCore + CryptoRng),
    ) -> anyhow::Result<Self> {
        let rng = &mut StdRng::seed_from_u64(1);
        let mut random_scalars = |count: usize| -> Vec<E::ScalarField> {
            (0..count).map(|_| E::ScalarField::rand(rng)).collect()
        };
        let (secrets, inputs) = (random_scalars(3 * CLASSES), random_scalars(SHARED_INPUTS));
        let (alpha_beta, a, b, d) = (
            random_scalars(2),
            random_scalars(count),
            random_scalars(count),
            random_scalars(count),
        );
        let points: Vec<Vec<E::ScalarField>> =
            (0..=SHARED_INPUTS).map(|_| random_scalars(count)).collect();
        let c: Vec<E::ScalarField> = (0..count)
            .map(|i| {
                let [gamma, delta, eta] = [0, 1, 2].map(|j| secrets[3 * (i % CLASSES) + j]);
                let shared = points[1..].iter().zip(&inputs);
                let shared: E::ScalarField = shared.map(|(of, input)| of[i] * *input).sum();
                let s = points[0][i] + shared;
                (a[i] * b[i] - alpha_beta[0] * alpha_beta[1] - s * gamma - d[i] * eta)
                    * delta.inverse().expect("random")
            })
            .collect();
        let class_points = in_g2::<E>(&secrets);
        let classes = class_points.chunks_exact(3).map(|points| MirageClass {
            gamma: points[0],
            delta: points[1],
            eta: points[2],
        });
        let parts = MirageParts {
            alpha: in_g1::<E>(&alpha_beta[..1])[0],
            beta: in_g2::<E>(&alpha_beta[1..])[0],
            classes: classes.collect(),
            class_of: (0..count).map(|i| (i % CLASSES) as u32).collect(),
            inputs: points.iter().map(|points| in_g1::<E>(points)).collect(),
        };
        Ok(Self {
            srs: Srs::setup(count.next_power_of_two().max(2), srs_rng)?,
            parts,
            inputs,
            proofs: proofs(&a, &b, &c),
            committed: in_g1::<E>(&d),
        })
    }
}

impl<E: AggregationCurve> Work for MirageProofs<E> {
    fn aggregate(&self) -> anyhow::Result<(Sample, Vec<u8>)> {
        let case = &self.case;
        let began = Instant::now();
        let commitment = self.index.commit(&case.srs, &case.committed)?;
        let committed = began.elapsed();
        let statement = MirageStatement {
            context: &[],
            inputs: &case.inputs,
            commitment: &commitment,
        };
        let aggregate =
            self.index
                .aggregate(&case.srs, statement, &case.proofs, &case.committed)?;
        let total = began.elapsed();
        let sample = Sample {
            ms: vec![total.as_secs_f64() * 1e3],
            stages: vec![
                ("commit", committed.as_secs_f64() * 1e3),
                ("aggregate", (total - committed).as_secs_f64() * 1e3),
            ],
            ..Sample::default()
        };
        Ok((
            sample,
            [commitment.to_bytes(), aggregate.to_bytes()].concat(),
        ))
    }

    fn holds(&self, bytes: &[u8]) -> anyhow::Result<bool> {
        let (commitment, aggregate) = bytes
            .split_at_checked(Commitment::<E>::encoded_size())
            .context("too few bytes")?;
        let statement = MirageStatement {
            context: &[],
            inputs: &self.case.inputs,
            commitment: &Commitment::from_bytes(commitment)?,
        };
        let aggregate = Aggregate::from_bytes(aggregate)?;
        let key = self.index.verifying_key();
        Ok(key.verify(statement, &aggregate).is_ok())
    }
}

// === impl Groth16Proofs ===

impl<E: AggregationCurve> Groth16Proofs<E> {
    /// Proofs and a key that satisfy A·B = α·β + S·γ + C·δ for chosen logarithms.
    fn new(count: usize) -> anyhow::Result<Self> {
        let rng = &mut StdRng::seed_from_u64(2);
        let mut random_scalars = |count: usize| -> Vec<E::ScalarField> {
            (0..count).map(|_| E::ScalarField::rand(rng)).collect()
        };
        let (secrets, a, b, inputs) = (
            random_scalars(6),
            random_scalars(count),
            random_scalars(count),
            random_scalars(count),
        );
        let [alpha, beta, gamma, delta, leading, input] = [0, 1, 2, 3, 4, 5].map(|i| secrets[i]);
        let c: Vec<E::ScalarField> = (0..count)
            .map(|i| {
                let s = leading + input * inputs[i];
                (a[i] * b[i] - alpha * beta - s * gamma) * delta.inverse().expect("random")
            })
            .collect();
        let points_g2 = in_g2::<E>(&[beta, gamma, delta]);
        let key = VerifyingKey {
            circuit: [0; 32],
            alpha_g1: (E::G1Affine::generator() * alpha).into_affine(),
            beta_g2: points_g2[0],
            gamma_g2: points_g2[1],
            delta_g2: points_g2[2],
            instance: in_g1::<E>(&[leading, input]),
        };
        let srs = Srs::setup(count.next_power_of_two().max(2), &mut OsRng)?;
        Ok(Self {
            index: Groth16Index::new(&srs, vec![key], vec![0; count])?,
            srs,
            inputs: inputs.iter().map(|input| vec![*input]).collect(),
            proofs: proofs(&a, &b, &c),
        })
    }
}

impl<E: AggregationCurve> Work for Groth16Proofs<E> {
    fn aggregate(&self) -> anyhow::Result<(Sample, Vec<u8>)> {
        let began = Instant::now();
        let aggregate = self
            .index
            .aggregate(&self.srs, &self.inputs, &self.proofs)?;
        let sample = Sample {
            ms: vec![began.elapsed().as_secs_f64() * 1e3],
            ..Sample::default()
        };
        Ok((sample, aggregate.to_bytes()))
    }

    fn holds(&self, bytes: &[u8]) -> anyhow::Result<bool> {
        let aggregate = Aggregate::from_bytes(bytes)?;
        Ok(self.index.verify(&self.inputs, &aggregate).is_ok())
    }
}

fn in_g1<E: AggregationCurve>(scalars: &[E::ScalarField]) -> Vec<E::G1Affine> {
    fixed_base(E::G1::generator(), scalars)
}

fn in_g2<E: AggregationCurve>(scalars: &[E::ScalarField]) -> Vec<E::G2Affine> {
    fixed_base(E::G2::generator(), scalars)
}

fn proofs<E: AggregationCurve>(
    a: &[E::ScalarField],
    b: &[E::ScalarField],
    c: &[E::ScalarField],
) -> Vec<Proof<E>> {
    let (a, b, c) = (in_g1::<E>(a), in_g2::<E>(b), in_g1::<E>(c));
    let points = a.into_iter().zip(b).zip(c);
    points.map(|((a, b), c)| Proof { a, b, c }).collect()
}
