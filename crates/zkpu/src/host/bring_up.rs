//! Bringing a controller up: Connect, enabling, Identify; or what is left of it where the kernel has done so.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::host::connection::Connection;
use crate::host::discovery::discover;
use crate::host::error::HostError;
use crate::host::initiator::CommandData;
use crate::host::options::HostOptions;
use crate::host::queue::Queue;
use crate::nvme::opcode::{admin, feature};
use crate::nvme::zkpu::{PROTOCOL_VERSION, TRANSFER_BYTES_MAX, ZkpuCapability};
use crate::nvme::{
    Capabilities, Command, Configuration, ConnectData, ConnectFields, ControllerStatus,
    DYNAMIC_CONTROLLER, IDENTIFY_BYTES, IdentifyController, PropertyFields, property,
};

/// Entries of the admin queue.
pub(super) const ADMIN_ENTRIES: u16 = 32;
/// Time between looks at a controller that becomes ready.
const READY_INTERVAL: Duration = Duration::from_millis(5);

/// A device that takes commands.
pub(super) struct Device {
    pub(super) admin: Arc<dyn Queue>,
    pub(super) io: Arc<dyn Queue>,
    pub(super) identity: IdentifyController,
    pub(super) capability: ZkpuCapability,
    /// Most bytes of a transfer.
    pub(super) transfer_bytes: u32,
    /// Whether requests for asynchronous events, and signs of life, are for this host to send.
    pub(super) has_events: bool,
}

/// Connects to a target, and makes one I/O queue.
pub(super) fn over_tcp(address: SocketAddr, options: &HostOptions) -> Result<Device, HostError> {
    let subsystem = match &options.subsystem {
        Some(subsystem) => subsystem.clone(),
        None => {
            let found = discover(options)?.into_iter().next();
            let none = || HostError::Unusable("the discovery service knows no subsystem".into());
            found.ok_or_else(none)?.subsystem
        }
    };
    let open =
        |entries| Connection::open(address, options.connect_timeout, options.digests, entries);
    let admin = open(ADMIN_ENTRIES)?;
    let controller = connect(
        &admin,
        options,
        &subsystem,
        0,
        ADMIN_ENTRIES,
        DYNAMIC_CONTROLLER,
    )?;
    enable(&admin, options)?;
    let identity = identify(&admin, options.command_timeout)?;
    let capability = usable(&identity)?;
    let queues = Command::new(admin::SET_FEATURES, 0).with_dwords(&[feature::QUEUES.into(), 0]);
    admin.call(
        "ask for queues",
        queues,
        CommandData::None,
        options.command_timeout,
    )?;
    let entries = options.queue_entries.min(identity.commands_max.max(2));
    let io = open(entries)?;
    connect(&io, options, &subsystem, 1, entries, controller)?;
    let capsule = identity
        .fabrics
        .map_or(0, |fabrics| fabrics.command_capsule);
    io.set_capsule_data_max((capsule as usize).saturating_mul(16).saturating_sub(64));
    Ok(Device {
        admin: Arc::new(admin),
        io: Arc::new(io),
        identity,
        capability,
        transfer_bytes: TRANSFER_BYTES_MAX,
        has_events: true,
    })
}

/// Opens a device that the kernel has connected and enabled. Where it has no device files of the compute personality's
/// namespaces, the device counts as one without it.
#[cfg(target_os = "linux")]
pub(super) fn by_kernel(path: &Path, options: &HostOptions) -> Result<Device, HostError> {
    use crate::host::passthrough;
    let opened = passthrough::open(path, options)?;
    let identity = identify(&opened.admin, options.command_timeout)?;
    let mut capability = usable(&identity)?;
    if !opened.has_compute {
        capability.flags &= !ZkpuCapability::COMPUTE_PERSONALITY;
    }
    Ok(Device {
        admin: Arc::new(opened.admin),
        io: Arc::new(opened.io),
        identity,
        capability,
        transfer_bytes: passthrough::TRANSFER_BYTES_MAX,
        has_events: false,
    })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn by_kernel(path: &Path, _: &HostOptions) -> Result<Device, HostError> {
    let path = path.display();
    Err(HostError::Unusable(format!(
        "{path}: device files are used on Linux only"
    )))
}

/// Sends Connect and gives the controller's identifier.
pub(super) fn connect(
    queue: &dyn Queue,
    options: &HostOptions,
    subsystem: &str,
    number: u16,
    entries: u16,
    controller: u16,
) -> Result<u16, HostError> {
    let keep_alive_ms = u32::try_from(options.keep_alive.as_millis()).unwrap_or(u32::MAX);
    let fields = ConnectFields {
        format: 0,
        queue: number,
        size: entries.saturating_sub(1),
        attributes: 0,
        keep_alive_ms: if number == 0 { keep_alive_ms } else { 0 },
    };
    let data = ConnectData {
        host_id: options.host_id,
        controller,
        subsystem: subsystem.to_owned(),
        host: options.host.clone(),
    };
    let data = CommandData::ToController(data.encode().to_vec());
    let response = queue.call("connect", fields.command(), data, options.command_timeout)?;
    Ok(response.completion.result[0] as u16)
}

/// Enables the controller and waits until it is ready.
pub(super) fn enable(queue: &dyn Queue, options: &HostOptions) -> Result<(), HostError> {
    let timeout = options.command_timeout;
    let call = |name, command| queue.call(name, command, CommandData::None, timeout);
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
    queue: &dyn Queue,
    timeout: Duration,
) -> Result<IdentifyController, HostError> {
    let command = Command::new(admin::IDENTIFY, 0).with_dwords(&[1]);
    let data = CommandData::ToHost(IDENTIFY_BYTES as u32);
    let response = queue.call("identify", command, data, timeout)?;
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
