//! Admin commands.

use crate::controller::device::MsmDevice;
use crate::controller::state::{Controller, Executed, NSID_PROGRAMS, Reply, done};
use crate::nvme::opcode::admin;
use crate::nvme::zkpu::TRANSFER_BYTES_MAX;
use crate::nvme::{Command, IDENTIFY_BYTES, Status};

impl<D: MsmDevice> Controller<D> {
    pub(super) fn plan_admin(&self, command: &Command) -> Result<u32, Status> {
        match command.opcode {
            admin::GET_LOG_PAGE => {
                let bytes = log_bytes(command);
                if bytes > TRANSFER_BYTES_MAX.into() {
                    return Err(Status::INVALID_FIELD);
                }
                Ok(bytes as u32)
            }
            admin::IDENTIFY => Ok(IDENTIFY_BYTES as u32),
            admin::ABORT
            | admin::SET_FEATURES
            | admin::GET_FEATURES
            | admin::EVENT_REQUEST
            | admin::KEEP_ALIVE => Ok(0),
            admin::LOAD_PROGRAM | admin::PROGRAM_ACTIVATION | admin::RANGE_SET_MANAGEMENT => {
                if command.nsid != NSID_PROGRAMS || !self.namespace_exists(NSID_PROGRAMS) {
                    return Err(Status::INVALID_NAMESPACE);
                }
                match command.opcode {
                    admin::RANGE_SET_MANAGEMENT => self.plan_range_set(command),
                    admin::LOAD_PROGRAM if command.cdw10[0] & 0xffff == 1 => {
                        Err(Status::PROGRAM_NOT_DOWNLOADABLE)
                    }
                    admin::LOAD_PROGRAM => Err(Status::INVALID_PROGRAM_INDEX),
                    _ => Ok(0),
                }
            }
            // Queues are created by Connect.
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    pub(super) fn execute_admin(&mut self, command: &Command, data: &[u8]) -> Executed {
        match command.opcode {
            admin::GET_LOG_PAGE => self.get_log(command, log_bytes(command)),
            admin::IDENTIFY => self.identify(command),
            admin::ABORT => self.abort(command),
            admin::SET_FEATURES => self.set_feature(command),
            admin::GET_FEATURES => self.get_feature(command),
            admin::EVENT_REQUEST => self.request_event(command.cid),
            admin::KEEP_ALIVE => done(0),
            admin::PROGRAM_ACTIVATION => self.activate_program(command),
            admin::RANGE_SET_MANAGEMENT => self.manage_range_set(command, data),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// Dword 0 of the answer: 0 = aborted, 1 = not.
    fn abort(&mut self, command: &Command) -> Executed {
        let target = command.cdw10[0];
        let (queue, cid) = (target as u16, (target >> 16) as u16);
        let is_aborted = match queue {
            0 if self.events.abort(cid) => {
                self.reply(Reply {
                    queue: 0,
                    cid,
                    status: Status::ABORT_REQUESTED,
                    result: [0, 0],
                    data: Vec::new(),
                });
                true
            }
            0 => false,
            _ => self.abort_waiter(queue, cid, Status::ABORT_REQUESTED),
        };
        done(u32::from(!is_aborted))
    }
}

/// Bytes that a Get Log Page asks for.
fn log_bytes(command: &Command) -> u64 {
    let [low, high, ..] = command.cdw10;
    (u64::from(high & 0xffff) << 16 | u64::from(low >> 16)).saturating_add(1) * 4
}
