//! Requests of callers to the scheduler, and its answers.

use tokio::sync::oneshot;

use super::results::KeptResult;
use super::scheduler::{Consequence, Scheduler};
use super::submit::Prepared;
use crate::interface::{Error, JobId, JobState, JobView, Load, RequestId, Status, Submitted};
use crate::registry::Registered;

/// A caller's request to the scheduler.
pub(crate) enum Command {
    MaySubmit(RequestId, oneshot::Sender<Result<(), Error>>),
    Submit(Prepared, oneshot::Sender<Result<Submitted, Error>>),
    Await(JobId, oneshot::Sender<Result<KeptResult, Error>>),
    /// The job, and the most callers that may wait for its result; none for no limit.
    Cancel(
        JobId,
        Option<usize>,
        oneshot::Sender<Result<JobView, Error>>,
    ),
    Job(JobId, oneshot::Sender<Result<JobView, Error>>),
    Load(oneshot::Sender<Result<Load, Error>>),
    Status(oneshot::Sender<Result<Status, Error>>),
    KeepCircuit(Box<Registered>, oneshot::Sender<Result<(), Error>>),
    ForgetCircuit(String, oneshot::Sender<Result<(), Error>>),
}

// === impl Scheduler ===

impl Scheduler {
    /// Carries out a command, or begins to.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if the log fails.
    pub(super) async fn command(&mut self, command: Command) -> Result<(), Error> {
        // The caller may have gone: an answer without a receiver is dropped.
        match command {
            Command::MaySubmit(request, reply) => drop(reply.send(self.may_submit(&request))),
            Command::Submit(prepared, reply) => self.submit(prepared, reply).await?,
            Command::Await(id, reply) => match (self.jobs.get_mut(id), self.results.get(id)) {
                (Some(job), _) => job.wait_for_result(reply),
                (None, Some(ended)) => drop(reply.send(Ok(ended.result()))),
                (None, None) => drop(reply.send(Err(Error::UnknownJob(id)))),
            },
            Command::Cancel(id, most, reply) => match self.jobs.get_mut(id) {
                Some(job) if most.is_none_or(|most| job.waiting_callers() <= most) => {
                    job.wait_for_end(reply);
                    self.jobs.end_later(id, JobState::Cancelled);
                }
                _ => drop(reply.send(self.view(id))),
            },
            Command::Job(id, reply) => drop(reply.send(self.view(id))),
            Command::Load(reply) => drop(reply.send(Ok(self.load()))),
            Command::Status(reply) => drop(reply.send(Ok(self.status()))),
            Command::KeepCircuit(circuit, reply) => {
                let seq = self.journal.keep_circuit(&circuit).await?;
                self.pending.push(seq, Consequence::Kept(reply));
            }
            Command::ForgetCircuit(name, reply) => {
                let seq = self.journal.forget_circuit(&name).await?;
                self.pending.push(seq, Consequence::Kept(reply));
            }
        }
        Ok(())
    }
}
