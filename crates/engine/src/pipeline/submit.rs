//! Acceptance of jobs.

use std::time::SystemTime;

use proofmill_bus::Seq;
use proofmill_trace::TraceContext;
use tokio::sync::oneshot;

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
    pub(crate) trace: Option<TraceContext>,
}

/// A partition whose input is on disk.
pub(crate) struct PreparedPartition {
    pub(crate) circuit: CircuitId,
    pub(crate) generator: Option<String>,
    pub(crate) input: Staged,
}

type Reply = oneshot::Sender<Result<Submitted, Error>>;

// === impl Prepared ===

impl Prepared {
    /// Digest by which repeated requests are recognised.
    fn content(&self) -> [u8; 32] {
        JobRecord::content_of(self.partitions.iter().map(|partition| {
            let generator = partition.generator.as_deref();
            (&partition.circuit, generator, &partition.input.digest)
        }))
    }

    /// The job's record. Its inputs are kept from now on.
    fn into_record(self, content: [u8; 32], submitted_ms: u64) -> JobRecord {
        let partitions = self.partitions.into_iter().map(|partition| {
            let (bytes, digest) = (partition.input.bytes, partition.input.digest);
            PartitionRecord {
                circuit: partition.circuit,
                input: InputRecord {
                    name: partition.input.keep(),
                    bytes,
                    digest,
                    generator: partition.generator,
                },
            }
        });
        JobRecord {
            content,
            priority: self.priority,
            deadline_ms: self.deadline_ms,
            submitted_ms,
            partitions: partitions.collect(),
            request: self.request,
        }
    }
}

// === impl Scheduler ===

impl Scheduler {
    /// Whether a request would be accepted now; asked before its inputs are written to disk. It reserves
    /// nothing.
    pub(super) fn may_submit(&mut self, request: &RequestId) -> Result<(), Error> {
        if self.content_of(JobId::of(request)).is_some() {
            return Ok(());
        }
        let room = self.check_room(request);
        self.count_refusal(room)
    }

    fn check_room(&self, request: &RequestId) -> Result<(), Error> {
        if self.draining {
            return Err(Error::Draining);
        }
        let limits = self.env.inputs.limits();
        let of_client = self.jobs.count_of(request.client());
        for (resource, used, limit) in [
            (Resource::Queue, self.jobs.count(), limits.jobs),
            (Resource::ClientJobs, of_client, limits.jobs_per_client),
        ] {
            if used >= limit {
                return Err(Error::Exhausted {
                    resource,
                    used: used as u64,
                    limit: limit as u64,
                    retry_after: self.counters.estimated_wait(),
                });
            }
        }
        Ok(())
    }

    /// Counts a refusal for lack of room.
    fn count_refusal(&mut self, answer: Result<(), Error>) -> Result<(), Error> {
        if matches!(answer, Err(Error::Exhausted { .. })) {
            self.counters.refused();
        }
        answer
    }

    /// Accepts a job, or finds the existing job of the request.
    pub(super) async fn submit(
        &mut self,
        mut prepared: Prepared,
        reply: Reply,
    ) -> Result<(), Error> {
        let job = JobId::of(&prepared.request);
        let content = prepared.content();
        let trace = prepared.trace.take();
        if let Some(found) = self.content_of(job) {
            let request = prepared.request.clone();
            // Its inputs are removed before the caller is answered.
            drop(prepared);
            if found == content {
                self.note_trace(job, trace);
                self.repeated(job, reply);
            } else {
                drop(reply.send(Err(Error::Conflict { request, job })));
            }
            return Ok(());
        }
        let room = self.check_room(&prepared.request).and_then(|()| {
            let mut partitions = prepared.partitions.iter();
            partitions.try_for_each(|partition| {
                let circuit = CircuitRef::Id(partition.circuit);
                self.residency.circuit(&circuit).map(drop)
            })
        });
        if let Err(error) = self.count_refusal(room) {
            drop(prepared);
            drop(reply.send(Err(error)));
            return Ok(());
        }
        let record = prepared.into_record(content, unix_ms(SystemTime::now()));
        match self.journal.accept(&record).await {
            Ok(seq) => {
                // Before a stage of it can begin.
                self.note_trace(job, trace);
                self.insert_job(record, Some((seq, reply)));
                Ok(())
            }
            Err(error) => {
                self.remove_inputs(&record);
                drop(reply.send(Err(error.clone())));
                // A record that is too large is a failure of that job only; a log that fails stops the
                // engine.
                match error {
                    Error::TooLarge { .. } => Ok(()),
                    error => Err(error),
                }
            }
        }
    }

    fn note_trace(&self, job: JobId, trace: Option<TraceContext>) {
        if let Some(trace) = trace {
            self.env.events.traces().note(job, trace);
        }
    }

    /// Answers a repeated request with its job, once the job's acceptance is on disk.
    fn repeated(&mut self, id: JobId, reply: Reply) {
        self.counters.repeated();
        match self.jobs.get_mut(id) {
            Some(job) => job.wait_for_acceptance(reply),
            // The caller may have gone.
            None => drop(reply.send(Ok(Submitted {
                job: id,
                existing: true,
            }))),
        }
    }

    /// Puts a job that is in the log into the line.
    pub(super) fn insert_job(&mut self, record: JobRecord, accepting: Option<(Seq, Reply)>) {
        let id = record.id();
        let (circuits, unknown) = self.expect_circuits(&record);
        self.counters.accepted();
        let job = self.jobs.insert(record, circuits);
        if let Some((seq, reply)) = accepting {
            job.accepting(reply);
            self.pending.push(seq, Consequence::Accepted(id));
        }
        self.env.events.send(EventKind::Job {
            job: id,
            priority: job.record().priority,
            partitions: job.partitions(),
            state: JobState::Queued,
        });
        for place in job.places() {
            self.admission.push(place, id);
        }
        if let Some(circuit) = unknown {
            let why = format!("circuit {circuit} is not registered any more");
            self.jobs.end_later(id, JobState::Failed(why));
        }
    }

    /// Counts the partitions that need each circuit of a job. Returns the circuits' names, each once, and a
    /// circuit that is no longer registered, if there is one.
    fn expect_circuits(&self, record: &JobRecord) -> (Vec<String>, Option<CircuitId>) {
        let mut circuits: Vec<String> = Vec::new();
        let mut unknown = None;
        for partition in &record.partitions {
            match self.residency.expect_job(&partition.circuit) {
                Some(name) if circuits.iter().any(|known| **known == *name) => {}
                Some(name) => circuits.push(name.to_string()),
                None => unknown = Some(partition.circuit),
            }
        }
        (circuits, unknown)
    }

    /// The content digest of a known job.
    fn content_of(&self, job: JobId) -> Option<[u8; 32]> {
        let live = self.jobs.get(job).map(|job| job.record().content);
        live.or_else(|| self.results.get(job).map(|ended| ended.content()))
    }

    /// Removes a job's input files.
    pub(super) fn remove_inputs(&self, record: &JobRecord) {
        for partition in &record.partitions {
            let input = &partition.input;
            self.env.inputs.remove(&input.name, input.bytes);
        }
    }
}
