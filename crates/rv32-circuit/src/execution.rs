//! An execution as a prover's witness: the private values of each step, and the last state of each memory word.

use std::collections::{BTreeMap, HashMap};

use proofmill_rv32::machine::Call;
use proofmill_rv32::memory_map::STACK_TOP;
use proofmill_rv32::{Exit, Machine, Program, Register, Step};

use crate::entry::{INPUT_WORDS, NO_WORD, OUTPUT_WORDS, REGISTER_WORDS, REGISTERS};
use crate::error::Rv32Error;
use crate::row::Row;
use crate::shape::Shape;
use crate::step::{ACCESSES, STEP_TIME, StepWitness};

/// A value of a memory word and the time of the last access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WordState {
    pub(crate) value: u32,
    pub(crate) time: u32,
}

/// The private values of a step, with its row by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepRecord {
    pub(crate) row: u32,
    pub(crate) left: u32,
    pub(crate) right: u32,
    pub(crate) word: u32,
    pub(crate) destination: u32,
    pub(crate) times: [u32; ACCESSES],
}

/// The state before the steps of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) pc: u64,
    pub(crate) read: u32,
    pub(crate) written: u32,
}

/// An execution of all steps of a shape.
#[derive(Clone, Debug)]
pub(crate) struct Execution {
    pub(crate) steps: Vec<StepRecord>,
    /// The state before each part with steps, and after the last.
    pub(crate) checkpoints: Vec<Checkpoint>,
    /// How often each row was executed.
    pub(crate) counts: Vec<u64>,
    /// The last state of each register, by its address beyond that of register 0.
    pub(crate) registers: [WordState; REGISTER_WORDS],
    /// The last states of words in data that were accessed, by address.
    pub(crate) data: BTreeMap<i128, WordState>,
    pub(crate) input: Vec<u8>,
    /// The last state of each word of the input, and beyond.
    pub(crate) input_words: Vec<WordState>,
    /// The last state of each word of the output.
    pub(crate) output_words: Vec<WordState>,
    pub(crate) output: Vec<u8>,
    pub(crate) exit_code: u32,
}

/// Records steps.
struct Recorder<'a> {
    rows: HashMap<u64, u32>,
    table: &'a [Row],
    execution: Execution,
    at: Checkpoint,
    steps_per_part: usize,
}

// === impl Execution ===

impl Execution {
    /// Runs a program with these rows until it halts, and goes on to the shape's number of steps.
    pub(crate) fn new(
        program: &Program,
        rows: &[Row],
        input: &[u8],
        shape: &Shape,
    ) -> Result<Self, Rv32Error> {
        check("bytes of input", input.len(), shape.input_bytes_max())?;
        let mut machine = Machine::new(program, input)?;
        let mut recorder = Recorder::new(program, rows, input, shape);
        let steps = shape.num_steps();
        let mut output = 0;
        let exit = machine.run(steps, |step| {
            // Beyond its end the output has no words; the length is checked below.
            recorder.record(step);
            output = recorder.at.written;
        });
        let exit_code = match exit {
            Exit::Halted { code } => code,
            Exit::Trapped(trap) => return Err(trap.into()),
            Exit::LimitReached => return Err(Rv32Error::TooManySteps { steps }),
        };
        check("bytes of output", output as usize, shape.output_bytes_max())?;
        recorder.at.pc = Row::halted().pc;
        while (recorder.execution.steps.len() as u64) < steps {
            recorder.step(0, None, |before| before);
        }
        recorder.checkpoint();
        let mut execution = recorder.execution;
        execution.exit_code = exit_code;
        execution.output = machine.output().to_vec();
        Ok(execution)
    }
}

// === impl StepRecord ===

impl StepRecord {
    /// The private values of the step; those of a halted program if the row is none of these.
    pub(crate) fn witness(&self, rows: &[Row]) -> StepWitness {
        let row = rows.get(self.row as usize).copied();
        StepWitness {
            row: row.unwrap_or_else(Row::halted),
            left: self.left,
            right: self.right,
            word: self.word,
            destination: self.destination,
            times: self.times,
        }
    }
}

// === impl Recorder ===

impl<'a> Recorder<'a> {
    fn new(program: &Program, table: &'a [Row], input: &[u8], shape: &Shape) -> Self {
        let mut registers = [WordState::default(); REGISTER_WORDS];
        registers[Register::SP.index()].value = STACK_TOP;
        let data = program.data_words().map(|(address, value)| {
            let state = WordState { value, time: 0 };
            (i128::from(address / 4), state)
        });
        let mut input_words = vec![WordState::default(); shape.num_input_words() as usize];
        for (word, bytes) in input_words.iter_mut().zip(input.chunks(4)) {
            let mut padded = [0; 4];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.value = u32::from_le_bytes(padded);
        }
        let execution = Execution {
            steps: Vec::new(),
            checkpoints: Vec::with_capacity(shape.step_parts + 1),
            counts: vec![0; table.len()],
            registers,
            data: data.collect(),
            input: input.to_vec(),
            input_words,
            output_words: vec![WordState::default(); shape.num_output_words() as usize],
            output: Vec::new(),
            exit_code: 0,
        };
        let at = Checkpoint {
            pc: program.entry().into(),
            ..Checkpoint::default()
        };
        Self {
            rows: (0..)
                .zip(table)
                .map(|(index, row)| (row.pc, index))
                .collect(),
            table,
            execution,
            at,
            steps_per_part: shape.steps,
        }
    }

    fn record(&mut self, step: &Step) {
        // Every executed instruction was decoded before.
        let row = self.rows.get(&step.pc.into()).copied().unwrap_or_default();
        let stream = |start: i128, position: u32| start + i128::from(position / 4);
        let (mut read, mut written) = (0, 0);
        let (mut address, mut after) = (None, None);
        if let Some(access) = step.memory {
            address = Some(i128::from(access.address / 4));
            after = Some(access.after);
        }
        match step.call {
            Some(Call::ReadByte {
                position,
                byte: Some(_),
            }) => {
                address = Some(stream(INPUT_WORDS, position));
                read = 1;
            }
            Some(Call::ReadWord {
                position, bytes, ..
            }) if bytes > 0 => {
                address = Some(stream(INPUT_WORDS, position));
                read = bytes;
            }
            Some(Call::WriteByte { position, byte }) => {
                let address = *address.insert(stream(OUTPUT_WORDS, position));
                let before = self.state(address).map_or(0, |state| state.value);
                let shift = 8 * (position % 4);
                after = Some(before & !(0xff << shift) | u32::from(byte) << shift);
                written = 1;
            }
            Some(Call::WriteWord { position, word }) => {
                address = Some(stream(OUTPUT_WORDS, position));
                after = Some(word);
                written = 4;
            }
            _ => {}
        }
        let change = address.map(|address| (address, after));
        self.step(row, change, |before| step.rd.map_or(before, |rd| rd.after));
        self.at.pc = step.next_pc.into();
        self.at.read += read;
        self.at.written += written;
    }

    /// Records the four accesses of a step: `change` is the address of the data word and its value after, if it may
    /// be another one; `result` the destination's value after.
    fn step(
        &mut self,
        row: u32,
        change: Option<(i128, Option<u32>)>,
        result: impl FnOnce(u32) -> u32,
    ) {
        if self
            .execution
            .steps
            .len()
            .is_multiple_of(self.steps_per_part)
        {
            self.checkpoint();
        }
        let fields = self.table[row as usize];
        let number = self.execution.steps.len() as i128 + 1;
        let now = (STEP_TIME * number) as u32;
        let (word, word_after) = change.unwrap_or((NO_WORD, None));
        let register = |number: u8| REGISTERS + i128::from(number);
        let left = self.access(register(fields.rs1), now, |before| before);
        let right = self.access(register(fields.rs2), now + 1, |before| before);
        let word = self.access(word, now + 2, |before| word_after.unwrap_or(before));
        let destination = self.access(register(fields.rd), now + 3, result);
        self.execution.counts[row as usize] += 1;
        self.execution.steps.push(StepRecord {
            row,
            left: left.value,
            right: right.value,
            word: word.value,
            destination: destination.value,
            times: [left, right, word, destination].map(|state| state.time),
        });
    }

    /// Changes a word, and returns its state before.
    fn access(&mut self, address: i128, time: u32, change: impl FnOnce(u32) -> u32) -> WordState {
        let Some(state) = self.state(address) else {
            return WordState::default();
        };
        let before = *state;
        *state = WordState {
            value: change(before.value),
            time,
        };
        before
    }

    /// The state of a word; nothing beyond the end of the input or the output.
    fn state(&mut self, address: i128) -> Option<&mut WordState> {
        let execution = &mut self.execution;
        let at = |start: i128| usize::try_from(address - start).ok();
        if let Some(index) = at(OUTPUT_WORDS) {
            return execution.output_words.get_mut(index);
        }
        if let Some(index) = at(INPUT_WORDS) {
            return execution.input_words.get_mut(index);
        }
        if let Some(index) = at(REGISTERS) {
            return execution.registers.get_mut(index);
        }
        Some(execution.data.entry(address).or_default())
    }

    fn checkpoint(&mut self) {
        self.execution.checkpoints.push(self.at);
    }
}

/// Checks that a shape has room.
pub(crate) fn check(what: &'static str, found: usize, most: u64) -> Result<(), Rv32Error> {
    let found = found as u64;
    match found <= most {
        true => Ok(()),
        false => Err(Rv32Error::TooMany { what, found, most }),
    }
}
