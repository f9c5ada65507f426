//! The stages, and the partitions that wait before each.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::devices::Devices;
use super::flight::{RunningPartition, WaitingPlace};
use crate::interface::{JobId, PipelineStage, StageStatus};
use crate::key::Accelerator;

/// One stage: the partitions before it, and the use of its workers.
struct StageQueue {
    waiting: BTreeMap<WaitingPlace, RunningPartition>,
    workers: usize,
    busy: usize,
    ended: u64,
    busy_us: u64,
}

/// All stages, in order.
pub(super) struct StageQueues {
    queues: [StageQueue; 5],
    names: [Arc<str>; 5],
}

/// A partition that enters a stage.
pub(super) struct Entry {
    pub(super) running: RunningPartition,
    pub(super) stage: PipelineStage,
    /// The name of the stage's worker or of the device.
    pub(super) worker: Arc<str>,
    /// The device's pool; none for the shared pool.
    pub(super) pool: Option<Arc<rayon::ThreadPool>>,
    /// The accelerator to submit to; none on processors.
    pub(super) accelerator: Option<Arc<Accelerator>>,
}

// === impl StageQueues ===

impl StageQueues {
    /// Makes the stages, with a number of workers for each.
    pub(super) fn new(workers: [usize; 5]) -> Self {
        Self {
            queues: workers.map(|workers| StageQueue {
                waiting: BTreeMap::new(),
                workers,
                busy: 0,
                ended: 0,
                busy_us: 0,
            }),
            names: PipelineStage::ALL.map(|stage| stage.name().into()),
        }
    }

    /// Puts a partition before a stage.
    pub(super) fn push(&mut self, stage: PipelineStage, running: RunningPartition) {
        let replaced = self.queue(stage).waiting.insert(running.place(), running);
        debug_assert!(replaced.is_none(), "no place is taken twice");
    }

    /// The next partition that can enter a stage; in [`PipelineStage::Prove`] it takes one of `devices`. Later
    /// stages come first, since they free memory.
    pub(super) fn next(&mut self, devices: &mut Devices) -> Option<Entry> {
        PipelineStage::ALL
            .into_iter()
            .rev()
            .find_map(|stage| self.enter(stage, devices))
    }

    fn enter(&mut self, stage: PipelineStage, devices: &mut Devices) -> Option<Entry> {
        let queue = &self.queues[stage as usize];
        let (place, first) = queue.waiting.first_key_value()?;
        if queue.busy >= queue.workers || !self.has_room_after(stage, *place) {
            return None;
        }
        let device = match stage {
            PipelineStage::Prove => Some(devices.free(first.device(), first.curve())?),
            _ => None,
        };
        let queue = self.queue(stage);
        let (_, mut running) = queue.waiting.pop_first()?;
        queue.busy += 1;
        let Some(number) = device else {
            return Some(Entry {
                running,
                stage,
                worker: self.names[stage as usize].clone(),
                pool: None,
                accelerator: None,
            });
        };
        running.enter_device(number);
        let device = devices.begin(number);
        Some(Entry {
            running,
            stage,
            worker: device.name().clone(),
            pool: Some(device.pool().clone()),
            accelerator: device.accelerator().cloned(),
        })
    }

    /// Whether the stage after `stage` has room for one more: at most as many wait before it as it has
    /// workers, unless this partition would be the first of them.
    fn has_room_after(&self, stage: PipelineStage, place: WaitingPlace) -> bool {
        let Some(next) = stage.next() else {
            return true;
        };
        let next = &self.queues[next as usize];
        next.waiting.len() < next.workers
            || next
                .waiting
                .keys()
                .next()
                .is_none_or(|first| place < *first)
    }

    /// Records that a partition left a stage, after `us` microseconds.
    pub(super) fn leave(&mut self, stage: PipelineStage, us: u64) {
        let queue = self.queue(stage);
        queue.busy -= 1;
        queue.ended += 1;
        queue.busy_us += us;
    }

    /// Removes a job's partitions that wait before any stage, for the caller to drop.
    pub(super) fn remove(&mut self, job: JobId) -> Vec<RunningPartition> {
        let mut removed = Vec::new();
        for queue in &mut self.queues {
            let of_job = queue
                .waiting
                .values()
                .filter(|running| running.job() == job);
            let places: Vec<WaitingPlace> = of_job.map(|running| running.place()).collect();
            removed.extend(
                places
                    .iter()
                    .filter_map(|place| queue.waiting.remove(place)),
            );
        }
        removed
    }

    pub(super) fn status(&self) -> Vec<StageStatus> {
        PipelineStage::ALL
            .into_iter()
            .map(|stage| {
                let queue = &self.queues[stage as usize];
                StageStatus {
                    stage,
                    workers: queue.workers as u32,
                    busy: queue.busy as u32,
                    queued: queue.waiting.len() as u32,
                    ended: queue.ended,
                    busy_us: queue.busy_us,
                }
            })
            .collect()
    }

    /// Number of partitions in a stage or before one.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        let queues = self.queues.iter();
        queues.map(|queue| queue.busy + queue.waiting.len()).sum()
    }

    /// Panics if a stage has more partitions than workers, or a partition is stored under a wrong place.
    #[cfg(test)]
    pub(super) fn check(&self) {
        for queue in &self.queues {
            assert!(queue.busy <= queue.workers);
            let mut waiting = queue.waiting.iter();
            assert!(waiting.all(|(place, running)| *place == running.place()));
        }
    }

    fn queue(&mut self, stage: PipelineStage) -> &mut StageQueue {
        &mut self.queues[stage as usize]
    }
}
