//! One program on both interpreters, compared after every step.

use std::collections::{BTreeMap, HashMap};

use proofmill_rv32::machine::{AccessKind, Call};
use proofmill_rv32::{Machine, Program, Register, Segment, SegmentKind, Step, TrapCause};

use super::reference::{Reference, Stop};
use super::table::lookup;

/// Address of the first instruction.
pub(crate) const START: u32 = 0x0001_0000;

/// How often each mnemonic was executed and each trap was reached.
#[derive(Default)]
pub(crate) struct Coverage {
    pub(crate) mnemonics: BTreeMap<&'static str, u64>,
    pub(crate) traps: BTreeMap<&'static str, u64>,
    pub(crate) steps: u64,
}

/// Executes at most `limit` steps of a program in both, and panics at the first difference.
pub(crate) fn compare(
    words: Vec<u32>,
    data: &[Segment],
    input: &[u8],
    limit: u64,
    coverage: &mut Coverage,
) {
    let code = Segment {
        kind: SegmentKind::Code,
        address: START,
        words,
        zero_words: 0,
    };
    let segments = [&[code], data].concat();
    let program = Program::new(START, segments).unwrap();
    let code: Vec<_> = program.code_words().collect();
    let data: Vec<_> = program.data_words().collect();
    let mut reference = Reference::new(START, &code, &data, input);
    let mut machine = Machine::new(&program, input).unwrap();
    let mut memory: HashMap<u32, u32> = data.into_iter().collect();
    for cycle in 0..limit {
        let mnemonic = reference.mnemonic();
        let before = Before::of(&reference);
        let expected = reference.step();
        match (machine.step(), expected) {
            (Ok(step), Ok(())) => {
                assert_eq!(step.cycle, cycle);
                check(&step, &before, &reference, &mut memory);
                *coverage.mnemonics.entry(mnemonic.unwrap()).or_default() += 1;
                coverage.steps += 1;
            }
            (Ok(step), Err(Stop::Halt(code))) => {
                let code = code as u32;
                assert_eq!(step.call, Some(Call::Halt { code }));
                assert_eq!((step.pc, step.next_pc), (reference.pc as u32, step.pc));
                *coverage.traps.entry("halt").or_default() += 1;
                break;
            }
            (Err(trap), Err(Stop::Trap(name, detail))) => {
                assert_eq!(trap.cycle, cycle);
                let pc = i64::from(trap.pc);
                assert_eq!((pc, named(trap.cause, pc)), (reference.pc, (name, detail)));
                *coverage.traps.entry(name).or_default() += 1;
                break;
            }
            (found, expected) => panic!("{found:?} is not {expected:?}"),
        }
    }
    for register in Register::all() {
        let value = machine.register(register);
        assert_eq!(i64::from(value), reference.x[register.index()]);
    }
    assert_eq!(machine.output(), reference.output);
    assert_eq!(machine.input_position(), reference.read);
    for address in reference.bytes.keys() {
        let word = machine.memory_word(*address as u32);
        assert_eq!(word.map(i64::from), Some(reference.get(address / 4 * 4, 4)));
    }
}

/// The reference before a step.
struct Before {
    pc: i64,
    x: [i64; 32],
    read: usize,
    written: usize,
}

impl Before {
    fn of(reference: &Reference) -> Self {
        Self {
            pc: reference.pc,
            x: reference.x,
            read: reference.read,
            written: reference.output.len(),
        }
    }
}

/// Compares the record of a step with the reference before and after it. `words` are the values of memory words by the
/// records of earlier steps, as a memory argument has them.
fn check(step: &Step, before: &Before, after: &Reference, words: &mut HashMap<u32, u32>) {
    assert_eq!(i64::from(step.pc), before.pc);
    assert_eq!(i64::from(step.next_pc), after.pc, "{step:x?}");
    let (_, rs1, rs2) = lookup(step.word).unwrap();
    for (found, expected) in [(step.rs1, rs1), (step.rs2, rs2)] {
        let found = found.map(|read| (read.register.index(), i64::from(read.value)));
        assert_eq!(found, expected.map(|index| (index, before.x[index])));
    }
    let mut registers = before.x;
    if let Some(write) = step.rd {
        assert_ne!(write.register, Register::ZERO);
        let register = &mut registers[write.register.index()];
        assert_eq!(*register, i64::from(write.before));
        *register = i64::from(write.after);
    }
    assert_eq!(registers, after.x, "{step:x?}");
    let address = step.memory.map(|access| i64::from(access.address));
    assert_eq!(address, after.accessed.map(|byte| byte / 4 * 4));
    if let Some(access) = step.memory {
        let word = words.entry(access.address).or_default();
        assert_eq!(access.before, *word, "{step:x?}");
        *word = access.after;
        let expected = after.get(access.address.into(), 4);
        assert_eq!(i64::from(access.after), expected, "{step:x?}");
        assert_eq!(access.kind == AccessKind::Store, step.word & 0x20 != 0);
    }
    assert_eq!(step.call.is_some(), step.word == 0x73);
    if let Some(call) = step.call {
        check_call(call, before, after);
    }
}

fn check_call(call: Call, before: &Before, after: &Reference) {
    let read = after.read - before.read;
    let written = &after.output[before.written..];
    match call {
        Call::Halt { .. } => panic!("a halt is no step of the reference"),
        Call::Remaining { .. } => assert_eq!((read, written.len()), (0, 0)),
        Call::ReadByte { position, byte } => {
            assert_eq!(position as usize, before.read);
            assert_eq!((usize::from(byte.is_some()), written.len()), (read, 0));
        }
        Call::ReadWord {
            position, bytes, ..
        } => {
            assert_eq!((position as usize, bytes as usize), (before.read, read));
        }
        Call::WriteByte { position, byte } => {
            assert_eq!((position as usize, written), (before.written, &[byte][..]));
        }
        Call::WriteWord { position, word } => {
            assert_eq!(
                (position as usize, written),
                (before.written, &word.to_le_bytes()[..])
            );
        }
    }
}

/// A trap as the reference names it.
fn named(cause: TrapCause, pc: i64) -> (&'static str, i64) {
    match cause {
        TrapCause::InstructionAccessFault => ("fetch", pc),
        TrapCause::IllegalInstruction(error) => ("illegal", error.word.into()),
        TrapCause::InstructionAddressMisaligned { target } => ("target", target.into()),
        TrapCause::LoadAddressMisaligned { address, .. } => ("load misaligned", address.into()),
        TrapCause::LoadAccessFault { address } => ("load fault", address.into()),
        TrapCause::StoreAddressMisaligned { address, .. } => ("store misaligned", address.into()),
        TrapCause::StoreAccessFault { address } => ("store fault", address.into()),
        TrapCause::UnknownCall { number } => ("call", number.into()),
        TrapCause::InputMisaligned { position } => ("input misaligned", position.into()),
        TrapCause::OutputMisaligned { position } => ("output misaligned", position.into()),
        TrapCause::Halted { .. } | TrapCause::OutputFull => panic!("{cause}"),
    }
}
