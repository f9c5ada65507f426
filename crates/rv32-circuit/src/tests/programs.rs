//! Programs for tests, from instructions.

use ark_std::rand::Rng;
use ark_std::rand::rngs::StdRng;
use proofmill_rv32::instruction::{
    BranchOperation, ImmediateOperation, LoadOperation, RegisterOperation, StoreOperation,
};
use proofmill_rv32::{Instruction, Program, Register, Segment, SegmentKind};

/// Address of the first instruction.
pub(crate) const START: u32 = 0x1000;

/// Address of the first data.
pub(crate) const DATA: u32 = 0x0200_0000;

/// Operands at which results change their sign, wrap around or are undefined elsewhere.
const EDGES: [u32; 16] = [
    0,
    1,
    2,
    7,
    31,
    32,
    0x7ff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_8000,
    0xffff_ff80,
    0xffff_fffe,
    0xffff_ffff,
];

/// Registers with addresses of data, which random instructions do not write.
const BASES: [u32; 2] = [8, 9];

/// The register with an address of code.
const LINK: u32 = 5;

pub(crate) fn x(number: u32) -> Register {
    Register::new(number as u8).unwrap()
}

pub(crate) fn program(instructions: &[Instruction], data: &[u32]) -> Program {
    let code = Segment {
        kind: SegmentKind::Code,
        address: START,
        words: instructions.iter().map(|i| i.encode().unwrap()).collect(),
        zero_words: 0,
    };
    let mut segments = vec![code];
    if !data.is_empty() {
        segments.push(Segment {
            kind: SegmentKind::Data,
            address: DATA,
            words: data.to_vec(),
            zero_words: 0,
        });
    }
    Program::new(START, segments).unwrap()
}

pub(crate) fn add_immediate(rd: u32, rs1: u32, immediate: i32) -> Instruction {
    Instruction::Immediate {
        operation: ImmediateOperation::Addi,
        rd: x(rd),
        rs1: x(rs1),
        immediate,
    }
}

/// Two instructions that put a value into a register.
pub(crate) fn set(rd: u32, value: u32) -> [Instruction; 2] {
    let low = (value as i32) << 20 >> 20;
    let immediate = value.wrapping_sub(low as u32);
    let rd = x(rd);
    [
        Instruction::Lui { rd, immediate },
        Instruction::Immediate {
            operation: ImmediateOperation::Addi,
            rd,
            rs1: rd,
            immediate: low,
        },
    ]
}

/// A call, with the number in a7.
pub(crate) fn call(number: i32) -> [Instruction; 2] {
    [add_immediate(17, 0, number), Instruction::EnvironmentCall]
}

/// Values for all registers, then `count` or more random instructions, then a halt. It may trap at a call.
pub(crate) fn random_program(rng: &mut StdRng, count: usize) -> Program {
    let mut instructions = Vec::new();
    for rd in 1..32 {
        let value = match BASES.contains(&rd) {
            true => DATA + rng.gen_range(0x800..0x1000) * 4,
            false => random_value(rng),
        };
        instructions.extend(set(rd, value));
    }
    let end = instructions.len() + count;
    while instructions.len() < end {
        random_instructions(rng, &mut instructions);
    }
    // A branch may skip two.
    instructions.extend([add_immediate(0, 0, 0); 3]);
    instructions.extend(call(0));
    let data: Vec<u32> = (0..0x1400).map(|_| rng.r#gen()).collect();
    program(&instructions, &data)
}

fn random_value(rng: &mut StdRng) -> u32 {
    match rng.gen_range(0..3) {
        0 => rng.r#gen(),
        1 => rng.r#gen::<u32>() >> rng.gen_range(0..32),
        _ => EDGES[rng.gen_range(0..EDGES.len())],
    }
}

fn destination(rng: &mut StdRng) -> Register {
    loop {
        let rd = rng.gen_range(0..32);
        if !BASES.contains(&rd) {
            return x(rd);
        }
    }
}

fn random_instructions(rng: &mut StdRng, out: &mut Vec<Instruction>) {
    let source = |rng: &mut StdRng| x(rng.gen_range(0..32));
    let (rd, rs1, rs2) = (destination(rng), source(rng), source(rng));
    let immediate = rng.gen_range(-2048..2048);
    let offset = 4 * rng.gen_range(1..3);
    match rng.gen_range(0..20) {
        0..=6 => out.push(Instruction::Register {
            operation: RegisterOperation::ALL[rng.gen_range(0..18)],
            rd,
            rs1,
            rs2,
        }),
        7..=9 => {
            let operation = ImmediateOperation::ALL[rng.gen_range(0..9)];
            let immediate = match operation.is_shift() {
                true => immediate & 31,
                false => immediate,
            };
            out.push(Instruction::Immediate {
                operation,
                rd,
                rs1,
                immediate,
            });
        }
        10 | 11 => {
            let operation = LoadOperation::ALL[rng.gen_range(0..5)];
            out.push(Instruction::Load {
                operation,
                rd,
                rs1: x(BASES[rng.gen_range(0..2)]),
                offset: immediate & -(operation.width_bytes() as i32),
            });
        }
        12 | 13 => {
            let operation = StoreOperation::ALL[rng.gen_range(0..3)];
            out.push(Instruction::Store {
                operation,
                rs1: x(BASES[rng.gen_range(0..2)]),
                rs2,
                offset: immediate & -(operation.width_bytes() as i32),
            });
        }
        14 | 15 => out.push(Instruction::Branch {
            operation: BranchOperation::ALL[rng.gen_range(0..6)],
            rs1,
            rs2: if rng.gen_bool(0.3) { rs1 } else { rs2 },
            offset,
        }),
        16 => {
            let immediate = rng.r#gen::<u32>() & 0xffff_f000;
            out.push(match rng.gen_bool(0.5) {
                true => Instruction::Lui { rd, immediate },
                false => Instruction::Auipc { rd, immediate },
            });
        }
        17 => out.push(Instruction::Jal { rd, offset }),
        18 => {
            let base = x(LINK);
            let to_link = Instruction::Auipc {
                rd: base,
                immediate: 0,
            };
            // To the next instruction or the one after, with bit 0 set or not.
            let offset = offset + 4 + rng.gen_range(0..2);
            out.extend([
                to_link,
                Instruction::Jalr {
                    rd,
                    rs1: base,
                    offset,
                },
            ]);
        }
        _ if rng.gen_bool(0.1) => out.push(Instruction::Fence {
            ordering: 0xff,
            rd: x(0),
            rs1: x(0),
        }),
        _ => out.extend(call(rng.gen_range(1..6))),
    }
}
