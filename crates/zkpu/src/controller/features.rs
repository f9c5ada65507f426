//! Features: values that the host sets and reads.

use crate::controller::device::MsmDevice;
use crate::controller::state::{Controller, Executed, QUEUES_MAX, done};
use crate::nvme::opcode::feature;
use crate::nvme::{Command, Status};

/// Standard features whose value is kept and given back.
const KEPT: [u8; 9] = [0x01, 0x02, 0x04, 0x05, 0x08, 0x09, 0x0a, 0x0b, 0x19];
const TEMPERATURE_THRESHOLD: u8 = 0x04;
const POWER_MANAGEMENT: u8 = 0x02;
const INTERRUPT_VECTOR: u8 = 0x09;
const COMMAND_SET_PROFILE: u8 = 0x19;
/// I/O submission and completion queues, each less one.
const QUEUES: u32 = (QUEUES_MAX as u32 - 2) << 16 | (QUEUES_MAX as u32 - 2);

/// Current values.
#[derive(Clone, Debug)]
pub(super) struct Features {
    kept: [u32; KEPT.len()],
    pub(super) events_enabled: bool,
    /// Job timeout in units of 2^20 cycles; 0 = by the number of points.
    pub(super) job_timeout_units: u32,
    /// Keep alive timeout in milliseconds; 0 = none.
    pub(super) keep_alive_ms: u32,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            kept: KEPT.map(|id| initial(id).unwrap_or(0)),
            events_enabled: true,
            job_timeout_units: 0,
            keep_alive_ms: 0,
        }
    }
}

/// The default of a feature; `None` for one that does not exist.
fn initial(id: u8) -> Option<u32> {
    match id {
        TEMPERATURE_THRESHOLD => Some(358),
        feature::QUEUES => Some(QUEUES),
        feature::EVENTS => Some(1),
        feature::JOB_TIMEOUT | feature::KEEP_ALIVE => Some(0),
        _ => KEPT.contains(&id).then_some(0),
    }
}

impl Features {
    fn kept(&mut self, id: u8) -> Option<&mut u32> {
        let at = KEPT.iter().position(|kept| *kept == id)?;
        self.kept.get_mut(at)
    }
}

impl<D: MsmDevice> Controller<D> {
    /// Keep alive timeout in milliseconds; 0 = none. The transport watches it.
    pub fn keep_alive_ms(&self) -> u32 {
        self.features.keep_alive_ms
    }

    /// Sets the keep alive timeout, as Connect does.
    pub fn set_keep_alive_ms(&mut self, timeout_ms: u32) {
        self.features.keep_alive_ms = timeout_ms;
    }

    pub(super) fn set_feature(&mut self, command: &Command) -> Executed {
        let [selector, value, ..] = command.cdw10;
        let id = selector as u8;
        if initial(id).is_none() {
            return Err(Status::INVALID_FIELD);
        }
        if selector >> 31 == 1 {
            return Err(Status::FEATURE_NOT_SAVEABLE);
        }
        let is_invalid = match id {
            feature::QUEUES => value & 0xffff == 0xffff || value >> 16 == 0xffff,
            POWER_MANAGEMENT => value & 31 != 0,
            COMMAND_SET_PROFILE => value & 0x1ff != 0,
            _ => false,
        };
        if is_invalid {
            return Err(Status::INVALID_FIELD);
        }
        match id {
            feature::QUEUES => return done(QUEUES),
            feature::EVENTS => self.features.events_enabled = value & 1 == 1,
            feature::JOB_TIMEOUT => self.features.job_timeout_units = value,
            feature::KEEP_ALIVE => self.features.keep_alive_ms = value,
            _ => {
                if let Some(kept) = self.features.kept(id) {
                    *kept = value;
                }
            }
        }
        done(0)
    }

    pub(super) fn get_feature(&mut self, command: &Command) -> Executed {
        let [selector, vector, ..] = command.cdw10;
        let (id, select) = (selector as u8, selector >> 8 & 7);
        let initial = initial(id).ok_or(Status::INVALID_FIELD)?;
        let current = match id {
            feature::QUEUES => QUEUES,
            feature::EVENTS => self.features.events_enabled.into(),
            feature::JOB_TIMEOUT => self.features.job_timeout_units,
            feature::KEEP_ALIVE => self.features.keep_alive_ms,
            _ => self.features.kept(id).map_or(0, |value| *value),
        };
        match select {
            0 if id == INTERRUPT_VECTOR => done(current & !0xffff | vector & 0xffff),
            0 => done(current),
            1 | 2 => done(initial),
            // Changeable, not saveable, not for each namespace.
            3 => done(4),
            _ => Err(Status::INVALID_FIELD),
        }
    }
}
