//! A circuit in one piece, and the same circuit in parts: membership in a Merkle tree, proved by one process and by
//! workers. `cargo run --release -p proofmill-partition --example merkle_path -- 4 8` (parts, levels in each)
//!
//! `docs/partition-your-circuit.md` explains it step by step.

mod circuit;
#[cfg(test)]
mod mistakes;
mod parts;
mod proving;
#[cfg(test)]
mod tests;

use ark_bn254::Fr;
use ark_std::UniformRand;
use ark_std::rand::{Rng, rngs::OsRng};
use proofmill_partition::{Check, Partition, PartitionedCircuit};
use proofmill_r1cs::R1cs;

use circuit::{Membership, Step};
use parts::MembershipInParts;
use proving::Keys;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let arguments: Vec<usize> = arguments.collect::<Result<_, _>>()?;
    let [parts, levels] = arguments.try_into().unwrap_or([4, 8]).map(|n| n.max(1));
    let membership = random(parts * levels, &mut OsRng);
    let whole = R1cs::from_circuit(membership.clone())?;
    println!("one piece: {} constraints", whole.num_constraints());

    let blank = MembershipInParts::blank(parts, levels);
    let partition = Partition::new(&blank)?;
    for class in partition.classes() {
        println!(
            "class {:?}: {} constraints, of them {} of the circuit; {} accesses; {} committed variables",
            class.name(),
            class.layout().constraints,
            class.constraints_of(Check::Circuit),
            class.accesses(),
            class.layout().committed,
        );
    }

    let circuit = blank.with_witness(membership);
    let keys = Keys::new(partition, &mut OsRng)?;
    let inputs = circuit.public_inputs();
    let proof = keys.prove(&circuit, &mut OsRng)?;
    keys.index.verifying_key().verify(&inputs, &proof)?;
    println!("one process: a proof of {} bytes", proof.to_bytes().len());
    let proof = keys.prove_with_workers(&blank, circuit)?;
    keys.index.verifying_key().verify(&inputs, &proof)?;
    println!("workers: a proof of {} bytes", proof.to_bytes().len());
    Ok(())
}

/// A random leaf and random steps.
fn random(levels: usize, rng: &mut impl Rng) -> Membership {
    let leaf = Fr::rand(rng);
    let steps = (0..levels).map(|_| Step {
        sibling: Fr::rand(rng),
        is_right: rng.r#gen(),
    });
    Membership::new(leaf, steps.collect())
}
