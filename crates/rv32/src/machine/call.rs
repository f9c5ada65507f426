//! Environment calls: the end of the program, its input and its output.
//!
//! Register a7 holds the number of the call, a0 its argument and its result. A call accesses no memory and touches one
//! aligned word of the input or the output, so that one step stays small.

use super::TrapCause;

/// Ends the program. a0: exit code.
pub const HALT: u32 = 0;
/// Number of bytes of the input not read yet, into a0.
pub const REMAINING: u32 = 1;
/// Next byte of the input into a0, or [`END_OF_INPUT`].
pub const READ_BYTE: u32 = 2;
/// Next four bytes of the input into a0, little-endian. Zeros replace bytes beyond the end; [`REMAINING`] before the call
/// tells how many bytes count. The position has to be a multiple of 4 or the end of the input.
pub const READ_WORD: u32 = 3;
/// Appends the low byte of a0 to the output.
pub const WRITE_BYTE: u32 = 4;
/// Appends a0 to the output, four bytes, little-endian. The length of the output has to be a multiple of 4.
pub const WRITE_WORD: u32 = 5;

/// Result of [`READ_BYTE`] at the end of the input.
pub const END_OF_INPUT: u32 = u32::MAX;

/// Greatest length of the input, bytes.
pub const INPUT_BYTES_MAX: usize = 64 << 20;
/// Greatest length of the output, bytes. A write beyond it is a trap.
pub const OUTPUT_BYTES_MAX: usize = 64 << 20;

/// What an environment call did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`HALT`].
    Halt {
        /// Exit code.
        code: u32,
    },
    /// [`REMAINING`].
    Remaining {
        /// Number of bytes.
        bytes: u32,
    },
    /// [`READ_BYTE`].
    ReadByte {
        /// Number of bytes read before.
        position: u32,
        /// The byte, or `None` at the end of the input.
        byte: Option<u8>,
    },
    /// [`READ_WORD`].
    ReadWord {
        /// Number of bytes read before.
        position: u32,
        /// The word, with zeros beyond the end of the input.
        word: u32,
        /// Number of bytes of the input in the word, 0 to 4.
        bytes: u32,
    },
    /// [`WRITE_BYTE`].
    WriteByte {
        /// Number of bytes written before.
        position: u32,
        /// The byte.
        byte: u8,
    },
    /// [`WRITE_WORD`].
    WriteWord {
        /// Number of bytes written before.
        position: u32,
        /// The word.
        word: u32,
    },
}

/// The input and how much of it was read, and the output.
#[derive(Clone, Debug)]
pub(super) struct Streams<'a> {
    /// Bytes, at most [`INPUT_BYTES_MAX`].
    pub(super) input: &'a [u8],
    /// Number of bytes read.
    pub(super) position: usize,
    /// Bytes written, at most [`OUTPUT_BYTES_MAX`].
    pub(super) output: Vec<u8>,
}

// === impl Call ===

impl Call {
    /// The new value of a0, if the call writes it.
    pub const fn result(self) -> Option<u32> {
        match self {
            Self::Remaining { bytes } => Some(bytes),
            Self::ReadByte {
                byte: Some(byte), ..
            } => Some(byte as u32),
            Self::ReadByte { byte: None, .. } => Some(END_OF_INPUT),
            Self::ReadWord { word, .. } => Some(word),
            Self::Halt { .. } | Self::WriteByte { .. } | Self::WriteWord { .. } => None,
        }
    }
}

// === impl Streams ===

impl Streams<'_> {
    /// What the call of a number does, without doing it.
    pub(super) fn call(&self, number: u32, argument: u32) -> Result<Call, TrapCause> {
        // Lengths are limited to 64 MiB.
        let position = self.position as u32;
        let written = self.output.len() as u32;
        let rest = &self.input[self.position..];
        match number {
            HALT => Ok(Call::Halt { code: argument }),
            REMAINING => Ok(Call::Remaining {
                bytes: rest.len() as u32,
            }),
            READ_BYTE => Ok(Call::ReadByte {
                position,
                byte: rest.first().copied(),
            }),
            READ_WORD if !rest.is_empty() && !position.is_multiple_of(4) => {
                Err(TrapCause::InputMisaligned { position })
            }
            READ_WORD => {
                let bytes = rest.len().min(4);
                let mut word = [0; 4];
                word[..bytes].copy_from_slice(&rest[..bytes]);
                Ok(Call::ReadWord {
                    position,
                    word: u32::from_le_bytes(word),
                    bytes: bytes as u32,
                })
            }
            WRITE_WORD if !written.is_multiple_of(4) => {
                Err(TrapCause::OutputMisaligned { position: written })
            }
            WRITE_BYTE | WRITE_WORD if self.output.len() >= OUTPUT_BYTES_MAX => {
                Err(TrapCause::OutputFull)
            }
            WRITE_BYTE => Ok(Call::WriteByte {
                position: written,
                byte: argument as u8,
            }),
            WRITE_WORD => Ok(Call::WriteWord {
                position: written,
                word: argument,
            }),
            _ => Err(TrapCause::UnknownCall { number }),
        }
    }

    /// Moves the position or appends, as the call says.
    pub(super) fn apply(&mut self, call: Call) {
        match call {
            Call::Halt { .. } | Call::Remaining { .. } => {}
            Call::ReadByte { byte, .. } => self.position += usize::from(byte.is_some()),
            Call::ReadWord { bytes, .. } => self.position += bytes as usize,
            Call::WriteByte { byte, .. } => self.output.push(byte),
            Call::WriteWord { word, .. } => self.output.extend(word.to_le_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(input: &[u8]) -> Streams<'_> {
        Streams {
            input,
            position: 0,
            output: Vec::new(),
        }
    }

    fn done(streams: &mut Streams<'_>, number: u32, argument: u32) -> Option<u32> {
        let call = streams.call(number, argument).unwrap();
        streams.apply(call);
        call.result()
    }

    #[test]
    fn words_and_bytes_of_the_input_are_read_in_order() {
        let mut streams = streams(&[1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(done(&mut streams, REMAINING, 0), Some(7));
        assert_eq!(done(&mut streams, READ_WORD, 9), Some(0x0403_0201));
        assert_eq!(done(&mut streams, REMAINING, 0), Some(3));
        assert_eq!(done(&mut streams, READ_BYTE, 9), Some(5));
        assert_eq!(
            streams.call(READ_WORD, 0),
            Err(TrapCause::InputMisaligned { position: 5 })
        );
        assert_eq!(done(&mut streams, READ_BYTE, 0), Some(6));
        assert_eq!(done(&mut streams, READ_BYTE, 0), Some(7));
        assert_eq!(done(&mut streams, READ_BYTE, 0), Some(END_OF_INPUT));
        assert_eq!(done(&mut streams, READ_WORD, 0), Some(0));
        assert_eq!(done(&mut streams, REMAINING, 0), Some(0));
    }

    #[test]
    fn the_last_word_is_filled_with_zeros() {
        let mut streams = streams(&[1, 2, 3, 4, 0xff]);
        assert_eq!(done(&mut streams, READ_WORD, 0), Some(0x0403_0201));
        assert_eq!(done(&mut streams, READ_WORD, 0), Some(0xff));
        assert_eq!(streams.position, 5);
    }

    #[test]
    fn words_and_bytes_are_appended() {
        let mut streams = streams(&[]);
        assert_eq!(done(&mut streams, WRITE_WORD, 0x0403_0201), None);
        assert_eq!(done(&mut streams, WRITE_BYTE, 0xabcd), None);
        assert_eq!(streams.output, [1, 2, 3, 4, 0xcd]);
        assert_eq!(
            streams.call(WRITE_WORD, 0),
            Err(TrapCause::OutputMisaligned { position: 5 })
        );
    }

    #[test]
    fn the_output_is_limited() {
        let mut streams = streams(&[]);
        streams.output = vec![0; OUTPUT_BYTES_MAX - 4];
        done(&mut streams, WRITE_WORD, 0);
        for number in [WRITE_WORD, WRITE_BYTE] {
            assert_eq!(streams.call(number, 0), Err(TrapCause::OutputFull));
        }
    }

    #[test]
    fn other_numbers_are_no_calls() {
        for number in [6, 93, u32::MAX] {
            assert_eq!(
                streams(&[]).call(number, 0),
                Err(TrapCause::UnknownCall { number })
            );
        }
    }
}
