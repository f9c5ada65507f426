//! Opcodes of the admin queue, of the three command sets and of Fabrics commands.

/// Fabrics commands, on any queue.
pub const FABRICS: u8 = 0x7f;

/// Types of Fabrics commands.
pub mod fabrics {
    /// Property Set.
    pub const PROPERTY_SET: u8 = 0x00;
    /// Connect.
    pub const CONNECT: u8 = 0x01;
    /// Property Get.
    pub const PROPERTY_GET: u8 = 0x04;
    /// Disconnect.
    pub const DISCONNECT: u8 = 0x08;
}

/// Admin commands.
pub mod admin {
    /// Get Log Page.
    pub const GET_LOG_PAGE: u8 = 0x02;
    /// Identify.
    pub const IDENTIFY: u8 = 0x06;
    /// Abort.
    pub const ABORT: u8 = 0x08;
    /// Set Features.
    pub const SET_FEATURES: u8 = 0x09;
    /// Get Features.
    pub const GET_FEATURES: u8 = 0x0a;
    /// Asynchronous Event Request.
    pub const EVENT_REQUEST: u8 = 0x0c;
    /// Keep Alive.
    pub const KEEP_ALIVE: u8 = 0x18;
    /// Load Program, of the Computational Programs set.
    pub const LOAD_PROGRAM: u8 = 0x85;
    /// Program Activation Management, of the Computational Programs set.
    pub const PROGRAM_ACTIVATION: u8 = 0x88;
    /// Memory Range Set Management, of the Computational Programs set.
    pub const RANGE_SET_MANAGEMENT: u8 = 0x89;
}

/// NVM command set, and the ZKPU's commands on the same namespace.
pub mod nvm {
    /// Flush.
    pub const FLUSH: u8 = 0x00;
    /// Write.
    pub const WRITE: u8 = 0x01;
    /// Read.
    pub const READ: u8 = 0x02;
    /// Start, ours.
    pub const START: u8 = 0x80;
    /// Wait, ours.
    pub const WAIT: u8 = 0x84;
    /// Cancel, ours.
    pub const CANCEL: u8 = 0x88;
    /// Set Base, ours.
    pub const SET_BASE: u8 = 0x8c;
    /// Precompute, ours.
    pub const PRECOMPUTE: u8 = 0x90;
}

/// Subsystem Local Memory command set.
pub mod memory {
    /// Memory Fill.
    pub const FILL: u8 = 0x00;
    /// Memory Read.
    pub const READ: u8 = 0x02;
    /// Memory Write.
    pub const WRITE: u8 = 0x05;
}

/// Computational Programs command set.
pub mod program {
    /// Execute Program.
    pub const EXECUTE: u8 = 0x01;
}

/// Command set identifiers (CSI).
pub mod set {
    /// NVM.
    pub const NVM: u8 = 0;
    /// Subsystem Local Memory.
    pub const MEMORY: u8 = 3;
    /// Computational Programs.
    pub const PROGRAMS: u8 = 4;
}

/// Log pages.
pub mod log {
    /// Error Information.
    pub const ERRORS: u8 = 0x01;
    /// Health.
    pub const HEALTH: u8 = 0x02;
    /// Firmware slot.
    pub const FIRMWARE: u8 = 0x03;
    /// Commands Supported and Effects, for one command set.
    pub const EFFECTS: u8 = 0x05;
    /// Discovery.
    pub const DISCOVERY: u8 = 0x70;
    /// ZKPU health and counters, ours.
    pub const ZKPU: u8 = 0xc0;
    /// Job table, ours.
    pub const JOBS: u8 = 0xc1;
}

/// Features.
pub mod feature {
    /// Number of queues.
    pub const QUEUES: u8 = 0x07;
    /// Keep alive timer.
    pub const KEEP_ALIVE: u8 = 0x0f;
    /// Events of job ends, ours.
    pub const EVENTS: u8 = 0xc0;
    /// Job timeout, ours.
    pub const JOB_TIMEOUT: u8 = 0xc1;
}
