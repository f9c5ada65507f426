//! Bases that are resident: tables in device memory.

use std::sync::Arc;

use ark_bls12_377::G1Affine;
use proofmill_accelerator::Error;

use crate::controller::{CycleModel, best_window};
use crate::curve::{check_points, table};
use crate::device::Measured;
use crate::device::memory::{Area, Memory};
use crate::host::{HostError, Zkpu};
use crate::nvme::zkpu::{Shape, TABLE_ENTRY_BYTES, ZkpuCapability};

/// Points whose entries are made and written at a time, so that the host never holds a whole table.
const CHUNK_POINTS: usize = 1 << 12;
/// Bytes of host memory that the entries of a chunk take, with the most levels.
pub(super) const STAGING_BYTES: u64 = CHUNK_POINTS as u64 * 31 * TABLE_ENTRY_BYTES;

/// A table in device memory, and the points that it was made of.
#[derive(Debug)]
pub(super) struct Resident {
    points: Arc<Vec<G1Affine>>,
    shape: Shape,
    area: Area,
    /// Number of the base set; `None` where all are in use.
    base: Option<u8>,
}

impl Resident {
    /// Chooses a shape, takes memory and writes the table. The inner error is the job's, the outer the device's.
    pub(super) fn load(
        driver: &Zkpu,
        memory: &mut Memory,
        points: Arc<Vec<G1Affine>>,
        memory_limit: usize,
        base: Option<u8>,
    ) -> Result<Result<Self, Error>, HostError> {
        if let Err(error) = check_points(&points) {
            return Ok(Err(Error::BadJob(error.to_string())));
        }
        let Ok(count) = u32::try_from(points.len()) else {
            return Ok(Err(Error::BadJob("more than 2^32 bases".into())));
        };
        let shape = shape(driver.capability(), count, memory_limit, memory.largest());
        let bytes = shape.table_bytes(count);
        let Some(area) = memory.take(bytes) else {
            return Ok(Err(Error::OutOfMemory { bytes }));
        };
        let resident = Self {
            points,
            shape,
            area,
            base: base.filter(|_| count > 0),
        };
        if let Err(error) = resident.write(driver) {
            memory.give(area);
            return Err(error);
        }
        Ok(Ok(resident))
    }

    /// Writes the table, and gives it its number.
    pub(super) fn write(&self, driver: &Zkpu) -> Result<(), HostError> {
        let mut first = self.area.first;
        for chunk in self.points.chunks(CHUNK_POINTS) {
            let entries = table(chunk, self.shape);
            driver.write(first, &entries)?;
            first += entries.len() as u64;
        }
        self.number(driver)
    }

    /// Gives the table its number, as after a reset that removed it.
    pub(super) fn number(&self, driver: &Zkpu) -> Result<(), HostError> {
        match self.base {
            Some(base) => {
                driver.set_base(base, self.area.first, self.points.len() as u32, self.shape)
            }
            None => Ok(()),
        }
    }

    pub(super) fn points(&self) -> &Arc<Vec<G1Affine>> {
        &self.points
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn area(&self) -> Area {
        self.area
    }

    pub(super) fn base(&self) -> Option<u8> {
        self.base
    }
}

/// The fastest shape within one copy of the bases and `memory_limit` bytes more, and within what is free.
fn shape(capability: &ZkpuCapability, count: u32, memory_limit: usize, free: u64) -> Shape {
    let one_copy = u64::from(count) * TABLE_ENTRY_BYTES;
    let limit = one_copy.saturating_add(memory_limit as u64).min(free);
    let model = CycleModel {
        adders: capability.adders.clamp(1, 2),
    };
    let windows = capability.window_min..=capability.window_max;
    let one_level = Shape {
        window: capability.window_max,
        levels: 1,
    };
    best_window(model, count, windows, capability.levels_max, limit).unwrap_or(one_level)
}

// === impl Measured ===

impl Measured {
    /// Duration of a product of so many points with a level for each digit.
    pub(super) fn predict(&self, points: u64) -> std::time::Duration {
        let model = CycleModel {
            adders: self.adders,
        };
        let cycles = |points: u64| {
            let count = u32::try_from(points).unwrap_or(u32::MAX);
            let best = best_window(model, count, 4..=18, 31, u64::MAX);
            best.map_or(0.0, |shape| model.cycles(points, shape) as f64)
        };
        let seconds = self.seconds * cycles(points) / cycles(self.points).max(1.0);
        std::time::Duration::try_from_secs_f64(seconds).unwrap_or(std::time::Duration::MAX)
    }
}
