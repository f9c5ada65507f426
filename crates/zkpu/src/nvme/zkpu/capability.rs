//! The capability structure of Identify Controller.

use crate::bytes::{put, put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};

/// Bytes of the capability structure.
pub const CAPABILITY_BYTES: usize = 1024;
const MAGIC: &[u8; 4] = b"ZKPU";

/// The capabilities of a ZKPU, from Identify Controller bytes 3072 to 4095.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZkpuCapability {
    /// Version of the protocol.
    pub version: u16,
    /// Bits of [`ZkpuCapability::MEMORY_PERSONALITY`] and the others.
    pub flags: u16,
    /// Curves; bit 0 is BLS12-377 G1.
    pub curves: u32,
    /// Most points of a job.
    pub count_max: u32,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Adders of the core.
    pub adders: u8,
    /// Narrowest window.
    pub window_min: u8,
    /// Widest window.
    pub window_max: u8,
    /// Most levels of a table.
    pub levels_max: u8,
    /// Jobs queued and running at once.
    pub jobs_live_max: u16,
    /// Entries of the job table.
    pub jobs: u16,
    /// Base sets.
    pub base_sets_max: u16,
    /// Memory range sets.
    pub range_sets_max: u16,
    /// Clock in kHz; 0 = unknown.
    pub clock_khz: u32,
    /// Identifier that differs after every loss of memory.
    pub power_on_id: u64,
}

// === impl ZkpuCapability ===

impl ZkpuCapability {
    /// Flag: jobs by the commands of namespace 1.
    pub const MEMORY_PERSONALITY: u16 = 1;
    /// Flag: jobs by Execute Program.
    pub const COMPUTE_PERSONALITY: u16 = 1 << 1;
    /// Flag: tables of plain points.
    pub const PLAIN_POINTS: u16 = 1 << 2;
    /// Flag: a functional model, not the circuit.
    pub const FUNCTIONAL_MODEL: u16 = 1 << 3;
    /// Flag: the device makes tables of multiples from plain ones.
    pub const PRECOMPUTE: u16 = 1 << 4;
    /// Curve bit of BLS12-377 G1.
    pub const BLS12_377_G1: u32 = 1;

    /// Writes the structure.
    pub fn encode(&self) -> [u8; CAPABILITY_BYTES] {
        let mut bytes = [0; CAPABILITY_BYTES];
        put(&mut bytes, 0, MAGIC);
        put_u16(&mut bytes, 4, self.version);
        put_u16(&mut bytes, 6, self.flags);
        put_u32(&mut bytes, 8, self.curves);
        put_u32(&mut bytes, 12, self.count_max);
        put_u64(&mut bytes, 16, self.memory_bytes);
        put(
            &mut bytes,
            24,
            &[
                self.adders,
                self.window_min,
                self.window_max,
                self.levels_max,
            ],
        );
        put_u16(&mut bytes, 28, self.jobs_live_max);
        put_u16(&mut bytes, 30, self.jobs);
        put_u16(&mut bytes, 32, self.base_sets_max);
        put_u16(&mut bytes, 34, self.range_sets_max);
        put_u32(&mut bytes, 36, self.clock_khz);
        put_u64(&mut bytes, 40, self.power_on_id);
        bytes
    }

    /// Reads the structure; `None` without its magic, or with values that no device can mean.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < CAPABILITY_BYTES || &bytes[..4] != MAGIC {
            return None;
        }
        let capability = Self {
            version: u16_at(bytes, 4),
            flags: u16_at(bytes, 6),
            curves: u32_at(bytes, 8),
            count_max: u32_at(bytes, 12),
            memory_bytes: u64_at(bytes, 16),
            adders: bytes[24],
            window_min: bytes[25],
            window_max: bytes[26],
            levels_max: bytes[27],
            jobs_live_max: u16_at(bytes, 28),
            jobs: u16_at(bytes, 30),
            base_sets_max: u16_at(bytes, 32),
            range_sets_max: u16_at(bytes, 34),
            clock_khz: u32_at(bytes, 36),
            power_on_id: u64_at(bytes, 40),
        };
        let windows = 1..=30;
        let is_possible = capability.memory_bytes.is_multiple_of(4096)
            && capability.memory_bytes <= 1 << 40
            && windows.contains(&capability.window_min)
            && windows.contains(&capability.window_max)
            && capability.window_min <= capability.window_max
            && (1..=31).contains(&capability.levels_max)
            && capability.jobs_live_max > 0
            && capability.count_max > 0;
        is_possible.then_some(capability)
    }

    /// Whether a flag is set.
    pub const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capability() -> ZkpuCapability {
        ZkpuCapability {
            version: 1,
            flags: 3,
            curves: 1,
            count_max: 1 << 26,
            memory_bytes: 1 << 24,
            adders: 2,
            window_min: 4,
            window_max: 18,
            levels_max: 31,
            jobs_live_max: 8,
            jobs: 16,
            base_sets_max: 16,
            range_sets_max: 16,
            clock_khz: 100_000,
            power_on_id: 0x1122_3344_5566_7788,
        }
    }

    #[test]
    fn the_capability_has_the_bytes_of_the_page() {
        let bytes = capability().encode();
        let expected = [
            0x5a, 0x4b, 0x50, 0x55, 1, 0, 3, 0, 1, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 2,
            4, 18, 31, 8, 0, 16, 0, 16, 0, 16, 0, 0xa0, 0x86, 1, 0, 0x88, 0x77, 0x66, 0x55, 0x44,
            0x33, 0x22, 0x11,
        ];
        assert_eq!(bytes[..48], expected);
        assert_eq!(ZkpuCapability::decode(&bytes), Some(capability()));
    }

    #[test]
    fn an_impossible_capability_is_refused() {
        for (at, byte) in [
            (0, 0),
            (16, 1),
            (25, 0),
            (26, 3),
            (26, 31),
            (27, 0),
            (27, 32),
            (28, 0),
            (15, 0),
        ] {
            let mut bytes = capability().encode();
            bytes[at] = byte;
            assert_eq!(ZkpuCapability::decode(&bytes), None, "byte {at} is {byte}");
        }
    }
}
