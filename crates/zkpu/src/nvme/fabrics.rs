//! NVMe over Fabrics: Connect, properties, the discovery log page.

use crate::bytes::{put, put_text, put_u16, put_u32, put_u64, text_at, u16_at, u64_at};
use crate::nvme::{Command, Sgl, opcode};

/// Bytes of the data of Connect.
pub const CONNECT_DATA_BYTES: usize = 1024;
/// Name of the discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// Most bytes of a name.
pub const NQN_BYTES_MAX: usize = 223;
/// Controller identifier that asks for any controller.
pub const DYNAMIC_CONTROLLER: u16 = 0xffff;

/// Bytes of a name's field: the name and its NUL.
const NQN_FIELD: usize = 256;
const DISCOVERY_HEADER: usize = 1024;
const DISCOVERY_ENTRY: usize = 1024;
/// Most entries that are read from a discovery log page.
const DISCOVERY_ENTRIES_MAX: usize = 64;

/// Fields of the Connect command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectFields {
    /// Record format: 0.
    pub format: u16,
    /// Queue; 0 is the admin queue.
    pub queue: u16,
    /// Entries of the queue, less one.
    pub size: u16,
    /// Attributes; bit 2 turns submission queue flow control off.
    pub attributes: u8,
    /// Keep alive timeout in milliseconds; 0 = none.
    pub keep_alive_ms: u32,
}

/// Data of the Connect command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectData {
    /// Identifier of the host.
    pub host_id: [u8; 16],
    /// Controller, or [`DYNAMIC_CONTROLLER`].
    pub controller: u16,
    /// Name of the subsystem.
    pub subsystem: String,
    /// Name of the host.
    pub host: String,
}

/// Fields of Property Get and Property Set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertyFields {
    /// Size code: 0 = 4 bytes, 1 = 8 bytes.
    pub size: u8,
    /// Offset of the property.
    pub offset: u32,
    /// Value to set.
    pub value: u64,
}

/// An entry of the discovery log page, for NVMe/TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryEntry {
    /// Name of the subsystem.
    pub subsystem: String,
    /// Address, such as `127.0.0.1`.
    pub address: String,
    /// Port, such as `4420`.
    pub port: String,
    /// Whether the address is of IPv6.
    pub is_ipv6: bool,
}

// === impl ConnectFields ===

impl ConnectFields {
    /// Reads dwords 10 to 12.
    pub fn of(command: &Command) -> Self {
        let [first, second, third, ..] = command.cdw10;
        Self {
            format: first as u16,
            queue: (first >> 16) as u16,
            size: second as u16,
            attributes: (second >> 16) as u8,
            keep_alive_ms: third,
        }
    }

    /// The command, its data in the capsule.
    pub fn command(&self) -> Command {
        let mut command = Command::new(opcode::FABRICS, opcode::fabrics::CONNECT.into());
        command.sgl = Sgl::in_capsule(CONNECT_DATA_BYTES as u32);
        command.with_dwords(&[
            u32::from(self.format) | u32::from(self.queue) << 16,
            u32::from(self.size) | u32::from(self.attributes) << 16,
            self.keep_alive_ms,
        ])
    }
}

// === impl ConnectData ===

impl ConnectData {
    /// Offset of the controller in the data, which an error names.
    pub const CONTROLLER_AT: u16 = 16;
    /// Offset of the subsystem's name.
    pub const SUBSYSTEM_AT: u16 = 256;
    /// Offset of the host's name.
    pub const HOST_AT: u16 = 512;

    /// Reads the data. The error is the offset of a name that does not end, or is no ASCII text.
    pub fn decode(bytes: &[u8; CONNECT_DATA_BYTES]) -> Result<Self, u16> {
        let mut host_id = [0; 16];
        host_id.copy_from_slice(&bytes[..16]);
        Ok(Self {
            host_id,
            controller: u16_at(bytes, Self::CONTROLLER_AT.into()),
            subsystem: name(bytes, Self::SUBSYSTEM_AT)?,
            host: name(bytes, Self::HOST_AT)?,
        })
    }

    /// Writes the data.
    pub fn encode(&self) -> [u8; CONNECT_DATA_BYTES] {
        let mut bytes = [0; CONNECT_DATA_BYTES];
        put(&mut bytes, 0, &self.host_id);
        put_u16(&mut bytes, Self::CONTROLLER_AT.into(), self.controller);
        put_text(
            &mut bytes,
            Self::SUBSYSTEM_AT.into(),
            NQN_BYTES_MAX,
            &self.subsystem,
            0,
        );
        put_text(
            &mut bytes,
            Self::HOST_AT.into(),
            NQN_BYTES_MAX,
            &self.host,
            0,
        );
        bytes
    }
}

/// A name with its NUL: 1 to 223 printable bytes.
fn name(bytes: &[u8; CONNECT_DATA_BYTES], at: u16) -> Result<String, u16> {
    let field = &bytes[usize::from(at)..usize::from(at) + NQN_FIELD];
    let length = field.iter().position(|byte| *byte == 0).ok_or(at)?;
    let text = std::str::from_utf8(&field[..length]).map_err(|_| at)?;
    if length == 0
        || length > NQN_BYTES_MAX
        || text.bytes().any(|byte| !(b' '..=b'~').contains(&byte))
    {
        return Err(at);
    }
    Ok(text.to_owned())
}

// === impl PropertyFields ===

impl PropertyFields {
    /// Reads dwords 10 to 13.
    pub fn of(command: &Command) -> Self {
        let [size, offset, low, high, ..] = command.cdw10;
        Self {
            size: (size & 7) as u8,
            offset,
            value: u64::from(low) | u64::from(high) << 32,
        }
    }

    /// Property Get of a property.
    pub fn get(offset: u32, is_wide: bool) -> Command {
        let mut command = Command::new(opcode::FABRICS, opcode::fabrics::PROPERTY_GET.into());
        command.sgl = Sgl::transport(0);
        command.with_dwords(&[is_wide.into(), offset])
    }

    /// Property Set of a property of 4 bytes.
    pub fn set(offset: u32, value: u32) -> Command {
        let mut command = Command::new(opcode::FABRICS, opcode::fabrics::PROPERTY_SET.into());
        command.sgl = Sgl::transport(0);
        command.with_dwords(&[0, offset, value])
    }
}

/// The discovery log page of a generation counter and entries.
pub fn discovery_log(generation: u64, entries: &[DiscoveryEntry]) -> Vec<u8> {
    let mut page = vec![0; DISCOVERY_HEADER + entries.len() * DISCOVERY_ENTRY];
    put_u64(&mut page, 0, generation);
    put_u64(&mut page, 8, entries.len() as u64);
    for (entry, bytes) in entries
        .iter()
        .zip(page[DISCOVERY_HEADER..].chunks_exact_mut(DISCOVERY_ENTRY))
    {
        bytes[0] = 3; // TCP
        bytes[1] = if entry.is_ipv6 { 2 } else { 1 };
        bytes[2] = 2; // an NVM subsystem
        bytes[3] = 2; // no secure channel
        put_u16(bytes, 4, 1);
        put_u16(bytes, 6, DYNAMIC_CONTROLLER);
        put_u16(bytes, 8, 32);
        put_text(bytes, 32, 32, &entry.port, b' ');
        put_text(bytes, 256, NQN_BYTES_MAX, &entry.subsystem, 0);
        put_text(bytes, 512, 256, &entry.address, b' ');
        put_u32(bytes, 768, 0); // no TLS
    }
    page
}

/// Entries for NVMe/TCP of a discovery log page; at most 64 are read. `None` if the page is shorter than it says.
pub fn parse_discovery_log(page: &[u8]) -> Option<Vec<DiscoveryEntry>> {
    if page.len() < DISCOVERY_HEADER {
        return None;
    }
    let count = usize::try_from(u64_at(page, 8))
        .ok()?
        .min(DISCOVERY_ENTRIES_MAX);
    let entries = page.get(DISCOVERY_HEADER..DISCOVERY_HEADER + count * DISCOVERY_ENTRY)?;
    let of_tcp = |bytes: &&[u8]| bytes[0] == 3 && bytes[2] == 2;
    let entries = entries.chunks_exact(DISCOVERY_ENTRY).filter(of_tcp);
    Some(
        entries
            .map(|bytes| DiscoveryEntry {
                subsystem: text_at(bytes, 256, NQN_FIELD),
                address: text_at(bytes, 512, 256),
                port: text_at(bytes, 32, 32),
                is_ipv6: bytes[1] == 2,
            })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets of SPDK's `struct spdk_nvmf_fabric_connect_cmd` and `spdk_nvmf_fabric_connect_data`.
    #[test]
    fn connect_has_the_bytes_of_the_specification() {
        let fields = ConnectFields {
            format: 0,
            queue: 2,
            size: 127,
            attributes: 4,
            keep_alive_ms: 120_000,
        };
        let bytes = fields.command().encode();
        assert_eq!(bytes[0], 0x7f);
        assert_eq!(bytes[4], 0x01);
        assert_eq!(
            &bytes[24..40],
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1]
        );
        assert_eq!(
            &bytes[40..52],
            &[0, 0, 2, 0, 127, 0, 4, 0, 0xc0, 0xd4, 1, 0]
        );
        assert_eq!(ConnectFields::of(&Command::decode(&bytes)), fields);

        let data = ConnectData {
            host_id: [7; 16],
            controller: 0xffff,
            subsystem: DISCOVERY_NQN.into(),
            host: "nqn.2014-08.org.nvmexpress:uuid:0".into(),
        };
        let bytes = data.encode();
        assert_eq!(&bytes[14..19], &[7, 7, 0xff, 0xff, 0]);
        assert_eq!(&bytes[256..261], b"nqn.2");
        assert_eq!(&bytes[512..516], b"nqn.");
        assert_eq!(ConnectData::decode(&bytes), Ok(data));
    }

    #[test]
    fn a_name_that_does_not_end_is_refused_with_its_place() {
        let mut bytes = [b'a'; CONNECT_DATA_BYTES];
        assert_eq!(ConnectData::decode(&bytes), Err(256));
        bytes[300] = 0;
        assert_eq!(ConnectData::decode(&bytes), Err(512));
        bytes[512] = 0;
        assert_eq!(ConnectData::decode(&bytes), Err(512), "an empty name");
        bytes[512] = b'\n';
        bytes[513] = 0;
        assert_eq!(ConnectData::decode(&bytes), Err(512), "not printable");
    }

    #[test]
    fn the_discovery_log_is_read_back_and_a_short_one_refused() {
        let entries = vec![DiscoveryEntry {
            subsystem: "nqn.2026-01.org.proofmill:zkpu:1".into(),
            address: "127.0.0.1".into(),
            port: "4420".into(),
            is_ipv6: false,
        }];
        let page = discovery_log(1, &entries);
        assert_eq!(page.len(), 2048);
        assert_eq!(&page[1024..1034], &[3, 1, 2, 2, 1, 0, 0xff, 0xff, 32, 0]);
        assert_eq!(parse_discovery_log(&page), Some(entries));
        assert_eq!(parse_discovery_log(&page[..2047]), None);
        assert_eq!(parse_discovery_log(&page[..1023]), None);
    }
}
