//! Times of multi-scalar multiplication on one curve:
//! `cargo run --release -p proofmill-kernels --example measure_msm -- bls12-381 20 [threads]`.

use std::time::Instant;

use ark_ff::{PrimeField, UniformRand};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_kernels::{InstructionSet, MsmGroup, PreparedBases, msm_on};

/// Processor time that this process has used on all cores, in seconds. Unlike wall-clock time, it does not
/// grow while other processes run.
fn processor_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn measure<G: MsmGroup>(log_n: u32, portable: bool) {
    let n = 1usize << log_n;
    let rng = &mut StdRng::seed_from_u64(1);
    let step = G::rand(rng);
    let mut points = vec![G::rand(rng)];
    for i in 1..n {
        points.push(points[i - 1] + step);
    }
    let bases = G::normalize_batch(&points);
    let random: Vec<_> = (0..n).map(|_| G::ScalarField::rand(rng)).collect();
    let time = |name: &str, f: &mut dyn FnMut() -> G| {
        let mut best = f64::MAX;
        let mut busy = f64::MAX;
        for _ in 0..3 {
            let (start, before) = (Instant::now(), processor_time());
            std::hint::black_box(f());
            best = best.min(start.elapsed().as_secs_f64());
            busy = busy.min(processor_time() - before);
        }
        println!(
            "{name:<24} {:>10.2} ms, {:>10.2} ms of processors",
            best * 1e3,
            busy * 1e3
        );
    };
    let best = InstructionSet::best();
    time(&format!("{best}"), &mut || {
        msm_on::<G>(best, &bases, &random)
    });
    if portable {
        time("portable", &mut || {
            msm_on::<G>(InstructionSet::Portable, &bases, &random)
        });
        time("arkworks", &mut || {
            G::msm(&bases, &random).expect("as many")
        });
    }
    let equal = vec![random[0]; n];
    time("equal scalars", &mut || msm_on::<G>(best, &bases, &equal));
    let bits: Vec<_> = (0..n as u64)
        .map(|i| G::ScalarField::from(((i * i) >> 3) & 1))
        .collect();
    time("bits", &mut || msm_on::<G>(best, &bases, &bits));
    let small: Vec<_> = random
        .iter()
        .map(|k| G::ScalarField::from(k.into_bigint().as_ref()[0] >> 32))
        .collect();
    time("32-bit scalars", &mut || msm_on::<G>(best, &bases, &small));
    for copies in [1, 2, 4] {
        let start = Instant::now();
        let prepared =
            PreparedBases::<G>::new(&bases, PreparedBases::<G>::bytes_for(best, n, copies));
        println!(
            "preparing {copies} copies: {:.2?}, {} MB",
            start.elapsed(),
            prepared.bytes() >> 20
        );
        time(&format!("prepared, {copies} copies"), &mut || {
            prepared.msm(&random)
        });
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let curve = args.next().unwrap_or_else(|| "bls12-381".to_owned());
    let log_n = args.next().map_or(18, |n| n.parse().expect("a logarithm"));
    let threads = args
        .next()
        .map_or(1, |n| n.parse().expect("a number of threads"));
    let portable = args.next().is_some();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("a thread pool");
    pool.install(|| match curve.as_str() {
        "bls12-381" => measure::<ark_bls12_381::G1Projective>(log_n, portable),
        "bls12-381-g2" => measure::<ark_bls12_381::G2Projective>(log_n, portable),
        "bls12-377" => measure::<ark_bls12_377::G1Projective>(log_n, portable),
        "bn254" => measure::<ark_bn254::G1Projective>(log_n, portable),
        "bn254-g2" => measure::<ark_bn254::G2Projective>(log_n, portable),
        "grumpkin" => measure::<ark_grumpkin::Projective>(log_n, portable),
        other => panic!("no curve {other}"),
    });
}
