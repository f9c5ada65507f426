//! The compute personality: memory range sets, program activation, Execute Program.

use crate::bytes::{u32_at, u64_at};
use crate::controller::device::{CoreJob, MsmDevice, Work};
use crate::controller::jobs::{Request, Use, WaiterKind};
use crate::controller::state::{Controller, Executed, NSID_MEMORY, done};
use crate::nvme::zkpu::{JobEntry, RESULT_BYTES, SCALAR_BYTES, Shape};
use crate::nvme::{Command, Status};

/// Ranges of a set.
pub(super) const RANGES_MAX: usize = 4;
const RANGE_BYTES: usize = 32;
/// First byte and length of a range are multiples of it.
const RANGE_GRANULARITY: u64 = 64;
/// Scalars, table, result.
const EXECUTE_RANGES: usize = 3;
const PROGRAM: u32 = 1;
/// Bits of dword 11 of Execute Program that must be zero: all but window, levels, curve and the plain flag.
const EXECUTE_RESERVED: u32 = 0xfb00_e0e0;
const EXECUTE_PLAIN: u32 = 1 << 26;
const SELECT_CREATE: u32 = 0;
const SELECT_DELETE: u32 = 1;

/// Areas of device memory with one number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RangeSet(Vec<Range>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: u64,
    length: u64,
}

impl<D: MsmDevice> Controller<D> {
    pub(super) fn plan_range_set(&self, command: &Command) -> Result<u32, Status> {
        let count = command.cdw10[1] & 0xff;
        match command.cdw10[0] & 15 {
            SELECT_CREATE if count == 0 || count as usize > RANGES_MAX => {
                Err(Status::RANGES_EXCEEDED)
            }
            SELECT_CREATE => Ok(count * RANGE_BYTES as u32),
            SELECT_DELETE => Ok(0),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    pub(super) fn manage_range_set(&mut self, command: &Command, data: &[u8]) -> Executed {
        if command.cdw10[0] & 15 == SELECT_DELETE {
            let id = (command.cdw10[0] >> 16) as u16;
            let at = self.range_set(id)?;
            if self.jobs.uses(Use::RangeSet(id)) {
                return Err(Status::RANGE_SET_IN_USE);
            }
            self.range_sets[at] = None;
            return done(0);
        }
        let free = self.range_sets.iter().position(Option::is_none);
        let free = free.ok_or(Status::RANGE_SETS_EXCEEDED)?;
        let set = self.read_ranges(data)?;
        self.range_sets[free] = Some(set);
        done(free as u32 + 1)
    }

    /// Index of the range set with an identifier.
    fn range_set(&self, id: u16) -> Result<usize, Status> {
        let at = usize::from(id).checked_sub(1);
        at.filter(|at| self.range_sets.get(*at).is_some_and(Option::is_some))
            .ok_or(Status::INVALID_RANGE_SET_ID)
    }

    /// Descriptors, checked one by one and against each other.
    fn read_ranges(&self, data: &[u8]) -> Result<RangeSet, Status> {
        let mut ranges: Vec<Range> = Vec::with_capacity(RANGES_MAX);
        for bytes in data.chunks_exact(RANGE_BYTES) {
            if u32_at(bytes, 0) != NSID_MEMORY {
                return Err(Status::INVALID_MEMORY_NAMESPACE);
            }
            let range = Range {
                first: u64_at(bytes, 8),
                length: u32_at(bytes, 4).into(),
            };
            let is_aligned = range.first.is_multiple_of(RANGE_GRANULARITY)
                && range.length.is_multiple_of(RANGE_GRANULARITY);
            if range.length == 0 || !is_aligned || !self.is_in_memory(range.first, range.length) {
                return Err(Status::INVALID_RANGE_SET);
            }
            let overlaps = |other: &Range| {
                range.first < other.first + other.length && other.first < range.first + range.length
            };
            if ranges.iter().any(overlaps) {
                return Err(Status::OVERLAPPING_RANGES);
            }
            ranges.push(range);
        }
        Ok(RangeSet(ranges))
    }

    pub(super) fn activate_program(&mut self, command: &Command) -> Executed {
        let (index, select) = (command.cdw10[0] & 0xffff, command.cdw10[0] >> 16 & 15);
        if index != PROGRAM {
            return Err(Status::INVALID_PROGRAM_INDEX);
        }
        match select {
            0 if self.jobs.uses(Use::Program) => Err(Status::PROGRAM_IN_USE),
            0 | 1 => {
                self.program_active = select == 1;
                done(0)
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Bytes of the descriptors of an Execute Program.
    pub(super) fn plan_execute(&self, command: &Command) -> Result<u32, Status> {
        if command.cdw2[0] & 0xffff != PROGRAM {
            return Err(Status::INVALID_PROGRAM_INDEX);
        }
        if !self.program_active {
            return Err(Status::PROGRAM_NOT_ACTIVATED);
        }
        let [_, shape, _, high, ..] = command.cdw10;
        if shape & EXECUTE_RESERVED != 0 || high != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if shape & EXECUTE_PLAIN != 0 || shape >> 16 & 0xff != 0 {
            return Err(Status::UNSUPPORTED_JOB);
        }
        let (id, ranges, length) = (
            command.cdw2[0] >> 16,
            command.cdw2[1],
            command.metadata as u32,
        );
        if id == 0 {
            if ranges as usize != EXECUTE_RANGES {
                return Err(Status::RANGES_EXCEEDED);
            }
            if length as usize != EXECUTE_RANGES * RANGE_BYTES {
                return Err(Status::INVALID_FIELD);
            }
            return Ok(length);
        }
        if ranges != 0 || length != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let at = self.range_set(id as u16)?;
        match &self.range_sets[at] {
            Some(set) if set.0.len() == EXECUTE_RANGES => Ok(0),
            _ => Err(Status::INVALID_RANGE_SET),
        }
    }

    pub(super) fn execute_program(
        &mut self,
        queue: u16,
        command: &Command,
        data: &[u8],
    ) -> Executed {
        let [count, shape, tag, ..] = command.cdw10;
        let id = (command.cdw2[0] >> 16) as u16;
        let set = match id {
            0 => self.read_ranges(data)?,
            _ => {
                let at = self.range_set(id)?;
                self.range_sets[at]
                    .clone()
                    .ok_or(Status::INVALID_RANGE_SET_ID)?
            }
        };
        let [scalars, table, result] = set.0.as_slice() else {
            return Err(Status::INVALID_RANGE_SET);
        };
        let shape = Shape {
            window: (shape & 31) as u8,
            levels: (shape >> 8 & 31) as u8,
        };
        self.check_shape(shape)?;
        self.check_count(count, u32::MAX)?;
        let is_large_enough = u64::from(count) * SCALAR_BYTES <= scalars.length
            && shape.table_bytes(count) <= table.length
            && RESULT_BYTES <= result.length;
        if !is_large_enough {
            return Err(Status::INVALID_RANGE_SET);
        }
        self.accept_job(Request {
            core: CoreJob {
                work: Work::Product,
                scalars: scalars.first,
                table: table.first,
                result: result.first,
                count,
                shape,
            },
            tag,
            flags: JobEntry::EXECUTE,
            queue,
            cid: command.cid,
            waiter: Some(WaiterKind::Execute),
            base: 0,
            range_set: id,
        })
        .map(|_| None)
    }
}
