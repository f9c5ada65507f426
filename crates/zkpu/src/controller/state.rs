//! The controller's state, and the way of a command through it.

use std::collections::VecDeque;

use crate::controller::device::MsmDevice;
use crate::controller::events::Events;
use crate::controller::features::Features;
use crate::controller::jobs::Jobs;
use crate::controller::programs::RangeSet;
use crate::nvme::zkpu::{Counters, Shape, ZkpuCapability};
use crate::nvme::{Command, Configuration, ControllerStatus, ErrorEntry, Status, opcode};

/// Queues: the admin queue and four for I/O.
pub const QUEUES_MAX: u16 = 5;
/// Entries of the largest queue.
pub const QUEUE_ENTRIES_MAX: u16 = 256;

pub(super) const BASE_SETS: usize = 16;
pub(super) const RANGE_SETS: usize = 16;
/// Entries of the error log.
pub(super) const ERRORS: usize = 16;
/// Namespaces.
pub(super) const NSID_BLOCKS: u32 = 1;
pub(super) const NSID_MEMORY: u32 = 2;
pub(super) const NSID_PROGRAMS: u32 = 3;

/// A controller over a device.
#[derive(Debug)]
pub struct Controller<D> {
    pub(super) device: D,
    pub(super) configuration: Configuration,
    pub(super) status: ControllerStatus,
    /// CC.CSS selects all command sets: namespaces 2 and 3 exist.
    pub(super) all_sets: bool,
    pub(super) features: Features,
    pub(super) events: Events,
    pub(super) jobs: Jobs,
    pub(super) bases: [Option<BaseSet>; BASE_SETS],
    pub(super) range_sets: [Option<RangeSet>; RANGE_SETS],
    pub(super) program_active: bool,
    pub(super) counters: Counters,
    /// Code of the fault that fences the device; 0 = none.
    pub(super) fault: u8,
    pub(super) errors: VecDeque<ErrorEntry>,
    pub(super) errors_logged: u64,
    /// Fields of Identify that belong to the transport.
    pub(super) fabrics: crate::nvme::Fabrics,
    pub(super) queue_entries: u16,
    replies: VecDeque<Reply>,
}

/// A command's completion, and the data it gives to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Queue.
    pub queue: u16,
    /// Command identifier.
    pub cid: u16,
    /// Status.
    pub status: Status,
    /// Dwords 0 and 1.
    pub result: [u32; 2],
    /// Data for the host; empty unless the command succeeded.
    pub data: Vec<u8>,
}

/// A numbered table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BaseSet {
    /// First byte.
    pub(super) table: u64,
    pub(super) count: u32,
    pub(super) shape: Shape,
}

/// The result of a command that has ended.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) result: [u32; 2],
    pub(super) data: Vec<u8>,
}

/// The state of a command: it has ended, or its reply comes later.
pub(super) type Executed = Result<Option<Answer>, Status>;

/// Answers a command at once without data.
pub(super) fn done(result: u32) -> Executed {
    Ok(Some(Answer {
        result: [result, 0],
        data: Vec::new(),
    }))
}

/// Answers a command at once with data.
pub(super) fn data(data: Vec<u8>) -> Executed {
    Ok(Some(Answer {
        result: [0, 0],
        data,
    }))
}

impl<D: MsmDevice> Controller<D> {
    /// A controller that is powered on and disabled. `fabrics` and `queue_entries` are what its transport reports in
    /// Identify.
    pub fn new(device: D, fabrics: crate::nvme::Fabrics, queue_entries: u16) -> Self {
        Self {
            device,
            configuration: Configuration::default(),
            status: ControllerStatus::default(),
            all_sets: false,
            features: Features::default(),
            events: Events::default(),
            jobs: Jobs::default(),
            bases: [None; BASE_SETS],
            range_sets: [const { None }; RANGE_SETS],
            program_active: true,
            counters: Counters::default(),
            fault: 0,
            errors: VecDeque::with_capacity(ERRORS),
            errors_logged: 0,
            fabrics,
            queue_entries,
            replies: VecDeque::new(),
        }
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device, to be changed from outside: a simulation's faults.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Counters since power-on.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The capabilities in Identify Controller.
    pub fn capability(&self) -> ZkpuCapability {
        let device = self.device.description();
        let functional = if device.is_functional {
            ZkpuCapability::FUNCTIONAL_MODEL
        } else {
            0
        };
        ZkpuCapability {
            version: crate::nvme::zkpu::PROTOCOL_VERSION,
            flags: ZkpuCapability::MEMORY_PERSONALITY
                | ZkpuCapability::COMPUTE_PERSONALITY
                | ZkpuCapability::PRECOMPUTE
                | functional,
            curves: ZkpuCapability::BLS12_377_G1,
            count_max: device.count_max,
            memory_bytes: device.memory_bytes,
            adders: device.adders,
            window_min: device.window_min,
            window_max: device.window_max,
            levels_max: device.levels_max,
            jobs_live_max: Jobs::LIVE_MAX as u16,
            jobs: Jobs::SLOTS as u16,
            base_sets_max: BASE_SETS as u16,
            range_sets_max: RANGE_SETS as u16,
            clock_khz: device.clock_khz,
            power_on_id: device.power_on_id,
        }
    }

    /// Name of the subsystem.
    pub fn subsystem(&self) -> String {
        format!(
            "nqn.2026-01.org.proofmill:zkpu:{}",
            self.device.description().serial
        )
    }

    /// Whether commands other than Fabrics' are taken.
    pub fn is_ready(&self) -> bool {
        self.status.has(ControllerStatus::READY) && !self.status.has(ControllerStatus::SHUT_DOWN)
    }

    /// Whether jobs are queued or running, so that [`poll`](Self::poll) must be called.
    pub fn is_busy(&self) -> bool {
        self.jobs.live() > 0
    }

    /// Bytes of data of a command, checked as far as that is possible without them.
    ///
    /// # Errors
    ///
    /// The status that the command ends with.
    pub fn plan(&self, queue: u16, command: &Command) -> Result<u32, Status> {
        if !self.is_ready() {
            return Err(Status::COMMAND_SEQUENCE_ERROR);
        }
        if self.jobs.has_waiter(queue, command.cid) {
            return Err(Status::COMMAND_ID_CONFLICT);
        }
        match queue {
            0 => self.plan_admin(command),
            _ => self.plan_io(command),
        }
    }

    /// Executes a command whose data has come. The reply is among [`next_reply`](Self::next_reply)'s, now or after a
    /// [`poll`](Self::poll).
    pub fn execute(&mut self, queue: u16, command: &Command, data: &[u8]) {
        self.counters.bytes_from_host += data.len() as u64;
        // The plan is the first part of the checks; it also guards what follows against data of another length.
        let executed = match self.plan(queue, command) {
            Err(status) => Err(status),
            Ok(length) if command.opcode & 1 == 1 && length as usize != data.len() => {
                Err(Status::DATA_SGL_LENGTH_INVALID)
            }
            Ok(_) if queue == 0 => self.execute_admin(command, data),
            Ok(_) => self.execute_io(queue, command, data),
        };
        match executed {
            Ok(None) => {}
            Ok(Some(answer)) => self.reply(Reply {
                queue,
                cid: command.cid,
                status: Status::SUCCESS,
                result: answer.result,
                data: answer.data,
            }),
            Err(status) => self.refuse(queue, command, status),
        }
        self.poll();
    }

    /// Ends a command with an error, and records it.
    pub fn refuse(&mut self, queue: u16, command: &Command, status: Status) {
        self.record_error(queue, command, status);
        self.reply(Reply {
            queue,
            cid: command.cid,
            status,
            result: [0, 0],
            data: Vec::new(),
        });
    }

    /// Moves jobs and events on. To be called now and then while [`is_busy`](Self::is_busy).
    pub fn poll(&mut self) {
        self.poll_jobs();
        self.deliver_events();
    }

    /// The next reply, in the order in which commands ended.
    pub fn next_reply(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    /// An I/O queue is gone: jobs that its commands wait for are cancelled, without replies.
    pub fn delete_queue(&mut self, queue: u16) {
        self.abort_waiters(queue, Status::ABORTED_SQ_DELETION);
        self.replies.retain(|reply| reply.queue != queue);
    }

    /// The host is gone: as a controller reset.
    pub fn end_association(&mut self) {
        self.reset();
        self.features.keep_alive_ms = 0;
        self.configuration = Configuration::default();
        self.status = ControllerStatus::default();
    }

    pub(super) fn reply(&mut self, reply: Reply) {
        self.counters.commands += 1;
        if !reply.status.is_success() {
            self.counters.commands_failed += 1;
        }
        self.counters.bytes_to_host += reply.data.len() as u64;
        self.replies.push_back(reply);
    }

    pub(super) fn forget_replies(&mut self) {
        self.replies.clear();
    }

    fn record_error(&mut self, queue: u16, command: &Command, status: Status) {
        self.errors_logged += 1;
        self.errors.truncate(ERRORS - 1);
        self.errors.push_front(ErrorEntry {
            number: self.errors_logged,
            queue,
            cid: command.cid,
            status: status.field(),
            lba: if command.nsid == NSID_BLOCKS {
                command.wide10()
            } else {
                0
            },
            nsid: command.nsid,
        });
    }

    pub(super) fn namespace_exists(&self, nsid: u32) -> bool {
        nsid == NSID_BLOCKS || (self.all_sets && (NSID_BLOCKS..=NSID_PROGRAMS).contains(&nsid))
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.device.description().memory_bytes
    }

    /// Whether an area lies in memory.
    pub(super) fn is_in_memory(&self, first: u64, length: u64) -> bool {
        let memory = self.memory_bytes();
        first <= memory && length <= memory - first
    }
}

/// The command set of a namespace.
pub(super) fn namespace_set(nsid: u32) -> u8 {
    match nsid {
        NSID_MEMORY => opcode::set::MEMORY,
        NSID_PROGRAMS => opcode::set::PROGRAMS,
        _ => opcode::set::NVM,
    }
}
