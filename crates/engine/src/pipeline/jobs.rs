//! The unfinished jobs: by id, by client and by deadline, and the queue of jobs to end.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::failure::Failure;
use super::job::{Job, Verdict};
use crate::interface::{JobId, JobState};
use crate::queue::{EndRecord, JobRecord};

/// All jobs that have not ended, or whose end is not on disk yet.
pub(super) struct Jobs {
    jobs: HashMap<JobId, Job>,
    /// Number of jobs of each client.
    clients: HashMap<String, usize>,
    /// Number of jobs accepted so far, which is the next job's arrival.
    arrivals: u64,
    /// Deadlines of unfinished jobs, in milliseconds since 1970.
    deadlines: BTreeSet<(u64, JobId)>,
    /// Jobs to end in this turn, each with its final state.
    to_end: VecDeque<(JobId, JobState)>,
    /// Most attempts at a partition.
    attempts: u32,
}

// === impl Jobs ===

impl Jobs {
    pub(super) fn new(attempts: u32) -> Self {
        Self {
            jobs: HashMap::new(),
            clients: HashMap::new(),
            arrivals: 0,
            deadlines: BTreeSet::new(),
            to_end: VecDeque::new(),
            attempts,
        }
    }

    /// Inserts a job that is in the log, under an id that is not in use. `circuits` are the names of its
    /// circuits.
    pub(super) fn insert(&mut self, record: JobRecord, circuits: Vec<String>) -> &mut Job {
        let id = record.id();
        let arrival = self.arrivals;
        self.arrivals += 1;
        let client = record.request.client().to_owned();
        *self.clients.entry(client).or_default() += 1;
        if let Some(deadline) = record.deadline_ms {
            self.deadlines.insert((deadline, id));
        }
        let job = Job::new(record, arrival, circuits);
        self.jobs.entry(id).insert_entry(job).into_mut()
    }

    pub(super) fn get(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.jobs.get_mut(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (JobId, &Job)> {
        self.jobs.iter().map(|(id, job)| (*id, job))
    }

    pub(super) fn count(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Number of a client's jobs.
    pub(super) fn count_of(&self, client: &str) -> usize {
        self.clients.get(client).copied().unwrap_or(0)
    }

    /// Schedules a job to end in `state` in this turn.
    pub(super) fn end_later(&mut self, id: JobId, state: JobState) {
        self.to_end.push_back((id, state));
    }

    /// Schedules the end of jobs whose deadlines have passed.
    pub(super) fn expire(&mut self, now: u64) {
        while let Some((deadline, id)) = self.deadlines.first().copied() {
            if deadline > now {
                break;
            }
            self.deadlines.pop_first();
            self.end_later(id, JobState::Expired);
        }
    }

    /// The next deadline, in milliseconds since 1970.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The next job to end, with its state. A job may be returned more than once, or after it has ended.
    pub(super) fn next_ending(&mut self) -> Option<(JobId, JobState)> {
        self.to_end.pop_front()
    }

    /// Stops a job and returns the record of its end for the log, in `state` at the time `now`; `None` if
    /// it has ended.
    pub(super) fn end(&mut self, id: JobId, state: JobState, now: u64) -> Option<EndRecord> {
        let job = self.jobs.get(&id).filter(|job| !job.is_ending())?;
        job.stop();
        if let Some(deadline) = job.record().deadline_ms {
            self.deadlines.remove(&(deadline, id));
        }
        Some(job.end(state, now))
    }

    /// Records a failed attempt at a partition of a job.
    pub(super) fn failed(
        &mut self,
        id: JobId,
        partition: u32,
        failure: Failure,
    ) -> Option<Verdict> {
        self.jobs
            .get_mut(&id)?
            .failed(partition, failure, self.attempts)
    }

    /// Removes a job whose end is on disk.
    pub(super) fn remove(&mut self, id: JobId) -> Option<Job> {
        let job = self.jobs.remove(&id)?;
        let client = job.record().request.client();
        if let Some(count) = self.clients.get_mut(client) {
            *count -= 1;
            if *count == 0 {
                self.clients.remove(client);
            }
        }
        Some(job)
    }

    /// Cancels all partitions under way.
    pub(super) fn stop_all(&self) {
        self.jobs.values().for_each(Job::stop);
    }

    /// Panics if the indices do not agree with the jobs.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut clients: HashMap<String, usize> = HashMap::new();
        let mut deadlines = BTreeSet::new();
        for (id, job) in &self.jobs {
            let record = job.record();
            assert!(*id == record.id() && job.arrival() < self.arrivals);
            *clients
                .entry(record.request.client().to_owned())
                .or_default() += 1;
            deadlines.extend(record.deadline_ms.map(|at| (at, *id)));
            let ending = (record.deadline_ms).filter(|_| job.is_ending());
            assert!(ending.is_none_or(|at| !self.deadlines.contains(&(at, *id))));
        }
        assert_eq!(clients, self.clients);
        assert!(self.deadlines.is_subset(&deadlines));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::{Priority, RequestId};

    fn record(client: &str, name: &str, deadline_ms: Option<u64>) -> JobRecord {
        JobRecord {
            request: RequestId::new(client, name).unwrap(),
            content: [0; 32],
            priority: Priority::Normal,
            deadline_ms,
            submitted_ms: 0,
            partitions: Vec::new(),
        }
    }

    #[test]
    fn jobs_count_for_their_client_until_their_end_is_on_disk() {
        let mut jobs = Jobs::new(1);
        let (first, second) = (record("a", "1", None), record("a", "2", None));
        let id = first.id();
        jobs.insert(first, Vec::new());
        assert_eq!(jobs.insert(second, Vec::new()).arrival(), 1);
        let end = jobs.end(id, JobState::Cancelled, 5).unwrap();
        jobs.get_mut(id).unwrap().ending(end);
        jobs.check();
        assert_eq!((jobs.count(), jobs.count_of("a")), (2, 2));
        assert!(jobs.remove(id).is_some() && jobs.remove(id).is_none());
        jobs.check();
        assert_eq!((jobs.count_of("a"), jobs.count_of("b")), (1, 0));
    }

    #[test]
    fn a_job_expires_once_and_not_after_its_end() {
        let mut jobs = Jobs::new(1);
        let all = [
            record("a", "1", Some(10)),
            record("a", "2", Some(20)),
            record("a", "3", None),
        ];
        let ids = all.each_ref().map(JobRecord::id);
        for record in all {
            jobs.insert(record, Vec::new());
        }
        jobs.expire(9);
        assert_eq!((jobs.next_ending(), jobs.next_deadline()), (None, Some(10)));
        jobs.expire(10);
        assert_eq!(jobs.next_ending(), Some((ids[0], JobState::Expired)));
        assert_eq!(jobs.next_ending(), None);
        let end = jobs.end(ids[1], JobState::Done, 15).unwrap();
        jobs.get_mut(ids[1]).unwrap().ending(end);
        assert_eq!(jobs.end(ids[1], JobState::Expired, 20), None);
        jobs.expire(30);
        assert_eq!((jobs.next_ending(), jobs.next_deadline()), (None, None));
        jobs.check();
    }
}
