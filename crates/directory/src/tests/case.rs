//! A small directory, and the check of a batch of its updates part by part.

use std::sync::LazyLock;

use ark_bn254::Fr;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_kernels::Poseidon2Field;
use proofmill_partition::{Challenges, Check, Partition, PartitionedCircuit};

use crate::circuit::{BatchShape, UpdateBatch};
use crate::{Digest, Entry, KeyDigest, Record, Tree, ValueDigest};

/// Levels of the small directory: with parts of one level there are all three classes.
pub(super) const LEVELS: u32 = 3;

/// A batch of two updates of the small directory.
pub(super) fn shape() -> BatchShape {
    BatchShape::with_depth(LEVELS, 2, 1).unwrap()
}

/// The partition of [`shape`].
pub(super) static PARTITION: LazyLock<Partition<Fr>> =
    LazyLock::new(|| Partition::new(&UpdateBatch::blank(shape())).unwrap());

/// A key's digest with the path `path` of [`LEVELS`] bits; `other` tells apart keys of the same path.
pub(super) fn key(path: u8, other: u8) -> KeyDigest {
    let mut digest = [other; 32];
    digest[0] = path << (8 - LEVELS) | other & 0x1f;
    KeyDigest(Digest(digest))
}

pub(super) fn value(number: u8) -> ValueDigest {
    ValueDigest::of(&[number])
}

/// A tree with keys of versions 7, 2⁶⁴ − 2 and 2⁶⁴ − 1 on the paths 1, 4 and 6.
pub(super) fn tree() -> Tree {
    let entry = |(path, version)| Entry {
        key: key(path, 1),
        record: Record {
            version,
            value: value(path),
        },
    };
    let entries = [(1, 7), (4, u64::MAX - 1), (6, u64::MAX)].map(entry);
    Tree::from_entries(LEVELS, entries.into()).unwrap()
}

/// The parts of a batch with constraints that its witness does not satisfy, and the purpose of the first of them.
pub(super) fn refusals<F: Poseidon2Field>(
    partition: &Partition<F>,
    circuit: &impl PartitionedCircuit<F>,
) -> Vec<(usize, Check)> {
    let traces = partition.trace(circuit).unwrap();
    let rng = &mut StdRng::seed_from_u64(1);
    let challenges = Challenges {
        alpha: F::rand(rng),
        beta: F::rand(rng),
    };
    let states = partition.states(&traces, challenges, rng).unwrap();
    let (public, path) = (partition.public_state(), states.public_path());
    let inputs = circuit.public_inputs();
    assert!(public.holds(&inputs, &challenges, states.root(), &path));
    let mut refusals = Vec::new();
    for part in 0..partition.num_parts() {
        let trace = partition.part_trace(&traces, part).unwrap();
        let opening = states.opening(part).unwrap();
        let assignment = partition
            .assignment(circuit, part, &trace, &challenges, &opening)
            .unwrap();
        let class = &partition.classes()[partition.class_of(part).unwrap()];
        if let Err(unsatisfied) = class.system().is_satisfied(assignment.z()) {
            refusals.push((part, class.check_of(unsatisfied.row).unwrap()));
        }
    }
    refusals
}
