//! An unfinished job and its partitions.

use std::cmp::Reverse;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::failure::{Blame, Failure};
use super::flight::WaitingPlace;
use super::results::{Ended, KeptResult};
use crate::interface::{Error, JobId, JobState, JobView, PartitionProof, Submitted};
use crate::queue::{EndRecord, JobRecord, PartitionRecord, ProofRecord};

/// A job that has not ended, or whose end is not on disk yet.
pub(super) struct Job {
    record: JobRecord,
    /// The number of the job in order of acceptance.
    arrival: u64,
    parts: Vec<Part>,
    /// The names of its circuits, each once.
    circuits: Vec<String>,
    stop: CancellationToken,
    started_ms: Option<u64>,
    retries: u32,
    /// Whether the acceptance is on disk.
    accepted: bool,
    /// The record of the end, from its append to the log until the job is removed.
    ending: Option<EndRecord>,
    waiting: Vec<Waiting>,
}

/// The state of one partition.
#[derive(Default)]
struct Part {
    /// Number of attempts begun.
    attempts: u32,
    /// Number of attempts that ended because a device broke.
    broken: u32,
    state: PartState,
    /// Devices whose proofs of it did not verify, while the witness or the key may be at fault.
    suspects: Vec<WrongDevice>,
    /// Device of the last attempt; the next attempt prefers another.
    last_device: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum PartState {
    /// The memory of the partition is not reserved yet.
    #[default]
    Waiting,
    /// The partition is in a stage, or between two stages.
    Running,
    Proven(Box<PartitionProof>),
}

/// A caller that waits for an answer.
enum Waiting {
    /// Waits until the acceptance is on disk. The flag tells whether the job existed before the request.
    Accepted(bool, Reply<Submitted>),
    /// Waits until the end is on disk, for the result.
    Result(Reply<KeptResult>),
    /// Waits until the end is on disk, for the job's final state.
    View(Reply<JobView>),
}

type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// An attempt at a partition that begins.
pub(super) struct Attempt {
    /// The number of the attempt, from 1.
    pub(super) number: u32,
    /// Device of the previous attempt.
    pub(super) last_device: Option<usize>,
    /// Raised when the job ends.
    pub(super) stop: CancellationToken,
    /// Whether it is the first attempt of the job.
    pub(super) is_first: bool,
}

/// A device at fault for a proof that did not verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrongDevice {
    /// Its number.
    pub(super) device: usize,
    /// Whether the fault was counted when it happened, because the witness was known to be right.
    pub(super) is_counted: bool,
}

/// Consequences of a proof.
pub(super) struct Proven {
    /// Devices at fault for earlier proofs that did not verify: now the witness and the key are known to be right.
    pub(super) wrong_devices: Vec<WrongDevice>,
    /// Whether all partitions are proven.
    pub(super) is_all: bool,
}

/// Consequences of a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The partition is tried again.
    Again(WaitingPlace),
    /// The job has failed, for this reason.
    Failed(String),
}

// === impl Job ===

impl Job {
    /// A job whose acceptance is on disk.
    pub(super) fn new(record: JobRecord, arrival: u64, circuits: Vec<String>) -> Self {
        Self {
            parts: record.partitions.iter().map(|_| Part::default()).collect(),
            record,
            arrival,
            circuits,
            stop: CancellationToken::new(),
            started_ms: None,
            retries: 0,
            accepted: true,
            ending: None,
            waiting: Vec::new(),
        }
    }

    pub(super) fn record(&self) -> &JobRecord {
        &self.record
    }

    pub(super) fn arrival(&self) -> u64 {
        self.arrival
    }

    pub(super) fn partitions(&self) -> u32 {
        // The number is limited far below 2³².
        self.parts.len() as u32
    }

    /// The record of a partition, as accepted.
    pub(super) fn partition(&self, number: u32) -> Option<&PartitionRecord> {
        self.record.partitions.get(number as usize)
    }

    /// The places of its partitions in the waiting lines, in order.
    pub(super) fn places(&self) -> impl Iterator<Item = WaitingPlace> + use<> {
        let (priority, arrival) = (Reverse(self.record.priority), self.arrival);
        (0..self.partitions()).map(move |partition| WaitingPlace {
            priority,
            arrival,
            partition,
        })
    }

    /// Records that its acceptance is in the log but not on disk yet; `reply` is answered when it is.
    pub(super) fn accepting(&mut self, reply: Reply<Submitted>) {
        self.accepted = false;
        self.waiting.push(Waiting::Accepted(false, reply));
    }

    /// Answers that the job existed before, once its acceptance is on disk.
    pub(super) fn wait_for_acceptance(&mut self, reply: Reply<Submitted>) {
        if self.accepted {
            answer_accepted(self.record.id(), true, reply);
        } else {
            self.waiting.push(Waiting::Accepted(true, reply));
        }
    }

    pub(super) fn wait_for_result(&mut self, reply: Reply<KeptResult>) {
        self.waiting.push(Waiting::Result(reply));
    }

    /// Answers with the job's final state once its end is on disk.
    pub(super) fn wait_for_end(&mut self, reply: Reply<JobView>) {
        self.waiting.push(Waiting::View(reply));
    }

    /// The number of callers that wait for its result.
    pub(super) fn waiting_callers(&self) -> usize {
        let waits =
            |waiting: &&Waiting| matches!(waiting, Waiting::Result(reply) if !reply.is_closed());
        self.waiting.iter().filter(waits).count()
    }

    /// Records that its acceptance is on disk, and answers those who wait for that.
    pub(super) fn accepted(&mut self) {
        self.accepted = true;
        let id = self.record.id();
        for waiting in self
            .waiting
            .extract_if(.., |waiting| matches!(waiting, Waiting::Accepted(..)))
        {
            if let Waiting::Accepted(existing, reply) = waiting {
                answer_accepted(id, existing, reply);
            }
        }
    }

    /// Begins another attempt at a partition, at the time `now`, in milliseconds since 1970.
    pub(super) fn begin(&mut self, number: u32, now: u64) -> Option<Attempt> {
        let part = self.parts.get_mut(number as usize)?;
        part.attempts += 1;
        part.state = PartState::Running;
        let is_first = self.started_ms.is_none();
        self.started_ms.get_or_insert(now);
        Some(Attempt {
            number: part.attempts,
            last_device: part.last_device,
            stop: self.stop.clone(),
            is_first,
        })
    }

    /// Undoes the beginning of an attempt: the partition waits again.
    pub(super) fn take_back(&mut self, number: u32) -> Option<WaitingPlace> {
        let part = self.parts.get_mut(number as usize)?;
        part.attempts -= 1;
        part.state = PartState::Waiting;
        Some(self.place(number))
    }

    /// Records a failed attempt at a partition, and decides whether to try again; `attempts` is the most.
    pub(super) fn failed(
        &mut self,
        number: u32,
        failure: Failure,
        attempts: u32,
    ) -> Option<Verdict> {
        let part = self.parts.get_mut(number as usize)?;
        match failure.blame {
            Blame::Job => return Some(Verdict::Failed(failure.why)),
            Blame::Broken(_) => part.broken += 1,
            Blame::Ambiguous | Blame::WrongProof => {
                let is_counted = failure.blame == Blame::WrongProof;
                let suspect = failure
                    .device
                    .map(|device| WrongDevice { device, is_counted });
                part.suspects.extend(suspect);
            }
            Blame::Nobody | Blame::Device => {}
        }
        part.last_device = failure.device;
        // A device breaks only once, so there are no more such attempts than devices.
        if part.attempts - part.broken >= attempts {
            let tried = part.attempts;
            let why = format!("{} (attempt {tried} of {tried})", failure.why);
            return Some(Verdict::Failed(why));
        }
        tracing::warn!(why = failure.why, "tried again");
        part.state = PartState::Waiting;
        self.retries += 1;
        Some(Verdict::Again(self.place(number)))
    }

    /// Records a partition's verified proof.
    pub(super) fn proven(&mut self, number: u32, proof: PartitionProof) -> Option<Proven> {
        let part = self.parts.get_mut(number as usize)?;
        part.state = PartState::Proven(Box::new(proof));
        Some(Proven {
            // Witness and key are right, so the earlier proofs that did not verify were the devices' fault.
            wrong_devices: std::mem::take(&mut part.suspects),
            is_all: self.parts.iter().all(|part| part.proof().is_some()),
        })
    }

    /// Whether its end is in the log.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Cancels its partitions under way.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// The record of its end in `state` at the time `ended_ms`, for the log.
    pub(super) fn end(&self, state: JobState, ended_ms: u64) -> EndRecord {
        let record = &self.record;
        let proofs = match state {
            JobState::Done => {
                let proofs = self.parts.iter().filter_map(Part::proof);
                proofs.map(ProofRecord::of).collect()
            }
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
            partitions: self.partitions(),
            proven: self.proven_count(),
            retries: self.retries,
            circuits: self.circuits.clone(),
            state,
            proofs,
        }
    }

    /// Records that its end is in the log.
    pub(super) fn ending(&mut self, record: EndRecord) {
        self.ending = Some(record);
    }

    /// Takes the record of its end, if it is in the log, and the proofs if the job is done.
    pub(super) fn take_ending(&mut self) -> Option<(EndRecord, Vec<PartitionProof>)> {
        let record = self.ending.take()?;
        let proofs = match record.state {
            JobState::Done => self.parts.drain(..).filter_map(Part::into_proof).collect(),
            _ => Vec::new(),
        };
        Some((record, proofs))
    }

    /// Answers all waiting callers, after its end is on disk.
    pub(super) fn answer_waiting(self, ended: &Ended) {
        let id = self.record.id();
        for waiting in self.waiting {
            // The caller may have gone.
            match waiting {
                Waiting::Result(reply) => drop(reply.send(Ok(ended.result()))),
                Waiting::View(reply) => drop(reply.send(Ok(ended.view()))),
                Waiting::Accepted(existing, reply) => answer_accepted(id, existing, reply),
            }
        }
    }

    /// Its state as shown to callers. The end shows only once it is on disk.
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
            partitions: self.partitions(),
            proven: self.proven_count(),
            running: self.count(|part| part.state == PartState::Running),
            retries: self.retries,
            submitted_ms: record.submitted_ms,
            deadline_ms: record.deadline_ms,
            started_ms: self.started_ms,
            ended_ms: None,
            circuits: self.circuits.clone(),
            bytes,
        }
    }

    fn place(&self, partition: u32) -> WaitingPlace {
        WaitingPlace {
            priority: Reverse(self.record.priority),
            arrival: self.arrival,
            partition,
        }
    }

    fn proven_count(&self) -> u32 {
        self.count(|part| part.proof().is_some())
    }

    fn count(&self, is: impl Fn(&Part) -> bool) -> u32 {
        self.parts.iter().filter(|part| is(part)).count() as u32
    }
}

fn answer_accepted(job: JobId, existing: bool, reply: Reply<Submitted>) {
    // The caller may have gone.
    drop(reply.send(Ok(Submitted { job, existing })));
}

// === impl Part ===

impl Part {
    fn into_proof(self) -> Option<PartitionProof> {
        match self.state {
            PartState::Proven(proof) => Some(*proof),
            _ => None,
        }
    }

    fn proof(&self) -> Option<&PartitionProof> {
        match &self.state {
            PartState::Proven(proof) => Some(proof),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::InputName;
    use crate::interface::{CircuitId, Priority, RequestId, proof_for_tests};
    use crate::queue::InputRecord;

    fn job(partitions: usize) -> Job {
        let partition = PartitionRecord {
            circuit: CircuitId([1; 32]),
            input: InputRecord {
                name: InputName::random(),
                bytes: 32,
                digest: [0; 32],
                generator: None,
            },
        };
        let record = JobRecord {
            request: RequestId::new("client", "1").unwrap(),
            content: [0; 32],
            priority: Priority::Normal,
            deadline_ms: None,
            submitted_ms: 0,
            partitions: vec![partition; partitions],
        };
        Job::new(record, 7, Vec::new())
    }

    fn failure(blame: Blame, device: usize) -> Failure {
        Failure {
            why: "why".to_owned(),
            device: Some(device),
            blame,
        }
    }

    fn proof() -> PartitionProof {
        proof_for_tests(CircuitId([1; 32]))
    }

    #[test]
    fn attempts_are_limited_and_those_on_broken_devices_do_not_count() {
        let mut job = job(1);
        let place = job.places().next().unwrap();
        assert!(job.begin(0, 5).unwrap().is_first);
        let broken = failure(Blame::Broken("on fire".to_owned()), 1);
        assert_eq!(job.failed(0, broken, 2), Some(Verdict::Again(place)));
        let attempt = job.begin(0, 6).unwrap();
        assert_eq!((attempt.number, attempt.is_first), (2, false));
        assert_eq!(attempt.last_device, Some(1));
        let first = job.failed(0, failure(Blame::Device, 0), 2);
        assert_eq!(first, Some(Verdict::Again(place)));
        job.begin(0, 7);
        let last = job.failed(0, failure(Blame::Device, 0), 2);
        assert_eq!(
            last,
            Some(Verdict::Failed("why (attempt 3 of 3)".to_owned()))
        );
        let view = job.view(0);
        assert_eq!((view.retries, view.started_ms), (2, Some(5)));
    }

    #[test]
    fn a_withdrawn_attempt_does_not_count() {
        let mut job = job(2);
        job.begin(1, 5);
        assert_eq!(job.view(0).running, 1);
        assert_eq!(job.take_back(1), job.places().nth(1));
        assert_eq!(job.view(0).running, 0);
        assert_eq!(job.begin(1, 6).unwrap().number, 1);
        assert_eq!(job.take_back(2), None);
    }

    #[test]
    fn the_last_proof_ends_the_job_and_settles_which_device_was_wrong() {
        let mut job = job(2);
        job.begin(0, 5);
        job.failed(0, failure(Blame::Ambiguous, 3), 2);
        job.begin(0, 5);
        let first = job.proven(0, proof()).unwrap();
        let wrong = WrongDevice {
            device: 3,
            is_counted: false,
        };
        assert_eq!((first.wrong_devices, first.is_all), (vec![wrong], false));
        assert_eq!(job.end(JobState::Cancelled, 9).proofs, []);
        job.begin(1, 5);
        let last = job.proven(1, proof()).unwrap();
        assert!(last.wrong_devices.is_empty() && last.is_all);
        assert_eq!(job.end(JobState::Done, 9).proofs.len(), 2);
    }

    #[test]
    fn a_repeated_request_is_answered_when_the_first_is_on_disk() {
        let mut job = job(1);
        let (first, mut first_answer) = oneshot::channel();
        let (second, mut second_answer) = oneshot::channel();
        job.accepting(first);
        job.wait_for_acceptance(second);
        assert!(first_answer.try_recv().is_err() && second_answer.try_recv().is_err());
        job.accepted();
        assert!(!first_answer.try_recv().unwrap().unwrap().existing);
        assert!(second_answer.try_recv().unwrap().unwrap().existing);
        let (third, mut third_answer) = oneshot::channel();
        job.wait_for_acceptance(third);
        assert!(third_answer.try_recv().unwrap().unwrap().existing);
    }

    #[test]
    fn only_callers_that_still_wait_for_the_result_count() {
        let mut job = job(1);
        let (here, _answer) = oneshot::channel();
        let (gone, _) = oneshot::channel();
        let (view, _view) = oneshot::channel();
        job.wait_for_result(here);
        job.wait_for_result(gone);
        job.wait_for_end(view);
        assert_eq!(job.waiting_callers(), 1);
    }
}
