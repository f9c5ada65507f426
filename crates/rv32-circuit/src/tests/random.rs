//! Random instructions: the step's constraints hold, and what it leaves is what the machine does.

use ark_bn254::Fr;
use ark_std::rand::rngs::StdRng;
use ark_std::rand::{Rng, SeedableRng};
use proofmill_rv32::{Exit, Machine, Program, Step};

use super::one_step::{OneStep, System};
use super::programs::random_program;
use crate::entry::{Entry, INPUT_WORDS, NO_WORD, OUTPUT_WORDS, REGISTERS, SINK, packed_word};
use crate::execution::Execution;
use crate::row::Row;
use crate::shape::Shape;
use proofmill_rv32::machine::Call;

/// A shape with room for a random program.
fn shape(steps: usize) -> Shape {
    Shape {
        steps,
        step_parts: 1,
        program_rows: 64,
        data_words: 64,
        zero_words: 64,
        zero_parts: 1,
        input_words: 14,
        input_parts: 1,
        output_words: 700,
        output_parts: 1,
        input_is_public: false,
    }
}

/// All steps of a random program that halts, with what the machine recorded of them.
pub(super) fn random_steps(rng: &mut StdRng, count: usize) -> Vec<(OneStep, Step)> {
    loop {
        let program = random_program(rng, count);
        let length = rng.gen_range(0..50);
        let input: Vec<u8> = (0..length).map(|_| rng.r#gen()).collect();
        if let Some(steps) = steps_of(&program, &input, 4 * count + 200) {
            return steps;
        }
    }
}

fn steps_of(program: &Program, input: &[u8], most: usize) -> Option<Vec<(OneStep, Step)>> {
    let mut machine = Machine::new(program, input).unwrap();
    let mut recorded = Vec::new();
    let exit = machine.run(most as u64, |step| recorded.push(*step));
    if !matches!(exit, Exit::Halted { .. }) {
        return None;
    }
    let rows = Row::of_program(program);
    let execution = Execution::new(program, &rows, input, &shape(recorded.len() + 1)).unwrap();
    let (mut read, mut written) = (0, 0);
    let steps = recorded.iter().enumerate().map(|(index, step)| {
        let one = OneStep {
            pc: step.pc.into(),
            read,
            written,
            input_length: input.len() as i128,
            time: 4 * (index as i128 + 1),
            witness: execution.steps[index].witness(&rows),
        };
        let (more_read, more_written) = streamed(step);
        read += more_read;
        written += more_written;
        (one, *step)
    });
    Some(steps.collect())
}

/// Bytes that a step reads of the input and writes to the output.
fn streamed(step: &Step) -> (i128, i128) {
    match step.call {
        Some(Call::ReadByte { byte, .. }) => (i128::from(byte.is_some()), 0),
        Some(Call::ReadWord { bytes, .. }) => (bytes.into(), 0),
        Some(Call::WriteByte { .. }) => (0, 1),
        Some(Call::WriteWord { .. }) => (0, 4),
        _ => (0, 0),
    }
}

/// What the step must leave, from the machine's record alone: the four entries that are put, and the state.
fn expected(one: &OneStep, step: &Step) -> (Vec<Fr>, [i128; 3]) {
    let at = |place: i128| (one.time + place) as u32;
    let operand = |read: Option<proofmill_rv32::machine::RegisterRead>| {
        read.map_or((0, 0), |read| (read.register.number().into(), read.value))
    };
    let (rs1, left) = operand(step.rs1);
    let (rs2, right) = operand(step.rs2);
    let (address, word) = match (step.memory, step.call) {
        (Some(access), _) => (i128::from(access.address / 4), access.after),
        (
            None,
            Some(Call::ReadByte {
                position,
                byte: Some(_),
            }),
        ) => (INPUT_WORDS + i128::from(position / 4), one.witness.word),
        (
            None,
            Some(Call::ReadWord {
                position,
                word,
                bytes,
            }),
        ) if bytes > 0 => (INPUT_WORDS + i128::from(position / 4), word),
        (None, Some(Call::WriteByte { position, byte })) => {
            let mut bytes = one.witness.word.to_le_bytes();
            bytes[position as usize % 4] = byte;
            (
                OUTPUT_WORDS + i128::from(position / 4),
                u32::from_le_bytes(bytes),
            )
        }
        (None, Some(Call::WriteWord { position, word })) => {
            (OUTPUT_WORDS + i128::from(position / 4), word)
        }
        _ => (NO_WORD, 0),
    };
    let (rd, result) = match (step.rd, step.call) {
        (Some(write), _) => (write.register.number(), write.after),
        // A call without a result.
        (None, Some(_)) => (10, right),
        (None, None) => (SINK, 0),
    };
    let puts = vec![
        packed_word(REGISTERS + i128::from(rs1), left, at(0)),
        packed_word(REGISTERS + i128::from(rs2), right, at(1)),
        packed_word(address, word, at(2)),
        packed_word(REGISTERS + i128::from(rd), result, at(3)),
    ];
    let next = match step.call {
        Some(Call::Halt { .. }) => crate::row::HALTED.into(),
        _ => step.next_pc.into(),
    };
    let (read, written) = streamed(step);
    (puts, [next, one.read + read, one.written + written])
}

/// Checks that the constraints hold and that the step leaves what the machine does.
fn check(system: &System, one: &OneStep, step: &Step) {
    let (z, outcome) = one.assign();
    let puts: Vec<Fr> = outcome.puts.iter().map(Entry::value).collect();
    let after = &outcome.state;
    let state = [&after.pc, &after.read, &after.written].map(|sum| sum.value());
    assert_eq!((puts, state), expected(one, step), "{step:?}");
    assert!(system.is_satisfied(&z), "{step:?}");
}

#[test]
fn random_instructions_satisfy_the_constraints_and_agree_with_the_machine() {
    let system = OneStep::system();
    let rng = &mut StdRng::seed_from_u64(1);
    let count = std::env::var("INSTRUCTIONS").map_or(100_000, |text| text.parse().unwrap());
    let mut done = 0;
    let mut kinds = std::collections::BTreeMap::<String, usize>::new();
    while done < count {
        for (one, step) in random_steps(rng, 1000) {
            check(&system, &one, &step);
            *kinds.entry(kind(&step)).or_default() += 1;
            done += 1;
        }
    }
    // 18 operations on registers, 9 with immediates, 5 loads, 3 stores, 6 branches, 5 others, 6 calls.
    assert_eq!(kinds.len(), 52, "{kinds:?}");
}

/// The name of an instruction's operation, or of a call.
pub(super) fn kind(step: &Step) -> String {
    use proofmill_rv32::Instruction;
    let name = match step.instruction {
        Instruction::Register { operation, .. } => format!("{operation:?}"),
        Instruction::Immediate { operation, .. } => format!("{operation:?}"),
        Instruction::Load { operation, .. } => format!("{operation:?}"),
        Instruction::Store { operation, .. } => format!("{operation:?}"),
        Instruction::Branch { operation, .. } => format!("{operation:?}"),
        Instruction::EnvironmentCall => format!("{:?}", step.call.unwrap()),
        other => format!("{other:?}"),
    };
    name.split([' ', '{']).next().unwrap_or_default().to_owned()
}

/// Compiled programs: each of their first steps.
#[test]
fn compiled_programs_satisfy_the_constraints() {
    let system = OneStep::system();
    let numbers: Vec<u8> = (0..12u32)
        .flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect();
    let samples: [(&str, &[u8]); 4] = [
        ("fibonacci", &100u32.to_le_bytes()),
        ("json", br#"{"id": [12, true], "name": "a"}"#),
        ("sha256", b"abc"),
        ("sort", &numbers),
    ];
    for (name, input) in samples {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../rv32/programs/built");
        let executable = std::fs::read(format!("{folder}/{name}.elf")).unwrap();
        let program = proofmill_rv32::elf::load(&executable).unwrap();
        let steps = steps_of(&program, input, 100_000).unwrap();
        println!("{name}: {} steps", steps.len());
        for (one, step) in steps.into_iter().take(2000) {
            check(&system, &one, &step);
        }
    }
}
