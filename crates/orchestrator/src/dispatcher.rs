//! A dispatcher: takes tasks, runs them and returns the results.
//!
//! A failure of the machine ([`MachineFailure`]) does not count as an attempt: the task is handed back
//! untried. The dispatcher then takes no tasks, and reports the reason, until a probe of the machine
//! succeeds.

mod pause;
mod work;

use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use proofmill_bus::BlobStore;
use tokio::sync::mpsc;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Span;

use self::pause::{Machine, Pause};
use self::work::Work;
use crate::conversation::{Lease, LeaseRef, WorkerCommand, WorkerEvent, WorkerFailure, WorkerJoin};
use crate::coordinator::CoordinatorGone;
use crate::executor::Executor;
use crate::id::WorkerId;
use crate::plan::StageIx;
use crate::port::WorkerPort;
use crate::record::Failure;
use crate::shutdown::{Level, Shutdown};
use proofmill_process::MachineFailure;

/// Settings of a dispatcher.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name, unique among live dispatchers.
    pub name: WorkerId,
    /// Worker group that it belongs to.
    pub group: Arc<str>,
    /// Labels that it has.
    pub labels: BTreeSet<String>,
    /// Memory that it offers, bytes.
    pub memory: u64,
    /// Maximum number of concurrent assignments (F_max).
    pub f_max: usize,
    /// Time between heartbeats.
    pub heartbeat: Duration,
}

/// A dispatcher, ready to run.
pub struct Dispatcher {
    options: Options,
    executors: Arc<BTreeMap<StageIx, Arc<dyn Executor>>>,
    blobs: Arc<BlobStore>,
    coordinator: WorkerPort,
    running: BTreeMap<LeaseRef, Running>,
    /// Leases of each assignment under way.
    assignments: HashMap<task::Id, Vec<LeaseRef>>,
    pause: Pause,
    machine_failures: (
        mpsc::UnboundedSender<MachineFailureReport>,
        mpsc::UnboundedReceiver<MachineFailureReport>,
    ),
}

/// A failure of the machine during an assignment.
struct MachineFailureReport {
    failure: MachineFailure,
    /// Leases to hand back because the assignment cannot continue them; empty if it waits and tries again
    /// itself.
    leases: Vec<LeaseRef>,
    /// Span of the log lines about the attempt.
    log: Span,
}

struct Running {
    /// Cancels the execution when it is dropped.
    _cancel: DropGuard,
    assignment: task::Id,
}

// === impl Dispatcher ===

impl Dispatcher {
    /// A dispatcher that runs the tasks of each stage with `executors`, which must cover its worker group.
    pub fn new(
        options: Options,
        executors: Arc<BTreeMap<StageIx, Arc<dyn Executor>>>,
        blobs: Arc<BlobStore>,
        coordinator: WorkerPort,
    ) -> Self {
        Self {
            pause: Pause::new(options.name.clone()),
            options,
            executors,
            blobs,
            coordinator,
            running: BTreeMap::new(),
            assignments: HashMap::new(),
            machine_failures: mpsc::unbounded_channel(),
        }
    }

    /// Works until `shutdown`: at [`Level::Drain`] it finishes its tasks, at [`Level::Stop`] it cancels them
    /// and hands them back.
    pub fn run(
        mut self,
        mut shutdown: Shutdown,
    ) -> BoxFuture<'static, Result<(), CoordinatorGone>> {
        // Boxed, so that it is compiled here and not again in every program that calls it.
        Box::pin(async move {
            let (to_worker, mut inbox) = mpsc::unbounded_channel();
            self.join(to_worker.clone()).await?;
            self.prepare();
            let mut finished: JoinSet<bool> = JoinSet::new();
            let machine = Machine {
                executors: self.executors.clone(),
                blobs: self.blobs.clone(),
            };
            let mut heartbeat = tokio::time::interval(self.options.heartbeat);
            heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut draining = false;
            let mut stopping = shutdown.clone();
            loop {
                // Messages that an assignment sent before its end are handled before the end itself.
                while let Ok(report) = self.machine_failures.1.try_recv() {
                    self.handle_machine_failure(report, draining).await?;
                }
                if draining && self.running.is_empty() {
                    break;
                }
                tokio::select! {
                    message = inbox.recv() => match message {
                        Some(WorkerCommand::Assign(leases)) if draining || self.pause.is_on() => {
                            self.hand_back(leases).await?;
                        }
                        Some(WorkerCommand::Assign(leases)) => self.begin(leases, &mut finished),
                        Some(WorkerCommand::Cancel(lease)) => self.cancel(&lease),
                        Some(WorkerCommand::Unknown) => {
                            self.join(to_worker.clone()).await?;
                            // The new leader learns at once which leases run here.
                            heartbeat.reset_immediately();
                        }
                        None => return Err(CoordinatorGone),
                    },
                    Some(ended) = finished.join_next_with_id(), if !finished.is_empty() => {
                        self.ended(ended).await?;
                    }
                    Some(report) = self.machine_failures.1.recv() => {
                        self.handle_machine_failure(report, draining).await?;
                    }
                    _ = self.pause.probed(&machine) => self.beat(draining).await?,
                    _ = heartbeat.tick() => self.beat(draining).await?,
                    () = shutdown.reached(Level::Drain), if !draining => {
                        draining = true;
                        let worker = self.options.name.clone();
                        self.coordinator.send_event(WorkerEvent::Retire { worker }).await?;
                    }
                    () = stopping.reached(Level::Stop), if draining => {
                        return self.stop(finished).await;
                    }
                }
            }
            let worker = self.options.name.clone();
            self.coordinator
                .send_event(WorkerEvent::Leave { worker })
                .await
        })
    }

    /// Begins to load what the first tasks need.
    fn prepare(&self) {
        let executors = self.executors.clone();
        tokio::spawn(async move {
            for executor in executors.values() {
                executor.prepare().await;
            }
        });
    }

    async fn join(
        &self,
        to_worker: mpsc::UnboundedSender<WorkerCommand>,
    ) -> Result<(), CoordinatorGone> {
        let join = WorkerJoin {
            worker: self.options.name.clone(),
            group: self.options.group.clone(),
            labels: self.options.labels.clone(),
            memory: self.options.memory,
            slots: self.options.f_max,
        };
        self.coordinator.join(join, to_worker).await
    }

    async fn beat(&self, draining: bool) -> Result<(), CoordinatorGone> {
        let running = self.running.keys().cloned().collect();
        let beat = WorkerEvent::Heartbeat {
            worker: self.options.name.clone(),
            running,
            retired: draining,
            paused: self.pause.reason(),
        };
        self.coordinator.send_event(beat).await
    }

    /// Pauses after a failure of the machine, and hands back the leases that cannot continue.
    async fn handle_machine_failure(
        &mut self,
        report: MachineFailureReport,
        draining: bool,
    ) -> Result<(), CoordinatorGone> {
        for lease in &report.leases {
            self.running.remove(lease);
        }
        if report.log.in_scope(|| self.pause.begin(&report.failure)) {
            // Sent before the tasks go back, so that they do not come here again.
            self.beat(draining).await?;
        }
        for lease in report.leases {
            let worker = self.options.name.clone();
            let release = WorkerEvent::Release { worker, lease };
            self.coordinator.send_event(release).await?;
        }
        Ok(())
    }

    /// Hands back tasks that were assigned before the coordinator heard that this dispatcher drains
    /// or is paused.
    async fn hand_back(&self, leases: Vec<Lease>) -> Result<(), CoordinatorGone> {
        for lease in leases {
            let (worker, lease) = (self.options.name.clone(), lease.reference());
            let release = WorkerEvent::Release { worker, lease };
            self.coordinator.send_event(release).await?;
        }
        Ok(())
    }

    /// Cancels all tasks, hands them back, and waits up to 5 s until none runs any more.
    async fn stop(mut self, mut finished: JoinSet<bool>) -> Result<(), CoordinatorGone> {
        for (lease, running) in std::mem::take(&mut self.running) {
            drop(running);
            let worker = self.options.name.clone();
            let release = WorkerEvent::Release { worker, lease };
            self.coordinator.send_event(release).await?;
        }
        // Native provers cannot be interrupted: their threads end with the process.
        let _ = tokio::time::timeout(Duration::from_secs(5), async {
            while finished.join_next().await.is_some() {}
        })
        .await;
        let worker = self.options.name.clone();
        self.coordinator
            .send_event(WorkerEvent::Leave { worker })
            .await
    }

    /// Handles the end of an assignment. It has reported its own results, unless it panicked.
    async fn ended(
        &mut self,
        ended: Result<(task::Id, bool), JoinError>,
    ) -> Result<(), CoordinatorGone> {
        let (id, panic) = match ended {
            Ok((id, completed_any)) => {
                if completed_any {
                    self.pause.note_completion();
                }
                (id, None)
            }
            Err(error) => (error.id(), Some(error.to_string())),
        };
        for lease in self.assignments.remove(&id).unwrap_or_default() {
            // The same lease may have been given again, after a dead letter was retried.
            if self
                .running
                .get(&lease)
                .is_none_or(|running| running.assignment != id)
            {
                continue;
            }
            self.running.remove(&lease);
            if let Some(panic) = &panic {
                let failure = Failure::retryable(format!("the executor failed: {panic}"));
                let worker = self.options.name.clone();
                self.coordinator
                    .send_event(WorkerEvent::Fail(WorkerFailure {
                        worker,
                        lease,
                        failure,
                    }))
                    .await?;
            }
        }
        Ok(())
    }

    fn cancel(&mut self, lease: &LeaseRef) {
        self.running.remove(lease);
    }

    fn begin(&mut self, leases: Vec<Lease>, finished: &mut JoinSet<bool>) {
        let work = Work {
            worker: self.options.name.clone(),
            executors: self.executors.clone(),
            blobs: self.blobs.clone(),
            coordinator: self.coordinator.clone(),
            machine_failures: self.machine_failures.0.clone(),
        };
        let mut names = Vec::with_capacity(leases.len());
        let mut cancels = Vec::with_capacity(leases.len());
        let mut batch = Vec::with_capacity(leases.len());
        for lease in leases {
            let cancel = CancellationToken::new();
            let name = lease.reference();
            names.push(name.clone());
            cancels.push(cancel.clone().drop_guard());
            batch.push((name, lease, cancel));
        }
        let assignment = finished.spawn(async move {
            // A dispatcher notices by itself that the coordinator has gone.
            work.run(batch).await.unwrap_or(false)
        });
        let assignment = assignment.id();
        for (name, _cancel) in names.iter().zip(cancels) {
            let running = Running {
                _cancel,
                assignment,
            };
            self.running.insert(name.clone(), running);
        }
        self.assignments.insert(assignment, names);
    }
}
