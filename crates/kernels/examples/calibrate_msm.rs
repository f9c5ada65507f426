//! Measures the parameters of the cost model of multi-scalar multiplication, for every group and back
//! end: `cargo run --release -p proofmill-kernels --example calibrate_msm`.

use proofmill_kernels::{InstructionSet, MsmGroup, calibrate};

fn print<G: MsmGroup>(name: &str) {
    let step = G::generator();
    let mut points = vec![step];
    for i in 1..1 << 15 {
        points.push(points[i - 1] + step);
    }
    let bases = G::normalize_batch(&points);
    for set in InstructionSet::ALL
        .into_iter()
        .filter(|set| set.is_available())
    {
        println!("{name:<13} {set:<11} {}", calibrate::<G>(set, &bases));
    }
}

fn main() {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("a thread pool");
    pool.install(|| {
        print::<ark_bls12_381::G1Projective>("bls12-381 g1");
        print::<ark_bls12_381::G2Projective>("bls12-381 g2");
        print::<ark_bls12_377::G1Projective>("bls12-377 g1");
        print::<ark_bls12_377::G2Projective>("bls12-377 g2");
        print::<ark_bn254::G1Projective>("bn254 g1");
        print::<ark_bn254::G2Projective>("bn254 g2");
        print::<ark_grumpkin::Projective>("grumpkin");
    });
}
