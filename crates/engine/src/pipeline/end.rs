//! Jobs at their end, and their results.

use std::time::{Instant, SystemTime};

use super::job::Waiting;
use super::results::Ended;
use super::scheduler::{Consequence, Scheduler};
use crate::events::unix_ms;
use crate::interface::{Error, EventKind, JobId, JobState, Submitted};

// === impl Scheduler ===

impl Scheduler {
    /// Ends a job: what it holds is given back now, and whoever waits is told once it is on disk.
    pub(super) async fn end(&mut self, id: JobId, state: JobState) -> Result<(), Error> {
        let Some(job) = self.jobs.get(&id) else {
            return Ok(());
        };
        if job.ending.is_some() {
            return Ok(());
        }
        job.stop.raise();
        if let Some(deadline) = job.record.deadline_ms {
            self.deadlines.remove(&(deadline, id));
        }
        let now = unix_ms(SystemTime::now());
        let mut record = job.end(state, now);
        self.admission.remove(id);
        for flight in self.lanes.remove(id) {
            self.drop_flight(flight);
        }
        let mut appended = self.journal.end(&record).await;
        if let Err(error @ Error::TooLarge { .. }) = &appended {
            record.state = JobState::Failed(error.to_string());
            record.proofs.clear();
            appended = self.journal.end(&record).await;
        }
        self.unwritten.push(appended?, Consequence::Ended(id));
        if let Some(job) = self.jobs.get_mut(&id) {
            job.ending = Some(record);
        }
        Ok(())
    }

    /// A job's acceptance is on disk.
    pub(super) fn accepted(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        job.accepting = None;
        for waiting in job
            .waiting
            .extract_if(.., |waiting| matches!(waiting, Waiting::Accepted(..)))
        {
            if let Waiting::Accepted(existing, reply) = waiting {
                // Whoever asked may have gone, here and below.
                drop(reply.send(Ok(Submitted { job: id, existing })));
            }
        }
    }

    /// A job's end is on disk.
    pub(super) async fn settle(&mut self, id: JobId) -> Result<(), Error> {
        self.accepted(id);
        let Some(mut job) = self.jobs.remove(&id) else {
            return Ok(());
        };
        let Some(record) = job.ending.take() else {
            return Ok(());
        };
        self.remove_inputs(&job.record);
        for partition in &job.record.partitions {
            self.residency.job_ended(&partition.circuit);
        }
        let client = job.record.request.client();
        if let Some(jobs) = self.clients.get_mut(client) {
            *jobs -= 1;
            if *jobs == 0 {
                self.clients.remove(client);
            }
        }
        self.tally.ended(&record.state, Instant::now());
        self.env.events.send(EventKind::Job {
            job: id,
            priority: record.priority,
            partitions: record.partitions,
            state: record.state.clone(),
        });
        let ended = Ended::new(record);
        for waiting in job.waiting {
            match waiting {
                Waiting::Result(reply) => drop(reply.send(Ok(ended.result()))),
                Waiting::View(reply) => drop(reply.send(Ok(ended.view()))),
                Waiting::Accepted(existing, reply) => {
                    drop(reply.send(Ok(Submitted { job: id, existing })));
                }
            }
        }
        self.results.keep(ended);
        self.prune(unix_ms(SystemTime::now())).await
    }

    /// Forgets results that were kept long enough, and the oldest ones if there are too many.
    pub(super) async fn prune(&mut self, now: u64) -> Result<(), Error> {
        while let Some(id) = self.results.prune(now) {
            self.tally.pruned();
            self.journal.prune(id).await?;
        }
        Ok(())
    }
}
