//! `proofmill zkpu bench`

use std::sync::Arc;
use std::time::{Duration, Instant};

use ark_bls12_377::{Fr, G1Affine, G1Projective};
use ark_ff::UniformRand;
use ark_std::rand::rngs::OsRng;
use proofmill_accelerator::{Device, DeviceJob, Error, Points, Scalars, cpu};
use proofmill_zkpu::device::{ZkpuOptions, zkpu};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::{connect, host_options};
use crate::args::zkpu::Bench;
use crate::failure::Failure;
use crate::output;
use crate::stages::{milliseconds, short};

/// Products of one number of points.
struct Row {
    log_n: u8,
    /// Time to make the bases resident.
    load: Duration,
    /// Median time from the submission of the scalars to the result.
    product: Duration,
    /// Median time of the processors.
    processors: Duration,
    /// Cycles of the device's core for each point.
    cycles: f64,
}

pub(super) fn run(args: &Bench) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for log_n in &args.log_n {
        let row = measure(args, *log_n)?;
        if !args.json {
            output::line(row.shown())?;
        }
        rows.push(row.to_json());
    }
    match args.json {
        true => output::line(json!({ "rounds": args.rounds, "products": rows }).to_string()),
        false => Ok(()),
    }
}

fn unusable(error: Error) -> Failure {
    Failure::new(error.to_string())
}

/// Cycles that the core has been busy, and points that it has multiplied. The device is free afterwards.
fn work_done(args: &Bench) -> Result<(u64, u64), Failure> {
    let health = connect(&args.device)?.health();
    let counters = health.map_err(|error| Failure::of(&error))?.counters;
    Ok((counters.core[0], counters.points))
}

fn measure(args: &Bench, log_n: u8) -> Result<Row, Failure> {
    let count = 1 << log_n;
    let random = |count: usize| (0..count).map(|_| Fr::rand(&mut OsRng)).collect::<Vec<_>>();
    let points = proofmill_kernels::fixed_base(G1Projective::rand(&mut OsRng), &random(count));
    let points: Arc<Vec<G1Affine>> = Arc::new(points);
    let before = work_done(args)?;
    let (mut on_device, mut on_processors) = (Vec::new(), Vec::new());
    let load = {
        let device = zkpu(ZkpuOptions::new(host_options(&args.device))).map_err(unusable)?;
        let processors = cpu().map_err(unusable)?;
        let load = |device: &dyn Device| {
            let began = Instant::now();
            let bases = device.load_bases(Points::Bls12_377G1(Arc::clone(&points)), usize::MAX);
            Ok::<_, Failure>((bases.map_err(unusable)?, began.elapsed()))
        };
        let (bases, load_time) = load(&device)?;
        let (of_processors, _) = load(&processors)?;
        for _ in 0..args.rounds {
            let scalars = Arc::new(Zeroizing::new(random(count)));
            let product = |device: &dyn Device, bases| {
                let scalars = Scalars::Bls12_377(Arc::clone(&scalars));
                let began = Instant::now();
                let ticket = device.submit(DeviceJob::Msm { bases, scalars });
                let outcome = ticket.and_then(|ticket| ticket.wait()).map_err(unusable)?;
                let sum: G1Projective = outcome.into_sum().map_err(unusable)?;
                Ok::<_, Failure>((sum, began.elapsed()))
            };
            let (sum, time) = product(&device, bases)?;
            let (expected, of_processors) = product(&processors, of_processors)?;
            if sum != expected {
                return Err(Failure::new(format!(
                    "a product of {count} points is wrong"
                )));
            }
            on_device.push(time);
            on_processors.push(of_processors);
        }
        load_time
    };
    let after = work_done(args)?;
    let points = after.1.saturating_sub(before.1).max(1);
    Ok(Row {
        log_n,
        load,
        product: median(on_device),
        processors: median(on_processors),
        cycles: after.0.saturating_sub(before.0) as f64 / points as f64,
    })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

// === impl Row ===

impl Row {
    fn shown(&self) -> String {
        format!(
            "2^{:<2}  product {}, the processors' {}; bases loaded in {}; {:.2} cycles of the core a point",
            self.log_n,
            short(self.product),
            short(self.processors),
            short(self.load),
            self.cycles
        )
    }

    fn to_json(&self) -> Value {
        json!({
            "log_n": self.log_n,
            "product_ms": milliseconds(self.product),
            "processors_ms": milliseconds(self.processors),
            "load_ms": milliseconds(self.load),
            "cycles_a_point": (self.cycles * 1e3).round() / 1e3,
        })
    }
}
