//! Bringing a controller up: Connect, enabling, Identify.

use std::time::{Duration, Instant};

use crate::host::connection::Connection;
use crate::host::error::HostError;
use crate::host::initiator::CommandData;
use crate::host::options::HostOptions;
use crate::nvme::opcode::admin;
use crate::nvme::zkpu::{PROTOCOL_VERSION, ZkpuCapability};
use crate::nvme::{
    Capabilities, Command, Configuration, ConnectData, ConnectFields, ControllerStatus,
    IDENTIFY_BYTES, IdentifyController, PropertyFields, property,
};

/// Entries of the admin queue.
pub(super) const ADMIN_ENTRIES: u16 = 32;
/// Time between looks at a controller that becomes ready.
const READY_INTERVAL: Duration = Duration::from_millis(5);

/// Sends Connect and gives the controller's identifier.
pub(super) fn connect(
    connection: &Connection,
    options: &HostOptions,
    subsystem: &str,
    queue: u16,
    entries: u16,
    controller: u16,
) -> Result<u16, HostError> {
    let keep_alive_ms = u32::try_from(options.keep_alive.as_millis()).unwrap_or(u32::MAX);
    let fields = ConnectFields {
        format: 0,
        queue,
        size: entries.saturating_sub(1),
        attributes: 0,
        keep_alive_ms: if queue == 0 { keep_alive_ms } else { 0 },
    };
    let data = ConnectData {
        host_id: options.host_id,
        controller,
        subsystem: subsystem.to_owned(),
        host: options.host.clone(),
    };
    let data = CommandData::ToController(data.encode().to_vec());
    let response = connection.call("connect", fields.command(), data, options.command_timeout)?;
    Ok(response.completion.result[0] as u16)
}

/// Enables the controller and waits until it is ready.
pub(super) fn enable(connection: &Connection, options: &HostOptions) -> Result<(), HostError> {
    let timeout = options.command_timeout;
    let call = |name, command| connection.call(name, command, CommandData::None, timeout);
    let capabilities = call("get capabilities", PropertyFields::get(property::CAP, true))?;
    let capabilities = Capabilities(capabilities.completion.wide());
    let mut configuration = Configuration::ENABLE_ALL_SETS;
    if !capabilities.has_command_sets() {
        configuration.0 &= !(7 << 4);
    }
    call("enable", PropertyFields::set(property::CC, configuration.0))?;
    let deadline = Instant::now() + Duration::from_millis(capabilities.timeout_ms().max(500));
    loop {
        let status = call("get status", PropertyFields::get(property::CSTS, false))?;
        let status = ControllerStatus(status.completion.result[0]);
        if status.has(ControllerStatus::FATAL) {
            return Err(HostError::Unusable(
                "the controller reports a fatal error".into(),
            ));
        }
        if status.has(ControllerStatus::READY) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(HostError::Unusable(
                "the controller does not become ready".into(),
            ));
        }
        std::thread::park_timeout(READY_INTERVAL);
    }
}

pub(super) fn identify(
    connection: &Connection,
    timeout: Duration,
) -> Result<IdentifyController, HostError> {
    let command = Command::new(admin::IDENTIFY, 0).with_dwords(&[1]);
    let data = CommandData::ToHost(IDENTIFY_BYTES as u32);
    let response = connection.call("identify", command, data, timeout)?;
    IdentifyController::decode(&response.data)
        .ok_or_else(|| HostError::Protocol("identify data that cannot be read".into()))
}

/// The capability of a device that this driver can use.
pub(super) fn usable(identity: &IdentifyController) -> Result<ZkpuCapability, HostError> {
    let unusable = |why: String| {
        Err(HostError::Unusable(format!(
            "{} {}: {why}",
            identity.model, identity.serial
        )))
    };
    let Some(capability) = identity.zkpu else {
        return unusable("it has no ZKPU capability".into());
    };
    if capability.version != PROTOCOL_VERSION {
        return unusable(format!("version {} of the protocol", capability.version));
    }
    if capability.curves & ZkpuCapability::BLS12_377_G1 == 0 {
        return unusable("it does not know BLS12-377 G1".into());
    }
    if !capability.has(ZkpuCapability::MEMORY_PERSONALITY) {
        return unusable("it has no memory personality".into());
    }
    Ok(capability)
}
