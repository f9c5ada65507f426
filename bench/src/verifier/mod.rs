//! The verification service: streams with false proofs, one by one and together.

mod calibrate;
mod flood;
mod proofs;
mod running;
mod shares;
mod socket;

use proofmill_groth16::{Bls12_381, Bn254};
use proofmill_verifier::Kind;

use proofs::Subject;

/// Arguments of `proofmill-bench verifier`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// The kind of proofs
    #[arg(long, value_enum, default_value = "groth16-bn254")]
    kind: KindName,
    /// Proofs of a stream
    #[arg(long, default_value_t = 640, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    proofs: u32,
    /// Verifying keys they are under, where the kind has keys
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    keys: u16,
    /// Percent of the proofs that are false; a list makes a row for each
    #[arg(long, value_delimiter = ',', default_value = "0,10,50,100", value_name = "LIST",
          value_parser = clap::value_parser!(u8).range(0..=100))]
    bad: Vec<u8>,
    /// So many false proofs instead of a share
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LIST",
        conflicts_with = "bad"
    )]
    bad_proofs: Vec<u32>,
    /// Most proofs of a batch
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    batch: u16,
    /// Threads of the service, and of one by one; 0 is one for each processor. A list makes rows
    /// for each
    #[arg(long, value_delimiter = ',', default_value = "0", value_name = "LIST",
          value_parser = clap::value_parser!(u16).range(0..=1024))]
    threads: Vec<u16>,
    /// Rounds; in each, everything that is compared runs once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// A source that sends half false proofs as fast as they are taken, beside others
    #[arg(long, conflicts_with = "calibrate")]
    flood: bool,
    /// Seconds of each stretch of --flood
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=600))]
    seconds: u16,
    /// Over the socket, on one thread: what the service takes beside the work on the proofs
    #[arg(long, conflicts_with_all = ["flood", "calibrate"])]
    socket: bool,
    /// Measure the constants that the simulator page wants
    #[arg(long)]
    calibrate: bool,
    /// One JSON object as the last line
    #[arg(long)]
    json: bool,
}

/// A kind of proofs that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum KindName {
    /// Groth16 over BN254
    #[value(name = "groth16-bn254")]
    Groth16Bn254,
    /// Groth16 over BLS12-381
    #[value(name = "groth16-bls12-381")]
    Groth16Bls12_381,
    /// Openings of bb's rollup proofs
    #[value(name = "grumpkin-ipa")]
    GrumpkinIpa,
}

/// Measures and reports.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let keys = usize::from(args.keys);
    match args.kind {
        KindName::Groth16Bn254 => measure(args, &proofs::groth16::<Bn254>(keys)?),
        KindName::Groth16Bls12_381 => measure(args, &proofs::groth16::<Bls12_381>(keys)?),
        KindName::GrumpkinIpa => measure(args, &proofs::grumpkin_ipa()?),
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

fn measure<K: Kind>(args: &Args, subject: &Subject<K>) -> anyhow::Result<()> {
    let runtime = runtime()?;
    if args.flood {
        runtime.block_on(flood::run(args, subject))
    } else if args.socket {
        runtime.block_on(socket::run(args, subject))
    } else if args.calibrate {
        runtime.block_on(calibrate::run(args, subject))
    } else {
        runtime.block_on(shares::run(args, subject))
    }
}

// === impl Args ===

impl Args {
    /// The number of false proofs in each row.
    fn bad_counts(&self) -> Vec<usize> {
        if !self.bad_proofs.is_empty() {
            let counts = self.bad_proofs.iter();
            return counts
                .map(|count| *count.min(&self.proofs) as usize)
                .collect();
        }
        let share = |percent: &u8| self.proofs as usize * usize::from(*percent) / 100;
        self.bad.iter().map(share).collect()
    }

    /// Numbers of threads.
    fn thread_counts(&self) -> Vec<usize> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let counts = self.threads.iter().map(|count| usize::from(*count));
        counts
            .map(|count| if count == 0 { processors } else { count })
            .collect()
    }
}
