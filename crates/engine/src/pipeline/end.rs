//! The end of jobs, and the removal of results.

use std::time::{Instant, SystemTime};

use super::results::Ended;
use super::scheduler::{Consequence, Scheduler};
use crate::events::unix_ms;
use crate::interface::{Error, EventKind, JobId, JobState};

// === impl Scheduler ===

impl Scheduler {
    /// Ends a job. The memory it holds is given back now; waiting callers are answered once the end is on
    /// disk.
    pub(super) async fn end(&mut self, id: JobId, state: JobState) -> Result<(), Error> {
        let now = unix_ms(SystemTime::now());
        let Some(mut record) = self.jobs.end(id, state, now) else {
            return Ok(());
        };
        if let JobState::Failed(why) = &record.state {
            let log = self.env.events.traces().log_span(id);
            log.in_scope(|| tracing::info!(why, "the job has failed"));
        }
        self.remove_waiting(id);
        let mut appended = self.journal.end(&record).await;
        if let Err(error @ Error::TooLarge { .. }) = &appended {
            record.state = JobState::Failed(error.to_string());
            record.proofs.clear();
            appended = self.journal.end(&record).await;
        }
        self.pending.push(appended?, Consequence::Ended(id));
        if let Some(job) = self.jobs.get_mut(id) {
            job.ending(record);
        }
        Ok(())
    }

    /// Completes a job whose end is on disk.
    pub(super) async fn settle(&mut self, id: JobId) -> Result<(), Error> {
        self.accepted(id);
        let Some(mut job) = self.jobs.remove(id) else {
            return Ok(());
        };
        let Some((record, proofs)) = job.take_ending() else {
            return Ok(());
        };
        self.remove_inputs(job.record());
        for partition in &job.record().partitions {
            self.residency.job_ended(&partition.circuit);
        }
        self.counters.ended(&record.state, Instant::now());
        self.env.events.send(EventKind::Job {
            job: id,
            priority: record.priority,
            partitions: record.partitions,
            state: record.state.clone(),
        });
        let ended = Ended::new(record, proofs);
        job.answer_waiting(&ended);
        self.results.keep(ended);
        self.prune(unix_ms(SystemTime::now())).await
    }

    /// Records that a job's acceptance is on disk.
    pub(super) fn accepted(&mut self, id: JobId) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.accepted();
        }
    }

    /// Removes results whose time to live has passed, and the oldest ones if there are too many.
    pub(super) async fn prune(&mut self, now: u64) -> Result<(), Error> {
        while let Some(id) = self.results.prune(now) {
            self.counters.pruned();
            self.journal.prune(id).await?;
        }
        Ok(())
    }
}
