//! Data of a command, as its fields tell it.
//!
//! A circuit moves data by the host's pages and takes the length from the command, while a fabric's host also writes the
//! length into the SGL. Both must agree before a command reaches the circuit, which would otherwise read or write past
//! the pages.

use crate::nvme::opcode::{admin, memory, nvm, program};
use crate::nvme::{Command, IDENTIFY_BYTES};

const NSID_BLOCKS: u32 = 1;
const NSID_MEMORY: u32 = 2;
const NSID_PROGRAMS: u32 = 3;
const RANGE_BYTES: u64 = 32;
/// Ranges of Execute Program, and those of a set at most.
const EXECUTE_RANGES: u64 = 3;
const RANGES_MAX: u64 = 4;
const BLOCK_LOG: u32 = 9;

/// Bytes of data of a command on the admin queue or an I/O queue; `None` for a command that the firmware refuses before
/// it touches data.
pub(super) fn data_bytes(is_admin: bool, command: &Command) -> Option<u64> {
    match (is_admin, command.nsid) {
        (true, _) => of_admin(command),
        (false, NSID_BLOCKS) => of_blocks(command),
        (false, NSID_MEMORY) => of_memory(command),
        (false, NSID_PROGRAMS) => of_programs(command),
        _ => None,
    }
}

fn of_admin(command: &Command) -> Option<u64> {
    let [low, high, ..] = command.cdw10;
    match command.opcode {
        admin::IDENTIFY => Some(IDENTIFY_BYTES as u64),
        admin::GET_LOG_PAGE => {
            Some(((u64::from(high & 0xffff) << 16 | u64::from(low >> 16)) + 1) * 4)
        }
        admin::ABORT | admin::SET_FEATURES | admin::GET_FEATURES | admin::EVENT_REQUEST => Some(0),
        admin::RANGE_SET_MANAGEMENT if low & 15 == 0 => {
            let ranges = u64::from(high & 0xff);
            (1..=RANGES_MAX)
                .contains(&ranges)
                .then_some(ranges * RANGE_BYTES)
        }
        admin::RANGE_SET_MANAGEMENT if low & 15 == 1 => Some(0),
        _ => None,
    }
}

fn of_blocks(command: &Command) -> Option<u64> {
    match command.opcode {
        nvm::READ | nvm::WRITE => Some(u64::from((command.cdw10[2] & 0xffff) + 1) << BLOCK_LOG),
        nvm::FLUSH | nvm::START | nvm::WAIT | nvm::CANCEL | nvm::SET_BASE => Some(0),
        _ => None,
    }
}

fn of_memory(command: &Command) -> Option<u64> {
    match command.opcode {
        memory::READ | memory::WRITE => Some(command.cdw10[2].into()),
        memory::FILL => Some(0),
        _ => None,
    }
}

fn of_programs(command: &Command) -> Option<u64> {
    if command.opcode != program::EXECUTE {
        return None;
    }
    let (range_set, ranges, bytes) = (
        command.cdw2[0] >> 16,
        command.cdw2[1],
        command.metadata as u32,
    );
    match (range_set, ranges, u64::from(bytes)) {
        (0, 3, 96) => Some(EXECUTE_RANGES * RANGE_BYTES),
        (1.., _, 0) => Some(0),
        _ => None,
    }
}
