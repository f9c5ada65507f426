//! Transforms of this crate beside arkworks', in turn, on the threads that rayon is given:
//!
//! ```sh
//! RAYON_NUM_THREADS=1 cargo run --release -p proofmill-kernels --example measure_ntt -- 14 20
//! ```
//!
//! prints medians for each size from 2^14 to 2^20 points. `PROOFMILL_KERNELS=portable` forces the
//! portable back end.

use std::time::Instant;

use ark_ff::PrimeField;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use proofmill_kernels::{Domain, InstructionSet};

/// Rounds for each size, of which the median counts.
const ROUNDS: usize = 9;

fn main() {
    let mut logs = std::env::args().skip(1).map(|argument| {
        argument.parse::<u32>().unwrap_or_else(|_| {
            panic!("{argument:?} is no number: give the logarithms of two sizes")
        })
    });
    let first = logs.next().unwrap_or(14);
    let last = logs.next().unwrap_or(first.max(20));
    println!(
        "{} threads, {}; milliseconds",
        rayon::current_num_threads(),
        InstructionSet::current()
    );
    println!("field      points  forward  inverse   coset  extend  arkworks  ratio");
    for log in first..=last {
        measure::<ark_bls12_381::Fr>("BLS12-381", log);
        measure::<ark_bn254::Fr>("BN254", log);
    }
}

fn measure<F: PrimeField>(name: &str, log: u32) {
    let size = 1 << log;
    let domain = Domain::<F>::new(size).expect("the field has such a domain");
    let theirs = Radix2EvaluationDomain::<F>::new(size).expect("as above");
    let mut values: Vec<F> = (0..size as u64).map(|i| F::from(i).pow([65537])).collect();
    let mut times = [const { Vec::new() }; 5];
    // The first round makes tables and is not counted.
    for round in 0..=ROUNDS {
        let mut time = |which: usize, transform: &mut dyn FnMut(&mut Vec<F>)| {
            let start = Instant::now();
            transform(&mut values);
            if round > 0 {
                times[which].push(start.elapsed().as_secs_f64() * 1e3);
            }
        };
        time(0, &mut |values| domain.forward(values));
        time(4, &mut |values| theirs.fft_in_place(values));
        time(1, &mut |values| domain.inverse(values));
        time(2, &mut |values| domain.coset_forward(values));
        time(3, &mut |values| domain.coset_extend(values));
    }
    let [forward, inverse, coset, extend, arkworks] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    });
    println!(
        "{name:<10} 2^{log:<4} {forward:8.3} {inverse:8.3} {coset:7.3} {extend:7.3} {arkworks:9.3} {:6.2}",
        arkworks / forward
    );
}
