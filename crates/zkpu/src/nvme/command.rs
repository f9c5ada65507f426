//! The submission queue entry: 64 bytes.

use crate::bytes::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::nvme::opcode;

/// Bytes of a submission queue entry.
pub const COMMAND_BYTES: usize = 64;

/// A command, as it lies in a submission queue. Dwords 10 to 15 belong to the opcode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Opcode; its two lowest bits are the direction of its data.
    pub opcode: u8,
    /// Bits 1:0 fused operation, 7:6 PRP or SGL.
    pub flags: u8,
    /// Identifier, unique among the commands outstanding on a queue.
    pub cid: u16,
    /// Namespace. For a Fabrics command the lowest byte is the command type.
    pub nsid: u32,
    /// Dwords 2 and 3.
    pub cdw2: [u32; 2],
    /// Dwords 4 and 5: the metadata pointer, or what the opcode makes of them.
    pub metadata: u64,
    /// Dwords 6 to 9: where the data is.
    pub sgl: Sgl,
    /// Dwords 10 to 15.
    pub cdw10: [u32; 6],
}

/// An SGL descriptor: 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sgl {
    /// Address, or offset in the capsule's data.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// Descriptor type in bits 7:4, sub type in bits 3:0.
    pub identifier: u8,
}

/// Direction of a command's data, from bits 1:0 of its opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No data.
    None,
    /// From the host to the controller.
    ToController,
    /// From the controller to the host.
    ToHost,
    /// Both ways: no command here has it.
    Both,
}

// === impl Command ===

impl Command {
    /// PSDT 01b: the data pointer is an SGL. Fabrics require it.
    pub const FLAG_SGL: u8 = 0x40;

    /// Reads an entry.
    pub fn decode(bytes: &[u8; COMMAND_BYTES]) -> Self {
        Self {
            opcode: bytes[0],
            flags: bytes[1],
            cid: u16_at(bytes, 2),
            nsid: u32_at(bytes, 4),
            cdw2: [u32_at(bytes, 8), u32_at(bytes, 12)],
            metadata: u64_at(bytes, 16),
            sgl: Sgl {
                address: u64_at(bytes, 24),
                length: u32_at(bytes, 32),
                identifier: bytes[39],
            },
            cdw10: std::array::from_fn(|i| u32_at(bytes, 40 + 4 * i)),
        }
    }

    /// Writes the entry.
    pub fn encode(&self) -> [u8; COMMAND_BYTES] {
        let mut bytes = [0; COMMAND_BYTES];
        bytes[0] = self.opcode;
        bytes[1] = self.flags;
        put_u16(&mut bytes, 2, self.cid);
        put_u32(&mut bytes, 4, self.nsid);
        put_u32(&mut bytes, 8, self.cdw2[0]);
        put_u32(&mut bytes, 12, self.cdw2[1]);
        put_u64(&mut bytes, 16, self.metadata);
        put_u64(&mut bytes, 24, self.sgl.address);
        put_u32(&mut bytes, 32, self.sgl.length);
        bytes[39] = self.sgl.identifier;
        for (i, dword) in self.cdw10.iter().enumerate() {
            put_u32(&mut bytes, 40 + 4 * i, *dword);
        }
        bytes
    }

    /// A command of an opcode on a namespace, all else zero.
    pub fn new(opcode: u8, nsid: u32) -> Self {
        Self {
            opcode,
            nsid,
            ..Self::default()
        }
    }

    /// The same with dwords from 10 on.
    pub fn with_dwords(mut self, dwords: &[u32]) -> Self {
        for (to, from) in self.cdw10.iter_mut().zip(dwords) {
            *to = *from;
        }
        self
    }

    /// The Fabrics command type; of use only where the opcode is [`opcode::FABRICS`].
    pub fn fabrics_type(&self) -> u8 {
        self.nsid.to_le_bytes()[0]
    }

    /// Direction of the command's data. For a Fabrics command the type has it, in the same bits.
    pub fn direction(&self) -> Direction {
        let code = match self.opcode {
            opcode::FABRICS => self.fabrics_type(),
            code => code,
        };
        match code & 3 {
            0 => Direction::None,
            1 => Direction::ToController,
            2 => Direction::ToHost,
            _ => Direction::Both,
        }
    }

    /// Dwords 10 and 11 as one number.
    pub fn wide10(&self) -> u64 {
        u64::from(self.cdw10[0]) | u64::from(self.cdw10[1]) << 32
    }
}

// === impl Sgl ===

impl Sgl {
    /// Data block with an offset in the capsule: in-capsule data.
    pub const IN_CAPSULE: u8 = 0x01;
    /// Transport data block: the transport moves the data by its own messages.
    pub const TRANSPORT: u8 = 0x5a;

    /// Data that the transport moves; length 0 where there is none.
    pub fn transport(length: u32) -> Self {
        Self {
            address: 0,
            length,
            identifier: Self::TRANSPORT,
        }
    }

    /// Data in the command's capsule, at its start.
    pub fn in_capsule(length: u32) -> Self {
        Self {
            address: 0,
            length,
            identifier: Self::IN_CAPSULE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields at the offsets of Linux' `struct nvme_common_command` and of SPDK's `struct spdk_nvme_cmd`.
    #[test]
    fn a_write_command_has_the_bytes_of_the_specification() {
        let command = Command {
            opcode: 0x01,
            flags: Command::FLAG_SGL,
            cid: 0x1234,
            nsid: 1,
            cdw2: [0x0302_0100, 0x0706_0504],
            metadata: 0x1716_1514_1312_1110,
            sgl: Sgl::transport(0x8000),
            cdw10: [0x0403_0201, 0, 63, 0, 0, 0xffee_ddcc],
        };
        let bytes = command.encode();
        let expected = [
            0x01, 0x40, 0x34, 0x12, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 0x10, 0x11, 0x12, 0x13,
            0x14, 0x15, 0x16, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x80, 0, 0, 0, 0, 0, 0x5a, 1, 2,
            3, 4, 0, 0, 0, 0, 63, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xcc, 0xdd, 0xee, 0xff,
        ];
        assert_eq!(bytes, expected);
        assert_eq!(Command::decode(&bytes), command);
        assert_eq!(command.direction(), Direction::ToController);
    }

    #[test]
    fn a_fabrics_command_has_its_direction_in_its_type() {
        let of_type = |kind| Command::new(opcode::FABRICS, kind).direction();
        assert_eq!(
            of_type(opcode::fabrics::PROPERTY_SET.into()),
            Direction::None
        );
        assert_eq!(
            of_type(opcode::fabrics::CONNECT.into()),
            Direction::ToController
        );
        assert_eq!(
            of_type(opcode::fabrics::PROPERTY_GET.into()),
            Direction::None
        );
        assert_eq!(Command::new(0x02, 1).direction(), Direction::ToHost);
    }
}
