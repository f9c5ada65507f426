//! Partitions on their way from stage to stage, to a proof or another attempt.

use std::time::SystemTime;

use super::admission::Acquired;
use super::background::Back;
use super::failure::{Blame, Failure};
use super::flight::{Flight, Place};
use super::job::Verdict;
use super::scheduler::Scheduler;
use super::step::Stepped;
use crate::events::unix_ms;
use crate::interface::{CircuitRef, EventKind, JobId, JobState, PartitionProof, Stage, StageEnd};
use crate::key::StepError;

// === impl Scheduler ===

impl Scheduler {
    /// Handles a partition that got its memory or was refused.
    pub(super) fn admitted(&mut self, place: Place, id: JobId, acquired: Acquired) {
        let Some(job) = self.jobs.get_mut(id) else {
            return;
        };
        let Some(partition) = job.partition(place.partition).cloned() else {
            return;
        };
        let circuit = CircuitRef::Id(partition.circuit);
        let registered = self.residency.circuit(&circuit);
        let acquired = acquired.map_err(|error| error.about(&circuit));
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
        let flight = Flight::new(id, place, attempt, input, &registered, footprint, acquired);
        self.underway.begin(flight.circuit_id());
        self.env.events.send(EventKind::Admitted {
            span: flight.span(),
            bytes: flight.bytes(),
        });
        self.background.load_key(flight);
    }

    /// Handles a partition that comes back from loading its key or from a stage.
    pub(super) fn came_back(&mut self, back: Back) {
        match back {
            Back::Key(flight, Ok(_)) if !flight.stop().is_raised() && self.is_short(&flight) => {
                self.take_back(*flight);
            }
            Back::Key(mut flight, Ok(key)) if !flight.stop().is_raised() => {
                flight.begin(key);
                self.lanes.push(Stage::Witness, *flight);
            }
            Back::Key(flight, key) => {
                // A key that was loaded although the job has ended is released before it can be evicted.
                if let Some(StepError::Permanent(why)) = key.err() {
                    let why = format!("the key of circuit {}: {why}", flight.circuit());
                    self.jobs.end_later(flight.job(), JobState::Failed(why));
                }
                self.drop_flight(*flight);
            }
            Back::Stepped(stepped) => self.stepped(*stepped),
        }
    }

    /// Whether a partition has less memory than it will use, since its key, loaded for the first time,
    /// takes more than estimated.
    fn is_short(&self, flight: &Flight) -> bool {
        let job = self.jobs.get(flight.job());
        let partition = job.and_then(|job| job.partition(flight.partition()));
        partition.is_some_and(|it| flight.bytes() < self.work_bytes(it))
    }

    /// Puts a partition that has not begun back into the line. The size of its key is known by now.
    fn take_back(&mut self, flight: Flight) {
        let (id, partition) = (flight.job(), flight.partition());
        let circuit = &**flight.circuit();
        tracing::info!(job = %id, circuit, "a key takes more than was thought");
        self.drop_flight(flight);
        let job = self.jobs.get_mut(id);
        if let Some(place) = job.and_then(|job| job.take_back(partition)) {
            self.admission.push(place, id);
        }
    }

    /// Handles a partition that left a stage.
    fn stepped(&mut self, stepped: Stepped) {
        let Stepped {
            mut flight,
            stage,
            worker,
            began_us,
            result,
        } = stepped;
        let us = self.env.events.now().saturating_sub(began_us);
        self.lanes.left(stage, us);
        if let (Stage::Prove, Some(number)) = (stage, flight.device()) {
            self.devices.end(number, result.is_ok());
        }
        let stopped = flight.stop().is_raised();
        let next = stage.next().filter(|_| result.is_ok() && !stopped);
        if next.is_none() {
            flight.drop_work();
        }
        if stage == Stage::Finish {
            self.multiplied(&mut flight);
        }
        let bytes = flight.keep_for(next);
        self.env.events.send(EventKind::Ended {
            span: flight.span(),
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
            _ if stopped => self.drop_flight(flight),
            (Ok(_), Some(next)) => self.lanes.push(next, flight),
            (Ok(Some(proof)), None) => self.proven(flight, proof),
            (Ok(None), None) => self.failed(flight, stage, StepError::Invalid),
            (Err(error), _) => self.failed(flight, stage, error),
        }
    }

    /// Handles a failed attempt at a partition.
    fn failed(&mut self, flight: Flight, stage: Stage, error: StepError) {
        let (id, partition) = (flight.job(), flight.partition());
        let device = flight.device().and_then(|number| self.devices.get(number));
        let failure = Failure::of(&flight, stage, error, device);
        self.drop_flight(flight);
        let (Some(failure), Some(_)) = (failure, self.jobs.get(id)) else {
            return;
        };
        self.blame(&failure);
        match self.jobs.failed(id, partition, failure) {
            Some(Verdict::Again(place)) => {
                self.tally.retried();
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
            Blame::Device | Blame::Doubtful => device.failed(),
            Blame::Wrong => {
                device.failed();
                device.suspect();
            }
            Blame::Broken(why) => {
                device.failed();
                device.fence(why);
            }
        }
    }

    /// Handles a verified proof of a partition.
    fn proven(&mut self, flight: Flight, proof: PartitionProof) {
        let (id, partition) = (flight.job(), flight.partition());
        self.residency.proven(&flight.circuit_id());
        self.drop_flight(flight);
        let job = self.jobs.get_mut(id);
        let Some(proven) = job.and_then(|job| job.proven(partition, proof)) else {
            return;
        };
        for number in proven.wrong_devices {
            if let Some(device) = self.devices.get_mut(number) {
                device.suspect();
            }
        }
        if proven.is_all {
            self.jobs.end_later(id, JobState::Done);
        }
    }

    /// Records that a partition makes no more products. The buffers that kernels keep are counted in the
    /// reservations of partitions of the same circuit that still make products; when there are none, the
    /// buffers are freed.
    fn multiplied(&mut self, flight: &mut Flight) {
        if flight.stop_multiplying() && self.underway.multiplied(flight.circuit_id()) {
            proofmill_kernels::release_memory();
        }
    }

    /// Gives back all that a partition holds.
    pub(super) fn drop_flight(&mut self, mut flight: Flight) {
        flight.drop_work();
        self.multiplied(&mut flight);
        drop(flight);
        self.underway.end();
    }
}
