//! Times of a device: multi-scalar products with resident bases, and transforms.

use std::time::{Duration, Instant};

use anyhow::Context;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_accelerator::{
    Device, DeviceField, DeviceGroup, DeviceJob, Outcome, TransformKind, Work, cpu, cuda,
    user_cubin_directory,
};
use proofmill_kernels::{Domain, msm};
use serde_json::{Value, json};

use crate::harness::{Figures, describe, round};
use crate::msm::{Input, Skew};
use crate::versus::{Curve, Group};

/// Arguments of `proofmill-bench device`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The operation to measure
    #[arg(value_enum)]
    work: WorkKind,
    /// The device
    #[arg(long, value_enum, default_value = "cuda")]
    device: DeviceKind,
    /// The number of the card, if there are several
    #[arg(long, default_value_t = 0)]
    card: usize,
    /// The curves
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "bls12-377,bls12-381,bn254",
        value_name = "LIST"
    )]
    curve: Vec<Curve>,
    /// The group of products
    #[arg(long, value_enum, default_value = "g1")]
    group: Group,
    /// Sizes: 2^LOG_N points or values
    #[arg(long, value_delimiter = ',', default_value = "22", value_name = "LIST",
          value_parser = clap::value_parser!(u8).range(0..=28))]
    log_n: Vec<u8>,
    /// The device's memory for the bases of a product and their multiples, in MiB
    #[arg(long, default_value_t = 32 << 10, value_name = "MIB")]
    memory: usize,
    /// Runs that count
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    samples: u32,
    /// One JSON object as the last line
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum WorkKind {
    /// Products with resident bases, the scalars copied to the device
    Msm,
    /// Transforms, the values copied to the device and back
    Ntt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DeviceKind {
    /// The processors
    Cpu,
    /// A CUDA card
    Cuda,
    /// The CUDA kernels compiled as host C++: slow, to try the command
    #[cfg(feature = "host-kernels")]
    Host,
}

/// A line of the table: one curve and one size.
struct Row {
    curve: Curve,
    log_n: u8,
    ms: Figures,
    /// Time predicted by the device's cost model.
    predicted: Duration,
}

/// Measures and reports.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let device = args.device.open(args.card)?;
    let mut rows = Vec::new();
    for &curve in &args.curve {
        for &log_n in &args.log_n {
            rows.push(args.measure(&*device, curve, log_n)?);
        }
    }
    args.print(&device.caps().name, &rows);
    Ok(())
}

// === impl DeviceKind ===

impl DeviceKind {
    /// Opens the device; `card` is the card's number.
    pub(crate) fn open(self, card: usize) -> anyhow::Result<Box<dyn Device>> {
        Ok(match self {
            Self::Cpu => Box::new(cpu()?),
            Self::Cuda => {
                let cubins = user_cubin_directory()
                    .context("nowhere to keep compiled kernels: set HOME or XDG_CACHE_HOME")?;
                Box::new(cuda(card, &cubins)?)
            }
            #[cfg(feature = "host-kernels")]
            Self::Host => Box::new(proofmill_accelerator::host_cuda(1 << 16, false)?),
        })
    }
}

// === impl Args ===

impl Args {
    fn measure(&self, device: &dyn Device, curve: Curve, log_n: u8) -> anyhow::Result<Row> {
        let measure = match (self.work, curve, self.group) {
            (WorkKind::Msm, Curve::Bls12_381, Group::G1) => {
                measure_msm::<ark_bls12_381::G1Projective>
            }
            (WorkKind::Msm, Curve::Bls12_381, Group::G2) => {
                measure_msm::<ark_bls12_381::G2Projective>
            }
            (WorkKind::Msm, Curve::Bls12_377, Group::G1) => {
                measure_msm::<ark_bls12_377::G1Projective>
            }
            (WorkKind::Msm, Curve::Bn254, Group::G1) => measure_msm::<ark_bn254::G1Projective>,
            (WorkKind::Msm, Curve::Bn254, Group::G2) => measure_msm::<ark_bn254::G2Projective>,
            (WorkKind::Ntt, Curve::Bls12_381, _) => measure_transform::<ark_bls12_381::Fr>,
            (WorkKind::Ntt, Curve::Bls12_377, _) => measure_transform::<ark_bls12_377::Fr>,
            (WorkKind::Ntt, Curve::Bn254, _) => measure_transform::<ark_bn254::Fr>,
            (WorkKind::Msm, _, group) => anyhow::bail!(
                "no device multiplies in {} of {}",
                group.name(),
                curve.name()
            ),
            (WorkKind::Ntt, ..) => anyhow::bail!("no device transforms over {}", curve.name()),
        };
        let (ms, predicted) = measure(self, device, log_n)?;
        Ok(Row {
            curve,
            log_n,
            ms: Figures::of(ms),
            predicted,
        })
    }

    /// Repeats a measurement for each sample; returns the times in milliseconds.
    fn times(&self, mut run: impl FnMut() -> anyhow::Result<Duration>) -> anyhow::Result<Vec<f64>> {
        (0..self.samples)
            .map(|_| Ok(run()?.as_secs_f64() * 1e3))
            .collect()
    }

    /// Target and floor of a row on an H200, in milliseconds. The target is the most that a run should
    /// take. The floor is the time of the arithmetic alone: for a product, the additions of 12 windows
    /// at half the rate of 32-bit multiply-adds; for a transform, the butterflies without the copies.
    fn bounds(&self, row: &Row) -> (Option<f64>, Option<f64>) {
        let (target, floor) = match (self.work, self.group, row.curve, row.log_n) {
            (WorkKind::Msm, Group::G1, Curve::Bls12_377, 22) => (16.0, Some(12.6)),
            (WorkKind::Msm, Group::G1, Curve::Bls12_377, 26) => (280.0, None),
            (WorkKind::Msm, Group::G1, Curve::Bls12_381, 22) => (20.0, Some(17.2)),
            (WorkKind::Msm, Group::G1, Curve::Bn254, 22) => (11.0, Some(7.8)),
            (WorkKind::Ntt, _, _, 22) => (1.2, Some(0.75)),
            _ => return (None, None),
        };
        (Some(target), floor)
    }

    fn print(&self, device: &str, rows: &[Row]) {
        let has_bounds = ["H100", "H200"].iter().any(|card| device.contains(card));
        let bounds = |row| match has_bounds {
            true => self.bounds(row),
            false => (None, None),
        };
        let (title, group) = match self.work {
            WorkKind::Msm => ("products with resident bases", Some(self.group.name())),
            WorkKind::Ntt => ("transforms, with their copies", None),
        };
        println!("{device}: {title}, milliseconds of {} runs", self.samples);
        println!(
            "  {:<14} {:>4} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8}",
            "", "2^n", "median", "min", "max", "foretold", "target", "floor"
        );
        let mut objects = Vec::new();
        for row in rows {
            let (target, floor) = bounds(row);
            let over = match group {
                Some(group) => format!("{} {group}", row.curve.name()),
                None => row.curve.name().to_owned(),
            };
            let (median, min, max) = (row.ms.p50(), row.ms.quantile(0.0), row.ms.max());
            let predicted = row.predicted.as_secs_f64() * 1e3;
            let shown = |bound: Option<f64>| bound.map_or("–".to_owned(), |ms| ms.to_string());
            println!(
                "  {over:<14} {:>4} {median:>10.2} {min:>10.2} {max:>10.2} {predicted:>10.2} {:>8} {:>8}",
                row.log_n,
                shown(target),
                shown(floor)
            );
            objects.push(json!({
                "curve": row.curve.name(),
                "group": group,
                "log_n": row.log_n,
                "ms": round(median),
                "min_ms": round(min),
                "max_ms": round(max),
                "samples": row.ms.len(),
                "foretold_ms": round(predicted),
                "target_ms": target,
                "floor_ms": floor,
            }));
        }
        println!("  {}", describe());
        if self.json {
            let rows: Value = objects.into();
            println!("{}", json!({ "device": device, "rows": rows }));
        }
    }
}

/// Runs a job; returns its time and its outcome.
fn submit(device: &dyn Device, job: DeviceJob) -> anyhow::Result<(Duration, Outcome)> {
    let began = Instant::now();
    let outcome = device.submit(job)?.wait()?;
    Ok((began.elapsed(), outcome))
}

/// Measured and predicted times of a product. Its result must equal the processors'.
fn measure_msm<G: DeviceGroup>(
    args: &Args,
    device: &dyn Device,
    log_n: u8,
) -> anyhow::Result<(Vec<f64>, Duration)> {
    let input = Input::<G>::new(log_n, Skew::Random);
    let expected = msm::<G>(&input.points, &input.scalars);
    let bases = device.load_bases(G::points(input.points), args.memory << 20)?;
    let scalars = G::ScalarField::scalars(input.scalars);
    let run = || {
        let scalars = scalars.clone();
        submit(device, DeviceJob::Msm { bases, scalars })
    };
    // The first run is not measured.
    anyhow::ensure!(
        run()?.1.into_sum::<G>()? == expected,
        "2^{log_n} points of {}: the sum is wrong",
        G::GROUP
    );
    let ms = args.times(|| Ok(run()?.0))?;
    device.evict(bases)?;
    let work = Work::Msm {
        group: G::GROUP,
        points: 1 << log_n,
    };
    Ok((ms, device.cost(work)?))
}

/// Measured and predicted times of a transform. Its values must equal the processors'.
fn measure_transform<F: DeviceField>(
    args: &Args,
    device: &dyn Device,
    log_n: u8,
) -> anyhow::Result<(Vec<f64>, Duration)> {
    let rng = &mut StdRng::seed_from_u64(u64::from(log_n));
    let domain = Domain::<F>::new(1 << log_n)?;
    let values: Vec<F> = (0..1_usize << log_n).map(|_| F::rand(rng)).collect();
    let mut expected = values.clone();
    domain.forward(&mut expected);
    let run = || {
        let transform = F::transform(domain.clone(), TransformKind::Forward, values.clone());
        submit(device, DeviceJob::Transform(transform))
    };
    // The first run is not measured.
    anyhow::ensure!(
        run()?.1.into_values::<F>()? == expected,
        "2^{log_n} values of {}: the transform is wrong",
        F::FIELD
    );
    let ms = args.times(|| Ok(run()?.0))?;
    let work = Work::Transform {
        field: F::FIELD,
        kind: TransformKind::Forward,
        size_log: u32::from(log_n),
    };
    Ok((ms, device.cost(work)?))
}
