//! Asking a discovery service.

use crate::host::bring_up::{ADMIN_ENTRIES, connect, enable};
use crate::host::connection::Connection;
use crate::host::error::HostError;
use crate::host::initiator::CommandData;
use crate::host::options::{Address, HostOptions};
use crate::host::queue::Queue;
use crate::nvme::opcode::{admin, log};
use crate::nvme::{
    Command, DISCOVERY_NQN, DYNAMIC_CONTROLLER, DiscoveryEntry, parse_discovery_log,
};

/// Bytes of the page that are read: its header and eight entries.
const PAGE_BYTES: u32 = 9 * 1024;

/// Subsystems that the discovery service at the options' address tells of.
///
/// # Errors
///
/// [`HostError`]; [`HostError::Unusable`] for an address that is a device file.
pub fn discover(options: &HostOptions) -> Result<Vec<DiscoveryEntry>, HostError> {
    let Address::Tcp(address) = options.address else {
        return Err(HostError::Unusable(format!(
            "{}: no discovery service, a device",
            options.address
        )));
    };
    let connection = Connection::open(
        address,
        options.connect_timeout,
        options.digests,
        ADMIN_ENTRIES,
    )?;
    connect(
        &connection,
        options,
        DISCOVERY_NQN,
        0,
        ADMIN_ENTRIES,
        DYNAMIC_CONTROLLER,
    )?;
    enable(&connection, options)?;
    let selector = u32::from(log::DISCOVERY) | (PAGE_BYTES / 4 - 1) << 16;
    let command = Command::new(admin::GET_LOG_PAGE, 0).with_dwords(&[selector]);
    let data = CommandData::ToHost(PAGE_BYTES);
    let response = connection.call(
        "get the discovery log",
        command,
        data,
        options.command_timeout,
    )?;
    parse_discovery_log(&response.data)
        .ok_or_else(|| HostError::Protocol("a discovery log that is shorter than it says".into()))
}
