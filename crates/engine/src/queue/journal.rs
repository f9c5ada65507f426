//! Writing the log, and reading it back at start.

use std::path::Path;
use std::sync::Arc;

use futures_util::StreamExt;
use proofmill_bus::{AppendError, Durable, EmbeddedLog, Log, MemoryLog, Op, Seq};
use tokio::sync::watch;

use super::record::{self, EndRecord, JobRecord, Record};
use crate::interface::{Error, JobId};
use crate::registry::Registered;

/// The log of one engine.
pub(crate) struct Journal {
    log: Arc<dyn Log>,
}

/// The content of the log at start.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    pub(crate) circuits: Vec<Registered>,
    /// Accepted jobs, in order of acceptance.
    pub(crate) jobs: Vec<JobRecord>,
    /// Ends of jobs, in the order in which they were recorded.
    pub(crate) ends: Vec<EndRecord>,
}

// === impl Journal ===

impl Journal {
    /// Opens the log in a folder, or in memory if there is none. A log that has lost durable records is
    /// opened only if `accept_loss`.
    pub(crate) async fn open(
        folder: Option<&Path>,
        accept_loss: bool,
    ) -> Result<(Self, Recovered), Error> {
        let log: Arc<dyn Log> = match folder {
            None => Arc::new(MemoryLog::new()),
            Some(folder) => {
                let folder = folder.to_owned();
                let opened = tokio::task::spawn_blocking(move || {
                    let options = proofmill_bus::Options::default();
                    EmbeddedLog::open(folder, options.with_accepted_loss(accept_loss))
                });
                let opened = opened.await.map_err(storage)?;
                Arc::new(opened.map_err(|error| storage(described(&error)))?)
            }
        };
        let mut recovered = Recovered::default();
        let mut entries = log.replay();
        while let Some(entry) = entries.next().await {
            let entry = entry.map_err(storage)?;
            match Record::read(&entry.key, &entry.value) {
                Ok(Record::Circuit(circuit)) => recovered.circuits.push(circuit),
                Ok(Record::Job(job)) => recovered.jobs.push(job),
                Ok(Record::End(end)) => recovered.ends.push(end),
                Err(why) => return Err(storage(format!("record {}: {why}", entry.key))),
            }
        }
        drop(entries);
        Ok((Self { log }, recovered))
    }

    /// The position up to which the log is on disk.
    pub(crate) fn durable(&self) -> watch::Receiver<Durable> {
        self.log.durable()
    }

    pub(crate) async fn keep_circuit(&self, circuit: &Registered) -> Result<Seq, Error> {
        self.append(record::keep_circuit(circuit)).await
    }

    pub(crate) async fn forget_circuit(&self, name: &str) -> Result<Seq, Error> {
        self.append(record::forget_circuit(name)).await
    }

    pub(crate) async fn accept(&self, job: &JobRecord) -> Result<Seq, Error> {
        self.append(record::accept(job)).await
    }

    pub(crate) async fn end(&self, end: &EndRecord) -> Result<Seq, Error> {
        self.append(record::end(end)).await
    }

    pub(crate) async fn prune(&self, job: JobId) -> Result<Seq, Error> {
        self.append(record::prune(job)).await
    }

    async fn append(&self, ops: Result<Vec<Op>, String>) -> Result<Seq, Error> {
        let ops = ops.map_err(storage)?;
        self.log.append(ops).await.map_err(|error| match error {
            AppendError::TooLarge { size, limit, .. } => Error::TooLarge {
                what: "a job's record, with its public inputs, in bytes",
                size: size as u64,
                limit: limit as u64,
            },
            other => storage(other),
        })
    }
}

fn storage(error: impl std::fmt::Display) -> Error {
    Error::Storage(error.to_string())
}

/// An error's message with the messages of its sources.
fn described(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::{JobState, Priority, RequestId};

    fn job(name: &str) -> JobRecord {
        JobRecord {
            request: RequestId::new("client", name).unwrap(),
            content: JobRecord::content_of([]),
            priority: Priority::High,
            deadline_ms: Some(5),
            submitted_ms: 1,
            partitions: Vec::new(),
        }
    }

    fn end(job: &JobRecord) -> EndRecord {
        EndRecord {
            request: job.request.clone(),
            content: job.content,
            priority: job.priority,
            deadline_ms: None,
            submitted_ms: 1,
            started_ms: None,
            ended_ms: 2,
            partitions: 0,
            proven: 0,
            retries: 0,
            circuits: Vec::new(),
            state: JobState::Cancelled,
            proofs: Vec::new(),
        }
    }

    #[tokio::test]
    async fn accepted_and_ended_jobs_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (job("1"), job("2"));
        {
            let (journal, found) = Journal::open(Some(folder.path()), false).await.unwrap();
            assert!(found.jobs.is_empty() && found.ends.is_empty());
            journal.accept(&first).await.unwrap();
            journal.accept(&second).await.unwrap();
            journal.end(&end(&first)).await.unwrap();
            let again = journal.end(&end(&first)).await;
            assert!(matches!(again, Err(Error::Storage(_))), "one end each");
        }
        let (journal, found) = Journal::open(Some(folder.path()), false).await.unwrap();
        assert_eq!((found.jobs, found.ends), (vec![second], vec![end(&first)]));
        journal.prune(first.id()).await.unwrap();
        drop(journal);
        let (_, found) = Journal::open(Some(folder.path()), false).await.unwrap();
        assert!(found.ends.is_empty());
    }
}
