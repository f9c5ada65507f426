//! Ended jobs and their results, as long as these are kept.
//!
//! Proofs made since the service began are kept decoded. Proofs from before are kept as the log has them,
//! and decoded when a caller asks for them: decoding is slow, and most are never asked for again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::interface::{Error, JobId, JobResult, JobState, JobView, PartitionProof};
use crate::queue::{EndRecord, ProofRecord};

/// The kept results: each for its time to live, and at most a fixed number of them.
pub(super) struct Results {
    ended: HashMap<JobId, Ended>,
    /// Expiry times of the results, in milliseconds since 1970, the oldest first.
    expiring: VecDeque<(u64, JobId)>,
    /// Time to live, in milliseconds.
    ttl_ms: u64,
    /// Most results kept.
    most: usize,
    /// Most recent results that the status shows.
    shown: usize,
}

/// An ended job.
pub(super) struct Ended {
    /// The record, without its proofs.
    record: EndRecord,
    proofs: Proofs,
}

/// The result of an ended job, as it is kept.
#[derive(Clone, Debug)]
pub(crate) struct KeptResult {
    job: JobId,
    state: JobState,
    proofs: Proofs,
}

#[derive(Clone, Debug)]
enum Proofs {
    Made(Arc<[PartitionProof]>),
    /// From the log, still encoded.
    Encoded(Arc<[ProofRecord]>),
}

// === impl Results ===

impl Results {
    pub(super) fn new(ttl: Duration, most: usize, shown: usize) -> Self {
        Self {
            ended: HashMap::new(),
            expiring: VecDeque::new(),
            ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
            most,
            shown,
        }
    }

    /// Keeps the result of a job that has none yet.
    pub(super) fn keep(&mut self, ended: Ended) {
        let expires = ended.record.ended_ms.saturating_add(self.ttl_ms);
        self.expiring.push_back((expires, ended.id()));
        self.ended.insert(ended.id(), ended);
    }

    /// The ended job of that id, if its result is kept.
    pub(super) fn get(&self, id: JobId) -> Option<&Ended> {
        self.ended.get(&id)
    }

    /// Removes one result and returns its job: one that has expired at the time `now`, in milliseconds
    /// since 1970, or the oldest if there are too many.
    pub(super) fn prune(&mut self, now: u64) -> Option<JobId> {
        let (expires, id) = *self.expiring.front()?;
        if expires > now && self.expiring.len() <= self.most {
            return None;
        }
        self.expiring.pop_front();
        self.ended.remove(&id);
        Some(id)
    }

    /// Expiry of the next result, in milliseconds since 1970.
    pub(super) fn next_expiry(&self) -> Option<u64> {
        self.expiring.front().map(|(at, _)| *at)
    }

    /// The jobs that ended last, the latest first.
    pub(super) fn recent(&self) -> impl Iterator<Item = &Ended> {
        let recent = self.expiring.iter().rev().take(self.shown);
        recent.filter_map(|(_, id)| self.ended.get(id))
    }

    /// Panics if a result does not have exactly one expiry.
    #[cfg(test)]
    pub(super) fn check(&self) {
        assert_eq!(self.ended.len(), self.expiring.len());
        assert!(self.expiring.iter().all(|(_, id)| self.get(*id).is_some()));
    }
}

// === impl Ended ===

impl Ended {
    /// A job that ended now, with its proofs.
    pub(super) fn new(mut record: EndRecord, proofs: Vec<PartitionProof>) -> Self {
        record.proofs.clear();
        Self {
            record,
            proofs: Proofs::Made(proofs.into()),
        }
    }

    /// A job that ended before the service began.
    pub(super) fn recovered(mut record: EndRecord) -> Self {
        let proofs = std::mem::take(&mut record.proofs).into();
        Self {
            record,
            proofs: Proofs::Encoded(proofs),
        }
    }

    fn id(&self) -> JobId {
        JobId::of(&self.record.request)
    }

    /// Digest by which repeated requests are recognised: see
    /// [`JobRecord::content`](crate::queue::JobRecord).
    pub(super) fn content(&self) -> [u8; 32] {
        self.record.content
    }

    pub(super) fn result(&self) -> KeptResult {
        KeptResult {
            job: self.id(),
            state: self.record.state.clone(),
            proofs: self.proofs.clone(),
        }
    }

    pub(super) fn view(&self) -> JobView {
        let record = &self.record;
        JobView {
            id: self.id(),
            request: record.request.clone(),
            priority: record.priority,
            state: record.state.clone(),
            partitions: record.partitions,
            proven: record.proven,
            running: 0,
            retries: record.retries,
            submitted_ms: record.submitted_ms,
            deadline_ms: record.deadline_ms,
            started_ms: record.started_ms,
            ended_ms: Some(record.ended_ms),
            circuits: record.circuits.clone(),
            bytes: 0,
        }
    }
}

// === impl KeptResult ===

impl KeptResult {
    /// Decodes the proofs and returns the result. Slow: must not be called from the scheduler's task.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`].
    pub(crate) fn into_result(self) -> Result<JobResult, Error> {
        let job = self.job;
        let damaged = |(index, record): (usize, &ProofRecord)| {
            record
                .decode()
                .map_err(|why| Error::Damaged(format!("proof {index} of job {job}: {why}")))
        };
        let proofs = match self.proofs {
            Proofs::Made(proofs) => proofs,
            Proofs::Encoded(records) => {
                let records = records.iter().enumerate();
                records.map(damaged).collect::<Result<_, _>>()?
            }
        };
        Ok(JobResult {
            job,
            state: self.state,
            proofs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::{CircuitId, Priority, RequestId, proof_for_tests};

    fn ended(name: &str, ended_ms: u64) -> Ended {
        Ended::recovered(record(name, ended_ms))
    }

    fn record(name: &str, ended_ms: u64) -> EndRecord {
        EndRecord {
            request: RequestId::new("client", name).unwrap(),
            content: [0; 32],
            priority: Priority::Normal,
            deadline_ms: None,
            submitted_ms: 0,
            started_ms: None,
            ended_ms,
            partitions: 1,
            proven: 0,
            retries: 0,
            circuits: Vec::new(),
            state: JobState::Cancelled,
            proofs: Vec::new(),
        }
    }

    #[test]
    fn a_result_is_the_same_from_the_log() {
        let proofs = vec![proof_for_tests(CircuitId([1; 32])); 2];
        let mut record = record("1", 10);
        record.proofs = proofs.iter().map(ProofRecord::of).collect();
        let made = Ended::new(record.clone(), proofs.clone());
        let made = made.result().into_result().unwrap();
        assert_eq!(*made.proofs, *proofs);
        let recovered = Ended::recovered(record).result().into_result();
        assert_eq!(recovered.unwrap(), made);
    }

    #[test]
    fn results_are_pruned_by_age_and_by_number() {
        let mut results = Results::new(Duration::from_millis(100), 2, 1);
        let (first, second, third) = (ended("1", 10), ended("2", 20), ended("3", 30));
        let ids = [first.id(), second.id(), third.id()];
        results.keep(first);
        results.keep(second);
        assert_eq!(results.next_expiry(), Some(110));
        assert_eq!(results.prune(109), None);
        results.keep(third);
        results.check();
        assert_eq!(results.prune(0), Some(ids[0]));
        assert_eq!(results.prune(0), None);
        assert!(results.get(ids[0]).is_none());
        let recent: Vec<_> = results.recent().map(Ended::id).collect();
        assert_eq!(recent, [ids[2]]);
        assert_eq!(results.prune(120), Some(ids[1]));
        assert_eq!(results.prune(120), None);
        results.check();
    }
}
