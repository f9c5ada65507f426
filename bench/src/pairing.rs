//! Products of pairings, which dominate the cost of verification, against other libraries.

use ark_ec::pairing::{Pairing, PairingOutput};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{One, UniformRand, Zero};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use serde_json::{Map, Value};

use crate::peers::{self, PairingPeers};
use crate::versus::{
    COMPARISON_HELP, Comparison, Contender, Contenders, Curve, Options, PeerAnswer, time,
};

/// Arguments of `proofmill-bench pairing`.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPARISON_HELP)]
pub(crate) struct Args {
    /// The curve: one with a pairing
    #[arg(long, value_enum, default_value = "bls12-381")]
    curve: Curve,
    /// Products of so many pairings; a list makes a comparison for each
    #[arg(long, value_delimiter = ',', default_value = "64", value_name = "LIST",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pairs: Vec<u32>,
    #[command(flatten)]
    options: Options,
}

/// Input of a product of pairings. With two pairs or more, the product is one.
pub(crate) struct Input<E: Pairing> {
    /// Points of the first group.
    pub(crate) left: Vec<E::G1Affine>,
    /// Points of the second group, one for each point of the first.
    pub(crate) right: Vec<E::G2Affine>,
}

/// Compares and reports.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.options.prepare()?;
    let compare = match args.curve {
        Curve::Bls12_381 => compare::<ark_bls12_381::Bls12_381>,
        Curve::Bls12_377 => compare::<ark_bls12_377::Bls12_377>,
        Curve::Bn254 => compare::<ark_bn254::Bn254>,
        Curve::Grumpkin => anyhow::bail!("grumpkin has no pairing"),
    };
    let mut comparisons = Vec::new();
    for pairs in &args.pairs {
        for threads in args.options.threads() {
            comparisons.push(compare(args, *pairs, threads)?);
        }
    }
    let title = "Product of pairings, the final exponentiation included";
    args.options.print(title, &comparisons);
    Ok(())
}

fn compare<E: PairingPeers>(args: &Args, pairs: u32, threads: usize) -> anyhow::Result<Comparison> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()?;
    let input = Input::<E>::new(pairs as usize);
    let mut settings: Map<String, Value> = Map::new();
    settings.insert("curve".to_owned(), args.curve.name().into());
    settings.insert("pairs".to_owned(), pairs.into());
    settings.insert("threads".to_owned(), threads.into());

    let ours = Contender::in_process(
        "proofmill",
        || {
            pool.install(|| {
                time(|| proofmill_kernels::pairing::product::<E>(&input.left, &input.right))
            })
        },
        verdict,
    );
    let mut contenders = Contenders::new(&args.options, settings, ours);
    contenders.add_peer("arkworks", || {
        Ok(PeerAnswer::Runs(vec![Contender::in_process(
            "arkworks",
            || {
                let (left, right) = (input.left.iter().copied(), input.right.iter().copied());
                pool.install(|| time(|| E::multi_pairing(left, right)))
            },
            verdict,
        )]))
    })?;
    contenders.add_peer("blst", || E::blst(&input, &pool))?;
    contenders.add_peer("halo2curves", || {
        Ok(PeerAnswer::LeftOut(
            "no product of pairings is set up for it".to_owned(),
        ))
    })?;
    let job = ["pairing", args.curve.name()];
    contenders.add_peer("gnark", || {
        peers::gnark::offer(&[("gnark-crypto", &job)], threads, |file| {
            file.points(&input.left)?;
            file.points(&input.right)
        })
    })?;
    contenders.run()
}

fn verdict<E: Pairing>(product: PairingOutput<E>) -> String {
    if product.0.is_one() { "one" } else { "not one" }.to_owned()
}

// === impl Input ===

impl<E: Pairing> Input<E> {
    /// An input that is the same at every call: pairs aᵢ·G and bᵢ·H, and a last pair with which the
    /// product is one. A single pair is G and H.
    fn new(pairs: usize) -> Self {
        let rng = &mut StdRng::seed_from_u64(pairs as u64);
        let (generator_g1, generator_g2) = (E::G1Affine::generator(), E::G2Affine::generator());
        if pairs == 1 {
            return Self {
                left: vec![generator_g1],
                right: vec![generator_g2],
            };
        }
        let mut sum = E::ScalarField::zero();
        let (mut left, mut right) = (Vec::with_capacity(pairs), Vec::with_capacity(pairs));
        for _ in 1..pairs {
            let (a, b) = (E::ScalarField::rand(rng), E::ScalarField::rand(rng));
            sum += a * b;
            left.push((generator_g1 * a).into_affine());
            right.push((generator_g2 * b).into_affine());
        }
        left.push((generator_g1 * -sum).into_affine());
        right.push(generator_g2);
        Self { left, right }
    }
}
