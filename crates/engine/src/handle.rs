//! The client side of an engine.

use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;

use proofmill_trace::TraceContext;
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::front::CallerSide;
use crate::inputs::Upload;
use crate::interface::{
    CircuitRef, CircuitView, Error, Event, JobId, JobResult, JobView, Load, Registration, Status,
    Submission, Submitted, Tier,
};
use crate::pipeline::Command;

/// Client of a running engine. Clones share it. Dropping a future does not undo its request: a submission
/// may have been accepted, and can be found by its request id.
#[derive(Clone)]
pub struct Handle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) caller_side: Arc<CallerSide>,
}

// === impl Handle ===

impl Handle {
    /// Submits a job. When this returns, the job is on disk and survives any crash.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if the request id was used for other content; [`Error::Exhausted`] if there is
    /// no room now; [`Error::Impossible`] if a partition would never fit into the budget;
    /// [`Error::TooLarge`], [`Error::Invalid`], [`Error::UnknownCircuit`], [`Error::UnknownGenerator`];
    /// [`Error::Draining`].
    pub fn submit(&self, submission: Submission) -> BoxFuture<'_, Result<Submitted, Error>> {
        // Boxed, so that it is compiled in this crate and not again in every program that calls it.
        Box::pin(async move {
            self.caller_side.check(&submission)?;
            let request = submission.request.clone();
            self.ask(|reply| Command::MaySubmit(request, reply)).await?;
            let prepared = self.caller_side.prepare(submission).await?;
            self.ask(|reply| Command::Submit(prepared, reply)).await
        })
    }

    /// Waits until a job has ended, and returns its result. Results are kept for
    /// [`Options::result_ttl`](crate::Options::result_ttl).
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`]; [`Error::Stopped`] if the engine ends before the job does;
    /// [`Error::Damaged`] if the proofs are from before a restart and cannot be read.
    pub async fn await_result(&self, job: JobId) -> Result<JobResult, Error> {
        let kept = self.ask(|reply| Command::Await(job, reply)).await?;
        kept.into_result()
    }

    /// Notes the context of a caller's span for a job: spans of its stages join that trace from now on, also those
    /// of stages that ended before the caller of a job came, as after a restart of the engine. The contexts of the
    /// last 16,384 jobs are kept, in memory.
    pub fn note_trace(&self, job: JobId, context: TraceContext) {
        self.caller_side.env.events.traces().note(job, context);
    }

    /// Submits and waits.
    ///
    /// # Errors
    ///
    /// Those of [`submit`](Self::submit) and [`await_result`](Self::await_result).
    pub async fn prove(&self, submission: Submission) -> Result<JobResult, Error> {
        let submitted = self.submit(submission).await?;
        self.await_result(submitted.job).await
    }

    /// Cancels a job in any state, and returns the job as it is then. What the job holds is given back at
    /// once, or at the end of the current stage for a partition that is being computed. A job that has
    /// ended stays as it is.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`].
    pub async fn cancel(&self, job: JobId) -> Result<JobView, Error> {
        self.ask(|reply| Command::Cancel(job, None, reply)).await
    }

    /// As [`cancel`](Self::cancel), but the job goes on if more than `waiting` callers wait for its result,
    /// since another caller still wants it.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`].
    pub async fn cancel_unless_wanted(&self, job: JobId, waiting: usize) -> Result<JobView, Error> {
        self.ask(|reply| Command::Cancel(job, Some(waiting), reply))
            .await
    }

    /// Most bytes that `partition_workers` partitions of a circuit use together, beside its key: see the
    /// crate's documentation. Less than what they reserve.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`].
    pub fn together_bytes(&self, circuit: &CircuitRef) -> Result<u64, Error> {
        self.caller_side.peak_bytes_together(circuit)
    }

    /// The current state of a job.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`].
    pub async fn job(&self, job: JobId) -> Result<JobView, Error> {
        self.ask(|reply| Command::Job(job, reply)).await
    }

    /// The number of unfinished jobs, and whether the engine drains.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub async fn load(&self) -> Result<Load, Error> {
        self.ask(Command::Load).await
    }

    /// The current state of the whole engine.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub async fn status(&self) -> Result<Status, Error> {
        self.ask(Command::Status).await
    }

    /// Subscribes to events from now on. A receiver that reads too slowly loses events, and is told how
    /// many.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.caller_side.env.events.subscribe()
    }

    /// Registers a circuit, after reading its files. Registering the same circuit again under the same name
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Circuit`] if the files cannot be used, [`Error::NameTaken`], [`Error::Name`],
    /// [`Error::TooLarge`] if the limit of registered circuits is reached.
    pub fn register(
        &self,
        registration: Registration,
    ) -> BoxFuture<'_, Result<CircuitView, Error>> {
        // Boxed, so that it is compiled in this crate and not again in every program that calls it.
        Box::pin(async move {
            let circuit = self.caller_side.inspect(registration).await?;
            let (view, new) = self.caller_side.residency.insert(circuit.clone())?;
            if new {
                let circuit = Box::new(circuit);
                self.ask(|reply| Command::KeepCircuit(circuit, reply))
                    .await?;
            }
            Ok(view)
        })
    }

    /// Removes a circuit from the registry. Its own files stay.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`]; [`Error::InUse`] if a job needs it or it is pinned.
    pub async fn unregister(&self, name: String) -> Result<(), Error> {
        self.caller_side.unregister(&name)?;
        self.ask(|reply| Command::ForgetCircuit(name, reply)).await
    }

    /// The registered circuits, by name.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub async fn circuits(&self) -> Result<Vec<CircuitView>, Error> {
        Ok(self.caller_side.residency.views().0)
    }

    /// Brings a key to a tier, and returns when it is in that tier or a nearer one.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`], [`Error::Impossible`], [`Error::Circuit`].
    pub async fn preload(&self, circuit: CircuitRef, tier: Tier) -> Result<CircuitView, Error> {
        self.caller_side.residency.preload(&circuit, tier).await
    }

    /// Evicts a key from memory, and returns the number of bytes given back.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`]; [`Error::InUse`] if a partition holds the key or it is pinned.
    pub async fn evict(&self, circuit: CircuitRef) -> Result<u64, Error> {
        self.caller_side.residency.evict(&circuit)
    }

    /// Pins or unpins a key. A pinned key that is loaded is never evicted.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`].
    pub async fn pin(&self, circuit: CircuitRef, pinned: bool) -> Result<CircuitView, Error> {
        self.caller_side.residency.pin(&circuit, pinned)
    }

    /// Begins a witness that is uploaded in pieces: see [`Input::Uploaded`](crate::Input::Uploaded).
    ///
    /// # Errors
    ///
    /// [`Error::Exhausted`], [`Error::Storage`], [`Error::Draining`].
    pub async fn upload(&self) -> Result<Upload, Error> {
        Upload::begin(&self.caller_side.env.inputs)
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Command,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let sent = self.commands.send(command(reply)).await;
        sent.map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)?
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("budget", self.caller_side.residency.budget())
            .finish_non_exhaustive()
    }
}
