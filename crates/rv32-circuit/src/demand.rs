//! Sizes that an execution needs.

use std::collections::BTreeSet;

use proofmill_rv32::{Exit, Machine, Program};

use crate::circuit::DATA_START;
use crate::error::Rv32Error;
use crate::shape::{PACKED_WORDS, STEPS_MAX, Shape};

/// Constraints of a step in its part.
const STEP_CONSTRAINTS: usize = 484;
/// Constraints of an instruction in its part.
const ROW_CONSTRAINTS: usize = 3;
/// Constraints of a word of the program's data in its part.
const DATA_CONSTRAINTS: usize = 4;
/// Constraints of a word that is zero at the start, in its part.
const ZERO_CONSTRAINTS: usize = 28;
/// Constraints of seven words of input in their part.
const INPUT_CONSTRAINTS: usize = 298;
/// Constraints of seven words of output in their part.
const OUTPUT_CONSTRAINTS: usize = 452;

/// What executions of a program need: the most of each that keys are to serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Steps, the halting one included.
    pub steps: u64,
    /// Words of memory beside the program's data.
    pub words: u64,
    /// Bytes of the input.
    pub input_bytes: u64,
    /// Bytes of the output.
    pub output_bytes: u64,
}

// === impl Demand ===

impl Demand {
    /// The demand of one execution, which is run natively.
    ///
    /// # Errors
    ///
    /// [`Rv32Error`] for an execution that traps, or that has not halted after the most steps of any shape.
    pub fn of(program: &Program, input: &[u8]) -> Result<Self, Rv32Error> {
        let image_end = program.data_words().last().map(|(address, _)| address);
        let mut machine = Machine::new(program, input)?;
        let mut words = BTreeSet::new();
        let exit = machine.run(STEPS_MAX, |step| {
            let address = step.memory.map(|access| access.address);
            words.extend(address.filter(|address| image_end.is_none_or(|end| *address > end)));
        });
        match exit {
            Exit::Halted { .. } => Ok(Self {
                steps: machine.cycle(),
                words: words.len() as u64,
                input_bytes: input.len() as u64,
                output_bytes: machine.output().len() as u64,
            }),
            Exit::Trapped(trap) => Err(trap.into()),
            Exit::LimitReached => Err(Rv32Error::TooManySteps { steps: STEPS_MAX }),
        }
    }

    /// The same with room for other inputs: twice the memory, and as much input and output up to the next power of two.
    #[must_use]
    pub fn with_room(self) -> Self {
        Self {
            steps: self.steps,
            words: self.words.saturating_mul(2).max(64),
            input_bytes: self.input_bytes.max(64).next_power_of_two(),
            output_bytes: self.output_bytes.max(64).next_power_of_two(),
        }
    }
}

// === impl Shape ===

impl Shape {
    /// The shape for a program's executions of at most this demand, in parts of about the same size: that of
    /// `steps_per_part` steps. The input is private.
    ///
    /// # Errors
    ///
    /// [`Rv32Error::Shape`] for a demand beyond the limits.
    pub fn fitting(
        program: &Program,
        demand: &Demand,
        steps_per_part: usize,
    ) -> Result<Self, Rv32Error> {
        let steps = steps_per_part.max(1);
        let budget = STEP_CONSTRAINTS.saturating_mul(steps);
        // As many as there are, in parts of at most the budget.
        let cut = |count: u64, constraints: usize| {
            let most = (budget / constraints).max(1) as u64;
            let parts = count.div_ceil(most).max(1);
            let each = count.div_ceil(parts).max(1);
            (number(each), number(parts))
        };
        let packed = |words: u64, constraints: usize| {
            let (groups, parts) = cut(words.div_ceil(PACKED_WORDS as u64), constraints);
            (groups.saturating_mul(PACKED_WORDS), parts)
        };
        let image = program.data_words().last();
        let image = image.map_or(0, |(address, _)| {
            u64::from(address / 4) - DATA_START as u64 + 1
        });
        let instructions = program.code_words().count() as u64 + 1;
        // The input's last word has a byte of room.
        let (input_words, input_parts) = packed(demand.input_bytes / 4 + 1, INPUT_CONSTRAINTS);
        let (output_words, output_parts) =
            packed(demand.output_bytes.div_ceil(4), OUTPUT_CONSTRAINTS);
        let (zero_words, zero_parts) = cut(demand.words, ZERO_CONSTRAINTS);
        let shape = Self {
            steps,
            step_parts: number(demand.steps.div_ceil(steps as u64).max(1)),
            program_rows: cut(instructions, ROW_CONSTRAINTS).0,
            data_words: cut(image, DATA_CONSTRAINTS).0,
            zero_words,
            zero_parts,
            input_words,
            input_parts,
            output_words,
            output_parts,
            input_is_public: false,
        };
        shape.check()?;
        Ok(shape)
    }
}

fn number(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
