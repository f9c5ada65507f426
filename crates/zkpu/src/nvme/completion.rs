//! The completion queue entry: 16 bytes.

use crate::bytes::{put_u16, put_u32, u16_at, u32_at};
use crate::nvme::Status;

/// Bytes of a completion queue entry.
pub const COMPLETION_BYTES: usize = 16;

/// A completion. The phase bit is zero: no transport over a network has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Dwords 0 and 1: the command's answer.
    pub result: [u32; 2],
    /// Head of the submission queue, after this command.
    pub sq_head: u16,
    /// The submission queue.
    pub sq_id: u16,
    /// The command's identifier.
    pub cid: u16,
    /// The status.
    pub status: Status,
}

impl Completion {
    /// Reads an entry.
    pub fn decode(bytes: &[u8; COMPLETION_BYTES]) -> Self {
        Self {
            result: [u32_at(bytes, 0), u32_at(bytes, 4)],
            sq_head: u16_at(bytes, 8),
            sq_id: u16_at(bytes, 10),
            cid: u16_at(bytes, 12),
            status: Status::from_field(u16_at(bytes, 14) >> 1),
        }
    }

    /// Writes the entry.
    pub fn encode(&self) -> [u8; COMPLETION_BYTES] {
        let mut bytes = [0; COMPLETION_BYTES];
        put_u32(&mut bytes, 0, self.result[0]);
        put_u32(&mut bytes, 4, self.result[1]);
        put_u16(&mut bytes, 8, self.sq_head);
        put_u16(&mut bytes, 10, self.sq_id);
        put_u16(&mut bytes, 12, self.cid);
        put_u16(&mut bytes, 14, self.status.field() << 1);
        bytes
    }

    /// Dwords 0 and 1 as one number.
    pub fn wide(&self) -> u64 {
        u64::from(self.result[0]) | u64::from(self.result[1]) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `status = type << 9 | code << 1` with "do not retry" in bit 15, as in Linux' `struct nvme_completion`.
    #[test]
    fn a_completion_has_the_bytes_of_the_specification() {
        let completion = Completion {
            result: [0x0403_0201, 0x0807_0605],
            sq_head: 0x0a09,
            sq_id: 0x0c0b,
            cid: 0x0e0d,
            status: Status::INVALID_LOG_PAGE,
        };
        let bytes = completion.encode();
        assert_eq!(
            bytes,
            [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0x12, 0x82]
        );
        assert_eq!(Completion::decode(&bytes), completion);
    }
}
