//! The discovery controller: it tells hosts where the subsystem is.

use crate::nvme::opcode::{admin, feature, log};
use crate::nvme::{
    Capabilities, Command, Configuration, ControllerStatus, DISCOVERY_NQN, DiscoveryEntry, Fabrics,
    IDENTIFY_BYTES, IdentifyController, Status, discovery_log, property,
};

/// A discovery controller of one connection.
#[derive(Debug, Default)]
pub(super) struct Discovery {
    configuration: Configuration,
    status: ControllerStatus,
    keep_alive_ms: u32,
    /// Event requests that are held; none is ever answered, since the entries do not change.
    requests: u8,
}

/// Largest part of a log page that one command reads.
const LOG_BYTES_MAX: u64 = 1 << 16;
const REQUESTS_MAX: u8 = 4;
const CONTROLLER_OF_NVM: u32 = 1;

/// The end of a discovery command: dword 0 and data, or `None` for a request that is held.
type Answer = Option<(u32, Vec<u8>)>;

impl Discovery {
    pub(super) fn property(&self, offset: u32, is_wide: bool) -> Result<u64, Status> {
        Ok(match (offset, is_wide) {
            // The discovery controller has the NVM bit alone: other sets have no meaning for it.
            (property::CAP, true) => Capabilities::new(32, 20).0 & !(0x40 << 37),
            (property::VS, false) => 0x0002_0000,
            (property::CC, false) => self.configuration.0.into(),
            (property::CSTS, false) => self.status.0.into(),
            _ => return Err(Status::CONNECT_INVALID_PARAMETERS),
        })
    }

    pub(super) fn set_property(
        &mut self,
        offset: u32,
        is_wide: bool,
        value: u64,
    ) -> Result<(), Status> {
        if offset != property::CC || is_wide {
            return Err(Status::CONNECT_INVALID_PARAMETERS);
        }
        self.configuration = Configuration(value as u32);
        self.status.0 = match self.configuration.is_enabled() {
            true => ControllerStatus::READY,
            false => 0,
        };
        if self.configuration.shutdown() != 0 {
            self.status.0 |= ControllerStatus::SHUT_DOWN;
        }
        Ok(())
    }

    /// Bytes of data of a command.
    pub(super) fn plan(&self, command: &Command) -> Result<u32, Status> {
        if !self.status.has(ControllerStatus::READY) {
            return Err(Status::COMMAND_SEQUENCE_ERROR);
        }
        match command.opcode {
            admin::IDENTIFY => Ok(IDENTIFY_BYTES as u32),
            admin::GET_LOG_PAGE => {
                let [low, high, ..] = command.cdw10;
                let bytes =
                    (u64::from(high & 0xffff) << 16 | u64::from(low >> 16)).saturating_add(1) * 4;
                if bytes > LOG_BYTES_MAX {
                    return Err(Status::INVALID_FIELD);
                }
                Ok(bytes as u32)
            }
            admin::KEEP_ALIVE
            | admin::SET_FEATURES
            | admin::GET_FEATURES
            | admin::EVENT_REQUEST => Ok(0),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// Executes a command that [`plan`](Self::plan) has let through.
    pub(super) fn execute(
        &mut self,
        command: &Command,
        entries: &[DiscoveryEntry],
        length: u32,
    ) -> Result<Answer, Status> {
        let [selector, value, low, high, ..] = command.cdw10;
        match command.opcode {
            admin::IDENTIFY if selector & 0xff == CONTROLLER_OF_NVM => {
                Ok(Some((0, identify().encode())))
            }
            admin::IDENTIFY => Err(Status::INVALID_FIELD),
            admin::GET_LOG_PAGE if selector as u8 == log::DISCOVERY => {
                let offset = u64::from(low) | u64::from(high) << 32;
                let page = discovery_log(1, entries);
                let rest = usize::try_from(offset)
                    .ok()
                    .and_then(|offset| page.get(offset..));
                let mut answer = rest.ok_or(Status::INVALID_FIELD)?.to_vec();
                answer.resize(length as usize, 0);
                Ok(Some((0, answer)))
            }
            admin::GET_LOG_PAGE => Err(Status::INVALID_LOG_PAGE),
            admin::KEEP_ALIVE => Ok(Some((0, Vec::new()))),
            admin::SET_FEATURES if selector as u8 == feature::KEEP_ALIVE => {
                self.keep_alive_ms = value;
                Ok(Some((0, Vec::new())))
            }
            admin::GET_FEATURES if selector as u8 == feature::KEEP_ALIVE => {
                Ok(Some((self.keep_alive_ms, Vec::new())))
            }
            admin::EVENT_REQUEST if self.requests < REQUESTS_MAX => {
                self.requests += 1;
                Ok(None)
            }
            admin::EVENT_REQUEST => Err(Status::EVENT_LIMIT_EXCEEDED),
            _ => Err(Status::INVALID_FIELD),
        }
    }
}

fn identify() -> IdentifyController {
    IdentifyController {
        serial: String::new(),
        model: "Proofmill discovery".into(),
        firmware: "1.0".into(),
        mdts: 4,
        controller: CONTROLLER_OF_NVM as u16,
        version: 0x0002_0000,
        kind: 2,
        commands_max: 32,
        namespaces: 0,
        subsystem: DISCOVERY_NQN.into(),
        fabrics: Some(Fabrics {
            keep_alive_units: 10,
            command_capsule: 4,
            response_capsule: 1,
        }),
        zkpu: None,
    }
}
