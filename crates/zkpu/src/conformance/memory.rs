//! Namespace 1: blocks, and the ZKPU commands.

use super::case::{ProtocolCase, Queue, refusal, status_of, text};
use crate::curve::{decode_result, encode_scalars, table};
use crate::host::{Areas, CommandData, StartRequest, Zkpu};
use crate::nvme::opcode::nvm;
use crate::nvme::zkpu::{BLOCK_BYTES, RESULT_BYTES, Shape, ZkpuCapability};
use crate::nvme::{Command, Status};

use std::time::Duration;

use ark_bls12_377::{Fr, G1Affine, G1Projective};
use ark_ec::AffineRepr;

/// Number of a job that no device has given: the last before numbers wrap.
const UNKNOWN_JOB: u32 = u32::MAX;
/// Flags of dword 14 of Start.
const FLAG_BASE: u32 = 1 << 25;
const FLAG_PLAIN: u32 = 1 << 26;
/// Limit for a small job.
pub(super) const JOB_LIMIT: Duration = Duration::from_secs(60);

/// A Start of two points: scalars at block 0, table at block 8, result at block 16.
struct Start {
    dwords: [u32; 6],
}

impl Start {
    fn new(capability: &ZkpuCapability) -> Self {
        let window = u32::from(capability.window_max);
        Self {
            dwords: [0, 8, 16, 2, window | 1 << 8, 0],
        }
    }

    /// With a dword, by its number in the command, changed.
    fn with(mut self, dword: usize, value: u32) -> Self {
        self.dwords[dword - 10] = value;
        self
    }

    /// With bits of dword 14 set.
    fn flag(mut self, bits: u32) -> Self {
        self.dwords[4] |= bits;
        self
    }

    fn refused(self, what: &str, expected: Status) -> ProtocolCase {
        let command = Command::new(nvm::START, 1).with_dwords(&self.dwords);
        refusal(
            &format!("Start {what}"),
            Queue::Io,
            command,
            CommandData::None,
            expected,
        )
    }
}

/// All cases of the namespace.
pub(super) fn cases(capability: &ZkpuCapability) -> Vec<ProtocolCase> {
    let mut cases = starts(capability);
    cases.extend(others(capability));
    cases.extend(blocks(capability));
    cases.push(ProtocolCase::new(
        "a job right after the refusals gives its product",
        product_of_two,
    ));
    cases.push(ProtocolCase::new(
        "a job with a scalar that is not below the group's order ends",
        ends_with_large_scalar,
    ));
    cases
}

fn starts(capability: &ZkpuCapability) -> Vec<ProtocolCase> {
    let start = || Start::new(capability);
    let (window_max, levels_max) = (capability.window_max, capability.levels_max);
    let shape = |window: u8, levels: u8| u32::from(window) | u32::from(levels) << 8;
    let blocks = capability.memory_bytes / BLOCK_BYTES;
    let beyond = u32::try_from(blocks).unwrap_or(u32::MAX);
    let mut cases = vec![
        start()
            .flag(1 << 27)
            .refused("with reserved bit 27 of dword 14", Status::INVALID_FIELD),
        start()
            .flag(1 << 5)
            .refused("with reserved bit 5 of dword 14", Status::INVALID_FIELD),
        start()
            .flag(1 << 16)
            .refused("for another curve", Status::UNSUPPORTED_JOB),
        start()
            .flag(FLAG_BASE)
            .with(11, 0)
            .refused("with base set 0", Status::UNKNOWN_BASE_SET),
        start()
            .flag(FLAG_BASE)
            .with(11, u32::from(capability.base_sets_max) + 1)
            .refused("with a base set beyond the last", Status::UNKNOWN_BASE_SET),
        start()
            .with(14, shape(capability.window_min.saturating_sub(1), 1))
            .refused("with too narrow a window", Status::INVALID_SHAPE),
        start()
            .with(14, shape((window_max + 1).min(31), 1))
            .refused("with too wide a window", Status::INVALID_SHAPE),
        start()
            .with(14, shape(window_max, 0))
            .refused("without levels", Status::INVALID_SHAPE),
        start()
            .with(14, shape(window_max, (levels_max + 1).min(31)))
            .refused("with too many levels", Status::INVALID_SHAPE),
        start()
            .with(13, 0)
            .refused("of no points", Status::INVALID_COUNT),
        start()
            .with(10, beyond)
            .refused("with scalars beyond the memory", Status::LBA_OUT_OF_RANGE),
        start()
            .with(11, beyond)
            .refused("with a table beyond the memory", Status::LBA_OUT_OF_RANGE),
        start()
            .with(12, beyond)
            .refused("with a result beyond the memory", Status::LBA_OUT_OF_RANGE),
        start().with(12, 0).refused(
            "whose result overlaps the scalars",
            Status::OVERLAPPING_AREAS,
        ),
        start()
            .with(12, 8)
            .refused("whose result overlaps the table", Status::OVERLAPPING_AREAS),
        start().flag(1 << 27).with(10, beyond).with(13, 0).refused(
            "with several faults, by the first check",
            Status::INVALID_FIELD,
        ),
        start()
            .with(10, beyond)
            .with(13, 0)
            .refused("of no points beyond the memory", Status::INVALID_COUNT),
    ];
    if let Some(count) = capability.count_max.checked_add(1) {
        let case = start().with(13, count);
        cases.push(case.refused("of more points than allowed", Status::INVALID_COUNT));
    }
    if !capability.has(ZkpuCapability::PLAIN_POINTS) {
        let case = start().flag(FLAG_PLAIN);
        cases.push(case.refused("with plain points", Status::UNSUPPORTED_JOB));
    }
    cases
}

fn others(capability: &ZkpuCapability) -> Vec<ProtocolCase> {
    let io = |what: &str, command: Command, expected| {
        refusal(what, Queue::Io, command, CommandData::None, expected)
    };
    let of_job = |opcode, job| Command::new(opcode, 1).with_dwords(&[job]);
    let shape = u32::from(capability.window_max) | 1 << 8;
    let set_base = |number: u32, count, shape| {
        Command::new(nvm::SET_BASE, 1).with_dwords(&[number, 8, 0, count, shape])
    };
    vec![
        io(
            "an unknown I/O opcode",
            Command::new(0x55, 1),
            Status::INVALID_OPCODE,
        ),
        io(
            "Flush of namespace 0",
            Command::new(nvm::FLUSH, 0),
            Status::INVALID_NAMESPACE,
        ),
        io(
            "Flush of namespace 4",
            Command::new(nvm::FLUSH, 4),
            Status::INVALID_NAMESPACE,
        ),
        io(
            "Wait for an unknown job",
            of_job(nvm::WAIT, UNKNOWN_JOB),
            Status::UNKNOWN_JOB,
        ),
        io("Wait for job 0", of_job(nvm::WAIT, 0), Status::UNKNOWN_JOB),
        io(
            "Cancel of an unknown job",
            of_job(nvm::CANCEL, UNKNOWN_JOB),
            Status::UNKNOWN_JOB,
        ),
        io(
            "Set Base of number 0",
            set_base(0, 2, shape),
            Status::UNKNOWN_BASE_SET,
        ),
        io(
            "Set Base beyond the last number",
            set_base(u32::from(capability.base_sets_max) + 1, 2, shape),
            Status::UNKNOWN_BASE_SET,
        ),
        io(
            "Set Base without a window",
            set_base(1, 2, 1 << 8),
            Status::INVALID_SHAPE,
        ),
        io(
            "Set Base with a reserved bit",
            set_base(1, 2, shape | 1 << 24),
            Status::INVALID_FIELD,
        ),
    ]
}

fn blocks(capability: &ZkpuCapability) -> Vec<ProtocolCase> {
    let last = capability.memory_bytes / BLOCK_BYTES - 1;
    let read = |first: u64, count: u32| {
        let dwords = [first as u32, (first >> 32) as u32, count - 1];
        Command::new(nvm::READ, 1).with_dwords(&dwords)
    };
    let refused = |what: &str, command: Command, count: u32, expected| {
        let data = CommandData::ToHost(count * BLOCK_BYTES as u32);
        refusal(what, Queue::Io, command, data, expected)
    };
    vec![
        refused(
            "Read of the block after the last",
            read(last + 1, 1),
            1,
            Status::LBA_OUT_OF_RANGE,
        ),
        refused(
            "Read over the end of the memory",
            read(last, 2),
            2,
            Status::LBA_OUT_OF_RANGE,
        ),
        refused(
            "Read at the end of 64 bits",
            read(u64::MAX, 1),
            1,
            Status::LBA_OUT_OF_RANGE,
        ),
        refused(
            "Read of 2,049 blocks",
            read(0, 2049),
            2049,
            Status::INVALID_FIELD,
        ),
        ProtocolCase::new("the last block keeps what is written", move |device| {
            let written: Vec<u8> = (0..BLOCK_BYTES).map(|i| (i * 7) as u8).collect();
            let first = last * BLOCK_BYTES;
            device.write_blocks(first, &written).map_err(text)?;
            let found = device
                .read_blocks(first, BLOCK_BYTES as u32)
                .map_err(text)?;
            match found == written {
                true => Ok(()),
                false => Err("other bytes are read than were written".into()),
            }
        }),
    ]
}

/// Writes a job of two points, the generator, and starts it.
fn run_two(device: &Zkpu, scalars: &[u8]) -> Result<Result<G1Projective, Status>, String> {
    let shape = Shape {
        window: device.capability().window_max,
        levels: 1,
    };
    let entries = table(&[G1Affine::generator(); 2], shape);
    device.write(0, scalars).map_err(text)?;
    device.write(8 * BLOCK_BYTES, &entries).map_err(text)?;
    let result = 16 * BLOCK_BYTES;
    device
        .write(result, &[0; RESULT_BYTES as usize])
        .map_err(text)?;
    let request = StartRequest {
        areas: Areas {
            scalars: 0,
            table: 8 * BLOCK_BYTES,
            result,
        },
        count: 2,
        shape,
        base: None,
        tag: 1,
    };
    match device.start_and_wait(&request, JOB_LIMIT) {
        Ok(_) => {}
        Err(error) => return error.status().map(Err).ok_or_else(|| text(error)),
    }
    let bytes = device.read(result, RESULT_BYTES as usize).map_err(text)?;
    decode_result(&bytes)
        .map(Ok)
        .map_err(|error| error.to_string())
}

fn product_of_two(device: &Zkpu) -> Result<(), String> {
    let scalars = encode_scalars(&[Fr::from(5u64), -Fr::from(3u64)]);
    match run_two(device, &scalars)? {
        Ok(sum) if sum == G1Affine::generator() * Fr::from(2u64) => Ok(()),
        Ok(_) => Err("the result is another point than that of the CPU".into()),
        Err(status) => Err(format!("the job ended with: {status}")),
    }
}

/// The page allows a core error and an undefined result.
fn ends_with_large_scalar(device: &Zkpu) -> Result<(), String> {
    let mut scalars = encode_scalars(&[Fr::from(5u64); 2]);
    scalars[..32].fill(0xff);
    match run_two(device, &scalars) {
        Ok(Err(status)) if !status.is(Status::CORE_ERROR) => {
            return Err(format!("the job ended with: {status}"));
        }
        // An undefined result may be no point.
        Ok(_) => {}
        Err(why) if device.failure().is_some() => return Err(why),
        Err(_) => {}
    }
    let flush = Command::new(nvm::FLUSH, 1);
    match status_of(device, Queue::Io, flush, CommandData::None)? {
        status if status.is_success() => product_of_two(device),
        status => Err(format!("Flush after it: {status}")),
    }
}
