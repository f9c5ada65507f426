//! Groth16 proofs of one system and assignment, with keys that stay in memory, against other provers.

mod circuit;
mod contenders;

use std::sync::Arc;

use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_accelerator::Device;
use proofmill_groth16::{DeviceKey, Offload, ResidentForm, ResidentKey, SnarkCurve};
use proofmill_r1cs::{Assignment, R1cs};
use serde_json::{Map, Value};

use crate::device::DeviceKind;
use crate::versus::{COMPARISON_HELP, Comparison, Contenders, Curve, Options};
use circuit::Circuit;
pub(crate) use circuit::Sized;

/// Arguments of `proofmill-bench groth16`.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPARISON_HELP)]
pub(crate) struct Args {
    /// The curve: bls12-381 or bn254
    #[arg(long, value_enum, default_value = "bls12-381")]
    curve: Curve,
    /// The circuit to prove; a list makes a comparison for each
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "chain",
        value_name = "LIST"
    )]
    circuit: Vec<Circuit>,
    /// As many constraints as fit into a domain of 2^LOG_N points; a list makes a comparison for each
    #[arg(long, value_delimiter = ',', default_value = "17", value_name = "LIST",
          value_parser = clap::value_parser!(u8).range(2..=24))]
    log_n: Vec<u8>,
    /// Ours with prepared points, in so many times the key's own bytes; the peers' stay as they are
    #[arg(long, value_name = "MEMORY_FACTOR",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    prepared: Option<u16>,
    /// With a device for what it can do, beside ours without: a card's key stays there, with multiples in
    /// half of its memory
    #[arg(long, value_enum, conflicts_with = "prepared")]
    device: Option<DeviceKind>,
    /// The number of the card, if there are several
    #[arg(long, default_value_t = 0, requires = "device")]
    card: usize,
    #[command(flatten)]
    options: Options,
}

/// The statement that all contenders prove. Its matrices and its assignment are made before any
/// measurement.
pub(crate) struct Input<E: SnarkCurve> {
    /// The circuit, for provers that make their keys from it.
    pub(crate) circuit: Sized,
    /// Matrices of the circuit.
    pub(crate) r1cs: Arc<R1cs<E::ScalarField>>,
    /// Values of all variables.
    pub(crate) assignment: Assignment<E::ScalarField>,
}

/// Compares and reports.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.options.prepare()?;
    let compare = match args.curve {
        Curve::Bls12_381 => compare::<ark_bls12_381::Bls12_381>,
        Curve::Bn254 => compare::<ark_bn254::Bn254>,
        Curve::Bls12_377 | Curve::Grumpkin => {
            anyhow::bail!("no prover for {}: bls12-381 or bn254", args.curve.name())
        }
    };
    let mut comparisons = Vec::new();
    for circuit in &args.circuit {
        for log_n in &args.log_n {
            let sized = circuit.sized(*log_n)?;
            for threads in args.options.threads() {
                comparisons.push(compare(args, sized, *log_n, threads)?);
            }
        }
    }
    let title = "Groth16: one proof, the key and the matrices resident";
    args.options.print(title, &comparisons);
    Ok(())
}

/// Loads a key on a device, which then computes everything that it can.
fn on_device<E: SnarkCurve>(
    key: &Arc<ResidentKey<E>>,
    device: &Arc<dyn Device>,
) -> anyhow::Result<DeviceKey<E>> {
    let half = device.caps().memory.unwrap_or(0) / 2;
    let limit = usize::try_from(half).unwrap_or(usize::MAX);
    let (key, device) = (Arc::clone(key), Arc::clone(device));
    Ok(DeviceKey::load(key, device, Offload::Always, limit)?)
}

fn compare<E: SnarkCurve>(
    args: &Args,
    circuit: Sized,
    log_n: u8,
    threads: usize,
) -> anyhow::Result<Comparison> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()?;
    let input = Input::<E> {
        circuit,
        r1cs: Arc::new(R1cs::from_circuit(circuit)?),
        assignment: Assignment::from_circuit(circuit)?,
    };
    let mut settings: Map<String, Value> = Map::new();
    settings.insert("circuit".to_owned(), circuit.name().into());
    settings.insert(
        "constraints".to_owned(),
        input.r1cs.num_constraints().into(),
    );
    settings.insert("curve".to_owned(), args.curve.name().into());
    settings.insert("log_n".to_owned(), log_n.into());
    settings.insert("threads".to_owned(), threads.into());

    // The secrets of the key come from a fixed seed, which is fine as the key is only for measurements.
    let rng = &mut StdRng::seed_from_u64(1);
    let key = proofmill_groth16::setup::<E>(&input.r1cs, rng)?;
    let key_bytes = key.size_in_bytes();
    let residency = args
        .prepared
        .map_or(ResidentForm::Plain, |factor| ResidentForm::Prepared {
            memory_limit: key_bytes * usize::from(factor),
        });
    if let Some(factor) = args.prepared {
        settings.insert("prepared".to_owned(), factor.into());
    }
    let key = pool.install(|| ResidentKey::new(key, Arc::clone(&input.r1cs), residency))?;
    let key = Arc::new(key);
    let device = match args.device {
        None => None,
        Some(which) => Some(Arc::<dyn Device>::from(which.open(args.card)?)),
    };
    let ours = contenders::ours(&input, &key, &pool);
    let mut contenders = match &device {
        None => Contenders::new(&args.options, settings, ours),
        Some(device) => {
            settings.insert("device".to_owned(), device.caps().name.clone().into());
            let device_key = on_device(&key, device)?;
            let ours_on_device = contenders::ours_on_device(&input, device_key, &**device, &pool);
            let mut contenders = Contenders::new(&args.options, settings, ours_on_device);
            contenders.add_contender(ours);
            contenders
        }
    };
    contenders.note(format!(
        "{}: our key is {} MiB, and {} MiB with its circuit as it is held",
        circuit.name(),
        key_bytes >> 20,
        key.bytes() >> 20,
    ));
    contenders.add_peer("arkworks", || contenders::arkworks(&input, &pool))?;
    contenders.add_peer("gnark", || contenders::gnark(&input, args.curve, threads))?;
    contenders.run()
}
