//! Parts that are proved elsewhere: from the bytes of their witness, with a circuit that has no execution.

use ark_bn254::Fr;
use ark_ff::UniformRand;
use ark_std::rand::rngs::StdRng;
use ark_std::rand::{RngCore, SeedableRng};
use proofmill_partition::{Challenges, DistributedCircuit, Opening, PartTrace, Partition};

use super::whole::{INPUT, SHAPE, partition, summing_program};
use crate::Rv32Circuit;

/// A traced execution, and what a worker has without it.
struct Setting {
    partition: Partition<Fr>,
    blank: Rv32Circuit,
    circuit: Rv32Circuit,
    challenges: Challenges<Fr>,
    parts: Vec<(PartTrace<Fr>, Opening<Fr>)>,
}

// === impl Setting ===

impl Setting {
    fn new() -> Self {
        let program = summing_program();
        let partition = partition(&program, SHAPE);
        let circuit = Rv32Circuit::new(&program, INPUT, SHAPE).unwrap();
        let traces = partition.trace(&circuit).unwrap();
        let rng = &mut StdRng::seed_from_u64(3);
        let challenges = Challenges {
            alpha: Fr::rand(rng),
            beta: Fr::rand(rng),
        };
        let states = partition.states(&traces, challenges, rng).unwrap();
        let parts = (0..partition.num_parts()).map(|part| {
            let trace = partition.part_trace(&traces, part).unwrap();
            (trace, states.opening(part).unwrap())
        });
        let parts = parts.collect();
        Self {
            blank: Rv32Circuit::blank(&program, SHAPE).unwrap(),
            partition,
            circuit,
            challenges,
            parts,
        }
    }

    fn bytes(&self, part: usize) -> Vec<u8> {
        DistributedCircuit::<Fr>::part_witness(&self.circuit, part)
    }

    fn received(&self, part: usize, bytes: &[u8]) -> Result<Rv32Circuit, String> {
        DistributedCircuit::<Fr>::with_part_witness(&self.blank, part, bytes)
    }

    /// The assignment of a part by a circuit; nothing if it is refused.
    fn assignment(&self, circuit: &Rv32Circuit, part: usize) -> Option<Vec<Fr>> {
        let (trace, opening) = &self.parts[part];
        let made = self
            .partition
            .assignment(circuit, part, trace, &self.challenges, opening);
        Some(made.ok()?.z().to_vec())
    }
}

#[test]
fn a_part_needs_its_own_witness_only() {
    let setting = Setting::new();
    for part in 0..setting.partition.num_parts() {
        let received = setting.received(part, &setting.bytes(part)).unwrap();
        let expected = setting.assignment(&setting.circuit, part);
        assert!(expected.is_some());
        assert!(
            setting.assignment(&received, part) == expected,
            "part {part}"
        );
    }
}

/// Any bytes give an error or an assignment, and never a panic; those of another part rarely have the right length.
#[test]
fn untrusted_witnesses_are_refused_or_give_another_assignment() {
    let setting = Setting::new();
    let rng = &mut StdRng::seed_from_u64(9);
    for part in 0..setting.partition.num_parts() {
        let bytes = setting.bytes(part);
        assert!(setting.received(part, &bytes[1..]).is_err());
        let longer = [&bytes[..], &[0]].concat();
        assert!(setting.received(part, &longer).is_err());
        for _ in 0..20 {
            let mut changed = bytes.clone();
            for _ in 0..1 + rng.next_u32() % 8 {
                let index = rng.next_u32() as usize % changed.len();
                changed[index] ^= rng.next_u32() as u8;
            }
            if let Ok(received) = setting.received(part, &changed) {
                let _ = setting.assignment(&received, part);
            }
        }
    }
}

#[test]
fn steps_of_no_instruction_and_a_pc_beyond_all_are_refused() {
    let setting = Setting::new();
    let steps = (0..setting.partition.num_parts())
        .find(|part| {
            let class = setting.partition.class_of(*part).unwrap();
            setting.partition.classes()[class].name() == "steps"
        })
        .unwrap();
    let mut bytes = setting.bytes(steps);
    // The row of the first step.
    bytes[20..24].copy_from_slice(&[0xff; 4]);
    let why = setting.received(steps, &bytes).unwrap_err();
    assert!(why.contains("which is none"), "{why}");
    let mut bytes = setting.bytes(steps);
    bytes[4..12].copy_from_slice(&u64::MAX.to_le_bytes());
    let why = setting.received(steps, &bytes).unwrap_err();
    assert!(why.contains("pc"), "{why}");
}
