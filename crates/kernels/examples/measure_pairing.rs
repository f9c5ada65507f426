//! Times of products of pairings on one thread, their final exponentiation included, on each back end and by
//! arkworks: `cargo run --release -p proofmill-kernels --example measure_pairing`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ark_ec::CurveGroup;
use ark_ff::UniformRand;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_kernels::InstructionSet;
use proofmill_kernels::pairing::{PairingCurve, PreparedG2, Product};

const SAMPLES: usize = 21;

/// The median and the least of the times of one contender.
fn summary(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let (median, least) = (times[times.len() / 2], times[0]);
    format!(
        "{:.3} ms ({:.3})",
        milliseconds(median),
        milliseconds(least)
    )
}

fn measure<E: PairingCurve>(name: &str, pairs: usize) {
    let rng = &mut StdRng::seed_from_u64(pairs as u64);
    let left: Vec<_> = (0..pairs).map(|_| E::G1::rand(rng).into_affine()).collect();
    let right: Vec<_> = (0..pairs).map(|_| E::G2::rand(rng).into_affine()).collect();
    let sets = InstructionSet::ALL
        .into_iter()
        .filter(|set| set.is_available());
    for set in sets {
        let prepared: Vec<_> = right
            .iter()
            .map(|point| PreparedG2::<E>::on(set, *point))
            .collect();
        let of_points = || {
            let mut product = Product::<E>::on(set);
            for (left, right) in left.iter().zip(&right) {
                product.multiply(*left, *right);
            }
            product.value()
        };
        let of_prepared = || {
            let mut product = Product::<E>::on(set);
            for (left, right) in left.iter().zip(&prepared) {
                product.multiply_prepared(*left, right);
            }
            product.value()
        };
        let arkworks = || E::multi_pairing(left.iter().copied(), right.iter().copied());
        let contenders: [&dyn Fn() -> _; 3] = [&of_points, &of_prepared, &arkworks];
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..SAMPLES {
            for (contender, times) in contenders.iter().zip(&mut times) {
                let start = Instant::now();
                let _ = black_box(contender());
                times.push(start.elapsed());
            }
        }
        let [points, prepared, arkworks] = times.map(summary);
        println!(
            "{name:<10} {pairs:>3} pairs, {set:<10}: {points}, prepared {prepared}, arkworks {arkworks}"
        );
    }
}

fn main() {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("a thread pool");
    pool.install(|| {
        for pairs in [1, 8, 64] {
            measure::<ark_bls12_381::Bls12_381>("bls12-381", pairs);
            measure::<ark_bls12_377::Bls12_377>("bls12-377", pairs);
            measure::<ark_bn254::Bn254>("bn254", pairs);
        }
    });
}
