//! Controller properties: capabilities, configuration, status.

/// Offsets of the properties that a controller over a fabric has.
pub mod property {
    /// Controller Capabilities, 8 bytes.
    pub const CAP: u32 = 0x00;
    /// Version, 4 bytes.
    pub const VS: u32 = 0x08;
    /// Controller Configuration, 4 bytes.
    pub const CC: u32 = 0x14;
    /// Controller Status, 4 bytes.
    pub const CSTS: u32 = 0x1c;
    /// NVM Subsystem Reset, 4 bytes.
    pub const NSSR: u32 = 0x20;
    /// Value that resets the subsystem when it is written to [`NSSR`].
    pub const NSSR_RESET: u32 = 0x4e56_4d65;
}

/// Controller Capabilities (CAP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities(pub u64);

/// Controller Configuration (CC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Configuration(pub u32);

/// Controller Status (CSTS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerStatus(pub u32);

impl Capabilities {
    /// Queues of at most `entries` entries, contiguous, `timeout` units of 500 ms, subsystem reset, the NVM set and
    /// other I/O command sets, pages of 4 KiB.
    pub const fn new(entries: u16, timeout: u8) -> Self {
        Self((entries - 1) as u64 | 1 << 16 | (timeout as u64) << 24 | 1 << 36 | 0x41 << 37)
    }

    /// Entries of the largest queue.
    pub const fn queue_entries_max(self) -> u32 {
        (self.0 as u16) as u32 + 1
    }

    /// Time to become ready, in milliseconds.
    pub const fn timeout_ms(self) -> u64 {
        (self.0 >> 24 & 0xff) * 500
    }

    /// Whether command sets other than NVM can be selected.
    pub const fn has_command_sets(self) -> bool {
        self.0 >> 43 & 1 == 1
    }
}

impl Configuration {
    /// Enabled, all command sets, pages of 4 KiB, entries of 64 and 16 bytes.
    pub const ENABLE_ALL_SETS: Self = Self(1 | 6 << 4 | 6 << 16 | 4 << 20);

    /// Whether the controller is enabled (EN).
    pub const fn is_enabled(self) -> bool {
        self.0 & 1 == 1
    }

    /// Command sets selected (CSS): 0 NVM alone, 6 all.
    pub const fn command_sets(self) -> u32 {
        self.0 >> 4 & 7
    }

    /// Memory page size (MPS), 0 = 4 KiB.
    pub const fn page_size(self) -> u32 {
        self.0 >> 7 & 15
    }

    /// Arbitration (AMS), 0 = round robin.
    pub const fn arbitration(self) -> u32 {
        self.0 >> 11 & 7
    }

    /// Shutdown notification (SHN): 0 none.
    pub const fn shutdown(self) -> u32 {
        self.0 >> 14 & 3
    }
}

impl ControllerStatus {
    /// Ready (RDY).
    pub const READY: u32 = 1;
    /// Fatal (CFS).
    pub const FATAL: u32 = 1 << 1;
    /// Shutdown complete (SHST = 10b).
    pub const SHUT_DOWN: u32 = 2 << 2;
    /// A subsystem reset occurred (NSSRO); cleared by writing 1.
    pub const SUBSYSTEM_RESET: u32 = 1 << 4;

    /// Whether a bit of the above is set.
    pub const fn has(self, bits: u32) -> bool {
        self.0 & bits == bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit positions of SPDK's `union spdk_nvme_cap_register`, values of `docs/zkpu.md`.
    #[test]
    fn capabilities_have_their_bits() {
        let capabilities = Capabilities::new(256, 20);
        assert_eq!(capabilities.0, 0x0000_0830_1401_00ff);
        assert_eq!(capabilities.queue_entries_max(), 256);
        assert_eq!(capabilities.timeout_ms(), 10_000);
        assert!(capabilities.has_command_sets());
    }

    /// `NVME_CC_*` of Linux: IOSQES 6 << 16, IOCQES 4 << 20, CSS 6 << 4.
    #[test]
    fn configuration_has_its_bits() {
        assert_eq!(Configuration::ENABLE_ALL_SETS.0, 0x0046_0061);
        assert_eq!(Configuration(1 << 14).shutdown(), 1);
    }
}
