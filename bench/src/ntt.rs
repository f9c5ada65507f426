//! Number-theoretic transforms, against other libraries.

use ark_ff::PrimeField;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_kernels::Domain;
use serde_json::{Map, Value};

use crate::peers::{self, NttPeers, fingerprint};
use crate::versus::{COMPARISON_HELP, Comparison, Contender, Contenders, Curve, Options, time};

/// Arguments of `proofmill-bench ntt`.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPARISON_HELP)]
pub(crate) struct Args {
    /// The curve whose scalar field is transformed over
    #[arg(long, value_enum, default_value = "bls12-381")]
    curve: Curve,
    /// Transforms of 2^LOG_N values; a list makes a comparison for each
    #[arg(long, value_delimiter = ',', default_value = "20", value_name = "LIST",
          value_parser = clap::value_parser!(u8).range(1..=28))]
    log_n: Vec<u8>,
    /// From what to what
    #[arg(long, value_enum, default_value = "forward")]
    transform: Transform,
    #[command(flatten)]
    options: Options,
}

/// Direction and domain of a transform, whose input and output are in natural order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Transform {
    /// Coefficients to values on the subgroup
    Forward,
    /// And back
    Inverse,
    /// Coefficients to values on the coset by the field's generator
    CosetForward,
    /// And back
    CosetInverse,
}

/// Input of a transform.
pub(crate) struct Input<F: PrimeField> {
    /// Random values.
    pub(crate) values: Vec<F>,
    /// A domain with a point for each value.
    pub(crate) domain: Domain<F>,
    /// The transform to compute.
    pub(crate) transform: Transform,
}

/// Compares and reports.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.options.prepare()?;
    let mut comparisons = Vec::new();
    for log_n in &args.log_n {
        for threads in args.options.threads() {
            let compare = match args.curve {
                Curve::Bls12_381 => compare::<ark_bls12_381::Fr>,
                Curve::Bls12_377 => compare::<ark_bls12_377::Fr>,
                Curve::Bn254 => compare::<ark_bn254::Fr>,
                Curve::Grumpkin => anyhow::bail!(
                    "grumpkin's scalar field has no domain of more than two points: choose a \
                     curve with one"
                ),
            };
            comparisons.push(compare(args, *log_n, threads)?);
        }
    }
    let title = "Number-theoretic transform over the curve's scalar field, natural order";
    args.options.print(title, &comparisons);
    Ok(())
}

fn compare<F: NttPeers>(args: &Args, log_n: u8, threads: usize) -> anyhow::Result<Comparison> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()?;
    let rng = &mut StdRng::seed_from_u64(u64::from(log_n));
    let size = 1_usize << log_n;
    let input = Input {
        values: (0..size).map(|_| F::rand(rng)).collect(),
        domain: pool.install(|| Domain::<F>::new(size))?,
        transform: args.transform,
    };
    let mut settings: Map<String, Value> = Map::new();
    settings.insert("curve".to_owned(), args.curve.name().into());
    settings.insert("log_n".to_owned(), log_n.into());
    settings.insert("threads".to_owned(), threads.into());
    settings.insert("transform".to_owned(), args.transform.name().into());

    let ours = Contender::in_process(
        "proofmill",
        || {
            let mut values = input.values.clone();
            let (elapsed, ()) = pool.install(|| time(|| input.transform(&mut values)));
            (elapsed, values)
        },
        |values| fingerprint::of_values(&values),
    );
    let mut contenders = Contenders::new(&args.options, settings, ours);
    contenders.add_peer("arkworks", || Ok(peers::arkworks::ntt(&input, &pool)))?;
    contenders.add_peer("halo2curves", || F::halo2curves(&input, &pool))?;
    let job = ["ntt", args.curve.name(), args.transform.name()];
    // gnark is measured in both orders: its own provers never reorder the values between two transforms.
    let natural = [&job[..], &["natural"]].concat();
    let reversed = [&job[..], &["reversed"]].concat();
    contenders.add_peer("gnark", || {
        let ways: [(&str, &[&str]); 2] = [
            ("gnark-crypto", &natural),
            ("gnark-crypto, bit-reversed", &reversed),
        ];
        peers::gnark::offer(&ways, threads, |file| file.fields(&input.values))
    })?;
    contenders.run()
}

// === impl Input ===

impl<F: PrimeField> Input<F> {
    fn transform(&self, values: &mut [F]) {
        match self.transform {
            Transform::Forward => self.domain.forward(values),
            Transform::Inverse => self.domain.inverse(values),
            Transform::CosetForward => self.domain.coset_forward(values),
            Transform::CosetInverse => self.domain.coset_inverse(values),
        }
    }
}

// === impl Transform ===

impl Transform {
    /// The name in options and tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Inverse => "inverse",
            Self::CosetForward => "coset-forward",
            Self::CosetInverse => "coset-inverse",
        }
    }
}
