//! What callers hold.

use tokio::sync::{broadcast, mpsc, oneshot};

use crate::interface::{
    CircuitRef, CircuitView, Error, Event, JobId, JobResult, JobView, Registration, Status,
    Submission, Submitted, Tier,
};
use crate::upload::Upload;

/// What a caller asks the service.
pub(crate) enum Command {
    Submit(Submission, oneshot::Sender<Result<Submitted, Error>>),
    Await(JobId, oneshot::Sender<Result<JobResult, Error>>),
    Cancel(JobId, oneshot::Sender<Result<JobView, Error>>),
    Job(JobId, oneshot::Sender<Result<JobView, Error>>),
    Status(oneshot::Sender<Result<Status, Error>>),
    Register(Registration, oneshot::Sender<Result<CircuitView, Error>>),
    Unregister(String, oneshot::Sender<Result<(), Error>>),
    Circuits(oneshot::Sender<Result<Vec<CircuitView>, Error>>),
    Preload(
        CircuitRef,
        Tier,
        oneshot::Sender<Result<CircuitView, Error>>,
    ),
    Evict(CircuitRef, oneshot::Sender<Result<u64, Error>>),
    Pin(
        CircuitRef,
        bool,
        oneshot::Sender<Result<CircuitView, Error>>,
    ),
    Upload(oneshot::Sender<Result<Upload, Error>>),
}

/// What callers hold of an engine. Cloning it shares it. A future of it that is dropped undoes
/// nothing: a submission may have been accepted, and is found by its request id.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) events: broadcast::Sender<Event>,
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
    pub async fn submit(&self, submission: Submission) -> Result<Submitted, Error> {
        self.ask(|reply| Command::Submit(submission, reply)).await
    }

    /// Waits until a job is at its end, and tells its result as long as that is kept.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`]; [`Error::Stopped`] if the engine ends before the job does.
    pub async fn await_result(&self, job: JobId) -> Result<JobResult, Error> {
        self.ask(|reply| Command::Await(job, reply)).await
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
        self.ask(|reply| Command::Cancel(job, reply)).await
    }

    /// A job as it is now.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`].
    pub async fn job(&self, job: JobId) -> Result<JobView, Error> {
        self.ask(|reply| Command::Job(job, reply)).await
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
        self.events.subscribe()
    }

    /// Makes a circuit known, after reading its files. Registering the same again under the same name
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Circuit`] if the files cannot be used, [`Error::NameTaken`], [`Error::Name`],
    /// [`Error::TooLarge`] if there are as many circuits as there may be.
    pub async fn register(&self, registration: Registration) -> Result<CircuitView, Error> {
        self.ask(|reply| Command::Register(registration, reply))
            .await
    }

    /// Forgets a circuit; its files stay.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`]; [`Error::InUse`] if a job needs it or it is pinned.
    pub async fn unregister(&self, name: String) -> Result<(), Error> {
        self.ask(|reply| Command::Unregister(name, reply)).await
    }

    /// The registered circuits, by name.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub async fn circuits(&self) -> Result<Vec<CircuitView>, Error> {
        self.ask(Command::Circuits).await
    }

    /// Brings a key to a tier, if it is not there or nearer, and returns when it is.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`], [`Error::Impossible`], [`Error::Circuit`].
    pub async fn preload(&self, circuit: CircuitRef, tier: Tier) -> Result<CircuitView, Error> {
        self.ask(|reply| Command::Preload(circuit, tier, reply))
            .await
    }

    /// Gives a key's memory back, and returns how many bytes that was.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`]; [`Error::InUse`] if a partition holds the key or it is pinned.
    pub async fn evict(&self, circuit: CircuitRef) -> Result<u64, Error> {
        self.ask(|reply| Command::Evict(circuit, reply)).await
    }

    /// Keeps a key from being evicted once it is loaded, or no longer.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`].
    pub async fn pin(&self, circuit: CircuitRef, pinned: bool) -> Result<CircuitView, Error> {
        self.ask(|reply| Command::Pin(circuit, pinned, reply)).await
    }

    /// Begins a witness that comes piece by piece: see [`Input::Uploaded`](crate::Input::Uploaded).
    ///
    /// # Errors
    ///
    /// [`Error::Exhausted`], [`Error::Storage`], [`Error::Draining`].
    pub async fn upload(&self) -> Result<Upload, Error> {
        self.ask(Command::Upload).await
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
