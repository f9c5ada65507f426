//! Whole circuits of small shapes: honest ones hold.

use ark_bn254::Fr;
use ark_ff::UniformRand;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use proofmill_partition::{Challenges, Partition, PartitionError, PartitionedCircuit};
use proofmill_rv32::instruction::{
    BranchOperation, LoadOperation, RegisterOperation, StoreOperation,
};
use proofmill_rv32::{Instruction, Program};

use super::programs::{add_immediate, call, program, set, x};
use crate::{Rv32Circuit, Shape};

/// A shape of small parts.
pub(crate) const SHAPE: Shape = Shape {
    steps: 16,
    step_parts: 14,
    program_rows: 16,
    data_words: 4,
    zero_words: 4,
    zero_parts: 2,
    input_words: 7,
    input_parts: 2,
    output_words: 7,
    output_parts: 2,
    input_is_public: true,
};

/// Why a circuit is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The values that are put are not those that are taken.
    Unmatched,
    /// Another circuit than the partition's.
    OtherCircuit,
    /// A part's constraints do not hold.
    Part(&'static str),
}

/// Reads words and bytes of the input, sums them with what is on the stack and in data, calls a function, and writes
/// the sum, its bytes and its remainder by the first data word.
pub(crate) fn summing_program() -> Program {
    let mut code = Vec::new();
    code.extend(set(8, 0x0200_0000));
    code.push(Instruction::Load {
        operation: LoadOperation::Lw,
        rd: x(9),
        rs1: x(8),
        offset: 4,
    });
    code.extend(call(3));
    code.push(store(StoreOperation::Sw, 2, 10, -4));
    code.extend(call(1));
    code.push(add_immediate(20, 10, 0));
    // The loop over the remaining bytes.
    code.extend(call(2));
    code.push(branch(BranchOperation::Blt, 10, 0, 24));
    code.push(Instruction::Register {
        operation: RegisterOperation::Add,
        rd: x(9),
        rs1: x(9),
        rs2: x(10),
    });
    code.push(store(StoreOperation::Sb, 2, 10, -9));
    code.push(Instruction::Jal {
        rd: x(0),
        offset: -20,
    });
    code.extend([add_immediate(0, 0, 1), add_immediate(0, 0, 2)]);
    code.push(Instruction::Load {
        operation: LoadOperation::Lw,
        rd: x(11),
        rs1: x(2),
        offset: -4,
    });
    code.push(Instruction::Register {
        operation: RegisterOperation::Add,
        rd: x(10),
        rs1: x(9),
        rs2: x(11),
    });
    code.extend(call(5));
    code.push(Instruction::Load {
        operation: LoadOperation::Lbu,
        rd: x(12),
        rs1: x(2),
        offset: -9,
    });
    code.push(Instruction::Load {
        operation: LoadOperation::Lw,
        rd: x(13),
        rs1: x(8),
        offset: 0,
    });
    code.push(Instruction::Register {
        operation: RegisterOperation::Rem,
        rd: x(10),
        rs1: x(10),
        rs2: x(13),
    });
    code.push(store(StoreOperation::Sh, 8, 10, 2));
    code.extend(call(4));
    code.push(add_immediate(10, 12, 0));
    code.extend(call(4));
    code.push(add_immediate(10, 20, 0));
    code.extend(call(0));
    program(&code, &[97, 1000, 0, 5])
}

fn store(operation: StoreOperation, rs1: u32, rs2: u32, offset: i32) -> Instruction {
    Instruction::Store {
        operation,
        rs1: x(rs1),
        rs2: x(rs2),
        offset,
    }
}

fn branch(operation: BranchOperation, rs1: u32, rs2: u32, offset: i32) -> Instruction {
    Instruction::Branch {
        operation,
        rs1: x(rs1),
        rs2: x(rs2),
        offset,
    }
}

/// Bytes for the program, one beyond whole words.
pub(crate) const INPUT: &[u8] = b"\x01\x02\x00\x00abcdefghi";

/// Tries to prove: nothing if all constraints hold and everything that is put is taken.
pub(crate) fn refusal(
    partition: &Partition<Fr>,
    circuit: &impl PartitionedCircuit<Fr>,
) -> Option<Refusal> {
    let traces = match partition.trace(circuit) {
        Ok(traces) => traces,
        Err(PartitionError::Unmatched { .. }) => return Some(Refusal::Unmatched),
        Err(PartitionError::AccessesChanged { .. }) => return Some(Refusal::OtherCircuit),
        Err(error) => panic!("{error}"),
    };
    let rng = &mut StdRng::seed_from_u64(3);
    let challenges = Challenges {
        alpha: Fr::rand(rng),
        beta: Fr::rand(rng),
    };
    let states = partition.states(&traces, challenges, rng).unwrap();
    for part in 0..partition.num_parts() {
        let trace = partition.part_trace(&traces, part).unwrap();
        let opening = states.opening(part).unwrap();
        let assignment = partition
            .assignment(circuit, part, &trace, &challenges, &opening)
            .unwrap();
        let class = &partition.classes()[partition.class_of(part).unwrap()];
        if class.system().is_satisfied(assignment.z()).is_err() {
            return Some(Refusal::Part(circuit.class(part)));
        }
    }
    None
}

pub(crate) fn partition(program: &Program, shape: Shape) -> Partition<Fr> {
    Partition::new(&Rv32Circuit::blank(program, shape).unwrap()).unwrap()
}

#[test]
fn an_execution_with_a_public_input_holds() {
    let program = summing_program();
    let circuit = Rv32Circuit::new(&program, INPUT, SHAPE).unwrap();
    let statement = circuit.statement().unwrap();
    assert_eq!(statement.exit_code, 9);
    let sum = 1000 + (b'a'..=b'i').map(u32::from).sum::<u32>() + 0x0201;
    let mut output = sum.to_le_bytes().to_vec();
    output.extend([(sum % 97) as u8, b'i']);
    assert_eq!(statement.output, output);
    assert_eq!(statement.input.as_deref(), Some(INPUT));
    let partition = partition(&program, SHAPE);
    assert_eq!(partition.classes().len(), 8);
    assert!(refusal(&partition, &circuit).is_none());
}

/// Lengths of the input around whole words and the end of a part, with the same partition; a private input.
#[test]
fn inputs_of_any_length_hold() {
    let program = summing_program();
    let shape = Shape {
        input_is_public: false,
        input_words: 7,
        input_parts: 1,
        ..SHAPE
    };
    let partition = partition(&program, shape);
    for length in [0, 1, 2, 3, 4, 5, 7, 8, 9, 26, 27] {
        let circuit = Rv32Circuit::new(&program, &vec![7; length], shape).unwrap();
        let refusal = refusal(&partition, &circuit);
        assert!(refusal.is_none(), "{length} bytes: {refusal:?}");
    }
}
