//! Partitions on their way from stage to stage, to a proof or another attempt.

use std::time::SystemTime;

use super::admission::Acquired;
use super::background::Completion;
use super::failure::{Blame, Failure};
use super::flight::{RunningPartition, WaitingPlace};
use super::job::Verdict;
use super::scheduler::Scheduler;
use super::step::StageOutcome;
use crate::events::unix_ms;
use crate::interface::{
    CircuitRef, EventKind, JobId, JobState, PartitionProof, PipelineStage, StageEnd,
};
use crate::key::StepError;

// === impl Scheduler ===

impl Scheduler {
    /// Handles a partition that got its memory or was refused.
    pub(super) fn admitted(&mut self, place: WaitingPlace, id: JobId, acquired: Acquired) {
        let Some(job) = self.jobs.get_mut(id) else {
            return;
        };
        let Some(partition) = job.partition(place.partition).cloned() else {
            return;
        };
        let circuit = CircuitRef::Id(partition.circuit);
        let registered = self.residency.circuit(&circuit);
        let acquired = acquired.map_err(|error| error.into_error(&circuit));
        let (acquired, registered) = match (acquired, registered) {
            (Ok(acquired), Ok(registered)) => (acquired, registered),
            (Err(error), _) | (_, Err(error)) => {
                self.jobs.end_later(id, JobState::Failed(error.to_string()));
                return;
            }
        };
        let Some(attempt) = job.begin(place.partition, unix_ms(SystemTime::now())) else {
            return;
        };
        if attempt.is_first {
            self.env.events.send(EventKind::Job {
                job: id,
                priority: job.record().priority,
                partitions: job.partitions(),
                state: JobState::Running,
            });
        }
        let footprint = registered.footprint(self.residency.form());
        let input = partition.input;
        let running =
            RunningPartition::new(id, place, attempt, input, &registered, footprint, acquired);
        self.active.begin(running.circuit_id());
        self.env.events.send(EventKind::Admitted {
            span: running.span(),
            bytes: running.bytes(),
        });
        self.background.load_key(running);
    }

    /// Handles a partition that comes back from loading its key or from a stage.
    pub(super) fn completed(&mut self, completion: Completion) {
        let log = self.env.events.traces().log_span(completion.job());
        let _entered = log.enter();
        match completion {
            Completion::Key(running, Ok(_))
                if !running.stop().is_cancelled() && self.is_short(&running) =>
            {
                self.take_back(*running);
            }
            Completion::Key(mut running, Ok(key)) if !running.stop().is_cancelled() => {
                running.begin(key);
                self.stage_queues.push(PipelineStage::Witness, *running);
            }
            Completion::Key(running, key) => {
                // A key that was loaded although the job has ended is released before it can be evicted.
                if let Some(StepError::Permanent(why)) = key.err() {
                    let why = format!("the key of circuit {}: {why}", running.circuit());
                    self.jobs.end_later(running.job(), JobState::Failed(why));
                }
                self.drop_running(*running);
            }
            Completion::Stage(outcome) => self.stage_ended(*outcome),
        }
    }

    /// Whether a partition has less memory than it will use, since its key, loaded for the first time,
    /// takes more than estimated.
    fn is_short(&self, running: &RunningPartition) -> bool {
        let job = self.jobs.get(running.job());
        let partition = job.and_then(|job| job.partition(running.partition()));
        partition.is_some_and(|it| running.bytes() < self.work_bytes(it))
    }

    /// Puts a partition that has not begun back into the line. The size of its key is known by now.
    fn take_back(&mut self, running: RunningPartition) {
        let (id, partition) = (running.job(), running.partition());
        let circuit = &**running.circuit();
        tracing::info!(circuit, "a key takes more than was thought");
        self.drop_running(running);
        let job = self.jobs.get_mut(id);
        if let Some(place) = job.and_then(|job| job.take_back(partition)) {
            self.admission.push(place, id);
        }
    }

    /// Handles a partition that left a stage.
    fn stage_ended(&mut self, outcome: StageOutcome) {
        let StageOutcome {
            mut running,
            stage,
            worker,
            began_us,
            result,
        } = outcome;
        let us = self.env.events.now().saturating_sub(began_us);
        self.stage_queues.leave(stage, us);
        if let (PipelineStage::Prove, Some(number)) = (stage, running.device()) {
            self.devices.end(number, result.is_ok());
        }
        let stopped = running.stop().is_cancelled();
        let next = stage.next().filter(|_| result.is_ok() && !stopped);
        if next.is_none() {
            running.drop_work();
        }
        if stage == PipelineStage::Finish {
            self.multiplied(&mut running);
        }
        let bytes = running.keep_for(next);
        self.env.events.send(EventKind::Ended {
            span: running.span(),
            stage,
            worker,
            began_us,
            end: match &result {
                _ if stopped => StageEnd::Dropped,
                Ok(_) => StageEnd::Done,
                Err(_) => StageEnd::Failed,
            },
            bytes,
        });
        match (result, stage.next()) {
            _ if stopped => self.drop_running(running),
            (Ok(_), Some(next)) => self.stage_queues.push(next, running),
            (Ok(Some(proof)), None) => self.proven(running, proof),
            (Ok(None), None) => self.failed(running, stage, StepError::Invalid),
            (Err(error), _) => self.failed(running, stage, error),
        }
    }

    /// Handles a failed attempt at a partition.
    fn failed(&mut self, running: RunningPartition, stage: PipelineStage, error: StepError) {
        let (id, partition) = (running.job(), running.partition());
        let device = running.device().and_then(|number| self.devices.get(number));
        let failure = Failure::of(&running, stage, error, device);
        self.drop_running(running);
        let (Some(failure), Some(_)) = (failure, self.jobs.get(id)) else {
            return;
        };
        self.blame(&failure);
        match self.jobs.failed(id, partition, failure) {
            Some(Verdict::Again(place)) => {
                self.counters.retried();
                self.admission.push(place, id);
            }
            Some(Verdict::Failed(why)) => self.jobs.end_later(id, JobState::Failed(why)),
            None => {}
        }
    }

    /// Counts a failed attempt against its device, if the device may be at fault.
    fn blame(&mut self, failure: &Failure) {
        let number = failure.device;
        let Some(device) = number.and_then(|number| self.devices.get_mut(number)) else {
            return;
        };
        match &failure.blame {
            Blame::Job | Blame::Nobody => {}
            Blame::Device | Blame::Ambiguous => device.failed(),
            Blame::WrongProof => {
                device.failed();
                device.record_suspicion();
            }
            Blame::Broken(why) => {
                device.failed();
                device.fence(why);
            }
        }
    }

    /// Handles a verified proof of a partition.
    fn proven(&mut self, running: RunningPartition, proof: PartitionProof) {
        let (id, partition) = (running.job(), running.partition());
        self.residency.proven(&running.circuit_id());
        self.drop_running(running);
        let job = self.jobs.get_mut(id);
        let Some(proven) = job.and_then(|job| job.proven(partition, proof)) else {
            return;
        };
        for wrong in proven.wrong_devices {
            if let Some(device) = self.devices.get_mut(wrong.device) {
                if !wrong.is_counted {
                    device.record_suspicion();
                }
                device.convict();
            }
        }
        if proven.is_all {
            self.jobs.end_later(id, JobState::Done);
        }
    }

    /// Records that a partition makes no more products. The buffers that kernels keep are counted in the
    /// reservations of partitions of the same circuit that still make products; when there are none, the
    /// buffers are freed.
    fn multiplied(&mut self, running: &mut RunningPartition) {
        if running.stop_multiplying() && self.active.multiplied(running.circuit_id()) {
            proofmill_kernels::release_memory();
        }
    }

    /// Gives back all that a partition holds.
    pub(super) fn drop_running(&mut self, mut running: RunningPartition) {
        running.drop_work();
        self.multiplied(&mut running);
        drop(running);
        self.active.end();
    }
}
