//! Multi-scalar multiplication, against other libraries.

use ark_ec::CurveGroup;
use ark_ff::{PrimeField, UniformRand};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use proofmill_kernels::{InstructionSet, PreparedBases, msm};
use serde_json::{Map, Value};

use crate::peers::{self, MsmPeers, fingerprint};
use crate::versus::{
    COMPARISON_HELP, Comparison, Contender, Contenders, Curve, Group, Options, time,
};

/// Arguments of `proofmill-bench msm`.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPARISON_HELP)]
pub(crate) struct Args {
    /// The curve
    #[arg(long, value_enum, default_value = "bls12-381")]
    curve: Curve,
    /// Its group
    #[arg(long, value_enum, default_value = "g1")]
    group: Group,
    /// Products of 2^LOG_N terms; a list makes a comparison for each
    #[arg(long, value_delimiter = ',', default_value = "16", value_name = "LIST",
          value_parser = clap::value_parser!(u8).range(1..=28))]
    log_n: Vec<u8>,
    /// Distribution of the scalars
    #[arg(long, value_enum, default_value = "random")]
    skew: Skew,
    /// Ours with resident bases, of so many points for each base; the peers' stay as they are
    #[arg(long, value_name = "MEMORY_FACTOR",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    prepared: Option<u16>,
    #[command(flatten)]
    options: Options,
}

/// Distribution of the scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Skew {
    /// Uniform in the field
    Random,
    /// Zero or one, as a circuit's bits are
    ZeroOne,
    /// Nine in ten zero or one, the rest uniform
    MostlyBits,
    /// One value for all
    Equal,
    /// Below 2^16
    Small,
    /// r − 1 − (below 2^16)
    Negative,
    /// All zero but one
    Sparse,
}

/// Input of a product: points and scalars.
pub(crate) struct Input<G: CurveGroup> {
    /// Distinct points whose logarithms to each other are unknown.
    pub(crate) points: Vec<G::Affine>,
    /// A scalar for each point.
    pub(crate) scalars: Vec<G::ScalarField>,
}

/// Compares and reports.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.options.prepare()?;
    let mut comparisons = Vec::new();
    for log_n in &args.log_n {
        for threads in args.options.threads() {
            let compare = match (args.curve, args.group) {
                (Curve::Bls12_381, Group::G1) => compare::<ark_bls12_381::G1Projective>,
                (Curve::Bls12_381, Group::G2) => compare::<ark_bls12_381::G2Projective>,
                (Curve::Bls12_377, Group::G1) => compare::<ark_bls12_377::G1Projective>,
                (Curve::Bls12_377, Group::G2) => compare::<ark_bls12_377::G2Projective>,
                (Curve::Bn254, Group::G1) => compare::<ark_bn254::G1Projective>,
                (Curve::Bn254, Group::G2) => compare::<ark_bn254::G2Projective>,
                (Curve::Grumpkin, Group::G1) => compare::<ark_grumpkin::Projective>,
                (Curve::Grumpkin, Group::G2) => anyhow::bail!("grumpkin has one group: g1"),
            };
            comparisons.push(compare(args, *log_n, threads)?);
        }
    }
    let title = "Multi-scalar multiplication, times of one product";
    args.options.print(title, &comparisons);
    Ok(())
}

fn compare<G: MsmPeers>(args: &Args, log_n: u8, threads: usize) -> anyhow::Result<Comparison> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()?;
    let input = Input::<G>::new(log_n, args.skew);
    let mut settings: Map<String, Value> = Map::new();
    settings.insert("curve".to_owned(), args.curve.name().into());
    settings.insert("group".to_owned(), args.group.name().into());
    settings.insert("log_n".to_owned(), log_n.into());
    settings.insert("threads".to_owned(), threads.into());
    settings.insert("scalars".to_owned(), args.skew.name().into());

    let prepared = args.prepared.map(|factor| {
        settings.insert("prepared".to_owned(), factor.into());
        let set = InstructionSet::current();
        let limit = PreparedBases::<G>::bytes_for(set, input.points.len(), usize::from(factor));
        pool.install(|| PreparedBases::<G>::new(&input.points, limit))
    });
    let ours = Contender::in_process(
        "proofmill",
        || {
            pool.install(|| {
                time(|| match &prepared {
                    Some(bases) => bases.msm(&input.scalars),
                    None => msm::<G>(&input.points, &input.scalars),
                })
            })
        },
        fingerprint::of_point,
    );
    let mut contenders = Contenders::new(&args.options, settings, ours);
    if let Some(bases) = &prepared {
        contenders.note(format!(
            "2^{log_n}: {} prepared points for each base, {} MiB; the bases alone are {} MiB",
            bases.copies(),
            bases.bytes() >> 20,
            size_of_val(&input.points[..]) >> 20,
        ));
    }
    contenders.add_peer("arkworks", || Ok(peers::arkworks::msm(&input, &pool)))?;
    contenders.add_peer("blst", || G::blst(&input, &pool))?;
    contenders.add_peer("halo2curves", || G::halo2curves(&input, &pool))?;
    let job = ["msm", args.curve.name(), args.group.name()];
    contenders.add_peer("gnark", || {
        peers::gnark::offer(&[("gnark-crypto", &job)], threads, |file| {
            file.points(&input.points)?;
            file.fields(&input.scalars)
        })
    })?;
    contenders.run()
}

// === impl Input ===

impl<G: CurveGroup> Input<G> {
    /// An input of 2^`log_n` terms, the same at every call. Each point is the sum of the one before and
    /// a random one of 64 points, which takes one addition and yields no regular progression.
    pub(crate) fn new(log_n: u8, skew: Skew) -> Self {
        let rng = &mut StdRng::seed_from_u64(u64::from(log_n));
        let steps: Vec<G> = (0..64).map(|_| G::rand(rng)).collect();
        let mut point = G::rand(rng);
        let points: Vec<G> = (0..1_usize << log_n)
            .map(|_| {
                point += steps[rng.gen_range(0..steps.len())];
                point
            })
            .collect();
        let common = G::ScalarField::rand(rng);
        let scalars = (0..points.len())
            .map(|index| skew.scalar(index, common, rng))
            .collect();
        Self {
            points: G::normalize_batch(&points),
            scalars,
        }
    }
}

// === impl Skew ===

impl Skew {
    const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::ZeroOne => "zero-one",
            Self::MostlyBits => "mostly-bits",
            Self::Equal => "equal",
            Self::Small => "small",
            Self::Negative => "negative",
            Self::Sparse => "sparse",
        }
    }

    fn scalar<F: PrimeField>(self, index: usize, common: F, rng: &mut impl Rng) -> F {
        match self {
            Self::Random => F::rand(rng),
            Self::ZeroOne => F::from(rng.r#gen::<bool>()),
            Self::MostlyBits if rng.gen_range(0..10) == 0 => F::rand(rng),
            Self::MostlyBits => F::from(rng.r#gen::<bool>()),
            Self::Equal => common,
            Self::Small => F::from(rng.r#gen::<u16>()),
            Self::Negative => -F::ONE - F::from(rng.r#gen::<u16>()),
            Self::Sparse if index == 0 => common,
            Self::Sparse => F::ZERO,
        }
    }
}
