//! An engine in this process, with one circuit.

use anyhow::{Context, bail};
use proofmill_engine::{
    CircuitRef, CircuitSource, CircuitView, Handle, Input, JobId, JobState, Options, Partition,
    Priority, Registration, RequestId, Secret, Service, Submission, Tier,
};
use proofmill_shutdown::{Level, Trigger, channel};
use tokio::task::JoinHandle;

use crate::circom::Circuit;

/// Name of the circuit.
pub(super) const NAME: &str = "circuit";

/// An engine that runs as a task of this process until [`EngineInProcess::finish`].
pub(super) struct EngineInProcess {
    pub(super) handle: Handle,
    witness: Vec<u8>,
    stop: Trigger,
    run: JoinHandle<Result<(), proofmill_engine::Error>>,
}

// === impl EngineInProcess ===

impl EngineInProcess {
    /// Starts an engine and registers the circuit, whose key is not loaded yet.
    pub(super) async fn start(options: Options, circuit: &Circuit) -> anyhow::Result<Self> {
        // `proofmill engine serve` does the same, so that the memory is comparable.
        proofmill_memory::return_large_allocations();
        let (service, handle) = Service::open(options).await?;
        let (stop, shutdown) = channel();
        let run = tokio::spawn(service.run(shutdown));
        let source = CircuitSource::Zkey(circuit.zkey.clone());
        let name = NAME.to_owned();
        handle.register(Registration { name, source }).await?;
        let witness = std::fs::read(&circuit.witness).context("reading the witness")?;
        Ok(Self {
            handle,
            witness,
            stop,
            run,
        })
    }

    /// Loads the key.
    pub(super) async fn load(&self) -> anyhow::Result<CircuitView> {
        Ok(self.handle.preload(circuit(), Tier::Hot).await?)
    }

    /// The most bytes that the partitions under way take together, without the key.
    pub(super) fn together_bytes(&self) -> anyhow::Result<u64> {
        Ok(self.handle.together_bytes(&circuit())?)
    }

    /// Submits a job of `partitions` partitions, all with the same witness.
    pub(super) async fn submit(
        &self,
        request: &str,
        partitions: usize,
        priority: Priority,
    ) -> anyhow::Result<JobId> {
        let partition = || Partition {
            circuit: circuit(),
            input: Input::Wtns(Secret::new(self.witness.clone())),
        };
        let submission = Submission {
            request: RequestId::new("bench", request).map_err(anyhow::Error::msg)?,
            priority,
            deadline: None,
            partitions: (0..partitions).map(|_| partition()).collect(),
            trace: None,
        };
        Ok(self.handle.submit(submission).await?.job)
    }

    /// Waits for a job's proofs.
    pub(super) async fn wait_for_proofs(&self, job: JobId) -> anyhow::Result<()> {
        let result = self.handle.await_result(job).await?;
        match result.state {
            JobState::Done => Ok(()),
            other => bail!("job {job}: {other}"),
        }
    }

    /// Drains the engine and waits for its end.
    pub(super) async fn finish(self) -> anyhow::Result<()> {
        self.stop.raise(Level::Drain);
        self.run.await.context("the engine panicked")??;
        Ok(())
    }
}

fn circuit() -> CircuitRef {
    CircuitRef::Name(NAME.to_owned())
}
