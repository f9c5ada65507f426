//! The structures of NVMe: commands, completions, status codes, properties, identify data and log pages.
//!
//! Only layouts and codes; nothing here knows a transport or a device. Offsets are those of the NVM Express Base
//! Specification 2.0 and NVMe over Fabrics 1.1; what is the ZKPU's own is in [`zkpu`].

mod command;
mod completion;
mod fabrics;
mod identify;
mod logs;
pub mod opcode;
mod properties;
mod status;
pub mod zkpu;

pub use command::{COMMAND_BYTES, Command, Direction, Sgl};
pub use completion::{COMPLETION_BYTES, Completion};
pub use fabrics::{
    CONNECT_DATA_BYTES, ConnectData, ConnectFields, DISCOVERY_NQN, DYNAMIC_CONTROLLER,
    DiscoveryEntry, NQN_BYTES_MAX, PropertyFields, discovery_log, parse_discovery_log,
};
pub use identify::{Fabrics, IDENTIFY_BYTES, IdentifyController, NamespaceBlocks};
pub use logs::{ErrorEntry, HealthLog, effects_log, error_log, firmware_log};
pub use properties::{Capabilities, Configuration, ControllerStatus, property};
pub use status::Status;
