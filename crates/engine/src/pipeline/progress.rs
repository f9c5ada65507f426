//! Partitions from stage to stage, to their proof or another attempt.

use std::time::SystemTime;

use super::admission::Acquired;
use super::flight::{Flight, Place};
use super::job::PartState;
use super::scheduler::{Back, Scheduler};
use super::step::Stepped;
use crate::events::unix_ms;
use crate::interface::{CircuitRef, EventKind, JobId, JobState, PartitionProof, Stage, StageEnd};
use crate::key::StepError;

// === impl Scheduler ===

impl Scheduler {
    /// A partition has its memory, or never will.
    pub(super) fn admitted(&mut self, place: Place, id: JobId, acquired: Acquired) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let index = place.partition as usize;
        let (Some(part), Some(record)) =
            (job.parts.get_mut(index), job.record.partitions.get(index))
        else {
            return;
        };
        let circuit = CircuitRef::Id(record.circuit);
        let registered = self.residency.circuit(&circuit);
        let acquired = acquired.map_err(|error| error.about(&circuit));
        let ((held, reservation), registered) = match (acquired, registered) {
            (Ok(acquired), Ok(registered)) => (acquired, registered),
            (Err(error), _) | (_, Err(error)) => {
                self.to_end
                    .push_back((id, JobState::Failed(error.to_string())));
                return;
            }
        };
        part.attempts += 1;
        part.state = PartState::Running;
        let mut flight = Flight {
            place,
            job: id,
            attempt: part.attempts,
            circuit: registered.name.as_str().into(),
            circuit_id: registered.id,
            input: record.input.clone(),
            stop: job.stop.clone(),
            work: None,
            knows_constraints: false,
            multiplies: true,
            device: part.last_device,
            footprint: registered.footprint(self.residency.form()),
            reservation,
            held,
        };
        self.running += 1;
        *self.multiplying.entry(flight.circuit_id).or_default() += 1;
        if job.started_ms.is_none() {
            job.started_ms = Some(unix_ms(SystemTime::now()));
            self.env.events.send(EventKind::Job {
                job: id,
                priority: job.record.priority,
                partitions: job.parts.len() as u32,
                state: JobState::Running,
            });
        }
        self.env.events.send(EventKind::Admitted {
            span: flight.span(),
            bytes: flight.reservation.bytes(),
        });
        let back = self.back.clone();
        tokio::spawn(async move {
            let key = tokio::select! {
                key = flight.held.ready() => key.map_err(StepError::Permanent),
                () = flight.stop.raised() => Err(StepError::Stopped),
            };
            if let Some(rest) = flight.held.take_rest() {
                flight.reservation.merge(rest);
            }
            // The receiver is there as long as anything is under way.
            let _ = back.send(Back::Key(Box::new(flight), key));
        });
    }

    pub(super) fn came_back(&mut self, back: Back) {
        match back {
            Back::Key(flight, Ok(_)) if !flight.stop.is_raised() && self.is_short(&flight) => {
                self.again(*flight);
            }
            Back::Key(mut flight, Ok(key)) if !flight.stop.is_raised() => {
                flight.knows_constraints = key.knows_constraints();
                flight.work = Some(key.work());
                self.lanes.push(Stage::Witness, *flight);
            }
            Back::Key(flight, key) => {
                // A key that came all the same goes before it may be evicted.
                if let Some(StepError::Permanent(why)) = key.err() {
                    let why = format!("the key of circuit {}: {why}", flight.circuit);
                    self.to_end.push_back((flight.job, JobState::Failed(why)));
                }
                self.drop_flight(*flight);
            }
            Back::Stepped(stepped) => self.stepped(*stepped),
        }
    }

    /// Whether a partition has less memory than it will take: its key, which was never loaded before, takes
    /// more than was thought.
    fn is_short(&self, flight: &Flight) -> bool {
        let job = self.jobs.get(&flight.job);
        let partition =
            job.and_then(|job| job.record.partitions.get(flight.place.partition as usize));
        partition.is_some_and(|it| flight.reservation.bytes() < self.work_bytes(it))
    }

    /// Puts a partition that has not begun back into the line. What its key takes is known by now.
    fn again(&mut self, flight: Flight) {
        let (id, place) = (flight.job, flight.place);
        tracing::info!(job = %id, circuit = &*flight.circuit, "a key takes more than was thought");
        self.drop_flight(flight);
        let job = self.jobs.get_mut(&id);
        if let Some(part) = job.and_then(|job| job.parts.get_mut(place.partition as usize)) {
            part.attempts -= 1;
            part.state = PartState::Waiting;
            self.admission.push(place, id);
        }
    }

    /// A partition left a stage.
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
        if let (Stage::Prove, Some(number)) = (stage, flight.device) {
            self.devices.end(number, result.is_ok());
        }
        let stopped = flight.stop.is_raised();
        let keep = match (&result, stage.next()) {
            (Ok(_), Some(next)) if !stopped => flight.footprint.from(next),
            _ => 0,
        };
        if keep == 0 {
            flight.work = None;
        }
        if stage == Stage::Finish {
            self.multiplied(&mut flight);
        }
        flight.reservation.shrink_to(keep);
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
            bytes: keep,
        });
        match (result, stage.next()) {
            _ if stopped => self.drop_flight(flight),
            (Ok(_), Some(next)) => self.lanes.push(next, flight),
            (Ok(Some(proof)), None) => self.proven(flight, proof),
            (Ok(None), None) => self.failed(flight, stage, StepError::Invalid),
            (Err(error), _) => self.failed(flight, stage, error),
        }
    }

    /// A partition's attempt failed.
    fn failed(&mut self, flight: Flight, stage: Stage, error: StepError) {
        let (id, place, device) = (flight.job, flight.place, flight.device);
        let (circuit, knows) = (flight.circuit.clone(), flight.knows_constraints);
        self.drop_flight(flight);
        let Some(part) = self
            .jobs
            .get_mut(&id)
            .and_then(|job| job.parts.get_mut(place.partition as usize))
        else {
            return;
        };
        let what = format!("partition {} of circuit {circuit}", place.partition);
        let worker = device.and_then(|number| self.devices.get_mut(number));
        let on = worker.as_ref().map_or_else(String::new, |worker| {
            format!(" on device {}", worker.name())
        });
        let why = match error {
            StepError::Stopped => return,
            StepError::Permanent(why) => {
                self.to_end
                    .push_back((id, JobState::Failed(format!("{what}: {why}"))));
                return;
            }
            StepError::Retry(why) => {
                if let (Stage::Prove, Some(worker)) = (stage, worker) {
                    worker.failed();
                }
                format!("{what}: {why}")
            }
            StepError::Broken(why) => {
                if let Some(worker) = worker {
                    worker.failed();
                    worker.fence(&why);
                }
                part.broken += 1;
                format!("{what}: {why}")
            }
            StepError::Invalid => {
                if let Some(worker) = worker {
                    worker.failed();
                    // Where the constraints are not known in full it may be the witness, as long as no
                    // other attempt with it succeeds.
                    if knows {
                        worker.suspect();
                    } else {
                        part.doubts.extend(device);
                    }
                }
                let else_ = if knows {
                    "the device computes wrongly, or the key's parts do not belong together"
                } else {
                    "the witness does not satisfy the circuit, the key's parts do not belong \
                     together, or the device computes wrongly"
                };
                format!("{what}: the proof made{on} does not verify: {else_}")
            }
        };
        part.last_device = device;
        // A device breaks once: there are no more such attempts than there are devices.
        if part.attempts - part.broken >= self.attempts {
            let tried = part.attempts;
            let why = format!("{why} (attempt {tried} of {tried})");
            self.to_end.push_back((id, JobState::Failed(why)));
            return;
        }
        tracing::warn!(job = %id, why, "tried again");
        part.state = PartState::Waiting;
        self.tally.retried();
        if let Some(job) = self.jobs.get_mut(&id) {
            job.retries += 1;
        }
        self.admission.push(place, id);
    }

    /// A partition's proof is there, and verified.
    fn proven(&mut self, flight: Flight, proof: PartitionProof) {
        let (id, index) = (flight.job, flight.place.partition as usize);
        self.residency.proven(&flight.circuit_id);
        self.drop_flight(flight);
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let Some(part) = job.parts.get_mut(index) else {
            return;
        };
        part.state = PartState::Proven(proof);
        // The witness was right: what did not verify was the device's fault.
        for number in std::mem::take(&mut part.doubts) {
            if let Some(device) = self.devices.get_mut(number) {
                device.suspect();
            }
        }
        if job
            .parts
            .iter()
            .all(|part| matches!(part.state, PartState::Proven(_)))
        {
            self.to_end.push_back((id, JobState::Done));
        }
    }

    /// Gives back all that a partition holds.
    pub(super) fn drop_flight(&mut self, mut flight: Flight) {
        flight.work = None;
        self.multiplied(&mut flight);
        drop(flight);
        self.running -= 1;
    }

    /// A partition makes no more products. What they keep for the next ones is counted in the
    /// reservations of those that still do, of the same circuit: without any it is given back.
    fn multiplied(&mut self, flight: &mut Flight) {
        if !std::mem::take(&mut flight.multiplies) {
            return;
        }
        if let Some(count) = self.multiplying.get_mut(&flight.circuit_id) {
            *count -= 1;
            if *count == 0 {
                self.multiplying.remove(&flight.circuit_id);
                proofmill_kernels::release_memory();
            }
        }
    }
}
