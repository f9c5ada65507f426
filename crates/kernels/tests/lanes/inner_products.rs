//! Inner products of matrices' rows against the definition, on every back end.

use ark_bn254::Fq;
use ark_ff::{AdditiveGroup, Field, PrimeField, UniformRand};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_kernels::{InstructionSet, inner_products_on};

/// The element whose Montgomery form is the largest.
fn largest() -> Fq {
    let mut words = Fq::MODULUS;
    words.0[0] -= 1;
    Fq::new_unchecked(words)
}

fn check(set: InstructionSet, rows: [usize; 2], length: usize, mut element: impl FnMut() -> Fq) {
    let [left, right] = rows.map(|rows| (0..rows * length).map(|_| element()).collect::<Vec<_>>());
    let products = inner_products_on(set, &left, &right, length);
    assert_eq!(products.len(), rows[0] * rows[1]);
    for (i, left) in left.chunks(length).enumerate() {
        for (j, right) in right.chunks(length).enumerate() {
            let expected: Fq = left.iter().zip(right).map(|(a, b)| *a * b).sum();
            assert_eq!(
                products[i * rows[1] + j],
                expected,
                "{rows:?} of {length}, {set}"
            );
        }
    }
}

#[test]
fn products_are_those_of_the_definition() {
    let rng = &mut StdRng::seed_from_u64(5);
    for set in InstructionSet::ALL {
        if !set.is_available() {
            eprintln!("skipped: this machine has no {set}");
            continue;
        }
        for rows in [[0, 8], [3, 0], [1, 1], [2, 7], [1, 8], [3, 24]] {
            for length in [1, 2, 15, 16, 17, 63, 64, 65, 200] {
                check(set, rows, length, || Fq::rand(rng));
                for edge in [Fq::ZERO, Fq::ONE, -Fq::ONE, largest()] {
                    check(set, rows, length, || edge);
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "3 and 4 elements in rows of 2")]
fn rows_are_whole() {
    let _ = inner_products_on(InstructionSet::Portable, &[Fq::ONE; 3], &[Fq::ONE; 4], 2);
}
