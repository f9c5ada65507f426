//! Accepting jobs.

use proofmill_bus::Seq;
use tokio::sync::oneshot;

use super::job::{Job, Waiting};
use super::scheduler::{Consequence, Scheduler};
use crate::events::unix_ms;
use crate::inputs::Staged;
use crate::interface::{
    CircuitId, CircuitRef, Error, EventKind, JobId, JobState, Priority, RequestId, Resource,
    Submitted,
};
use crate::queue::{InputRecord, JobRecord, PartitionRecord};

/// A submission whose inputs are on disk.
pub(crate) struct Prepared {
    pub(crate) request: RequestId,
    pub(crate) priority: Priority,
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) partitions: Vec<PreparedPartition>,
}

/// A partition whose input is on disk.
pub(crate) struct PreparedPartition {
    pub(crate) circuit: CircuitId,
    pub(crate) generator: Option<String>,
    pub(crate) input: Staged,
}

// === impl Scheduler ===

impl Scheduler {
    /// Whether a request would be taken, before its inputs are put on disk; nothing is promised.
    pub(super) fn may_submit(&self, request: &RequestId) -> Result<(), Error> {
        let job = JobId::of(request);
        if self.jobs.contains_key(&job) || self.results.get(job).is_some() {
            return Ok(());
        }
        self.check_room(request)
    }

    fn check_room(&self, request: &RequestId) -> Result<(), Error> {
        if self.draining {
            return Err(Error::Draining);
        }
        let client = self.clients.get(request.client()).copied().unwrap_or(0);
        let limits = self.env.inputs.limits();
        for (resource, used, limit) in [
            (Resource::Queue, self.jobs.len(), limits.jobs),
            (Resource::ClientJobs, client, limits.jobs_per_client),
        ] {
            if used >= limit {
                return Err(Error::Exhausted {
                    resource,
                    used: used as u64,
                    limit: limit as u64,
                    retry_after: self.tally.until_one_ends(),
                });
            }
        }
        Ok(())
    }

    /// Accepts a job, or finds the one that the request is.
    pub(super) async fn submit(
        &mut self,
        prepared: Prepared,
        reply: oneshot::Sender<Result<Submitted, Error>>,
    ) -> Result<(), Error> {
        let job = JobId::of(&prepared.request);
        let mut staged = Vec::with_capacity(prepared.partitions.len());
        let mut named = Vec::with_capacity(prepared.partitions.len());
        for partition in prepared.partitions {
            named.push((
                partition.circuit,
                partition.generator,
                partition.input.bytes,
                partition.input.digest,
            ));
            staged.push(partition.input);
        }
        let content = JobRecord::content_of(
            named
                .iter()
                .map(|(circuit, generator, _, digest)| (circuit, generator.as_deref(), digest)),
        );
        if let Some(found) = self.find_content(job) {
            // Removed before anyone is told.
            drop(staged);
            let answer = if found == content {
                self.tally.repeated();
                Ok(Submitted {
                    job,
                    existing: true,
                })
            } else {
                Err(Error::Conflict {
                    request: prepared.request,
                    job,
                })
            };
            match (answer, self.jobs.get_mut(&job)) {
                (Ok(_), Some(known)) if known.accepting.is_some() => {
                    known.waiting.push(Waiting::Accepted(true, reply));
                }
                // Whoever asked may have gone.
                (answer, _) => drop(reply.send(answer)),
            }
            return Ok(());
        }
        let room = self.check_room(&prepared.request).and_then(|()| {
            let mut circuits = named.iter().map(|(circuit, ..)| CircuitRef::Id(*circuit));
            circuits.try_for_each(|circuit| self.residency.circuit(&circuit).map(drop))
        });
        if let Err(error) = room {
            if matches!(error, Error::Exhausted { .. }) {
                self.tally.refused();
            }
            drop(staged);
            drop(reply.send(Err(error)));
            return Ok(());
        }
        let partitions = named
            .into_iter()
            .zip(staged)
            .map(
                |((circuit, generator, bytes, digest), staged)| PartitionRecord {
                    circuit,
                    input: InputRecord {
                        name: staged.keep(),
                        bytes,
                        digest,
                        generator,
                    },
                },
            )
            .collect();
        let record = JobRecord {
            request: prepared.request,
            content,
            priority: prepared.priority,
            deadline_ms: prepared.deadline_ms,
            submitted_ms: unix_ms(std::time::SystemTime::now()),
            partitions,
        };
        match self.journal.accept(&record).await {
            Ok(seq) => {
                self.take_up(record, Some((seq, reply)));
                Ok(())
            }
            Err(error) => {
                self.remove_inputs(&record);
                drop(reply.send(Err(error.clone())));
                // A record that is too large is that job's trouble, a log that fails is everyone's.
                match error {
                    Error::TooLarge { .. } => Ok(()),
                    error => Err(error),
                }
            }
        }
    }

    /// Puts a job that is in the log into the line.
    pub(super) fn take_up(
        &mut self,
        record: JobRecord,
        accepting: Option<(Seq, oneshot::Sender<Result<Submitted, Error>>)>,
    ) {
        let id = record.id();
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.tally.accepted();
        *self
            .clients
            .entry(record.request.client().to_owned())
            .or_default() += 1;
        let mut circuits: Vec<String> = Vec::new();
        let mut unknown = None;
        for partition in &record.partitions {
            match self.residency.expect_job(&partition.circuit) {
                Some(name) if circuits.iter().any(|known| **known == *name) => {}
                Some(name) => circuits.push(name.to_string()),
                None => unknown = Some(partition.circuit),
            }
        }
        if let Some(deadline) = record.deadline_ms {
            self.deadlines.insert((deadline, id));
        }
        let mut job = Job::new(record, arrival, circuits);
        if let Some((seq, reply)) = accepting {
            job.accepting = Some(seq);
            job.waiting.push(Waiting::Accepted(false, reply));
            self.unwritten.push(seq, Consequence::Accepted(id));
        }
        self.env.events.send(EventKind::Job {
            job: id,
            priority: job.record.priority,
            partitions: job.parts.len() as u32,
            state: JobState::Queued,
        });
        for partition in 0..job.parts.len() {
            self.admission.push(job.place(partition), id);
        }
        self.jobs.insert(id, job);
        if let Some(circuit) = unknown {
            self.to_end.push_back((
                id,
                JobState::Failed(format!("circuit {circuit} is not registered any more")),
            ));
        }
    }

    fn find_content(&self, job: JobId) -> Option<[u8; 32]> {
        let live = self.jobs.get(&job).map(|job| job.record.content);
        live.or_else(|| self.results.get(job).map(|ended| ended.content()))
    }

    /// Removes what a job had on disk.
    pub(super) fn remove_inputs(&self, record: &JobRecord) {
        for partition in &record.partitions {
            let input = &partition.input;
            self.env.inputs.remove(&input.name, input.bytes);
        }
    }
}
