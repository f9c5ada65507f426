//! A job that is not at its end, and one that is.

use std::cmp::Reverse;
use std::sync::Arc;

use proofmill_bus::Seq;
use tokio::sync::oneshot;

use super::flight::Place;
use crate::interface::{Error, JobResult, JobState, JobView, PartitionProof};
use crate::key::Stop;
use crate::queue::{EndRecord, JobRecord};

/// A job that is not at its end, or whose end is not on disk yet.
pub(super) struct Job {
    pub(super) record: Arc<JobRecord>,
    /// Counts accepted jobs.
    pub(super) arrival: u64,
    pub(super) parts: Vec<Part>,
    /// The names of its circuits, each once.
    pub(super) circuits: Vec<String>,
    pub(super) stop: Stop,
    pub(super) started_ms: Option<u64>,
    pub(super) retries: u32,
    /// Where its acceptance is in the log, until that is on disk.
    pub(super) accepting: Option<Seq>,
    /// Its end, until that is on disk.
    pub(super) ending: Option<EndRecord>,
    pub(super) waiting: Vec<Waiting>,
}

/// A partition of it.
pub(super) struct Part {
    /// Attempts that were begun.
    pub(super) attempts: u32,
    /// Those that ended because a device broke.
    pub(super) broken: u32,
    pub(super) state: PartState,
    /// Devices that made products of it whose proof did not verify, while it may have been the
    /// witness's fault.
    pub(super) doubts: Vec<usize>,
    /// The device of the last attempt: the next one rather has another.
    pub(super) last_device: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PartState {
    /// Before its memory is reserved.
    Waiting,
    /// In a stage, or between two.
    Running,
    Proven(PartitionProof),
}

/// Who waits for what.
pub(super) enum Waiting {
    /// For the acceptance to be on disk.
    Accepted(
        bool,
        oneshot::Sender<Result<crate::interface::Submitted, Error>>,
    ),
    /// For the end to be on disk, and its result.
    Result(oneshot::Sender<Result<JobResult, Error>>),
    /// For the end to be on disk.
    View(oneshot::Sender<Result<JobView, Error>>),
}

// === impl Job ===

impl Job {
    pub(super) fn new(record: JobRecord, arrival: u64, circuits: Vec<String>) -> Self {
        let part = || Part {
            attempts: 0,
            broken: 0,
            state: PartState::Waiting,
            doubts: Vec::new(),
            last_device: None,
        };
        Self {
            parts: record.partitions.iter().map(|_| part()).collect(),
            record: Arc::new(record),
            arrival,
            circuits,
            stop: Stop::default(),
            started_ms: None,
            retries: 0,
            accepting: None,
            ending: None,
            waiting: Vec::new(),
        }
    }

    pub(super) fn place(&self, partition: usize) -> Place {
        Place {
            priority: Reverse(self.record.priority),
            arrival: self.arrival,
            // There are no more partitions than the limit, far below 32 bits.
            partition: partition as u32,
        }
    }

    pub(super) fn count(&self, is: impl Fn(&PartState) -> bool) -> u32 {
        self.parts.iter().filter(|part| is(&part.state)).count() as u32
    }

    /// How many wait for its result.
    pub(super) fn waited_for(&self) -> usize {
        let waits =
            |waiting: &&Waiting| matches!(waiting, Waiting::Result(reply) if !reply.is_closed());
        self.waiting.iter().filter(waits).count()
    }

    pub(super) fn proven(&self) -> u32 {
        self.count(|state| matches!(state, PartState::Proven(_)))
    }

    /// As others see it: at its end only once that is on disk.
    pub(super) fn view(&self, bytes: u64) -> JobView {
        let record = &self.record;
        JobView {
            id: record.id(),
            request: record.request.clone(),
            priority: record.priority,
            state: match self.started_ms {
                None => JobState::Queued,
                Some(_) => JobState::Running,
            },
            partitions: self.parts.len() as u32,
            proven: self.proven(),
            running: self.count(|state| *state == PartState::Running),
            retries: self.retries,
            submitted_ms: record.submitted_ms,
            deadline_ms: record.deadline_ms,
            started_ms: self.started_ms,
            ended_ms: None,
            circuits: self.circuits.clone(),
            bytes,
        }
    }

    /// Its end, as the log will have it.
    pub(super) fn end(&self, state: JobState, ended_ms: u64) -> EndRecord {
        let record = &self.record;
        let proofs = match state {
            JobState::Done => self.parts.iter().filter_map(Part::proof).cloned().collect(),
            _ => Vec::new(),
        };
        EndRecord {
            request: record.request.clone(),
            content: record.content,
            priority: record.priority,
            deadline_ms: record.deadline_ms,
            submitted_ms: record.submitted_ms,
            started_ms: self.started_ms,
            ended_ms,
            partitions: self.parts.len() as u32,
            proven: self.proven(),
            retries: self.retries,
            circuits: self.circuits.clone(),
            state,
            proofs,
        }
    }
}

// === impl Part ===

impl Part {
    fn proof(&self) -> Option<&PartitionProof> {
        match &self.state {
            PartState::Proven(proof) => Some(proof),
            _ => None,
        }
    }
}
