//! Commands of I/O queues: blocks, bytes, and the ZKPU commands of the memory personality.

use crate::controller::device::{CoreJob, MsmDevice, Work};
use crate::controller::jobs::{Request, Use, WaiterKind};
use crate::controller::state::{
    BaseSet, Controller, Executed, NSID_BLOCKS, NSID_MEMORY, data, done,
};
use crate::nvme::opcode::{memory, nvm, program};
use crate::nvme::zkpu::{BLOCK_BYTES, JobEntry, JobState, Shape, TRANSFER_BYTES_MAX};
use crate::nvme::{Command, Status};

/// Protection information and its checks: namespace 1 has none.
const PROTECTION: u32 = 0x3c00_0000;
/// Bits of dword 14 that must be zero in Start and in Set Base.
const START_RESERVED: u32 = 0xf800_e0e0;
const SET_BASE_RESERVED: u32 = 0xff00_e0e0;
const PRECOMPUTE_RESERVED: u32 = 0xfe00_e0e0;

impl<D: MsmDevice> Controller<D> {
    pub(super) fn plan_io(&self, command: &Command) -> Result<u32, Status> {
        if !self.namespace_exists(command.nsid) {
            return Err(Status::INVALID_NAMESPACE);
        }
        match (command.nsid, command.opcode) {
            (
                NSID_BLOCKS,
                nvm::FLUSH | nvm::START | nvm::WAIT | nvm::CANCEL | nvm::SET_BASE | nvm::PRECOMPUTE,
            ) => Ok(0),
            (NSID_BLOCKS, nvm::READ | nvm::WRITE) => Ok(self.blocks(command)?.1),
            (NSID_MEMORY, memory::FILL) => self.bytes(command).map(|_| 0),
            (NSID_MEMORY, memory::READ | memory::WRITE) => {
                let (_, length) = self.bytes(command)?;
                u32::try_from(length).map_err(|_| Status::INVALID_FIELD)
            }
            (NSID_BLOCKS | NSID_MEMORY, _) => Err(Status::INVALID_OPCODE),
            (_, program::EXECUTE) => self.plan_execute(command),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    pub(super) fn execute_io(
        &mut self,
        queue: u16,
        command: &Command,
        from_host: &[u8],
    ) -> Executed {
        match (command.nsid, command.opcode) {
            (NSID_BLOCKS, nvm::FLUSH) => done(0),
            (NSID_BLOCKS, nvm::READ) => {
                let (first, length) = self.blocks(command)?;
                self.read(first, length)
            }
            (NSID_BLOCKS, nvm::WRITE) => {
                let (first, _) = self.blocks(command)?;
                self.write(first, from_host)
            }
            (NSID_BLOCKS, nvm::START) => self.start(queue, command),
            (NSID_BLOCKS, nvm::WAIT) => self.wait(queue, command),
            (NSID_BLOCKS, nvm::CANCEL) => self.cancel(command),
            (NSID_BLOCKS, nvm::SET_BASE) => self.set_base(command),
            (NSID_BLOCKS, nvm::PRECOMPUTE) => self.precompute(queue, command),
            (NSID_MEMORY, memory::READ) => {
                let (first, length) = self.bytes(command)?;
                self.read(first, length as u32)
            }
            (NSID_MEMORY, memory::WRITE) => {
                let (first, _) = self.bytes(command)?;
                self.write(first, from_host)
            }
            (NSID_MEMORY, memory::FILL) => {
                let (first, length) = self.bytes(command)?;
                let filled = self.device.fill(first, length);
                filled.map_err(|_| Status::INTERNAL_ERROR)?;
                done(0)
            }
            (_, program::EXECUTE) => self.execute_program(queue, command, from_host),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// First byte and length of a Read or Write of blocks.
    fn blocks(&self, command: &Command) -> Result<(u64, u32), Status> {
        let count = (command.cdw10[2] & 0xffff) + 1;
        if command.cdw10[2] & PROTECTION != 0 || count > TRANSFER_BYTES_MAX / BLOCK_BYTES as u32 {
            return Err(Status::INVALID_FIELD);
        }
        let blocks = self.memory_bytes() / BLOCK_BYTES;
        let first = command.wide10();
        if first >= blocks || u64::from(count) > blocks - first {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        Ok((first * BLOCK_BYTES, count * BLOCK_BYTES as u32))
    }

    /// First byte and length of a Memory Read, Write or Fill.
    fn bytes(&self, command: &Command) -> Result<(u64, u64), Status> {
        let (first, length) = (command.wide10(), command.cdw10[2]);
        let is_transfer = command.opcode != memory::FILL;
        if (first | u64::from(length)) & 3 != 0 || (is_transfer && length > TRANSFER_BYTES_MAX) {
            return Err(Status::INVALID_FIELD);
        }
        if !self.is_in_memory(first, length.into()) {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        Ok((first, length.into()))
    }

    fn read(&self, first: u64, length: u32) -> Executed {
        let mut bytes = vec![0; length as usize];
        let read = self.device.read(first, &mut bytes);
        read.map_err(|_| Status::INTERNAL_ERROR)?;
        data(bytes)
    }

    fn write(&mut self, first: u64, from_host: &[u8]) -> Executed {
        let written = self.device.write(first, from_host);
        written.map_err(|_| Status::INTERNAL_ERROR)?;
        done(0)
    }

    /// The checks run in the order of the page: reserved bits, flags, base set, curve, window and levels, count; the
    /// rest is common to both personalities.
    fn start(&mut self, queue: u16, command: &Command) -> Executed {
        let [scalars, table, result, count, word, tag] = command.cdw10;
        if word & START_RESERVED != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let flags = (word >> 24 & 7) as u8;
        if flags & JobEntry::PLAIN != 0 {
            return Err(Status::UNSUPPORTED_JOB);
        }
        let (base, table, shape, count_max) = if flags & JobEntry::BASE != 0 {
            let set = self.base_set(table).ok_or(Status::UNKNOWN_BASE_SET)?;
            (table as u8, set.table, set.shape, set.count)
        } else {
            if word >> 16 & 0xff != 0 {
                return Err(Status::UNSUPPORTED_JOB);
            }
            (0, u64::from(table) * BLOCK_BYTES, shape_of(word), u32::MAX)
        };
        self.check_shape(shape)?;
        self.check_count(count, count_max)?;
        let core = CoreJob {
            work: Work::Product,
            scalars: u64::from(scalars) * BLOCK_BYTES,
            table,
            result: u64::from(result) * BLOCK_BYTES,
            count,
            shape,
        };
        self.accept_command(queue, command.cid, core, tag, flags, base)
    }

    fn precompute(&mut self, queue: u16, command: &Command) -> Executed {
        let [plain, table, reserved, count, word, tag] = command.cdw10;
        if word & PRECOMPUTE_RESERVED != 0 || reserved != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if word >> 16 & 0xff != 0 {
            return Err(Status::UNSUPPORTED_JOB);
        }
        let shape = shape_of(word);
        self.check_shape(shape)?;
        self.check_count(count, u32::MAX)?;
        let flags = (word >> 24) as u8 | JobEntry::PRECOMPUTE;
        let core = CoreJob {
            work: Work::Precompute,
            scalars: 0,
            table: u64::from(plain) * BLOCK_BYTES,
            result: u64::from(table) * BLOCK_BYTES,
            count,
            shape,
        };
        self.accept_command(queue, command.cid, core, tag, flags, 0)
    }

    /// Queues the job of a Start or Precompute, and answers with its number, at once or when it has ended.
    fn accept_command(
        &mut self,
        queue: u16,
        cid: u16,
        core: CoreJob,
        tag: u32,
        flags: u8,
        base: u8,
    ) -> Executed {
        let waits = flags & JobEntry::WAIT != 0;
        let number = self.accept_job(Request {
            core,
            tag,
            flags,
            queue,
            cid,
            waiter: waits.then_some(WaiterKind::Start),
            base,
            range_set: 0,
        })?;
        if waits { Ok(None) } else { done(number) }
    }

    fn wait(&mut self, queue: u16, command: &Command) -> Executed {
        let job = self
            .jobs
            .find(command.cdw10[0])
            .ok_or(Status::UNKNOWN_JOB)?;
        match job.entry.state {
            JobState::Queued | JobState::Running => {
                job.wait(queue, command.cid)?;
                Ok(None)
            }
            JobState::Done => done(u32::try_from(job.entry.core_cycles).unwrap_or(u32::MAX)),
            JobState::Failed | JobState::TimedOut | JobState::Cancelled => {
                let (status, core_error) = (job.end_status(), job.entry.core_error);
                self.refuse_with_result(queue, command, status, core_error.into());
                Ok(None)
            }
        }
    }

    fn cancel(&mut self, command: &Command) -> Executed {
        let number = command.cdw10[0];
        self.jobs.find(number).ok_or(Status::UNKNOWN_JOB)?;
        self.cancel_job(number, Status::JOB_CANCELLED);
        done(0)
    }

    fn set_base(&mut self, command: &Command) -> Executed {
        let [number, table, _, count, word, _] = command.cdw10;
        let at = (number as usize)
            .checked_sub(1)
            .filter(|at| *at < self.bases.len());
        let at = at.ok_or(Status::UNKNOWN_BASE_SET)?;
        if self.jobs.uses(Use::Base(number as u8)) {
            return Err(Status::BASE_SET_IN_USE);
        }
        if count == 0 {
            self.bases[at] = None;
            return done(0);
        }
        if word & SET_BASE_RESERVED != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if word >> 16 & 0xff != 0 {
            return Err(Status::UNSUPPORTED_JOB);
        }
        let shape = shape_of(word);
        self.check_shape(shape)?;
        self.check_count(count, u32::MAX)?;
        let table = u64::from(table) * BLOCK_BYTES;
        if !self.is_in_memory(table, shape.table_bytes(count)) {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        self.bases[at] = Some(BaseSet {
            table,
            count,
            shape,
        });
        done(0)
    }

    fn base_set(&self, number: u32) -> Option<BaseSet> {
        let at = (number as usize).checked_sub(1)?;
        self.bases.get(at).copied().flatten()
    }

    pub(super) fn check_shape(&self, shape: Shape) -> Result<(), Status> {
        let device = self.device.description();
        let is_window = (device.window_min..=device.window_max).contains(&shape.window);
        if !is_window
            || shape.levels == 0
            || shape.levels > device.levels_max
            || u32::from(shape.levels) > shape.digits()
        {
            return Err(Status::INVALID_SHAPE);
        }
        Ok(())
    }

    pub(super) fn check_count(&self, count: u32, of_base: u32) -> Result<(), Status> {
        if count == 0 || count > self.device.description().count_max || count > of_base {
            return Err(Status::INVALID_COUNT);
        }
        Ok(())
    }
}

fn shape_of(word: u32) -> Shape {
    Shape {
        window: (word & 31) as u8,
        levels: (word >> 8 & 31) as u8,
    }
}
