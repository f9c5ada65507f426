//! Times of checking openings of rollup proofs' size, on one thread:
//! `cargo run --release -p proofmill-ipa --example measure_ipa`.

use std::time::Instant;

use ark_ff::UniformRand;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_ipa::{Opening, ROLLUP_LOG_SIZE, Scalar, Srs, Sum, Verifier, Weights};
use proofmill_kernels::msm;

const PROOF: &[u8] = include_bytes!("../tests/data/rollup-0.proof");

/// Prints the best of some runs, and gives it in milliseconds.
fn time<T>(name: &str, mut work: impl FnMut() -> T) -> f64 {
    let best = (0..10)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(work());
            start.elapsed().as_secs_f64() * 1e3
        })
        .fold(f64::MAX, f64::min);
    println!("{name:<44} {best:>8.3} ms");
    best
}

fn measure() {
    let srs = Srs::derive(ROLLUP_LOG_SIZE);
    let rng = &mut StdRng::seed_from_u64(1);
    let scalars: Vec<_> = srs.points().iter().map(|_| Scalar::rand(rng)).collect();
    time("multi-scalar multiplication of 2^15", || {
        msm::<Sum>(srs.points(), &scalars)
    });
    let opening = Opening::from_rollup_proof(PROOF).expect("a rollup proof");
    for mebibytes in [2, 16] {
        let verifier = Verifier::new(&srs, mebibytes << 20);
        let held = verifier.bytes() as f64 / f64::from(1 << 20);
        time(&format!("single check, SRS in {held:.1} MiB"), || {
            verifier.verify(&opening)
        });
    }
    let verifier = Verifier::new(&srs, 16 << 20);
    time("decoding", || Opening::from_rollup_proof(PROOF));
    time("reducing", || verifier.reduce(&opening));
    let batch = vec![opening; 32];
    let [one, sixteen, thirty_two] = [1, 16, 32].map(|count| {
        time(&format!("batch of {count}"), || {
            verifier.verify_batch(&batch[..count])
        })
    });
    println!("each further of 16: {:.3} ms", (sixteen - one) / 15.0);
    println!("each further of 32: {:.3} ms", (thirty_two - one) / 31.0);
    let claim = verifier.reduce(&batch[0]).expect("a valid opening");
    let weights = Weights::draw(16).expect("random numbers");
    let weighted: Vec<_> = weights.into_iter().map(|drawn| (&claim, drawn)).collect();
    time("value of 16 reduced claims", || verifier.value(&weighted));
}

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a thread").install(measure);
}
