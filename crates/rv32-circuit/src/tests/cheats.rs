//! Cheating provers: each changes the witness of a whole circuit, and the circuit's code fills in the rest.

use ark_bn254::Fr;
use proofmill_partition::Partition;

use super::whole::{INPUT, Refusal, SHAPE, partition, refusal, summing_program};
use crate::execution::{Execution, StepRecord};
use crate::row::Flag;
use crate::{Rv32Circuit, Shape};

/// A change with its name.
type Named<T> = (&'static str, fn(&mut T));

struct Setting {
    partition: Partition<Fr>,
    circuit: Rv32Circuit,
}

impl Setting {
    fn new() -> Self {
        let program = summing_program();
        let partition = partition(&program, SHAPE);
        let circuit = Rv32Circuit::new(&program, INPUT, SHAPE).unwrap();
        Self { partition, circuit }
    }

    fn with(&self, cheat: impl FnOnce(&mut Rv32Circuit, &mut Execution)) -> Option<Refusal> {
        let mut circuit = self.circuit.clone();
        let mut execution = circuit.execution.take().unwrap();
        cheat(&mut circuit, &mut execution);
        circuit.execution = Some(execution);
        refusal(&self.partition, &circuit)
    }

    /// Steps at a row with a flag.
    fn steps_with(&self, flag: Flag) -> Vec<usize> {
        let execution = self.circuit.execution.as_ref().unwrap();
        let steps = execution.steps.iter().enumerate();
        let found = steps.filter(|(_, step)| self.circuit.rows[step.row as usize].has(flag));
        found.map(|(index, _)| index).collect()
    }
}

#[test]
fn changed_values_are_refused() {
    let setting = Setting::new();
    let changes: [Named<StepRecord>; 8] = [
        ("left", |step| step.left ^= 1),
        ("right", |step| step.right ^= 1),
        ("word", |step| step.word ^= 1 << 16),
        ("destination", |step| step.destination ^= 1 << 31),
        ("time of the left", |step| step.times[0] ^= 1),
        ("time of the right", |step| step.times[1] ^= 2),
        ("time of the word", |step| step.times[2] ^= 4),
        ("row", |step| step.row ^= 1),
    ];
    for (name, change) in changes {
        for step in setting
            .steps_with(Flag::Load)
            .into_iter()
            .chain([0, 40, 100])
        {
            let refused = setting.with(|_, execution| change(&mut execution.steps[step]));
            assert!(refused.is_some(), "{name} of step {step}");
        }
    }
}

/// The right values of another time: an access is given what an earlier one, or a later one, left.
#[test]
fn stale_values_and_values_from_the_future_are_refused() {
    let setting = Setting::new();
    let execution = setting.circuit.execution.as_ref().unwrap();
    let rows = &setting.circuit.rows;
    // Steps that read register 9, the sum.
    let reads: Vec<usize> = (0..execution.steps.len())
        .filter(|step| rows[execution.steps[*step].row as usize].rs1 == 9)
        .collect();
    assert!(reads.len() > 3);
    for (step, other) in [
        (reads[2], reads[0]),
        (reads[1], reads[2]),
        (reads[0], reads[2]),
    ] {
        let source = execution.steps[other];
        let refused = setting.with(|_, execution| {
            let step = &mut execution.steps[step];
            (step.left, step.times[0]) = (source.left, source.times[0]);
        });
        assert!(
            matches!(refused, Some(Refusal::Unmatched)),
            "{step}: {refused:?}"
        );
    }
    // Two reads exchange their values: the sums match, but one of them is from the future.
    let refused = setting.with(|_, execution| {
        let (first, second) = (execution.steps[reads[0]], execution.steps[reads[2]]);
        execution.steps[reads[0]].times[0] = second.times[0];
        execution.steps[reads[0]].left = second.left;
        execution.steps[reads[2]].times[0] = first.times[0];
        execution.steps[reads[2]].left = first.left;
    });
    assert!(refused.is_some());
}

#[test]
fn another_course_is_refused() {
    let setting = Setting::new();
    for part in 0..SHAPE.step_parts {
        let refused = setting.with(|_, execution| execution.checkpoints[part].pc ^= 4);
        assert!(refused.is_some(), "pc before part {part}");
        let refused = setting.with(|_, execution| execution.checkpoints[part].read ^= 1);
        assert!(refused.is_some(), "position before part {part}");
    }
    // Rows that are not as often in the program's multiset.
    let refused = setting.with(|_, execution| execution.counts[5] += 1);
    assert!(matches!(refused, Some(Refusal::Unmatched)));
}

#[test]
fn words_with_two_initial_values_are_refused() {
    let setting = Setting::new();
    let in_image = crate::circuit::DATA_START as u32;
    let changes: [fn(&mut Vec<u32>, u32); 4] = [
        |addresses, _| addresses[1] = addresses[0],
        |addresses, _| addresses.swap(0, 1),
        |addresses, in_image| addresses[0] = in_image,
        |addresses, _| *addresses.last_mut().unwrap() = crate::circuit::DATA_END as u32,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let refused = setting.with(|circuit, _| change(&mut circuit.zero_addresses, in_image));
        assert!(refused.is_some(), "{number}");
    }
}

#[test]
fn other_statements_are_refused() {
    let setting = Setting::new();
    assert!(setting.with(|_, _| {}).is_none());
    let changes: [Named<Execution>; 8] = [
        ("exit code", |execution| execution.exit_code ^= 1),
        ("output", |execution| execution.output[0] ^= 1),
        ("output and its word", |execution| {
            execution.output[0] ^= 1;
            execution.output_words[0].value ^= 1;
        }),
        ("longer output", |execution| execution.output.push(0)),
        ("shorter output", |execution| {
            execution.output.pop();
        }),
        ("input", |execution| execution.input[7] ^= 1),
        ("input and its word", |execution| {
            execution.input[4] ^= 1;
            execution.input_words[1].value ^= 1;
        }),
        ("longer input", |execution| execution.input.push(0)),
    ];
    for (name, change) in changes {
        let refused = setting.with(|_, execution| change(execution));
        assert!(refused.is_some(), "{name}");
    }
}

/// Bytes beyond the end of a private input could be read with the last word.
#[test]
fn bytes_beyond_the_input_are_zero() {
    let program = summing_program();
    let shape = Shape {
        input_is_public: false,
        ..SHAPE
    };
    let partition = partition(&program, shape);
    // Of an empty input no word is read, so that nothing else changes.
    let mut circuit = Rv32Circuit::new(&program, &[], shape).unwrap();
    assert!(refusal(&partition, &circuit).is_none());
    let execution = circuit.execution.as_mut().unwrap();
    execution.input_words[0].value |= 1 << 16;
    assert!(matches!(
        refusal(&partition, &circuit),
        Some(Refusal::Part("input"))
    ));
}

/// A key is for one program, down to the last bit.
#[test]
fn another_program_is_refused() {
    let program = summing_program();
    let partition = partition(&program, SHAPE);
    let mut words: Vec<u32> = program.code_words().map(|(_, word)| word).collect();
    // The immediate of the last instruction that sets a0.
    let last = words.len() - 3;
    words[last] ^= 1 << 20;
    let code = proofmill_rv32::Segment {
        kind: proofmill_rv32::SegmentKind::Code,
        address: program.entry(),
        words,
        zero_words: 0,
    };
    let data = proofmill_rv32::Segment {
        kind: proofmill_rv32::SegmentKind::Data,
        address: super::programs::DATA,
        words: vec![97, 1000, 0, 5],
        zero_words: 0,
    };
    let other = proofmill_rv32::Program::new(program.entry(), vec![code, data]).unwrap();
    let mut circuit = Rv32Circuit::new(&other, INPUT, SHAPE).unwrap();
    assert_eq!(circuit.statement().unwrap().exit_code, 10);
    assert!(matches!(
        refusal(&partition, &circuit),
        Some(Refusal::OtherCircuit)
    ));
    // The other program's execution, with the rows of the key.
    circuit.rows = Rv32Circuit::blank(&program, SHAPE).unwrap().rows;
    assert!(refusal(&partition, &circuit).is_some());
}
