//! Execution with every record checked against those before it.

use std::collections::HashMap;

use proofmill_rv32::memory_map::{DATA_REGION, STACK_TOP};
use proofmill_rv32::{Exit, Machine, Program, Register, Step};

/// Greatest number of steps of an execution.
const STEPS_MAX: u64 = 10_000;

/// What the records of steps say about the machine.
struct Recorded {
    pc: u32,
    cycle: u64,
    registers: [u32; Register::COUNT],
    words: HashMap<u32, u32>,
}

/// Executes a program, and panics if a step's record does not follow from those before it.
pub fn execute(program: &Program, input: &[u8]) {
    let mut machine = Machine::new(program, input).expect("fuzzers make small inputs");
    let mut recorded = Recorded {
        pc: program.entry(),
        cycle: 0,
        registers: [0; Register::COUNT],
        words: program.data_words().collect(),
    };
    recorded.registers[Register::SP.index()] = STACK_TOP;
    let exit = machine.run(STEPS_MAX, |step| recorded.follow(program, step));
    for register in Register::all() {
        assert_eq!(
            machine.register(register),
            recorded.registers[register.index()]
        );
    }
    match exit {
        Exit::Halted { code } => assert_eq!(machine.exit_code(), Some(code)),
        Exit::Trapped(trap) => assert_eq!(machine.step(), Err(trap)),
        Exit::LimitReached => assert_eq!(machine.cycle(), STEPS_MAX),
    }
}

impl Recorded {
    fn follow(&mut self, program: &Program, step: &Step) {
        assert_eq!((step.pc, step.cycle), (self.pc, self.cycle));
        assert_eq!(program.code_word(step.pc), Some(step.word));
        assert_eq!(step.instruction.encode(), Ok(step.word));
        for read in [step.rs1, step.rs2].into_iter().flatten() {
            assert_eq!(read.value, self.registers[read.register.index()]);
        }
        if let Some(write) = step.rd {
            assert_ne!(write.register, Register::ZERO);
            let register = &mut self.registers[write.register.index()];
            assert_eq!(*register, write.before);
            *register = write.after;
        }
        if let Some(access) = step.memory {
            assert!(DATA_REGION.contains(&access.address) && access.address % 4 == 0);
            let word = self.words.entry(access.address).or_default();
            assert_eq!(*word, access.before);
            *word = access.after;
        }
        self.pc = step.next_pc;
        self.cycle += 1;
    }
}
