//! Times of products of pairings on one thread, their final exponentiation included, on each back end and by
//! arkworks: `cargo run --release -p proofmill-kernels --example measure_pairing`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ark_ec::CurveGroup;
use ark_ff::UniformRand;
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use proofmill_kernels::InstructionSet;
use proofmill_kernels::pairing::{self, PairingCurve, PreparedG2, Product};

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

/// Eight products of a pair and two prepared ones, as Groth16 proofs have them, eight final exponentiations, and eight
/// powers by 128 bits, side by side and one after the other.
fn measure_each<E: PairingCurve>(name: &str) {
    let rng = &mut StdRng::seed_from_u64(8);
    let sets = InstructionSet::ALL
        .into_iter()
        .filter(|set| set.is_available());
    for set in sets {
        let prepared = [(); 2].map(|()| PreparedG2::<E>::on(set, E::G2::rand(rng).into_affine()));
        let products: Vec<_> = (0..8)
            .map(|_| {
                let mut product = Product::on(set);
                product.multiply(
                    E::G1::rand(rng).into_affine(),
                    E::G2::rand(rng).into_affine(),
                );
                for prepared in &prepared {
                    product.multiply_prepared(E::G1::rand(rng).into_affine(), prepared);
                }
                product
            })
            .collect();
        let loops: Vec<_> = products.iter().map(Product::miller_loop).collect();
        let values: Vec<_> = products.iter().map(Product::value).collect();
        let exponents: Vec<_> = (0..8)
            .map(|_| E::ScalarField::from(rng.r#gen::<u128>()))
            .collect();
        let contenders: [(&str, &dyn Fn()); 6] = [
            ("8 products, each", &|| {
                black_box(Product::checked_value_each(&products));
            }),
            ("8 products, one by one", &|| {
                black_box(products.iter().map(Product::value).collect::<Vec<_>>());
            }),
            ("8 exponentiations, each", &|| {
                black_box(pairing::final_exponentiation_each_on(set, &loops));
            }),
            ("8 exponentiations, one by one", &|| {
                let one = |value| pairing::final_exponentiation_each_on(set, &[value]);
                black_box(loops.iter().copied().map(one).collect::<Vec<_>>());
            }),
            ("8 powers, each", &|| {
                black_box(pairing::power_each_on(set, &values, &exponents));
            }),
            ("8 powers, one by one", &|| {
                for i in 0..8 {
                    let _ = black_box(pairing::multi_power_on(
                        set,
                        &values[i..=i],
                        &exponents[i..=i],
                    ));
                }
            }),
        ];
        for (what, contender) in contenders {
            let times = (0..SAMPLES).map(|_| {
                let start = Instant::now();
                contender();
                start.elapsed()
            });
            println!(
                "{name:<10} {set:<10}: {what:<29} {}",
                summary(times.collect())
            );
        }
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
        measure_each::<ark_bls12_381::Bls12_381>("bls12-381");
        measure_each::<ark_bls12_377::Bls12_377>("bls12-377");
        measure_each::<ark_bn254::Bn254>("bn254");
    });
}
