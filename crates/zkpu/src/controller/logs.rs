//! Log pages.

use crate::bytes::put_u32;
use crate::controller::device::MsmDevice;
use crate::controller::state::{Controller, ERRORS, Executed, data};
use crate::nvme::opcode::{admin, log, memory, nvm, program, set};
use crate::nvme::zkpu::{Event, JobTable, ZkpuHealth};
use crate::nvme::{Command, HealthLog, Status, error_log, firmware_log};

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
            log::EFFECTS => effects_log((command.cdw10[4] >> 24) as u8)?,
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

/// Log page 05h of a command set: bit 0 of a command's dword tells that there is one, bit 1 that it changes blocks. Linux
/// makes a device of a namespace only where this page answers for its command set.
fn effects_log(command_set: u8) -> Result<Vec<u8>, Status> {
    const ADMIN: [u8; 10] = [
        admin::GET_LOG_PAGE,
        admin::IDENTIFY,
        admin::ABORT,
        admin::SET_FEATURES,
        admin::GET_FEATURES,
        admin::EVENT_REQUEST,
        admin::KEEP_ALIVE,
        admin::LOAD_PROGRAM,
        admin::PROGRAM_ACTIVATION,
        admin::RANGE_SET_MANAGEMENT,
    ];
    let of_set: &[u8] = match command_set {
        set::NVM => &[
            nvm::FLUSH,
            nvm::WRITE,
            nvm::READ,
            nvm::START,
            nvm::WAIT,
            nvm::CANCEL,
            nvm::SET_BASE,
        ],
        set::MEMORY => &[memory::FILL, memory::READ, memory::WRITE],
        set::PROGRAMS => &[program::EXECUTE],
        _ => return Err(Status::INVALID_FIELD),
    };
    let mut page = vec![0; 4096];
    for opcode in ADMIN {
        put_u32(&mut page, usize::from(opcode) * 4, 1);
    }
    for opcode in of_set {
        let changes_blocks = command_set == set::NVM && *opcode == nvm::WRITE;
        let effects = 1 | u32::from(changes_blocks) << 1;
        put_u32(&mut page, 1024 + usize::from(*opcode) * 4, effects);
    }
    Ok(page)
}
