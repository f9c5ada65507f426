//! Identify data: the controller, and a namespace of blocks.

use crate::bytes::{put, put_text, put_u16, put_u32, put_u64, text_at, u16_at, u32_at, u64_at};
use crate::nvme::zkpu::ZkpuCapability;

/// Bytes of every Identify data structure.
pub const IDENTIFY_BYTES: usize = 4096;

/// Identify Controller: the fields that a ZKPU sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentifyController {
    /// Serial number, at most 20 bytes.
    pub serial: String,
    /// Model number, at most 40 bytes.
    pub model: String,
    /// Firmware revision, at most 8 bytes.
    pub firmware: String,
    /// Base-two logarithm of the pages of 4 KiB of the largest transfer; 0 = no limit.
    pub mdts: u8,
    /// Controller identifier.
    pub controller: u16,
    /// Version of the specification, such as 00020000h.
    pub version: u32,
    /// Controller type: 1 I/O, 2 discovery.
    pub kind: u8,
    /// Entries of the largest queue, for a fabric.
    pub commands_max: u16,
    /// Number of namespaces.
    pub namespaces: u32,
    /// Name of the subsystem.
    pub subsystem: String,
    /// Fields for fabrics; `None` over PCIe.
    pub fabrics: Option<Fabrics>,
    /// The capabilities of a ZKPU; `None` for other controllers.
    pub zkpu: Option<ZkpuCapability>,
}

/// The fabric's fields of Identify Controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fabrics {
    /// Granularity of the keep alive timer, in units of 100 ms.
    pub keep_alive_units: u16,
    /// Bytes of a command capsule with its data, in units of 16.
    pub command_capsule: u32,
    /// Bytes of a response capsule, in units of 16.
    pub response_capsule: u32,
}

/// Identify Namespace of a namespace of blocks without metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceBlocks {
    /// Number of blocks.
    pub blocks: u64,
    /// Base-two logarithm of a block's bytes.
    pub block_log: u8,
    /// Globally unique identifier.
    pub nguid: [u8; 16],
}

/// SGLs supported (bit 0), with offsets in the capsule (20) and the transport's data block (21).
const SGLS: u32 = 1 | 1 << 20 | 1 << 21;

// === impl IdentifyController ===

impl IdentifyController {
    /// Writes the structure.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; IDENTIFY_BYTES];
        put_text(&mut bytes, 4, 20, &self.serial, b' ');
        put_text(&mut bytes, 24, 40, &self.model, b' ');
        put_text(&mut bytes, 64, 8, &self.firmware, b' ');
        bytes[77] = self.mdts;
        put_u16(&mut bytes, 78, self.controller);
        put_u32(&mut bytes, 80, self.version);
        bytes[111] = self.kind;
        bytes[258] = 3; // ACL
        bytes[259] = 3; // AERL
        bytes[260] = 0x03; // FRMW: one slot, read only
        bytes[261] = 0x06; // LPA: Commands Supported and Effects; offset in Get Log Page
        bytes[262] = 15; // ELPE
        put_u16(&mut bytes, 266, 358);
        put_u16(&mut bytes, 268, 368);
        bytes[512] = 0x66;
        bytes[513] = 0x44;
        put_u16(&mut bytes, 514, self.commands_max);
        put_u32(&mut bytes, 516, self.namespaces);
        put_text(&mut bytes, 768, 256, &self.subsystem, 0);
        if let Some(fabrics) = self.fabrics {
            fabrics.put(&mut bytes, self.commands_max);
        }
        put_u16(&mut bytes, 2048, 2500); // PSD0: 25 W
        if let Some(zkpu) = &self.zkpu {
            put(&mut bytes, 3072, &zkpu.encode());
        }
        bytes
    }

    /// Reads the structure; `None` if it has another size. A capability that cannot be read is `None` in it.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != IDENTIFY_BYTES {
            return None;
        }
        let capsule = u32_at(bytes, 1792);
        Some(Self {
            serial: text_at(bytes, 4, 20),
            model: text_at(bytes, 24, 40),
            firmware: text_at(bytes, 64, 8),
            mdts: bytes[77],
            controller: u16_at(bytes, 78),
            version: u32_at(bytes, 80),
            kind: bytes[111],
            commands_max: u16_at(bytes, 514),
            namespaces: u32_at(bytes, 516),
            subsystem: text_at(bytes, 768, 256),
            fabrics: (capsule != 0).then(|| Fabrics {
                keep_alive_units: u16_at(bytes, 320),
                command_capsule: capsule,
                response_capsule: u32_at(bytes, 1796),
            }),
            zkpu: ZkpuCapability::decode(&bytes[3072..]),
        })
    }
}

// === impl Fabrics ===

impl Fabrics {
    /// Sets the fabric's fields, and the entries of the largest queue, in an Identify Controller structure.
    ///
    /// # Panics
    ///
    /// On a structure shorter than [`IDENTIFY_BYTES`].
    pub fn put(&self, controller: &mut [u8], commands_max: u16) {
        put_u16(controller, 320, self.keep_alive_units);
        put_u16(controller, 514, commands_max);
        put_u32(controller, 536, SGLS);
        put_u32(controller, 1792, self.command_capsule);
        put_u32(controller, 1796, self.response_capsule);
        controller[1803] = 1; // MSDBD
    }
}

// === impl NamespaceBlocks ===

impl NamespaceBlocks {
    /// Writes the structure.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; IDENTIFY_BYTES];
        for at in [0, 8, 16] {
            put_u64(&mut bytes, at, self.blocks);
        }
        put(&mut bytes, 104, &self.nguid);
        bytes[130] = self.block_log;
        bytes
    }

    /// Reads the structure; `None` if it has another size, or metadata.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != IDENTIFY_BYTES {
            return None;
        }
        let format = 128 + 4 * usize::from(bytes[26] & 15);
        if u16_at(bytes, format) != 0 {
            return None;
        }
        let mut nguid = [0; 16];
        nguid.copy_from_slice(&bytes[104..120]);
        Some(Self {
            blocks: u64_at(bytes, 0),
            block_log: bytes[format + 2],
            nguid,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller() -> IdentifyController {
        IdentifyController {
            serial: "0123456789ABCDEF".into(),
            model: "ZKPU MSM".into(),
            firmware: "1.0".into(),
            mdts: 8,
            controller: 1,
            version: 0x0002_0000,
            kind: 1,
            commands_max: 128,
            namespaces: 3,
            subsystem: "nqn.2026-01.org.proofmill:zkpu:0123456789ABCDEF".into(),
            fabrics: Some(Fabrics {
                keep_alive_units: 10,
                command_capsule: 516,
                response_capsule: 1,
            }),
            zkpu: None,
        }
    }

    /// Offsets of Linux' `struct nvme_id_ctrl` and SPDK's `struct spdk_nvme_ctrlr_data`.
    #[test]
    fn the_controller_has_its_fields_where_drivers_look() {
        let bytes = controller().encode();
        assert_eq!(bytes.len(), 4096);
        assert_eq!(&bytes[4..24], b"0123456789ABCDEF    ");
        assert_eq!(&bytes[24..32], b"ZKPU MSM");
        assert_eq!(&bytes[64..72], b"1.0     ");
        assert_eq!(&bytes[76..84], &[0, 8, 1, 0, 0, 0, 2, 0]);
        assert_eq!(&bytes[258..263], &[3, 3, 3, 6, 15]);
        assert_eq!(&bytes[266..270], &[0x66, 1, 0x70, 1]);
        assert_eq!(&bytes[320..322], &[10, 0]);
        assert_eq!(&bytes[512..520], &[0x66, 0x44, 128, 0, 3, 0, 0, 0]);
        assert_eq!(&bytes[536..540], &[1, 0, 0x30, 0]);
        assert_eq!(&bytes[768..772], b"nqn.");
        assert_eq!(&bytes[1792..1804], &[4, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(&bytes[2048..2050], &[0xc4, 0x09]);
        assert_eq!(IdentifyController::decode(&bytes), Some(controller()));
        assert_eq!(IdentifyController::decode(&bytes[1..]), None);
    }

    #[test]
    fn the_namespace_has_its_fields_where_drivers_look() {
        let namespace = NamespaceBlocks {
            blocks: 0x8000,
            block_log: 9,
            nguid: *b"ZKPUabcdefghijkl",
        };
        let bytes = namespace.encode();
        assert_eq!(
            &bytes[..24],
            &[
                0, 128, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0
            ]
        );
        assert_eq!(&bytes[128..132], &[0, 0, 9, 0]);
        assert_eq!(NamespaceBlocks::decode(&bytes), Some(namespace));
    }
}
