//! The cost of proving a directory's epochs: constraints of an update, times, updates per core-hour.
//! `cargo run --release -p proofmill-directory --example measure_directory -- 100000 2 8`
//! (keys, updates of the batch, levels in each part; and, if it is not 128, the depth of the tree).

use std::ops::ControlFlow;
use std::time::Instant;

use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_aggregation::Srs;
use proofmill_directory::circuit::{BatchShape, UpdateBatch};
use proofmill_directory::{
    DEPTH, Entry, KeyDigest, Record, Tree, ValueDigest, chain::public_inputs,
};
use proofmill_groth16::mirage::{ProvingKey, Setup};
use proofmill_groth16::{Bn254, ResidentForm};
use proofmill_partition::Partition;
use proofmill_partition::proof::{ClassKeys, Index, Journal, Prover};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<u32> = std::env::args()
        .skip(1)
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let (keys, updates, levels, depth) = match arguments[..] {
        [keys, updates, levels] => (keys, updates, levels, DEPTH),
        [keys, updates, levels, depth] => (keys, updates, levels, depth),
        _ => return Err("three or four numbers: keys, updates, levels in each part, depth".into()),
    };
    let mut tree = make_tree(keys, depth)?;
    let shape = BatchShape::with_depth(depth, updates as usize, levels)?;
    let batch = make_batch(shape, &mut tree, keys)?;
    let keys = make_keys(shape)?;
    prove(&keys, &batch)
}

/// The keys of a circuit.
struct Keys {
    index: Index<Bn254>,
    srs: Srs<Bn254>,
    held: ClassKeys<Bn254>,
}

fn make_tree(keys: u32, depth: u32) -> Result<Tree, Failure> {
    let entries = (0..keys).map(|number| Entry {
        key: KeyDigest::of(&number.to_le_bytes()),
        record: Record {
            version: 0,
            value: ValueDigest::of(&number.to_be_bytes()),
        },
    });
    let entries = entries.collect();
    let before = resident_kib();
    let start = Instant::now();
    let tree = Tree::from_entries(depth, entries)?;
    println!(
        "tree of {keys} keys: {:?}, {} KiB more memory, root {}",
        start.elapsed(),
        resident_kib().saturating_sub(before),
        tree.root()
    );
    Ok(tree)
}

/// Replaces values and inserts keys in turn.
fn make_batch(shape: BatchShape, tree: &mut Tree, keys: u32) -> Result<UpdateBatch, Failure> {
    let updates: Vec<_> = (0..shape.updates() as u32)
        .map(|number| {
            let key = match number % 2 {
                0 => number % keys.max(1),
                _ => keys + number,
            };
            let key = KeyDigest::of(&key.to_le_bytes());
            (key, ValueDigest::of(b"a new value"))
        })
        .collect();
    let start = Instant::now();
    let batch = UpdateBatch::apply(shape, tree, &updates)?;
    println!("{} updates of the tree: {:?}", batch.len(), start.elapsed());
    Ok(batch)
}

fn make_keys(shape: BatchShape) -> Result<Keys, Failure> {
    let rng = &mut StdRng::from_entropy();
    let start = Instant::now();
    let partition = Partition::new(&UpdateBatch::blank(shape))?;
    let cost = UpdateBatch::cost(shape, &partition)?;
    println!("{} parts: {:?}", partition.num_parts(), start.elapsed());
    for class in &cost.classes {
        println!(
            "  class {:6}  {} parts of an update, {} constraints each, {} of them the circuit's",
            class.name, class.parts_per_update, class.constraints, class.own_constraints
        );
    }
    println!("{} constraints per update", cost.constraints_per_update);
    let start = Instant::now();
    let srs = Srs::setup(partition.num_parts().next_power_of_two().max(2), rng)?;
    let setup = Setup::new(rng);
    let mut keys = Vec::new();
    for class in partition.classes() {
        keys.push(setup.key(class.committed_system()?, rng)?);
    }
    let of_classes = keys.iter().map(ProvingKey::vk).collect();
    let held = ClassKeys::hold(&partition, keys, ResidentForm::Plain)?;
    let index = Index::new(partition, of_classes, &srs)?;
    println!("keys: {:?}, {} bytes held", start.elapsed(), held.bytes());
    Ok(Keys { index, srs, held })
}

fn prove(keys: &Keys, batch: &UpdateBatch) -> Result<(), Failure> {
    let prover = Prover {
        index: &keys.index,
        srs: &keys.srs,
        keys: &keys.held,
    };
    let rng = &mut StdRng::from_entropy();
    let mut journal = Journal::in_memory(rng);
    let (start, used) = (Instant::now(), processor_seconds());
    let proof = prover.prove(batch, &mut journal, rng, |_| ControlFlow::Continue(()))?;
    let seconds = start.elapsed().as_secs_f64();
    let used = processor_seconds() - used;
    println!(
        "proof: {seconds:.1} s, {used:.1} s of processors, {:.1} updates per core-hour, {} bytes",
        batch.len() as f64 * 3600.0 / used,
        proof.to_bytes().len()
    );
    let start = Instant::now();
    let inputs = public_inputs(&batch.root_before(), &batch.root_after());
    keys.index.verifying_key().verify(&inputs, &proof)?;
    println!("verified: {:?}", start.elapsed());
    println!("resident memory: {} KiB", resident_kib());
    Ok(())
}

/// The memory of this process, in KiB; 0 where the system does not tell.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The time that processors have spent on this process, in seconds: not that on other processes beside it.
fn processor_seconds() -> f64 {
    /// Ticks of `/proc` in a second.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name, which may have blanks, time in user mode is the 12th field, in the kernel the 13th.
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks: f64 = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    ticks / TICKS
}
