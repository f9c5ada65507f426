//! Precompute: refusals, and a table that is the host's.

use super::case::{ProtocolCase, Queue, refusal, text};
use super::memory::JOB_LIMIT;
use crate::curve::table;
use crate::host::{CommandData, PrecomputeRequest, Zkpu};
use crate::nvme::opcode::nvm;
use crate::nvme::zkpu::{BLOCK_BYTES, Shape, ZkpuCapability};
use crate::nvme::{Command, Status};

use ark_bls12_377::{Fr, G1Affine};
use ark_ec::{AffineRepr, CurveGroup};

/// Points of the table that is made: more than the 32 that the circuit takes at a time.
const COUNT: u32 = 37;

/// All cases. A device without the command must say so.
pub(super) fn cases(capability: &ZkpuCapability) -> Vec<ProtocolCase> {
    let word = u32::from(capability.window_max) | 2 << 8;
    let refused = |what: &str, dwords: [u32; 6], expected| {
        let command = Command::new(nvm::PRECOMPUTE, 1).with_dwords(&dwords);
        let what = format!("Precompute {what}");
        refusal(&what, Queue::Io, command, CommandData::None, expected)
    };
    let good = [0, 64, 0, 2, word, 0];
    if !capability.has(ZkpuCapability::PRECOMPUTE) {
        return vec![refused(
            "of a device without it",
            good,
            Status::INVALID_OPCODE,
        )];
    }
    let with = |dword: usize, value: u32| {
        let mut dwords = good;
        dwords[dword - 10] = value;
        dwords
    };
    let beyond = u32::try_from(capability.memory_bytes / BLOCK_BYTES).unwrap_or(u32::MAX);
    vec![
        refused("with dword 12", with(12, 1), Status::INVALID_FIELD),
        refused(
            "with reserved bit 25 of dword 14",
            with(14, word | 1 << 25),
            Status::INVALID_FIELD,
        ),
        refused(
            "for another curve",
            with(14, word | 1 << 16),
            Status::UNSUPPORTED_JOB,
        ),
        refused("without levels", with(14, word & 31), Status::INVALID_SHAPE),
        refused("of no points", with(13, 0), Status::INVALID_COUNT),
        refused(
            "of a plain table beyond the memory",
            with(10, beyond),
            Status::LBA_OUT_OF_RANGE,
        ),
        refused(
            "to a table beyond the memory",
            with(11, beyond),
            Status::LBA_OUT_OF_RANGE,
        ),
        refused(
            "over its plain table",
            with(11, 0),
            Status::OVERLAPPING_AREAS,
        ),
        ProtocolCase::new("a table that the device makes is the host's", makes_a_table),
    ]
}

fn makes_a_table(device: &Zkpu) -> Result<(), String> {
    let capability = device.capability();
    let mut points: Vec<G1Affine> = (2..=u64::from(COUNT))
        .map(|factor| (G1Affine::generator() * Fr::from(factor)).into_affine())
        .collect();
    points.push(G1Affine::zero());
    let shape = Shape {
        window: capability.window_max,
        levels: capability.levels_max.min(3),
    };
    let (plain, made) = (Shape { levels: 1, ..shape }, table(&points, shape));
    let first = shape.table_bytes(COUNT).next_multiple_of(BLOCK_BYTES);
    device.write(first, &table(&points, plain)).map_err(text)?;
    let request = PrecomputeRequest {
        plain: first,
        table: 0,
        count: COUNT,
        shape,
        tag: 0,
    };
    device
        .precompute_and_wait(&request, JOB_LIMIT)
        .map_err(text)?;
    let found = device.read(0, made.len()).map_err(text)?;
    match found.iter().zip(&made).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => Err(format!("byte {at} of the table is another")),
    }
}
