//! Grumpkin inner-product arguments, checked alone and in batches, against a bare multi-scalar multiplication of the
//! size of a single check.

use anyhow::Context;
use ark_grumpkin::Projective;
use proofmill_ipa::{Opening, ROLLUP_LOG_SIZE, Srs, Verifier};
use rayon::ThreadPool;
use serde_json::{Map, Value};

use crate::msm::{self, Skew};
use crate::peers::{self, MsmPeers};
use crate::versus::{
    COMPARISON_HELP, Comparison, Contender, Contenders, Options, PeerAnswer, Sample, time,
};

/// Arguments of `proofmill-bench ipa`.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPARISON_HELP)]
pub(crate) struct Args {
    /// Batches of so many arguments; a list makes a comparison for each. One alone is checked without
    /// weights
    #[arg(long, value_delimiter = ',', default_value = "1,16,32", value_name = "LIST",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: Vec<u16>,
    /// Memory for the prepared SRS, in MiB
    #[arg(long, default_value_t = 16, value_name = "MIB",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    memory: u16,
    #[command(flatten)]
    options: Options,
}

/// Real rollup proofs by barretenberg, which batches repeat. The repetition does not change the time,
/// as the verifier remembers nothing between two proofs.
pub(crate) const ROLLUP_PROOFS: [&[u8]; 3] = [
    include_bytes!("../../crates/ipa/tests/data/rollup-0.proof"),
    include_bytes!("../../crates/ipa/tests/data/rollup-1.proof"),
    include_bytes!("../../crates/ipa/tests/data/rollup-2.proof"),
];

/// The openings to check, and the bare product that a single check is compared with.
struct Input {
    srs: Srs,
    proofs: Vec<Opening>,
    bare_product: msm::Input<Projective>,
}

/// Compares and reports.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.options.prepare()?;
    let proofs: Result<_, _> = ROLLUP_PROOFS
        .into_iter()
        .map(Opening::from_rollup_proof)
        .collect();
    let input = Input {
        srs: Srs::derive(ROLLUP_LOG_SIZE),
        proofs: proofs.context("decoding the proofs that the bench brings")?,
        bare_product: msm::Input::new(ROLLUP_LOG_SIZE as u8, Skew::Random),
    };
    let mut comparisons = Vec::new();
    for threads in args.options.threads() {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()?;
        let limit = usize::from(args.memory) << 20;
        let verifier = pool.install(|| Verifier::new(&input.srs, limit));
        for batch in &args.batch {
            comparisons.push(compare(args, &input, &verifier, *batch, &pool)?);
        }
    }
    for i in 1..comparisons.len() {
        let added_time = added_time(&comparisons[i - 1], &comparisons[i]);
        comparisons[i].notes.extend(added_time);
    }
    let title =
        "Batches of Grumpkin inner-product arguments, against one bare product of 2^15 points";
    args.options.print(title, &comparisons);
    Ok(())
}

fn compare(
    args: &Args,
    input: &Input,
    verifier: &Verifier,
    batch: u16,
    pool: &ThreadPool,
) -> anyhow::Result<Comparison> {
    let mut settings: Map<String, Value> = Map::new();
    settings.insert("batch".to_owned(), batch.into());
    settings.insert("log_n".to_owned(), ROLLUP_LOG_SIZE.into());
    settings.insert("threads".to_owned(), pool.current_num_threads().into());
    let openings = input.proofs.iter().cycle().take(batch.into());
    let openings: Vec<Opening> = openings.cloned().collect();
    let ours = Contender::new("proofmill", |_| {
        let (elapsed, verdict) = pool.install(|| time(|| check(verifier, &openings)));
        verdict.context("a real proof is refused")?;
        Ok(Sample {
            ms: vec![elapsed.as_secs_f64() * 1e3],
            ..Sample::default()
        })
    });
    let mut contenders = Contenders::new(&args.options, settings, ours);
    contenders.add_peer("arkworks", || {
        Ok(as_bare_product(
            "arkworks",
            peers::arkworks::msm(&input.bare_product, pool),
        ))
    })?;
    contenders.add_peer("halo2curves", || {
        let offer = Projective::halo2curves(&input.bare_product, pool)?;
        Ok(as_bare_product("halo2curves", offer))
    })?;
    contenders.run()
}

fn check(verifier: &Verifier, openings: &[Opening]) -> anyhow::Result<()> {
    match openings {
        [one] => Ok(verifier.verify(one)?),
        many => Ok(verifier.verify_batch(many)?),
    }
}

/// Marks the contenders of a peer as bare products. They do other work than ours, so their results are
/// not compared.
fn as_bare_product<'a>(name: &str, answer: PeerAnswer<'a>) -> PeerAnswer<'a> {
    match answer {
        PeerAnswer::Runs(contenders) => PeerAnswer::Runs(
            contenders
                .into_iter()
                .map(|mut contender| {
                    Contender::new(format!("{name}, bare MSM"), move |purpose| {
                        let sample = contender.run(purpose)?;
                        Ok(Sample {
                            result: None,
                            ..sample
                        })
                    })
                })
                .collect(),
        ),
        other => other,
    }
}

/// A note with the time that each further proof adds between two batch sizes; `None` if the second one
/// is not larger or has another number of threads.
fn added_time(previous: &Comparison, comparison: &Comparison) -> Option<String> {
    let setting = |of: &Comparison, name: &str| of.settings[name].as_u64();
    let threads = |of: &Comparison| setting(of, "threads");
    let (from, to) = (setting(previous, "batch")?, setting(comparison, "batch")?);
    if to <= from || threads(previous) != threads(comparison) {
        return None;
    }
    let difference = comparison.ours.ms.p50() - previous.ours.ms.p50();
    let each = difference / (to - from) as f64;
    let threads = threads(comparison)?;
    Some(format!(
        "from {from} to {to} proofs on {threads} threads, each further one adds {each:.3} ms"
    ))
}
