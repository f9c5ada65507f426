//! The work on one assignment: fetching inputs, running them, storing and reporting results.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proofmill_bus::{BlobStore, Held, with_sources};
use proofmill_process::MachineFailure;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use super::MachineFailureReport;
use crate::clock::wall_ms;
use crate::conversation::{Lease, LeaseRef, Output, WorkerEvent, WorkerFailure, WorkerResult};
use crate::coordinator::CoordinatorGone;
use crate::executor::{
    Execution, Executor, Product, Resolved, Unfinished, failure_of_fetching, failure_of_storing,
};
use crate::id::WorkerId;
use crate::message::grouping;
use crate::payload::{Encoding, Payload};
use crate::plan::{Plan, StageIx};
use crate::port::WorkerPort;
use crate::record::{Failure, TaskRecord};
use crate::traces::{attempt_log_span, run_span};

/// Maximum time for which a result that cannot be stored is kept, with its lease, before the task is handed
/// back. Proving anew may cost more than waiting, but other workers may be able to store it.
const RESULT_KEPT_MAX: Duration = Duration::from_secs(60);

/// First delay between two attempts to store a result. Each delay is twice the one before, up to
/// [`STORE_DELAY_MAX`].
const STORE_DELAY_MIN: Duration = Duration::from_millis(250);
/// Longest delay between two attempts to store a result.
const STORE_DELAY_MAX: Duration = Duration::from_secs(5);

/// An attempt whose input is there.
struct Begun {
    lease: LeaseRef,
    task: Arc<TaskRecord>,
    cancel: CancellationToken,
    /// Span of the log lines about the attempt.
    log: Span,
}

/// The work on one attempt, for its trace.
struct RunTrace<'a> {
    plan: &'a Arc<Plan>,
    worker: &'a WorkerId,
    attempt: u32,
    task: &'a Arc<TaskRecord>,
    begun_ms: u64,
}

// === impl RunTrace ===

impl RunTrace<'_> {
    /// Records the work: how long the executor itself ran, or the reason why there is no result.
    fn end(&self, outcome: Result<Duration, &str>) {
        let (by, times) = ((self.worker, self.attempt), (self.begun_ms, wall_ms()));
        run_span(self.plan, self.task, by, times, outcome);
    }
}

/// Resources for running one assignment.
pub(super) struct Work {
    pub(super) worker: WorkerId,
    pub(super) executors: Arc<BTreeMap<StageIx, Arc<dyn Executor>>>,
    pub(super) blobs: Arc<BlobStore>,
    pub(super) coordinator: WorkerPort,
    pub(super) machine_failures: mpsc::UnboundedSender<MachineFailureReport>,
}

// === impl Work ===

impl Work {
    /// Runs an assignment and reports its results. Returns whether a task was completed.
    pub(super) async fn run(
        &self,
        batch: Vec<(LeaseRef, Lease, CancellationToken)>,
    ) -> Result<bool, CoordinatorGone> {
        let Some(stage) = batch.first().map(|(_, lease, _)| lease.stage) else {
            return Ok(false);
        };
        let begun_ms = wall_ms();
        let mut begun = Vec::with_capacity(batch.len());
        let mut executions = Vec::with_capacity(batch.len());
        for (name, lease, cancel) in batch {
            let log = attempt_log_span(&lease.task, lease.attempt);
            let fetched = Resolved::fetch(&lease.task.payload, &self.blobs);
            match fetched.instrument(log.clone()).await {
                Ok(input) => {
                    let (task, attempt) = (lease.task, lease.attempt);
                    let trace = task.trace.of_attempt(&task.id, &self.worker, attempt);
                    begun.push(Begun {
                        lease: name,
                        task: task.clone(),
                        cancel: cancel.clone(),
                        log,
                    });
                    executions.push(Execution {
                        task,
                        attempt,
                        input,
                        trace,
                        cancel,
                    });
                }
                Err(error) => {
                    let failed = async {
                        match failure_of_fetching(&error) {
                            Some(failure) => {
                                self.report_machine_failure(failure, vec![name]);
                                Ok(())
                            }
                            None => {
                                let failure = Failure::retryable(with_sources(&error));
                                self.failed(name, failure).await
                            }
                        }
                    };
                    failed.instrument(log).await?;
                }
            }
        }
        let Some(executor) = self.executors.get(&stage) else {
            for begun in begun {
                let reason = "this dispatcher has no executor for the stage";
                self.failed(begun.lease, Failure::retryable(reason)).await?;
            }
            return Ok(false);
        };
        // Log lines of a batch that is run together name its first task.
        let log = begun.first().map_or_else(Span::none, |it| it.log.clone());
        let results = executor.execute(executions).instrument(log).await;
        let mut completed_any = false;
        for (begun, result) in begun.into_iter().zip(results) {
            let log = begun.log.clone();
            let ended = self.ended(stage, begun, begun_ms, result);
            completed_any |= ended.instrument(log).await?;
        }
        Ok(completed_any)
    }

    /// Records and reports the end of an attempt. Returns whether its task was completed.
    async fn ended(
        &self,
        stage: StageIx,
        begun: Begun,
        begun_ms: u64,
        result: Result<Product, Unfinished>,
    ) -> Result<bool, CoordinatorGone> {
        let Begun {
            lease,
            task,
            cancel,
            ..
        } = begun;
        let run = RunTrace {
            plan: self.coordinator.plan(),
            worker: &self.worker,
            attempt: lease.attempt,
            task: &task,
            begun_ms,
        };
        if cancel.is_cancelled() {
            run.end(Err("its result is no longer wanted"));
            return Ok(false);
        }
        match result {
            Ok(product) => {
                let ran = product.ran;
                let stored = self.completed(stage, lease, product, cancel).await?;
                run.end(match stored {
                    true => Ok(ran),
                    false => Err("its result could not be stored, or is no longer wanted"),
                });
                Ok(stored)
            }
            Err(Unfinished::Machine(failure)) => {
                run.end(Err(&failure.to_string()));
                self.report_machine_failure(failure, vec![lease]);
                Ok(false)
            }
            Err(Unfinished::Failed(failure)) => {
                run.end(Err(&failure.reason));
                self.failed(lease, failure).await?;
                Ok(false)
            }
        }
    }

    /// Reports a failure of the machine to the dispatcher.
    fn report_machine_failure(&self, failure: MachineFailure, leases: Vec<LeaseRef>) {
        // A dispatcher that has stopped has handed all leases back.
        let _ = self.machine_failures.send(MachineFailureReport {
            failure,
            leases,
            log: Span::current(),
        });
    }

    async fn failed(&self, lease: LeaseRef, failure: Failure) -> Result<(), CoordinatorGone> {
        tracing::info!(worker = %self.worker, why = failure.reason, "the attempt has failed");
        self.coordinator
            .send_event(WorkerEvent::Fail(WorkerFailure {
                worker: self.worker.clone(),
                lease,
                failure,
            }))
            .await
    }

    /// Stores and reports a result. Returns whether it could be stored.
    async fn completed(
        &self,
        stage: StageIx,
        lease: LeaseRef,
        product: Product,
        cancel: CancellationToken,
    ) -> Result<bool, CoordinatorGone> {
        let plan = self.coordinator.plan();
        let mut queues = plan.stage(stage).outputs.iter();
        let several = plan.stage(stage).dispatcher();
        let several = several.is_some_and(|of| of.speculation.accept > 1);
        // Several results become one record in the end, as the members of a collector's group do.
        let collected = several || queues.any(|queue| plan.is_collected(*queue));
        let mut outputs = Vec::with_capacity(product.outputs.len());
        let give_up = Instant::now() + RESULT_KEPT_MAX;
        // Until the coordinator has the result, no record refers to its blobs.
        let mut held = Vec::new();
        for (index, (encoding, bytes)) in product.outputs.into_iter().enumerate() {
            let json = (encoding == Encoding::Json).then_some(&*bytes);
            let queues = &plan.stage(stage).outputs;
            let grouping = queues
                .iter()
                .flat_map(|queue| grouping(plan, *queue, json))
                .collect();
            let stored = self.store(encoding, bytes, collected, &cancel, give_up);
            match stored.await {
                Some(Ok((payload, hold))) => {
                    held.extend(hold);
                    let element = product.fan_out.then_some(index);
                    outputs.push(Output {
                        element,
                        payload,
                        grouping,
                    });
                }
                Some(Err(failure)) => {
                    self.report_machine_failure(failure, vec![lease]);
                    return Ok(false);
                }
                None => return Ok(false),
            }
        }
        let worker = self.worker.clone();
        self.coordinator
            .send_event(WorkerEvent::Complete(WorkerResult {
                worker,
                lease,
                outputs,
                ran: product.ran,
            }))
            .await?;
        Ok(true)
    }

    /// Stores one message of a result: inline, or as a blob. Tries again until `give_up` while the store is
    /// unusable; the dispatcher is paused in the meantime. `None` if the result is no longer wanted.
    async fn store(
        &self,
        encoding: Encoding,
        bytes: Bytes,
        collected: bool,
        cancel: &CancellationToken,
        give_up: Instant,
    ) -> Option<Result<(Payload, Option<Held>), MachineFailure>> {
        let mut delay = STORE_DELAY_MIN;
        loop {
            let stored = Resolved::store(encoding, bytes.clone(), collected, &self.blobs).await;
            let error = match stored {
                Ok(stored) => return Some(Ok(stored)),
                Err(error) => error,
            };
            // Storing has no failure that is the task's fault.
            let failure = failure_of_storing(&error);
            if Instant::now() + delay >= give_up {
                return Some(Err(failure));
            }
            self.report_machine_failure(failure, Vec::new());
            tokio::select! {
                () = cancel.cancelled() => return None,
                () = tokio::time::sleep(delay) => {}
            }
            delay = (delay * 2).min(STORE_DELAY_MAX);
        }
    }
}
