//! The cost of the reduction on the big Merkle tree: constraints by purpose, and times.
//! `cargo run --release -p proofmill-partition --example measure_partition -- 3 4 100`
//! (binary levels, hashes in each part, tunable portals).

use std::time::Instant;

use ark_bn254::Fr;
use ark_std::rand::{RngCore, SeedableRng, rngs::StdRng};
use proofmill_partition::applications::BigMerkleTree;
use proofmill_partition::{Challenges, Check, Partition};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<usize> = std::env::args()
        .skip(1)
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let [log_leaves, hashes, portals] = arguments[..] else {
        return Err("three numbers: binary levels, hashes, portals".into());
    };
    let start = Instant::now();
    let blank = BigMerkleTree::<Fr>::blank(log_leaves, hashes, portals)?;
    let partition = Partition::new(&blank)?;
    println!("setup {:?}", start.elapsed());
    for class in partition.classes() {
        let layout = class.layout();
        let own = class.constraints_of(Check::Circuit);
        println!(
            "{:10}  {} constraints, {} of them the circuit's; {} accesses, {} preprocessed",
            class.name(),
            layout.constraints,
            own,
            class.accesses(),
            layout.preprocessed,
        );
    }

    let rng = &mut StdRng::from_entropy();
    let leaves = (0..1 << log_leaves).map(|_| std::array::from_fn(|_| rng.next_u32()));
    let circuit = BigMerkleTree::<Fr>::new(leaves.collect(), hashes, portals)?;
    let start = Instant::now();
    let traces = partition.trace(&circuit)?;
    println!("trace {:?}", start.elapsed());
    let (alpha, beta) = (Fr::from(rng.next_u64()), Fr::from(rng.next_u64()));
    let challenges = Challenges { alpha, beta };
    let start = Instant::now();
    let states = partition.states(&traces, challenges, rng)?;
    println!("states {:?}", start.elapsed());
    let start = Instant::now();
    for part in 0..partition.num_parts() {
        let (trace, opening) = (partition.part_trace(&traces, part)?, states.opening(part)?);
        let z = partition.assignment(&circuit, part, &trace, &challenges, &opening)?;
        let class = &partition.classes()[partition.class_of(part)?];
        class.system().is_satisfied(z.z())?;
    }
    println!("assignments, made and checked {:?}", start.elapsed());
    Ok(())
}
