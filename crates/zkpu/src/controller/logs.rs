//! Log pages.

use crate::controller::device::MsmDevice;
use crate::controller::state::{Controller, ERRORS, Executed, data};
use crate::nvme::opcode::log;
use crate::nvme::zkpu::{Event, JobTable, ZkpuHealth};
use crate::nvme::{Command, HealthLog, Status, effects_log, error_log, firmware_log};

/// Version of this controller, as log page C0h gives it.
const FIRMWARE_VERSION: u32 = 0x0001_0000;
const RETAIN_EVENT: u32 = 1 << 15;

impl<D: MsmDevice> Controller<D> {
    /// The page from an offset on, then zeros up to `length`, which was checked against the largest transfer.
    pub(super) fn get_log(&mut self, command: &Command, length: u64) -> Executed {
        let [selector, _, low, high, ..] = command.cdw10;
        let offset = u64::from(low) | u64::from(high) << 32;
        if offset & 3 != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let id = selector as u8;
        let page = match id {
            log::ERRORS => error_log(self.errors.iter(), ERRORS),
            log::HEALTH => self.health_log().encode(),
            log::FIRMWARE => firmware_log(&self.device.description().firmware),
            log::EFFECTS => {
                effects_log((command.cdw10[4] >> 24) as u8).ok_or(Status::INVALID_COMMAND_SET)?
            }
            log::ZKPU => self.health().encode(),
            log::JOBS => self.job_table().encode(),
            _ => return Err(Status::INVALID_LOG_PAGE),
        };
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| page.get(offset..));
        let mut answer = rest.ok_or(Status::INVALID_FIELD)?.to_vec();
        answer.resize(
            usize::try_from(length).map_err(|_| Status::INVALID_FIELD)?,
            0,
        );
        if selector & RETAIN_EVENT == 0 {
            match id {
                log::JOBS => {
                    self.events.clear(Event::JobsEnded);
                    self.jobs.clear_ends();
                }
                log::ZKPU => self.events.clear(Event::Fault),
                _ => {}
            }
        }
        data(answer)
    }

    fn health_log(&self) -> HealthLog {
        HealthLog {
            is_fenced: self.fault != 0,
            bytes_read: self.counters.bytes_to_host,
            bytes_written: self.counters.bytes_from_host,
            errors: self.errors_logged,
        }
    }

    /// Log page C0h.
    pub fn health(&self) -> ZkpuHealth {
        let used = |count: usize| u8::try_from(count).unwrap_or(u8::MAX);
        ZkpuHealth {
            is_busy: self.jobs.is_running(),
            is_fenced: self.fault != 0,
            fault: self.fault,
            firmware: FIRMWARE_VERSION,
            power_on_id: self.device.description().power_on_id,
            cycles: self.device.cycles(),
            counters: self.counters,
            jobs_live: used(self.jobs.live()),
            base_sets: used(self.bases.iter().flatten().count()),
            range_sets: used(self.range_sets.iter().flatten().count()),
        }
    }

    /// Log page C1h.
    pub fn job_table(&self) -> JobTable {
        self.jobs.table(self.device.description().power_on_id)
    }
}
