//! Frames of `zkpu_sim`: requests to it, answers from it.

use std::io::{self, Read};

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::nvme::{COMMAND_BYTES, Status};

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// A command, whose data is `to_circuit` or the `from_circuit` bytes that it gives.
    Command {
        queue: u16,
        entry: [u8; COMMAND_BYTES],
        to_circuit: Vec<u8>,
        from_circuit: u32,
    },
    /// Disable, then enable with this value of CC if its bit 0 is set.
    Reset { configuration: u32 },
    /// Read a register.
    Register { offset: u32 },
    /// Write a register.
    SetRegister { offset: u32, value: u32 },
    /// Tell the clock and whether the core works.
    Status,
    /// Delete a pair of I/O queues, and create it again.
    RenewQueue { queue: u16 },
}

/// An answer with the tag of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) tag: u32,
    pub(super) answer: Answer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Completion {
        result: [u32; 2],
        status: Status,
        data: Vec<u8>,
    },
    /// The end of a reset, or of a queue's renewal.
    Done {
        is_ok: bool,
    },
    Value(u32),
    Written,
    Status {
        is_core_busy: bool,
    },
    /// The command went with a reset or its queue.
    Dropped,
    Refused(String),
}

/// Bytes of an answer's head, and most bytes of an answer.
const HEAD_BYTES: usize = 8;
const ANSWER_BYTES_MAX: usize = (1 << 20) + 128;
const KEEPS_IDENTIFIER: u8 = 1;

// === impl Request ===

impl Request {
    /// Writes a frame.
    pub(super) fn encode(&self, tag: u32) -> Vec<u8> {
        let (kind, body): (u8, Vec<u8>) = match self {
            Self::Command {
                queue,
                entry,
                to_circuit,
                from_circuit,
            } => {
                let (direction, bytes) = match (to_circuit.len() as u32, *from_circuit) {
                    (0, 0) => (0, 0),
                    (0, bytes) => (2, bytes),
                    (bytes, _) => (1, bytes),
                };
                let mut body = Vec::with_capacity(8 + COMMAND_BYTES + to_circuit.len());
                body.extend(queue.to_le_bytes());
                body.extend([direction, KEEPS_IDENTIFIER]);
                body.extend(bytes.to_le_bytes());
                body.extend(entry);
                body.extend(to_circuit);
                (1, body)
            }
            Self::Reset { configuration } => (2, configuration.to_le_bytes().to_vec()),
            Self::Register { offset } => (3, offset.to_le_bytes().to_vec()),
            Self::SetRegister { offset, value } => {
                (4, [offset.to_le_bytes(), value.to_le_bytes()].concat())
            }
            Self::Status => (5, Vec::new()),
            Self::RenewQueue { queue } => (8, queue.to_le_bytes().to_vec()),
        };
        let mut frame = Vec::with_capacity(4 + HEAD_BYTES + body.len());
        frame.extend(((HEAD_BYTES + body.len()) as u32).to_le_bytes());
        frame.extend([kind, 0, 0, 0]);
        frame.extend(tag.to_le_bytes());
        frame.extend(body);
        frame
    }
}

// === impl Frame ===

impl Frame {
    /// Reads the next frame; `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// The stream's, or `InvalidData` for what is no frame.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut length = [0; 4];
        match from.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let length = u32::from_le_bytes(length) as usize;
        if !(HEAD_BYTES..=ANSWER_BYTES_MAX).contains(&length) {
            return Err(invalid(format!("a frame of {length} bytes")));
        }
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes)?;
        Self::decode(&bytes).map(Some)
    }

    fn decode(bytes: &[u8]) -> io::Result<Self> {
        let (kind, tag, body) = (bytes[0], u32_at(bytes, 4), &bytes[HEAD_BYTES..]);
        let needs = |length: usize| match body.len() >= length {
            true => Ok(()),
            false => Err(invalid(format!(
                "a frame of kind {kind} with {} bytes",
                body.len()
            ))),
        };
        let answer = match kind {
            129 => {
                needs(16)?;
                let data = body[16..].to_vec();
                if u32_at(body, 12) as usize != data.len() {
                    return Err(invalid("a completion with data of another length".into()));
                }
                Answer::Completion {
                    result: [u32_at(body, 0), u32_at(body, 4)],
                    status: Status::from_field(u16_at(body, 8)),
                    data,
                }
            }
            130 | 134 | 136 => {
                needs(4)?;
                Answer::Done {
                    is_ok: u32_at(body, 0) == 1,
                }
            }
            131 => {
                needs(4)?;
                Answer::Value(u32_at(body, 0))
            }
            132 => Answer::Written,
            133 => {
                needs(16)?;
                tracing::trace!(clocks = u64_at(body, 0), "the simulation goes on");
                Answer::Status {
                    is_core_busy: u32_at(body, 8) != 0,
                }
            }
            143 => Answer::Dropped,
            255 => Answer::Refused(String::from_utf8_lossy(body).into_owned()),
            _ => return Err(invalid(format!("a frame of kind {kind}"))),
        };
        Ok(Self { tag, answer })
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
