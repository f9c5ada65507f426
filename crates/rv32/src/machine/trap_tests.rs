//! Each trap, the records of steps, and the limits of the machine.

use super::test_programs::{START, add, load, program, program_of_words, set, store};
use super::*;
use crate::instruction::{BranchOperation, Instruction, LoadOperation, Register, StoreOperation};
use crate::memory_map::{DATA_REGION, STACK_TOP};
use crate::program::Program;

const A0: Register = Register::A0;
const A7: Register = Register::A7;
const ZERO: Register = Register::ZERO;

/// Runs to the trap, and checks that the trapping instruction changed nothing.
fn trap(program: &Program) -> Trap {
    let mut machine = Machine::new(program, b"input").unwrap();
    let Exit::Trapped(trap) = machine.run(1000, |_| {}) else {
        panic!("no trap");
    };
    assert_eq!((trap.cycle, trap.pc), (machine.cycle(), machine.pc()));
    let before = format!("{machine:?}");
    assert_eq!(machine.step(), Err(trap));
    assert_eq!(format!("{machine:?}"), before);
    trap
}

/// The trap of an instruction that is executed with a7 and a0 set.
fn trap_of(a7: u32, a0: u32, instruction: Instruction) -> TrapCause {
    let instructions = [&set(A7, a7)[..], &set(A0, a0), &[instruction]].concat();
    let trap = trap(&program(&instructions));
    assert_eq!((trap.cycle, trap.pc), (4, START + 16));
    trap.cause
}

#[test]
fn execution_off_the_code_traps() {
    let fault = TrapCause::InstructionAccessFault;
    let end = trap(&program(&[add(A0, ZERO, 1)]));
    assert_eq!((end.pc, end.cause), (START + 4, fault));
    for target in [0, START - 4, DATA_REGION.start, STACK_TOP, !3] {
        let jump = Instruction::Jalr {
            rd: A0,
            rs1: A7,
            offset: 0,
        };
        let trap = trap(&program(&[&set(A7, target)[..], &[jump]].concat()));
        assert_eq!((trap.pc, trap.cycle, trap.cause), (target, 3, fault));
    }
}

#[test]
fn illegal_words_trap() {
    for word in [0, u32::MAX, 0x0010_0073, 0xc000_1073] {
        let trap = trap(&program_of_words(vec![0x13, word]));
        assert_eq!(trap.pc, START + 4);
        assert!(matches!(trap.cause, TrapCause::IllegalInstruction(error) if error.word == word));
    }
    let message = trap(&program_of_words(vec![0])).to_string();
    assert_eq!(
        message,
        "trap at pc 0x00001000, cycle 0: illegal instruction: word 0x00000000 is no supported instruction; compile for \
         rv32im without other extensions"
    );
}

#[test]
fn misaligned_targets_trap_at_the_jump_if_taken() {
    let branch = |operation| Instruction::Branch {
        operation,
        rs1: A0,
        rs2: A0,
        offset: 6,
    };
    let misaligned = |target| TrapCause::InstructionAddressMisaligned { target };
    let jump = Instruction::Jal { rd: A0, offset: -2 };
    assert_eq!(trap_of(0, 0, jump), misaligned(START + 14));
    let indirect = Instruction::Jalr {
        rd: A0,
        rs1: A7,
        offset: 2,
    };
    // Bit 0 of the target is cleared, bit 1 is not.
    assert_eq!(trap_of(START + 1, 0, indirect), misaligned(START + 2));
    assert_eq!(
        trap_of(0, 0, branch(BranchOperation::Beq)),
        misaligned(START + 22)
    );
    let passed = trap(&program(&[branch(BranchOperation::Bne)]));
    assert_eq!(passed.pc, START + 4);
}

#[test]
fn misaligned_accesses_trap() {
    let address = DATA_REGION.start;
    for operation in LoadOperation::ALL {
        for offset in 1..4 {
            let width_bytes = operation.width_bytes();
            if offset % width_bytes as i32 != 0 {
                let cause = trap_of(address, 0, load(operation, offset));
                let address = address + offset as u32;
                assert_eq!(
                    cause,
                    TrapCause::LoadAddressMisaligned {
                        address,
                        width_bytes
                    }
                );
            }
        }
    }
    for (operation, offset) in [
        (StoreOperation::Sh, 1),
        (StoreOperation::Sh, 3),
        (StoreOperation::Sw, 2),
    ] {
        let cause = trap_of(address, 0, store(operation, offset));
        assert_eq!(
            cause,
            TrapCause::StoreAddressMisaligned {
                address: address + offset as u32,
                width_bytes: operation.width_bytes()
            }
        );
    }
    // Misalignment is reported before the fault.
    assert!(matches!(
        trap_of(0, 0, load(LoadOperation::Lw, 2)),
        TrapCause::LoadAddressMisaligned { .. }
    ));
}

#[test]
fn accesses_outside_of_data_trap() {
    for address in [
        0,
        0xffc,
        START,
        DATA_REGION.start - 4,
        DATA_REGION.end,
        0xffff_fffc,
    ] {
        assert_eq!(
            trap_of(address, 0, load(LoadOperation::Lbu, 0)),
            TrapCause::LoadAccessFault { address }
        );
        assert_eq!(
            trap_of(address, 0, store(StoreOperation::Sb, 0)),
            TrapCause::StoreAccessFault { address }
        );
    }
    // Addresses wrap around: the last word of memory is reached neither way.
    assert_eq!(
        trap_of(4, 0, load(LoadOperation::Lw, -8)),
        TrapCause::LoadAccessFault {
            address: 0xffff_fffc
        }
    );
}

#[test]
fn unknown_and_misaligned_calls_trap() {
    let call = Instruction::EnvironmentCall;
    assert_eq!(trap_of(93, 0, call), TrapCause::UnknownCall { number: 93 });
    let read = [add(A7, ZERO, 2), call, add(A7, ZERO, 3), call];
    let trapped = trap(&program(&read));
    assert_eq!(trapped.pc, START + 12);
    assert_eq!(trapped.cause, TrapCause::InputMisaligned { position: 1 });
    let write = [add(A7, ZERO, 4), call, add(A7, ZERO, 5), call];
    assert_eq!(
        trap(&program(&write)).cause,
        TrapCause::OutputMisaligned { position: 1 }
    );
}

#[test]
fn a_halted_program_stays_halted() {
    let halting = program(&[add(A0, ZERO, 7), Instruction::EnvironmentCall]);
    let mut machine = Machine::new(&halting, &[]).unwrap();
    let mut last = None;
    assert_eq!(
        machine.run(10, |step| last = Some(*step)),
        Exit::Halted { code: 7 }
    );
    let last = last.unwrap();
    assert_eq!((last.pc, last.next_pc), (START + 4, START + 4));
    assert_eq!((machine.cycle(), machine.exit_code()), (2, Some(7)));
    let trap = machine.step().unwrap_err();
    assert_eq!(trap.cause, TrapCause::Halted { code: 7 });
    assert_eq!(machine.cycle(), 2);
}

#[test]
fn the_limit_of_steps_is_exact() {
    let endless = program(&[Instruction::Jal {
        rd: ZERO,
        offset: 0,
    }]);
    let mut machine = Machine::new(&endless, &[]).unwrap();
    let mut steps = 0;
    for _ in 0..2 {
        assert_eq!(machine.run(10, |_| steps += 1), Exit::LimitReached);
    }
    assert_eq!((steps, machine.cycle()), (20, 20));
    assert_eq!(machine.run(0, |_| {}), Exit::LimitReached);
}

#[test]
fn inputs_are_limited() {
    let program = program(&[Instruction::EnvironmentCall]);
    let input = vec![0; INPUT_BYTES_MAX + 1];
    assert!(Machine::new(&program, &input[1..]).is_ok());
    assert_eq!(
        Machine::new(&program, &input).unwrap_err(),
        InputTooLong {
            bytes: INPUT_BYTES_MAX + 1
        }
    );
}

#[test]
fn a_store_of_a_byte_is_recorded_on_its_word() {
    let address = DATA_REGION.start + 6;
    let instructions = [
        &set(A7, address)[..],
        &set(A0, 0x1234_56ab),
        &[store(StoreOperation::Sb, 0), load(LoadOperation::Lb, 0)],
    ]
    .concat();
    let program = program(&instructions);
    let mut machine = Machine::new(&program, &[]).unwrap();
    let mut steps = Vec::new();
    machine.run(6, |step| steps.push(*step));
    let word = DATA_REGION.start + 4;
    assert_eq!(
        steps[4].memory,
        Some(MemoryAccess {
            kind: AccessKind::Store,
            address: word,
            before: 0,
            after: 0x00ab_0000
        })
    );
    assert_eq!((steps[4].rd, steps[4].cycle), (None, 4));
    assert_eq!(
        steps[5].memory,
        Some(MemoryAccess {
            kind: AccessKind::Load,
            address: word,
            before: 0x00ab_0000,
            after: 0x00ab_0000
        })
    );
    assert_eq!(
        steps[5].rd,
        Some(RegisterWrite {
            register: A0,
            before: 0x1234_56ab,
            after: 0xffff_ffab
        })
    );
    assert_eq!(machine.memory_word(address), Some(0x00ab_0000));
}

#[test]
fn register_zero_is_read_and_never_written() {
    let program = program(&[add(ZERO, Register::SP, 5), add(A0, ZERO, 0)]);
    let mut machine = Machine::new(&program, &[]).unwrap();
    let step = machine.step().unwrap();
    assert_eq!(step.rd, None);
    let stack = RegisterRead {
        register: Register::SP,
        value: STACK_TOP,
    };
    assert_eq!((step.rs1, step.rs2), (Some(stack), None));
    let step = machine.step().unwrap();
    assert_eq!(step.rs1.unwrap().value, 0);
    assert_eq!(machine.register(ZERO), 0);
}
