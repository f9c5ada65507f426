//! Jobs as commands: Start, Execute Program, range descriptors.

use crate::bytes::{put_u32, put_u64};
use crate::nvme::Command;
use crate::nvme::opcode::{nvm, program};
use crate::nvme::zkpu::{BLOCK_BYTES, Shape};

/// Areas of a job's data in device memory: their first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Areas {
    /// First byte of the scalars.
    pub scalars: u64,
    /// First byte of the table, if the job names no base set.
    pub table: u64,
    /// First byte of the result.
    pub result: u64,
}

/// A job to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartRequest {
    /// Areas.
    pub areas: Areas,
    /// Number of points.
    pub count: u32,
    /// Window and levels of the table.
    pub shape: Shape,
    /// Base set to use instead of the table.
    pub base: Option<u8>,
    /// A number that comes back in the job table.
    pub tag: u32,
}

/// A table of multiples to make on the device from a plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrecomputeRequest {
    /// First byte of the plain table, one of a single level.
    pub plain: u64,
    /// First byte of the table to make.
    pub table: u64,
    /// Number of points.
    pub count: u32,
    /// Window and levels of the table to make.
    pub shape: Shape,
    /// A number that comes back in the job table.
    pub tag: u32,
}

/// A range of device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First byte; a multiple of 64.
    pub first: u64,
    /// Bytes; a multiple of 64.
    pub length: u32,
}

const WAIT: u32 = 1 << 24;
const BASE: u32 = 1 << 25;
const RANGE_BYTES: usize = 32;

impl StartRequest {
    /// The command of the memory personality. `None` if an area does not begin at a block of 32 bits.
    pub fn start(&self, waits: bool) -> Option<Command> {
        let (table, flag) = match self.base {
            Some(base) => (base.into(), BASE),
            None => (block(self.areas.table)?, 0),
        };
        let word = shape_word(self.shape) | flag | if waits { WAIT } else { 0 };
        Some(Command::new(nvm::START, 1).with_dwords(&[
            block(self.areas.scalars)?,
            table,
            block(self.areas.result)?,
            self.count,
            word,
            self.tag,
        ]))
    }

    /// The command of the compute personality, with a range set or, for 0, with three ranges as its data.
    pub fn execute(&self, range_set: u16) -> Command {
        let mut command = Command::new(program::EXECUTE, 3);
        command.cdw2 = [
            1 | u32::from(range_set) << 16,
            if range_set == 0 { 3 } else { 0 },
        ];
        command.metadata = if range_set == 0 {
            3 * RANGE_BYTES as u64
        } else {
            0
        };
        command.with_dwords(&[self.count, shape_word(self.shape), self.tag])
    }

    /// The ranges of the job, each rounded up to its granularity: scalars, table, result. `None` if one is too long.
    pub fn ranges(&self) -> Option<[Range; 3]> {
        let range = |first, bytes: u64| {
            let length = u32::try_from(bytes.next_multiple_of(64)).ok()?;
            Some(Range { first, length })
        };
        Some([
            range(self.areas.scalars, u64::from(self.count) * 32)?,
            range(self.areas.table, self.shape.table_bytes(self.count))?,
            range(self.areas.result, 192)?,
        ])
    }
}

impl PrecomputeRequest {
    /// The command. `None` if an area does not begin at a block of 32 bits.
    pub fn command(&self, waits: bool) -> Option<Command> {
        let word = shape_word(self.shape) | if waits { WAIT } else { 0 };
        Some(Command::new(nvm::PRECOMPUTE, 1).with_dwords(&[
            block(self.plain)?,
            block(self.table)?,
            0,
            self.count,
            word,
            self.tag,
        ]))
    }
}

/// The block that begins at a byte.
fn block(first: u64) -> Option<u32> {
    match first % BLOCK_BYTES {
        0 => u32::try_from(first / BLOCK_BYTES).ok(),
        _ => None,
    }
}

fn shape_word(shape: Shape) -> u32 {
    u32::from(shape.window) | u32::from(shape.levels) << 8
}

/// Descriptors of ranges, in the memory namespace.
pub(super) fn descriptors(ranges: &[Range]) -> Vec<u8> {
    let in_memory: Vec<_> = ranges.iter().map(|range| (2, *range)).collect();
    descriptors_in(&in_memory)
}

/// Descriptors of ranges, each in its namespace.
pub(crate) fn descriptors_in(ranges: &[(u32, Range)]) -> Vec<u8> {
    let mut bytes = vec![0; ranges.len() * RANGE_BYTES];
    for (to, (nsid, range)) in bytes.chunks_exact_mut(RANGE_BYTES).zip(ranges) {
        put_u32(to, 0, *nsid);
        put_u32(to, 4, range.length);
        put_u64(to, 8, range.first);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> StartRequest {
        StartRequest {
            areas: Areas {
                scalars: 0,
                table: 2048 * 512,
                result: 4096 * 512,
            },
            count: 1024,
            shape: Shape {
                window: 13,
                levels: 1,
            },
            base: None,
            tag: 7,
        }
    }

    /// The example of `docs/zkpu.md` for nvme-cli.
    #[test]
    fn commands_are_those_of_the_page() {
        let start = request().start(false).unwrap();
        assert_eq!(start.cdw10, [0, 2048, 4096, 1024, 0x0000_010d, 7]);
        let based = StartRequest {
            base: Some(3),
            ..request()
        };
        assert_eq!(
            based.start(true).unwrap().cdw10[1..5],
            [3, 4096, 1024, 0x0300_010d]
        );
        let execute = request().execute(1);
        assert_eq!((execute.cdw2, execute.metadata), ([0x0001_0001, 0], 0));
        assert_eq!(execute.cdw10[..3], [1024, 0x010d, 7]);
        assert_eq!(request().execute(0).cdw2, [1, 3]);
    }

    #[test]
    fn an_area_off_its_block_cannot_be_started() {
        let mut odd = request();
        odd.areas.scalars = 32;
        assert_eq!(odd.start(false), None);
        odd.areas.scalars = 1 << 41;
        assert_eq!(odd.start(false), None);
    }

    #[test]
    fn descriptors_have_their_bytes() {
        let bytes = descriptors(&request().ranges().unwrap());
        assert_eq!(
            bytes[..16],
            [2, 0, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(
            bytes[32..48],
            [2, 0, 0, 0, 0, 64, 2, 0, 0, 0, 16, 0, 0, 0, 0, 0]
        );
        assert_eq!(bytes[68..72], [192, 0, 0, 0]);
    }
}
