//! Namespaces 2 and 3: memory by bytes, range sets, programs.

use super::case::{ProtocolCase, Queue, refusal, status_of, text};
use crate::host::{CommandData, Range, descriptors_in};
use crate::nvme::opcode::{admin, memory, program};
use crate::nvme::zkpu::{BLOCK_BYTES, TRANSFER_BYTES_MAX, ZkpuCapability};
use crate::nvme::{Command, Status};

/// Memory Copy of the standard, which the page excludes.
const MEMORY_COPY: u8 = 0x01;
/// The areas of a job of two points: namespace, first byte, length.
const GOOD: [(u32, u64, u32); 3] = [(2, 0, 64), (2, 4096, 320), (2, 8192, 192)];

/// Descriptors of ranges: namespace, first byte, length.
fn descriptors(ranges: &[(u32, u64, u32)]) -> CommandData {
    let ranges = ranges
        .iter()
        .map(|&(nsid, first, length)| (nsid, Range { first, length }));
    CommandData::ToController(descriptors_in(&ranges.collect::<Vec<_>>()))
}

fn create(count: u32) -> Command {
    Command::new(admin::RANGE_SET_MANAGEMENT, 3).with_dwords(&[0, count])
}

fn delete(id: u32) -> Command {
    Command::new(admin::RANGE_SET_MANAGEMENT, 3).with_dwords(&[1 | id << 16])
}

fn activate(index: u32, select: u32) -> Command {
    Command::new(admin::PROGRAM_ACTIVATION, 3).with_dwords(&[index | select << 16])
}

/// Execute Program for two points, with ranges as data.
fn execute(capability: &ZkpuCapability) -> Command {
    let shape = u32::from(capability.window_max) | 1 << 8;
    let mut command = Command::new(program::EXECUTE, 3).with_dwords(&[2, shape, 9]);
    command.cdw2 = [1, 3];
    command.metadata = 96;
    command
}

/// All cases of the two namespaces.
pub(super) fn cases(capability: &ZkpuCapability) -> Vec<ProtocolCase> {
    let mut cases = bytes(capability);
    cases.extend(range_sets(capability));
    cases.extend(programs(capability));
    cases
}

fn bytes(capability: &ZkpuCapability) -> Vec<ProtocolCase> {
    let end = capability.memory_bytes;
    let command = |opcode, first: u64, length: u32| {
        let dwords = [first as u32, (first >> 32) as u32, length];
        Command::new(opcode, 2).with_dwords(&dwords)
    };
    let read = |what: &str, first, length: u32, expected| {
        let data = CommandData::ToHost(length);
        refusal(
            what,
            Queue::Io,
            command(memory::READ, first, length),
            data,
            expected,
        )
    };
    vec![
        read("Memory Read from byte 2", 2, 4, Status::INVALID_FIELD),
        read("Memory Read of 6 bytes", 0, 6, Status::INVALID_FIELD),
        read(
            "Memory Read of more than a megabyte",
            0,
            TRANSFER_BYTES_MAX + 4,
            Status::INVALID_FIELD,
        ),
        read(
            "Memory Read over the end",
            end - 4,
            8,
            Status::LBA_OUT_OF_RANGE,
        ),
        read(
            "Memory Read beyond the end",
            end + 4,
            4,
            Status::LBA_OUT_OF_RANGE,
        ),
        refusal(
            "Memory Write over the end",
            Queue::Io,
            command(memory::WRITE, end - 4, 8),
            CommandData::ToController(vec![1; 8]),
            Status::LBA_OUT_OF_RANGE,
        ),
        refusal(
            "Memory Fill over the end",
            Queue::Io,
            command(memory::FILL, end - 4, 8),
            CommandData::None,
            Status::LBA_OUT_OF_RANGE,
        ),
        refusal(
            "Memory Copy",
            Queue::Io,
            command(MEMORY_COPY, 0, 4),
            CommandData::ToController(vec![0; 4]),
            Status::INVALID_OPCODE,
        ),
        ProtocolCase::new("both namespaces show one memory", |device| {
            let block: Vec<u8> = (0..BLOCK_BYTES).map(|i| (i * 3 + 1) as u8).collect();
            device.write_blocks(2 * BLOCK_BYTES, &block).map_err(text)?;
            device.wipe(2 * BLOCK_BYTES + 8, 4).map_err(text)?;
            let found = device.read(2 * BLOCK_BYTES, 16).map_err(text)?;
            let mut expected = block[..16].to_vec();
            expected[8..12].fill(0);
            match found == expected {
                true => Ok(()),
                false => Err(format!(
                    "bytes {found:02x?} where {expected:02x?} were written"
                )),
            }
        }),
    ]
}

fn range_sets(capability: &ZkpuCapability) -> Vec<ProtocolCase> {
    let end = capability.memory_bytes;
    let made = |what: &str, ranges: &[(u32, u64, u32)], expected| {
        let command = create(ranges.len() as u32);
        let what = format!("a range set {what}");
        refusal(&what, Queue::Admin, command, descriptors(ranges), expected)
    };
    let plain = |what: &str, command, expected| {
        refusal(what, Queue::Admin, command, CommandData::None, expected)
    };
    vec![
        made(
            "of another namespace's memory",
            &[(1, 0, 64)],
            Status::INVALID_MEMORY_NAMESPACE,
        ),
        made(
            "with an empty range",
            &[(2, 0, 0)],
            Status::INVALID_RANGE_SET,
        ),
        made(
            "that begins at byte 32",
            &[(2, 32, 64)],
            Status::INVALID_RANGE_SET,
        ),
        made("of 96 bytes", &[(2, 0, 96)], Status::INVALID_RANGE_SET),
        made(
            "beyond the memory",
            &[(2, end, 64)],
            Status::INVALID_RANGE_SET,
        ),
        made(
            "of overlapping ranges",
            &[(2, 0, 128), (2, 64, 64)],
            Status::OVERLAPPING_RANGES,
        ),
        plain(
            "a range set of no ranges",
            create(0),
            Status::RANGES_EXCEEDED,
        ),
        plain(
            "deleting range set 0",
            delete(0),
            Status::INVALID_RANGE_SET_ID,
        ),
        plain(
            "deleting an unknown range set",
            delete(0xffff),
            Status::INVALID_RANGE_SET_ID,
        ),
        ProtocolCase::new("a range set is made and deleted once", |device| {
            let made = device
                .admin_command(create(1), descriptors(&[(2, 0, 64)]))
                .map_err(text)?;
            let id = made.completion.result[0];
            for expected in [Status::SUCCESS, Status::INVALID_RANGE_SET_ID] {
                let found = status_of(device, Queue::Admin, delete(id), CommandData::None)?;
                if !found.is(expected) {
                    return Err(format!("deleting set {id}: {found} and not {expected}"));
                }
            }
            Ok(())
        }),
    ]
}

fn programs(capability: &ZkpuCapability) -> Vec<ProtocolCase> {
    let good = execute(capability);
    let executed = |what: &str, change: &dyn Fn(&mut Command), expected| {
        let mut command = good;
        change(&mut command);
        let what = format!("Execute Program {what}");
        refusal(&what, Queue::Io, command, descriptors(&GOOD), expected)
    };
    let plain = |what: &str, command, expected| {
        refusal(what, Queue::Admin, command, CommandData::None, expected)
    };
    let load = |index| Command::new(admin::LOAD_PROGRAM, 3).with_dwords(&[index]);
    let mut short = GOOD;
    short[1].2 = 256;
    vec![
        executed("2", &|it| it.cdw2[0] = 2, Status::INVALID_PROGRAM_INDEX),
        executed(
            "with two ranges",
            &|it| it.cdw2[1] = 2,
            Status::RANGES_EXCEEDED,
        ),
        executed(
            "with reserved parameters",
            &|it| it.cdw10[3] = 1,
            Status::INVALID_FIELD,
        ),
        executed(
            "for another curve",
            &|it| it.cdw10[1] |= 1 << 16,
            Status::UNSUPPORTED_JOB,
        ),
        executed("of no points", &|it| it.cdw10[0] = 0, Status::INVALID_COUNT),
        executed(
            "without levels",
            &|it| it.cdw10[1] &= 0x1f,
            Status::INVALID_SHAPE,
        ),
        refusal(
            "Execute Program with too short a table",
            Queue::Io,
            good,
            descriptors(&short),
            Status::INVALID_RANGE_SET,
        ),
        plain(
            "loading program 1",
            load(1),
            Status::PROGRAM_NOT_DOWNLOADABLE,
        ),
        plain("loading program 2", load(2), Status::INVALID_PROGRAM_INDEX),
        plain(
            "activating program 2",
            activate(2, 1),
            Status::INVALID_PROGRAM_INDEX,
        ),
        plain(
            "an unknown kind of activation",
            activate(1, 2),
            Status::INVALID_FIELD,
        ),
        ProtocolCase::new(
            "a program that is deactivated is not executed",
            move |device| {
                let switch = |on| {
                    let found =
                        status_of(device, Queue::Admin, activate(1, on), CommandData::None)?;
                    match found.is_success() {
                        true => Ok(()),
                        false => Err(format!("Program Activation: {found}")),
                    }
                };
                switch(0)?;
                let found = status_of(device, Queue::Io, good, descriptors(&GOOD));
                switch(1)?;
                match found? {
                    found if found.is(Status::PROGRAM_NOT_ACTIVATED) => Ok(()),
                    found => Err(format!("Execute Program: {found}")),
                }
            },
        ),
    ]
}
