//! Sizes of the parts of an execution.

use crate::error::ShapeError;

/// Words of the output or of a public input in one public input.
pub(crate) const PACKED_WORDS: usize = 7;

/// The most steps of an execution: times have 28 bits, four of them for each step.
pub const STEPS_MAX: u64 = (1 << 26) - 2;

/// Sizes of the parts, and numbers of those that do not follow from the program. All are at least 1.
///
/// Parts of a kind share a key, whose size is that of one part. A program is proved with the same keys whatever its
/// input, as long as the numbers suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Steps in a part. A program that halts earlier stays halted for the rest.
    pub steps: usize,
    /// Parts with steps.
    pub step_parts: usize,
    /// Instructions in a part with the program.
    pub program_rows: usize,
    /// Words in a part with the program's data.
    pub data_words: usize,
    /// Other words of memory in a part: they are zero at the start.
    pub zero_words: usize,
    /// Parts with such words.
    pub zero_parts: usize,
    /// Words of the input in a part, a multiple of 7.
    pub input_words: usize,
    /// Parts with the input. All of them hold at least one word more than the input's whole ones.
    pub input_parts: usize,
    /// Words of the output in a part, a multiple of 7.
    pub output_words: usize,
    /// Parts with the output.
    pub output_parts: usize,
    /// Whether the input is part of the statement.
    pub input_is_public: bool,
}

// === impl Shape ===

impl Shape {
    /// A shape for executions of at most `steps` steps, with parts of about half a million constraints: a word of
    /// memory for every 16 steps, 4 KiB of input and output, a private input.
    pub fn for_steps(steps: u64) -> Self {
        let per_part = 1024;
        let parts = usize::try_from(steps.div_ceil(per_part as u64)).unwrap_or(usize::MAX);
        let zero_words = 8192;
        Self {
            steps: per_part,
            step_parts: parts.max(1),
            program_rows: 32_768,
            data_words: 32_768,
            zero_words,
            zero_parts: (parts.saturating_mul(per_part) / 16)
                .div_ceil(zero_words)
                .max(1),
            input_words: 147 * PACKED_WORDS,
            input_parts: 1,
            output_words: 147 * PACKED_WORDS,
            output_parts: 1,
            input_is_public: false,
        }
    }

    /// Checks that all numbers are within their limits.
    ///
    /// # Errors
    ///
    /// [`ShapeError`] names the first that is not.
    pub fn check(&self) -> Result<(), ShapeError> {
        let each = [
            ("steps in a part", self.steps),
            ("parts with steps", self.step_parts),
            ("instructions in a part", self.program_rows),
            ("words of data in a part", self.data_words),
            ("other words in a part", self.zero_words),
            ("parts with other words", self.zero_parts),
            ("words of input in a part", self.input_words),
            ("parts with input", self.input_parts),
            ("words of output in a part", self.output_words),
            ("parts with output", self.output_parts),
        ];
        let most = 1 << 24;
        for (what, found) in each {
            if found == 0 || found > most {
                return Err(ShapeError::Number { what, found, most });
            }
        }
        for (what, found) in [each[6], each[8]] {
            if found % PACKED_WORDS != 0 {
                return Err(ShapeError::NotPacked { what, found });
            }
        }
        let totals = [
            ("steps", self.num_steps(), STEPS_MAX),
            ("other words", self.num_zero_words(), 1 << 23),
            ("words of input", self.num_input_words(), 1 << 24),
            ("words of output", self.num_output_words(), 1 << 24),
        ];
        for (what, found, most) in totals {
            if found > most {
                return Err(ShapeError::Total { what, found, most });
            }
        }
        Ok(())
    }

    /// The number of steps.
    pub const fn num_steps(&self) -> u64 {
        self.steps as u64 * self.step_parts as u64
    }

    /// The number of memory words besides the program's data.
    pub const fn num_zero_words(&self) -> u64 {
        self.zero_words as u64 * self.zero_parts as u64
    }

    pub(crate) const fn num_input_words(&self) -> u64 {
        self.input_words as u64 * self.input_parts as u64
    }

    pub(crate) const fn num_output_words(&self) -> u64 {
        self.output_words as u64 * self.output_parts as u64
    }

    /// The most bytes of the input.
    pub const fn input_bytes_max(&self) -> u64 {
        (4 * self.num_input_words()).saturating_sub(1)
    }

    /// The most bytes of the output.
    pub const fn output_bytes_max(&self) -> u64 {
        4 * self.num_output_words()
    }
}
