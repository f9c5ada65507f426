//! The memory that an aggregation takes beside its key and the reference string, at its peak, on Linux.
//! `cargo run --release -p proofmill-aggregation --example measure_memory -- 16384` (a power of two). The proofs are of
//! nothing: the work is the same.

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::UniformRand;
use ark_std::rand::rngs::StdRng;
use ark_std::rand::{RngCore, SeedableRng};
use proofmill_aggregation::{
    AggregationCurve, MirageClass, MirageIndex, MirageParts, MirageStatement, Srs,
};
use proofmill_groth16::Proof;

type Failed = Box<dyn std::error::Error>;

const NO_SIZE: &str = "the system does not report the memory of processes";

fn main() -> Result<(), Failed> {
    let count = std::env::args().nth(1).ok_or("the number of proofs")?;
    let count: usize = count.parse()?;
    proofmill_memory::return_large_allocations();
    measure::<Bn254>("bn254", count)?;
    measure::<Bls12_381>("bls12-381", count)
}

fn measure<E: AggregationCurve>(curve: &str, count: usize) -> Result<(), Failed> {
    let rng = &mut StdRng::seed_from_u64(rand_seed());
    let srs = Srs::<E>::setup(count, rng)?;
    let mut point = E::G1::rand(rng);
    let step = E::G1::rand(rng);
    let points = (0..count).map(|_| {
        point += step;
        point
    });
    let points = E::G1::normalize_batch(&points.collect::<Vec<_>>());
    let second = (E::G2::generator() * E::ScalarField::rand(rng)).into_affine();
    let mut of_class = || (E::G2::generator() * E::ScalarField::rand(rng)).into_affine();
    let class = MirageClass {
        gamma: of_class(),
        delta: of_class(),
        eta: of_class(),
    };
    let parts = MirageParts {
        alpha: points[0],
        beta: of_class(),
        classes: vec![class],
        class_of: vec![0; count],
        inputs: vec![points.clone(); 4],
    };
    let index = MirageIndex::new(&srs, parts)?;
    let proofs = points.iter().map(|point| Proof {
        a: *point,
        b: second,
        c: *point,
    });
    let proofs: Vec<Proof<E>> = proofs.collect();
    let commitment = index.commit(&srs, &points)?;
    let inputs = [1u64, 2, 3].map(E::ScalarField::from);
    proofmill_kernels::release_memory();
    proofmill_memory::release_heap();
    std::fs::write("/proc/self/clear_refs", "5")?;
    let before = proofmill_memory::resident().ok_or(NO_SIZE)?;
    let statement = MirageStatement {
        context: b"measured",
        inputs: &inputs,
        commitment: &commitment,
    };
    index.aggregate(&srs, statement, &proofs, &points)?;
    let more = proofmill_memory::peak()
        .ok_or(NO_SIZE)?
        .saturating_sub(before);
    println!(
        "{curve}: {more} bytes for {count} proofs, {} for each, {:.1} points of the first group",
        more / count as u64,
        more as f64 / (count * size_of::<E::G1Affine>()) as f64
    );
    Ok(())
}

fn rand_seed() -> u64 {
    StdRng::from_entropy().next_u64()
}
