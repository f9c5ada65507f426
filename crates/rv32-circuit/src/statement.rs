//! The statement that is proved, and its public inputs.

use ark_ff::{BigInteger, PrimeField};

use crate::error::StatementError;
use crate::shape::{PACKED_WORDS, Shape};

/// Bytes in one public input.
const PACKED_BYTES: usize = 4 * PACKED_WORDS;

/// Public inputs before the output.
pub(crate) const OUTPUT_START: usize = 2;

/// A statement: the program with this digest, on this input if it is public, halts with this exit code and this output.
///
/// The program itself is fixed by the partition and its keys, and so in no public input. Public inputs are the exit
/// code; the length of the output in bytes; the output, 28 bytes to an input, little-endian; and if the input is
/// public its length and the input in the same way. Bytes beyond the end are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// [`Program::digest`](proofmill_rv32::Program::digest).
    pub program: [u8; 32],
    /// The exit code.
    pub exit_code: u32,
    /// The output.
    pub output: Vec<u8>,
    /// The input, if it is public.
    pub input: Option<Vec<u8>>,
}

// === impl Statement ===

impl Statement {
    /// The number of public inputs of a shape.
    pub fn num_public_inputs(shape: &Shape) -> usize {
        input_end(shape)
    }

    /// The public inputs.
    ///
    /// # Errors
    ///
    /// [`StatementError`] if the shape has other inputs.
    pub fn public_inputs<F: PrimeField>(&self, shape: &Shape) -> Result<Vec<F>, StatementError> {
        if self.input.is_some() != shape.input_is_public {
            let is_public = shape.input_is_public;
            return Err(StatementError::Input { is_public });
        }
        let mut inputs = vec![F::from(self.exit_code)];
        let output_words = shape.num_output_words() as usize;
        pack(
            &mut inputs,
            "output",
            &self.output,
            output_words,
            shape.output_bytes_max(),
        )?;
        if let Some(input) = &self.input {
            let words = shape.num_input_words() as usize;
            pack(&mut inputs, "input", input, words, shape.input_bytes_max())?;
        }
        Ok(inputs)
    }

    /// The statement of public inputs about a program.
    ///
    /// The digest of the program is the caller's claim: public inputs do not have it, the verifying key is for it.
    ///
    /// # Errors
    ///
    /// [`StatementError`] if they are none.
    pub fn from_public_inputs<F: PrimeField>(
        program: [u8; 32],
        shape: &Shape,
        inputs: &[F],
    ) -> Result<Self, StatementError> {
        let expected = Self::num_public_inputs(shape);
        if inputs.len() != expected {
            let found = inputs.len();
            return Err(StatementError::Count { expected, found });
        }
        let exit_code = integer(inputs, 0, 4, "exit code")? as u32;
        let output = unpack(
            inputs,
            1,
            output_end(shape),
            "output",
            shape.output_bytes_max(),
        )?;
        let input = match shape.input_is_public {
            true => {
                let start = output_end(shape);
                let most = shape.input_bytes_max();
                Some(unpack(inputs, start, expected, "input", most)?)
            }
            false => None,
        };
        Ok(Self {
            program,
            exit_code,
            output,
            input,
        })
    }
}

/// The index after the output: that of the input's length, if it is public.
pub(crate) fn output_end(shape: &Shape) -> usize {
    OUTPUT_START + shape.num_output_words() as usize / PACKED_WORDS
}

fn input_end(shape: &Shape) -> usize {
    let inputs = match shape.input_is_public {
        true => 1 + shape.num_input_words() as usize / PACKED_WORDS,
        false => 0,
    };
    output_end(shape) + inputs
}

fn pack<F: PrimeField>(
    inputs: &mut Vec<F>,
    what: &'static str,
    bytes: &[u8],
    words: usize,
    most: u64,
) -> Result<(), StatementError> {
    let found = bytes.len() as u64;
    if found > most {
        return Err(StatementError::Length { what, found, most });
    }
    inputs.push(F::from(found));
    let packed = inputs.len();
    inputs.extend(bytes.chunks(PACKED_BYTES).map(F::from_le_bytes_mod_order));
    inputs.resize(packed + words / PACKED_WORDS, F::zero());
    Ok(())
}

fn unpack<F: PrimeField>(
    inputs: &[F],
    start: usize,
    end: usize,
    what: &'static str,
    most: u64,
) -> Result<Vec<u8>, StatementError> {
    let found = integer(inputs, start, 8, "length")?;
    let most = most.min(((end - start - 1) * PACKED_BYTES) as u64);
    if found > most {
        return Err(StatementError::Length { what, found, most });
    }
    let mut bytes = Vec::with_capacity((end - start) * PACKED_BYTES);
    for index in start + 1..end {
        bytes.extend(low_bytes(inputs, index, PACKED_BYTES, "packed words")?);
    }
    let padding = bytes.split_off(found as usize);
    match padding.iter().all(|byte| *byte == 0) {
        true => Ok(bytes),
        false => Err(StatementError::Padding { what }),
    }
}

fn integer<F: PrimeField>(
    inputs: &[F],
    index: usize,
    count: usize,
    what: &'static str,
) -> Result<u64, StatementError> {
    let bytes = low_bytes(inputs, index, count, what)?;
    Ok((bytes.iter().rev()).fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The low bytes of an input, whose other bytes must be zero.
fn low_bytes<F: PrimeField>(
    inputs: &[F],
    index: usize,
    count: usize,
    what: &'static str,
) -> Result<Vec<u8>, StatementError> {
    let mut bytes = inputs[index].into_bigint().to_bytes_le();
    if bytes.split_off(count).iter().any(|byte| *byte != 0) {
        return Err(StatementError::Range { index, what });
    }
    Ok(bytes)
}
