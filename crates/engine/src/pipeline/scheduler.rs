//! The task that makes all decisions. It takes one event at a time, updates the parts that the event
//! concerns, and starts the work that follows. Slow work runs outside the task and comes back as an event.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use proofmill_bus::Durable;
use proofmill_shutdown::{Level, Shutdown};
use tokio::sync::{mpsc, oneshot, watch};

use super::admission::Admission;
use super::background::Background;
use super::command::Command;
use super::device::Device;
use super::devices::Devices;
use super::flight::WaitingPlace;
use super::jobs::Jobs;
use super::lanes::StageQueues;
use super::results::{Ended, Results};
use super::tally::Counters;
use super::underway::ActiveCount;
use super::unwritten::PendingDurability;
use crate::events::{Events, unix_ms};
use crate::generator::Generator;
use crate::inputs::Inputs;
use crate::interface::{CircuitRef, Error, EventKind, JobId, Owner, PipelineStage};
use crate::options::{Interference, Options};
use crate::queue::{Journal, PartitionRecord, Recovered};
use crate::residency::ResidencyTable;

#[cfg(test)]
#[path = "simulation/mod.rs"]
mod simulation;

/// Longest sleep, after which the clock is read again.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Most commands taken in one turn before other events are handled.
const COMMANDS_PER_TURN: usize = 64;

/// The parts of the engine that stages and the scheduler share.
pub(crate) struct Env {
    pub(crate) events: Events,
    pub(crate) inputs: Inputs,
    pub(crate) generators: BTreeMap<String, Generator>,
    pub(crate) interference: Option<Arc<dyn Interference>>,
    /// The pool that stages share.
    pub(crate) pool: Arc<rayon::ThreadPool>,
}

/// The consequence of a record, once it is on disk.
pub(super) enum Consequence {
    /// A job is accepted.
    Accepted(JobId),
    /// A job has ended.
    Ended(JobId),
    /// The list of circuits is stored: its caller is answered.
    Kept(oneshot::Sender<Result<(), Error>>),
}

/// The parts, each of which owns its state, and the resources that they use. The [module](super) describes
/// each part.
pub(crate) struct Scheduler {
    pub(super) env: Arc<Env>,
    pub(super) residency: ResidencyTable,
    pub(super) journal: Journal,
    commands: mpsc::Receiver<Command>,
    pub(super) background: Background,
    pub(super) jobs: Jobs,
    pub(super) results: Results,
    pub(super) admission: Admission,
    pub(super) active: ActiveCount,
    pub(super) stage_queues: StageQueues,
    pub(super) devices: Devices,
    pub(super) pending: PendingDurability<Consequence>,
    pub(super) counters: Counters,
    pub(super) draining: bool,
}

// === impl Scheduler ===

impl Scheduler {
    pub(crate) fn new(
        options: &Options,
        env: Arc<Env>,
        residency: ResidencyTable,
        journal: Journal,
        commands: mpsc::Receiver<Command>,
        devices: Vec<Device>,
    ) -> Self {
        Self {
            background: Background::new(env.clone()),
            jobs: Jobs::new(options.attempts),
            results: Results::new(
                options.result_ttl,
                env.inputs.limits().results,
                options.recent,
            ),
            admission: Admission::new(
                options.partition_workers,
                options.express_workers,
                options.batch,
            ),
            active: ActiveCount::default(),
            stage_queues: StageQueues::new(PipelineStage::ALL.map(|stage| options.workers(stage))),
            devices: Devices::new(devices),
            pending: PendingDurability::new(),
            counters: Counters::default(),
            draining: false,
            env,
            residency,
            journal,
            commands,
        }
    }

    /// Restores the state that the log held.
    pub(crate) fn recover(&mut self, recovered: Recovered) {
        for end in recovered.ends {
            self.results.keep(Ended::recovered(end));
        }
        for job in recovered.jobs {
            self.insert_job(job, None);
        }
    }

    /// See [`Service::run`](crate::Service::run).
    pub(crate) async fn run(mut self, mut shutdown: Shutdown) -> Result<(), Error> {
        let mut durable = self.journal.durable();
        let mut turn = Vec::with_capacity(COMMANDS_PER_TURN);
        let mut handles = true;
        let outcome = loop {
            if let Err(error) = self.advance().await {
                break Err(error);
            }
            if self.draining && self.jobs.is_empty() && self.pending.is_empty() {
                break Ok(());
            }
            let sleep = self.until_next();
            let worked = tokio::select! {
                count = self.commands.recv_many(&mut turn, COMMANDS_PER_TURN), if handles => {
                    handles = count > 0;
                    // Without handles no request can come, and accepted jobs are finished.
                    self.draining |= !handles;
                    self.take_turn(&mut turn).await
                }
                completion = self.background.next() => {
                    self.completed(completion);
                    // Handles all that have come back, so that the first in line goes first.
                    while let Some(completion) = self.background.try_next() {
                        self.completed(completion);
                    }
                    Ok(())
                }
                (place, job, acquired) = self.admission.admitted() => {
                    self.admitted(place, job, acquired);
                    Ok(())
                }
                changed = durable.changed() => match changed {
                    Ok(()) => self.release(&durable).await,
                    Err(_) => Err(Error::Storage("the log was closed".to_owned())),
                },
                () = tokio::time::sleep(sleep) => self.tick().await,
                () = wait_for_shutdown_level(&mut shutdown, self.draining) => {
                    if self.draining {
                        break Ok(());
                    }
                    // A shutdown that means to stop is signalled again.
                    self.draining = true;
                    Ok(())
                }
            };
            if let Err(error) = worked {
                break Err(error);
            }
            // The log accepts and syncs records while the turn goes on.
            if let Err(error) = self.release(&durable).await {
                break Err(error);
            }
        };
        self.finish().await;
        outcome
    }

    /// Carries out commands, up to the first failure of the log.
    async fn take_turn(&mut self, turn: &mut Vec<Command>) -> Result<(), Error> {
        for command in turn.drain(..) {
            self.command(command).await?;
        }
        Ok(())
    }

    /// Waits for the partitions under way: a stage that is being computed cannot be interrupted.
    async fn finish(mut self) {
        self.jobs.stop_all();
        let ids: Vec<JobId> = self.jobs.iter().map(|(id, _)| id).collect();
        for id in ids {
            self.remove_waiting(id);
        }
        while self.active.count() > 0 {
            let completion = self.background.next().await;
            self.drop_running(completion.into_running());
        }
    }

    /// Removes a job's partitions from all lines in which they wait.
    pub(super) fn remove_waiting(&mut self, id: JobId) {
        self.admission.remove(id);
        for running in self.stage_queues.remove(id) {
            self.drop_running(running);
        }
    }

    /// Does all work that can be done now.
    async fn advance(&mut self) -> Result<(), Error> {
        while let Some((job, state)) = self.jobs.next_ending() {
            self.end(job, state).await?;
        }
        while let Some(first) = self.admission.next(self.active.count()) {
            let (place, job) = self.pick_job_with_resident_key(first).unwrap_or(first);
            self.ask(place, first.0, job);
        }
        while let Some(entry) = self.stage_queues.next(&mut self.devices) {
            let began_us = self.env.events.now();
            self.env.events.send(EventKind::Began {
                span: entry.running.span(),
                stage: entry.stage,
                worker: entry.worker.clone(),
            });
            self.background.run(entry, began_us);
        }
        Ok(())
    }

    /// A partition that overtakes the first in line: one whose key is in memory, if another key would have
    /// to be evicted to load the first partition's key.
    fn pick_job_with_resident_key(
        &mut self,
        first: (WaitingPlace, JobId),
    ) -> Option<(WaitingPlace, JobId)> {
        let (place, job) = first;
        let partition = self.jobs.get(job)?.partition(place.partition)?;
        let work = self.work_bytes(partition);
        if !self.residency.must_evict_for(partition.circuit, work) {
            return None;
        }
        let (jobs, residency) = (&self.jobs, &self.residency);
        let is_ready = |place: WaitingPlace, job| {
            let partition = jobs.get(job).and_then(|job| job.partition(place.partition));
            partition.is_some_and(|it| residency.has(it.circuit))
        };
        self.admission.overtaking(first, is_ready)
    }

    /// Asks for the memory of a partition, with the rank `rank` in the line.
    fn ask(&mut self, place: WaitingPlace, rank: WaitingPlace, id: JobId) {
        let job = self.jobs.get(id);
        let Some(partition) = job.and_then(|job| job.partition(place.partition)) else {
            return;
        };
        let (circuit, work) = (partition.circuit, self.work_bytes(partition));
        let owner = Owner::Partition(id, place.partition);
        let (residency, priority) = (self.residency.clone(), place.priority.0);
        let acquired = async move { residency.acquire(circuit, work, owner, priority).await };
        self.admission.ask(place, rank, id, Box::pin(acquired));
    }

    /// Bytes that a partition uses beside the key; 0 if its circuit is no longer registered, which the
    /// residency reports.
    pub(super) fn work_bytes(&self, partition: &PartitionRecord) -> u64 {
        let circuit = CircuitRef::Id(partition.circuit);
        self.residency.circuit(&circuit).map_or(0, |circuit| {
            circuit.footprint(self.residency.form()).peak()
                + self.generator_bytes(partition.input.generator.as_deref())
        })
    }

    fn generator_bytes(&self, generator: Option<&str>) -> u64 {
        match generator.and_then(|name| self.env.generators.get(name)) {
            Some(Generator::Program(program)) => program.memory,
            _ => 0,
        }
    }

    /// Time until the next deadline or expiry, at most [`SLEEP_MAX`].
    fn until_next(&self) -> Duration {
        let now = unix_ms(SystemTime::now());
        [self.jobs.next_deadline(), self.results.next_expiry()]
            .into_iter()
            .flatten()
            .map(|at| Duration::from_millis(at.saturating_sub(now)))
            .min()
            .map_or(SLEEP_MAX, |sleep| sleep.min(SLEEP_MAX))
    }

    /// Does the work that is due by the clock.
    async fn tick(&mut self) -> Result<(), Error> {
        let now = unix_ms(SystemTime::now());
        self.jobs.expire(now);
        self.prune(now).await
    }

    /// Carries out the consequences of records that are on disk by now.
    async fn release(&mut self, durable: &watch::Receiver<Durable>) -> Result<(), Error> {
        let (reached, failure) = {
            let durable = durable.borrow();
            (durable.seq, durable.failed.clone())
        };
        while let Some(consequence) = self.pending.next(reached) {
            match consequence {
                Consequence::Accepted(job) => self.accepted(job),
                Consequence::Ended(job) => self.settle(job).await?,
                Consequence::Kept(reply) => drop(reply.send(Ok(()))),
            }
        }
        failure.map_or(Ok(()), |failure| Err(Error::Storage(failure.to_string())))
    }

    /// Panics if a part contradicts itself or another one.
    #[cfg(test)]
    fn check(&self) {
        self.jobs.check();
        self.results.check();
        self.admission.check();
        self.active.check();
        self.stage_queues.check();
        self.pending.check();
        // Partitions that are not with a stage are loading their key.
        assert!(self.stage_queues.count() <= self.active.count());
        for (place, id) in self.admission.all() {
            let job = self.jobs.get(id).expect("a job that waits is there");
            assert!(!job.is_ending() && job.places().any(|it| it == place));
        }
        assert!(
            self.jobs
                .iter()
                .all(|(id, _)| self.results.get(id).is_none())
        );
    }
}

/// Waits for the next shutdown level: first draining, then stopping.
async fn wait_for_shutdown_level(shutdown: &mut Shutdown, draining: bool) {
    let next = if draining { Level::Stop } else { Level::Drain };
    shutdown.reached(next).await;
}
