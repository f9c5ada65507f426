//! A dispatcher: takes tasks, runs them, brings the results.

use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use proofmill_bus::{BlobStore, with_sources};
use tokio::sync::{mpsc, watch};
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::MissedTickBehavior;

use crate::coordinator::{CoordinatorGone, Handle, ToWorker};
use crate::core::{Complete, Fail, Join, Lease, LeaseRef, Output};
use crate::executor::{Cancel, Execution, Executor, Product, Resolved};
use crate::id::WorkerId;
use crate::message::grouping;
use crate::payload::Encoding;
use crate::plan::StageIx;
use crate::record::Failure;
use crate::shutdown::{Level, Shutdown};

/// Settings of a dispatcher.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name, unique among those alive.
    pub name: WorkerId,
    /// The worker group it belongs to.
    pub group: Arc<str>,
    /// The labels it has.
    pub labels: BTreeSet<String>,
    /// Bytes of memory it offers.
    pub memory: u64,
    /// Assignments that it works on at once (F_max).
    pub f_max: usize,
    /// Time between heartbeats.
    pub heartbeat: Duration,
}

/// A dispatcher, ready to run.
pub struct Dispatcher {
    options: Options,
    executors: Arc<BTreeMap<StageIx, Arc<dyn Executor>>>,
    blobs: Arc<BlobStore>,
    coordinator: Handle,
    running: BTreeMap<LeaseRef, Running>,
    /// What each assignment under way holds.
    assignments: HashMap<task::Id, Vec<LeaseRef>>,
}

struct Running {
    cancel: watch::Sender<bool>,
    assignment: task::Id,
}

// === impl Dispatcher ===

impl Dispatcher {
    /// A dispatcher that runs the tasks of each stage in `executors` (all of its worker group).
    pub fn new(
        options: Options,
        executors: Arc<BTreeMap<StageIx, Arc<dyn Executor>>>,
        blobs: Arc<BlobStore>,
        coordinator: Handle,
    ) -> Self {
        Self {
            options,
            executors,
            blobs,
            coordinator,
            running: BTreeMap::new(),
            assignments: HashMap::new(),
        }
    }

    /// Works until `shutdown`: on [`Level::Drain`] it finishes what it has, on [`Level::Stop`] it
    /// cancels it and hands it back.
    pub fn run(
        mut self,
        mut shutdown: Shutdown,
    ) -> BoxFuture<'static, Result<(), CoordinatorGone>> {
        // Boxed: compiled here, and not again in every program that calls it.
        Box::pin(async move {
            let (to_worker, mut inbox) = mpsc::unbounded_channel();
            self.join(to_worker.clone()).await?;
            let mut finished: JoinSet<()> = JoinSet::new();
            let mut heartbeat = tokio::time::interval(self.options.heartbeat);
            heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut draining = false;
            let mut stopping = shutdown.clone();
            loop {
                if draining && self.running.is_empty() {
                    break;
                }
                tokio::select! {
                    message = inbox.recv() => match message {
                        Some(ToWorker::Assign(leases)) if draining => self.hand_back(leases).await?,
                        Some(ToWorker::Assign(leases)) => self.begin(leases, &mut finished),
                        Some(ToWorker::Cancel(lease)) => self.cancel(&lease),
                        Some(ToWorker::Unknown) => {
                            self.join(to_worker.clone()).await?;
                            // Whoever leads now learns at once what is running here.
                            heartbeat.reset_immediately();
                        }
                        None => return Err(CoordinatorGone),
                    },
                    Some(ended) = finished.join_next_with_id(), if !finished.is_empty() => {
                        self.ended(ended).await?;
                    }
                    _ = heartbeat.tick() => {
                        let running = self.running.keys().cloned().collect();
                        let name = self.options.name.clone();
                        self.coordinator.heartbeat(name, running, draining).await?;
                    }
                    () = shutdown.reached(Level::Drain), if !draining => {
                        draining = true;
                        self.coordinator.retire(self.options.name.clone()).await?;
                    }
                    () = stopping.reached(Level::Stop), if draining => {
                        return self.stop(finished).await;
                    }
                }
            }
            self.coordinator.leave(self.options.name.clone()).await
        })
    }

    async fn join(
        &self,
        to_worker: mpsc::UnboundedSender<ToWorker>,
    ) -> Result<(), CoordinatorGone> {
        let join = Join {
            worker: self.options.name.clone(),
            group: self.options.group.clone(),
            labels: self.options.labels.clone(),
            memory: self.options.memory,
            slots: self.options.f_max,
        };
        self.coordinator.join(join, to_worker).await
    }

    /// What was assigned before the coordinator heard that this dispatcher drains.
    async fn hand_back(&self, leases: Vec<Lease>) -> Result<(), CoordinatorGone> {
        for lease in leases {
            let worker = self.options.name.clone();
            self.coordinator.release(worker, lease.name()).await?;
        }
        Ok(())
    }

    /// Cancels everything, hands it back, and waits until nothing of it runs any more.
    async fn stop(mut self, mut finished: JoinSet<()>) -> Result<(), CoordinatorGone> {
        for (lease, running) in std::mem::take(&mut self.running) {
            // The execution may have ended on its own.
            let _ = running.cancel.send(true);
            self.coordinator
                .release(self.options.name.clone(), lease)
                .await?;
        }
        // Native provers cannot be interrupted: their threads end with the process.
        let _ = tokio::time::timeout(Duration::from_secs(5), async {
            while finished.join_next().await.is_some() {}
        })
        .await;
        self.coordinator.leave(self.options.name.clone()).await
    }

    /// An assignment has ended. Its results were reported by itself, unless it panicked.
    async fn ended(
        &mut self,
        ended: Result<(task::Id, ()), JoinError>,
    ) -> Result<(), CoordinatorGone> {
        let (id, panic) = match ended {
            Ok((id, ())) => (id, None),
            Err(error) => (error.id(), Some(error.to_string())),
        };
        for lease in self.assignments.remove(&id).unwrap_or_default() {
            // The same lease may have been given anew, after a dead letter was retried.
            if self
                .running
                .get(&lease)
                .is_none_or(|running| running.assignment != id)
            {
                continue;
            }
            self.running.remove(&lease);
            if let Some(panic) = &panic {
                let reason = format!("the executor failed: {panic}");
                let failure = Failure {
                    reason,
                    ..Failure::default()
                };
                let worker = self.options.name.clone();
                self.coordinator
                    .fail(Fail {
                        worker,
                        lease,
                        failure,
                    })
                    .await?;
            }
        }
        Ok(())
    }

    fn cancel(&mut self, lease: &LeaseRef) {
        if let Some(running) = self.running.remove(lease) {
            // As above.
            let _ = running.cancel.send(true);
        }
    }

    fn begin(&mut self, leases: Vec<Lease>, finished: &mut JoinSet<()>) {
        let work = Work {
            worker: self.options.name.clone(),
            executors: self.executors.clone(),
            blobs: self.blobs.clone(),
            coordinator: self.coordinator.clone(),
        };
        let mut names = Vec::with_capacity(leases.len());
        let mut cancels = Vec::with_capacity(leases.len());
        let mut batch = Vec::with_capacity(leases.len());
        for lease in leases {
            let (sender, cancel) = Cancel::new();
            let name = lease.name();
            names.push(name.clone());
            cancels.push(sender);
            batch.push((name, lease, cancel));
        }
        let assignment = finished.spawn(async move {
            // The coordinator is gone: the dispatcher finds out by itself.
            let _ = work.run(batch).await;
        });
        let assignment = assignment.id();
        for (name, cancel) in names.iter().zip(cancels) {
            self.running
                .insert(name.clone(), Running { cancel, assignment });
        }
        self.assignments.insert(assignment, names);
    }
}

/// What it takes to run one assignment.
struct Work {
    worker: WorkerId,
    executors: Arc<BTreeMap<StageIx, Arc<dyn Executor>>>,
    blobs: Arc<BlobStore>,
    coordinator: Handle,
}

impl Work {
    async fn run(&self, batch: Vec<(LeaseRef, Lease, Cancel)>) -> Result<(), CoordinatorGone> {
        let Some(stage) = batch.first().map(|(_, lease, _)| lease.stage) else {
            return Ok(());
        };
        let mut names = Vec::with_capacity(batch.len());
        let mut executions = Vec::with_capacity(batch.len());
        for (name, lease, cancel) in batch {
            match Resolved::fetch(&lease.task.payload, &self.blobs).await {
                Ok(input) => {
                    names.push((name, cancel.clone()));
                    let (task, attempt) = (lease.task, lease.attempt);
                    executions.push(Execution {
                        task,
                        attempt,
                        input,
                        cancel,
                    });
                }
                Err(error) => self.failed(name, with_sources(&error)).await?,
            }
        }
        let Some(executor) = self.executors.get(&stage) else {
            for (name, _) in names {
                self.failed(name, "this dispatcher has no executor for the stage".into())
                    .await?;
            }
            return Ok(());
        };
        let results = executor.execute(executions).await;
        for ((name, cancel), result) in names.into_iter().zip(results) {
            if cancel.is_raised() {
                continue;
            }
            match result {
                Ok(product) => self.completed(stage, name, product).await?,
                Err(failure) => {
                    let worker = self.worker.clone();
                    self.coordinator
                        .fail(Fail {
                            worker,
                            lease: name,
                            failure,
                        })
                        .await?;
                }
            }
        }
        Ok(())
    }

    async fn failed(&self, lease: LeaseRef, reason: String) -> Result<(), CoordinatorGone> {
        let failure = Failure {
            reason,
            ..Failure::default()
        };
        self.coordinator
            .fail(Fail {
                worker: self.worker.clone(),
                lease,
                failure,
            })
            .await
    }

    async fn completed(
        &self,
        stage: StageIx,
        lease: LeaseRef,
        product: Product,
    ) -> Result<(), CoordinatorGone> {
        let plan = self.coordinator.plan();
        let mut queues = plan.stage(stage).outputs.iter();
        let several = plan.stage(stage).dispatcher();
        let several = several.is_some_and(|of| of.speculation.accept > 1);
        // Several results are one record in the end, as those that a collector gathers are.
        let collected = several || queues.any(|queue| plan.is_collected(*queue));
        let mut outputs = Vec::with_capacity(product.outputs.len());
        // Until the coordinator has the result nothing else names its blobs.
        let mut held = Vec::new();
        for (index, (encoding, bytes)) in product.outputs.into_iter().enumerate() {
            let json = (encoding == Encoding::Json).then_some(&*bytes);
            let queues = &plan.stage(stage).outputs;
            let grouping = queues
                .iter()
                .flat_map(|queue| grouping(plan, *queue, json))
                .collect();
            match Resolved::store(encoding, bytes, collected, &self.blobs).await {
                Ok((payload, hold)) => {
                    held.extend(hold);
                    let element = product.fan_out.then_some(index);
                    outputs.push(Output {
                        element,
                        payload,
                        grouping,
                    });
                }
                Err(error) => {
                    let reason = format!("the result cannot be stored: {}", with_sources(&error));
                    return self.failed(lease, reason).await;
                }
            }
        }
        let worker = self.worker.clone();
        self.coordinator
            .complete(Complete {
                worker,
                lease,
                outputs,
                ran: product.ran,
            })
            .await
    }
}
