//! What callers hold.

use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;

use tokio::sync::{broadcast, mpsc, oneshot};

use crate::front::Front;
use crate::inputs::Upload;
use crate::interface::{
    CircuitRef, CircuitView, Error, Event, JobId, JobResult, JobView, Load, Registration, Status,
    Submission, Submitted, Tier,
};
use crate::pipeline::Command;

/// What callers hold of an engine. Cloning it shares it. A future of it that is dropped undoes
/// nothing: a submission may have been accepted, and is found by its request id.
#[derive(Clone)]
pub struct Handle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) front: Arc<Front>,
}

// === impl Handle ===

impl Handle {
    /// Accepts a job: when this returns it is on disk, and survives any crash.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if the request id was used for other content; [`Error::Exhausted`] if
    /// there is no room now; [`Error::Impossible`] if a partition would never fit into the budget;
    /// [`Error::TooLarge`], [`Error::Invalid`], [`Error::UnknownCircuit`],
    /// [`Error::UnknownGenerator`]; [`Error::Draining`].
    pub fn submit(&self, submission: Submission) -> BoxFuture<'_, Result<Submitted, Error>> {
        // Boxed: compiled here, and not again in every program that calls it.
        Box::pin(async move {
            self.front.check(&submission)?;
            let request = submission.request.clone();
            self.ask(|reply| Command::MaySubmit(request, reply)).await?;
            let prepared = self.front.prepare(submission).await?;
            self.ask(|reply| Command::Submit(prepared, reply)).await
        })
    }

    /// Waits until a job is at its end, and tells its result as long as that is kept.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`]; [`Error::Stopped`] if the engine ends before the job does;
    /// [`Error::Damaged`] if the proofs are from before a restart and cannot be read.
    pub async fn await_result(&self, job: JobId) -> Result<JobResult, Error> {
        let kept = self.ask(|reply| Command::Await(job, reply)).await?;
        kept.into_result()
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

    /// Cancels a job wherever it is; what it holds is given back at once, or where a computation is
    /// under way, when the step that it is in ends. A job at its end stays as it is. Returns the job
    /// as it then is.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`].
    pub async fn cancel(&self, job: JobId) -> Result<JobView, Error> {
        self.ask(|reply| Command::Cancel(job, None, reply)).await
    }

    /// As [`cancel`](Self::cancel), but a job whose result more than `waiting` callers wait for goes
    /// on: somebody else wants it.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`].
    pub async fn cancel_unless_wanted(&self, job: JobId, waiting: usize) -> Result<JobView, Error> {
        self.ask(|reply| Command::Cancel(job, Some(waiting), reply))
            .await
    }

    /// The most bytes that `partition_workers` partitions of a circuit take together, beside its key:
    /// see the crate's documentation. Less than what they reserve.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`].
    pub fn together_bytes(&self, circuit: &CircuitRef) -> Result<u64, Error> {
        self.front.together(circuit)
    }

    /// A job as it is now.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`].
    pub async fn job(&self, job: JobId) -> Result<JobView, Error> {
        self.ask(|reply| Command::Job(job, reply)).await
    }

    /// How much there is to do.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub async fn load(&self) -> Result<Load, Error> {
        self.ask(Command::Load).await
    }

    /// Everything as it is now.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub async fn status(&self) -> Result<Status, Error> {
        self.ask(Command::Status).await
    }

    /// What happens from now on. Who reads too slowly misses some, and is told how many.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.front.env.events.subscribe()
    }

    /// Makes a circuit known, after reading its files. Registering the same again under the same name
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Circuit`] if the files cannot be used, [`Error::NameTaken`], [`Error::Name`],
    /// [`Error::TooLarge`] if there are as many circuits as there may be.
    pub fn register(
        &self,
        registration: Registration,
    ) -> BoxFuture<'_, Result<CircuitView, Error>> {
        // Boxed: compiled here, and not again in every program that calls it.
        Box::pin(async move {
            let circuit = self.front.inspect(registration).await?;
            let (view, new) = self.front.residency.insert(circuit.clone())?;
            if new {
                let circuit = Box::new(circuit);
                self.ask(|reply| Command::KeepCircuit(circuit, reply))
                    .await?;
            }
            Ok(view)
        })
    }

    /// Forgets a circuit; its files stay.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`]; [`Error::InUse`] if a job needs it or it is pinned.
    pub async fn unregister(&self, name: String) -> Result<(), Error> {
        self.front.unregister(&name)?;
        self.ask(|reply| Command::ForgetCircuit(name, reply)).await
    }

    /// The registered circuits, by name.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub async fn circuits(&self) -> Result<Vec<CircuitView>, Error> {
        Ok(self.front.residency.views().0)
    }

    /// Brings a key to a tier, if it is not there or nearer, and returns when it is.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`], [`Error::Impossible`], [`Error::Circuit`].
    pub async fn preload(&self, circuit: CircuitRef, tier: Tier) -> Result<CircuitView, Error> {
        self.front.residency.preload(&circuit, tier).await
    }

    /// Gives a key's memory back, and returns how many bytes that was.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`]; [`Error::InUse`] if a partition holds the key or it is pinned.
    pub async fn evict(&self, circuit: CircuitRef) -> Result<u64, Error> {
        self.front.residency.evict(&circuit)
    }

    /// Keeps a key from being evicted once it is loaded, or no longer.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`].
    pub async fn pin(&self, circuit: CircuitRef, pinned: bool) -> Result<CircuitView, Error> {
        self.front.residency.pin(&circuit, pinned)
    }

    /// Begins a witness that comes piece by piece: see [`Input::Uploaded`](crate::Input::Uploaded).
    ///
    /// # Errors
    ///
    /// [`Error::Exhausted`], [`Error::Storage`], [`Error::Draining`].
    pub async fn upload(&self) -> Result<Upload, Error> {
        Upload::begin(&self.front.env.inputs)
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
            .field("budget", self.front.residency.budget())
            .finish_non_exhaustive()
    }
}
