//! Times of aggregates on this machine, on as many threads as `RAYON_NUM_THREADS` says:
//!
//! ```sh
//! RAYON_NUM_THREADS=1 cargo run --release -p proofmill-aggregation --example measure_aggregation -- 256 1024
//! ```
//!
//! Statements have Mirage's shape over BLS12-381, with five classes and three shared public inputs, made from known
//! logarithms; Groth16's are under one key, with one public input.

use std::time::{Duration, Instant};

use ark_bls12_381::{Bls12_381, Fr, G1Affine, G1Projective, G2Projective};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{Field, UniformRand};
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::{OsRng, StdRng};
use proofmill_aggregation::{
    Aggregate, Commitment, Groth16Index, MirageClass, MirageIndex, MirageParts, MirageStatement,
    Srs,
};
use proofmill_groth16::{Proof, VerifyingKey};
use proofmill_kernels::fixed_base;

const CLASSES: usize = 5;
const SHARED: usize = 3;
const SAMPLES: usize = 9;

fn main() {
    let counts: Vec<usize> = std::env::args()
        .skip(1)
        .map(|count| count.parse().expect("numbers of proofs"))
        .collect();
    let largest = counts.iter().copied().max().unwrap_or(256);
    let began = Instant::now();
    let srs = Srs::<Bls12_381>::setup(largest.next_power_of_two().max(2), &mut OsRng)
        .expect("a possible capacity");
    println!("setup for {}: {:.1?}", srs.capacity(), began.elapsed());
    for count in counts {
        mirage(&srs, count);
        groth16(&srs, count);
    }
}

fn mirage(srs: &Srs<Bls12_381>, count: usize) {
    let rng = &mut StdRng::seed_from_u64(1);
    let mut draw = |count: usize| -> Vec<Fr> { (0..count).map(|_| Fr::rand(rng)).collect() };
    let (secrets, inputs) = (draw(3 * CLASSES), draw(SHARED));
    let (alpha_beta, a, b, d) = (draw(2), draw(count), draw(count), draw(count));
    let points: Vec<Vec<Fr>> = (0..=SHARED).map(|_| draw(count)).collect();
    let c: Vec<Fr> = (0..count)
        .map(|i| {
            let [gamma, delta, eta] = [0, 1, 2].map(|j| secrets[3 * (i % CLASSES) + j]);
            let shared = points[1..].iter().zip(&inputs);
            let s = points[0][i] + shared.map(|(of, input)| of[i] * input).sum::<Fr>();
            (a[i] * b[i] - alpha_beta[0] * alpha_beta[1] - s * gamma - d[i] * eta)
                * delta.inverse().expect("random")
        })
        .collect();
    let first = |scalars: &[Fr]| fixed_base(G1Projective::generator(), scalars);
    let second = |scalars: &[Fr]| fixed_base(G2Projective::generator(), scalars);
    let of_classes = second(&secrets);
    let parts = MirageParts {
        alpha: first(&alpha_beta[..1])[0],
        beta: second(&alpha_beta[1..])[0],
        classes: of_classes
            .chunks_exact(3)
            .map(|of| MirageClass {
                gamma: of[0],
                delta: of[1],
                eta: of[2],
            })
            .collect(),
        class_of: (0..count).map(|i| (i % CLASSES) as u32).collect(),
        inputs: points.iter().map(|points| first(points)).collect(),
    };
    let proofs = proofs(&first(&a), &second(&b), &first(&c));
    let d = first(&d);

    let began = Instant::now();
    let index = MirageIndex::new(srs, parts).expect("possible parts");
    let indexing = began.elapsed();
    let began = Instant::now();
    let commitment = index.commit(srs, &d).expect("as many");
    let committing = began.elapsed();
    let statement = MirageStatement {
        context: &[],
        inputs: &inputs,
        commitment: &commitment,
    };
    let began = Instant::now();
    let aggregate = index
        .aggregate(srs, statement, &proofs, &d)
        .expect("as many");
    let proving = began.elapsed();
    let (bytes, key) = (aggregate.to_bytes(), index.verifying_key());
    let of_d = commitment.to_bytes();
    let verifying = median(|| {
        let commitment = &Commitment::from_bytes(&of_d).expect("a commitment");
        let statement = MirageStatement {
            context: &[],
            inputs: &inputs,
            commitment,
        };
        let aggregate = Aggregate::from_bytes(&bytes).expect("an aggregate");
        key.verify(statement, &aggregate).expect("true");
    });
    let decoding = median(|| drop(Aggregate::<Bls12_381>::from_bytes(&bytes).expect("one")));
    let each = (committing + proving) / count as u32;
    println!(
        "mirage, {count}: key {indexing:.1?}, commitment {committing:.1?}, aggregate {proving:.1?} \
         ({each:.2?} for each with the commitment), verification {verifying:.2?} (of which decoding \
         {decoding:.2?}), {} bytes with the commitment",
        bytes.len() + of_d.len()
    );
}

fn groth16(srs: &Srs<Bls12_381>, count: usize) {
    let rng = &mut StdRng::seed_from_u64(2);
    let mut draw = |count: usize| -> Vec<Fr> { (0..count).map(|_| Fr::rand(rng)).collect() };
    let (secrets, a, b, inputs) = (draw(6), draw(count), draw(count), draw(count));
    let [alpha, beta, gamma, delta, leading, input] = [0, 1, 2, 3, 4, 5].map(|i| secrets[i]);
    let c: Vec<Fr> = (0..count)
        .map(|i| {
            let s = leading + input * inputs[i];
            (a[i] * b[i] - alpha * beta - s * gamma) * delta.inverse().expect("random")
        })
        .collect();
    let first = |scalars: &[Fr]| fixed_base(G1Projective::generator(), scalars);
    let second = |scalars: &[Fr]| fixed_base(G2Projective::generator(), scalars);
    let in_second = second(&[beta, gamma, delta]);
    let key = VerifyingKey {
        circuit: [0; 32],
        alpha_g1: (G1Affine::generator() * alpha).into_affine(),
        beta_g2: in_second[0],
        gamma_g2: in_second[1],
        delta_g2: in_second[2],
        instance: first(&[leading, input]),
    };
    let proofs = proofs(&first(&a), &second(&b), &first(&c));
    let inputs: Vec<_> = inputs.iter().map(|input| vec![*input]).collect();
    let index = Groth16Index::new(srs, vec![key], vec![0; count]).expect("a possible key");
    let began = Instant::now();
    let aggregate = index.aggregate(srs, &inputs, &proofs).expect("as many");
    let proving = began.elapsed();
    let bytes = aggregate.to_bytes();
    let verifying = median(|| {
        let aggregate = Aggregate::from_bytes(&bytes).expect("an aggregate");
        index.verify(&inputs, &aggregate).expect("true");
    });
    println!(
        "groth16, {count}: aggregate {proving:.1?} ({:.2?} for each), verification {verifying:.2?}, {} bytes",
        proving / count as u32,
        bytes.len()
    );
}

fn proofs(a: &[G1Affine], b: &[ark_bls12_381::G2Affine], c: &[G1Affine]) -> Vec<Proof<Bls12_381>> {
    let points = a.iter().zip(b).zip(c);
    points
        .map(|((a, b), c)| Proof {
            a: *a,
            b: *b,
            c: *c,
        })
        .collect()
}

fn median(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..SAMPLES)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[SAMPLES / 2]
}
