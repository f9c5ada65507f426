//! `proofmill engine serve` as a separate process.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use proofmill_api::engine::{Address, Client, ClientError, Credentials, ENGINE_SOCKET};
use tokio::process::{Child, Command};
use tokio::time::Instant;
use tonic::Code;

/// Longest wait for an engine's answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Paths and arguments with which an engine is started.
#[derive(Clone)]
pub(super) struct EngineConfig {
    program: PathBuf,
    state: PathBuf,
    args: Vec<String>,
}

/// A running engine, which is killed when this is dropped.
pub(super) struct Process {
    child: Child,
}

// === impl EngineConfig ===

impl EngineConfig {
    pub(super) fn new(program: &Path, state: &Path, args: Vec<String>) -> Self {
        Self {
            program: program.to_owned(),
            state: state.to_owned(),
            args,
        }
    }

    /// Starts an engine. It may not answer yet when this returns.
    pub(super) fn start(&self) -> anyhow::Result<Process> {
        std::fs::create_dir_all(&self.state).context("making the state directory")?;
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.state.join("stderr"))?;
        let child = Command::new(&self.program)
            .args(["engine", "serve", "--state"])
            .arg(&self.state)
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {}", self.program.display()))?;
        Ok(Process { child })
    }

    /// Starts an engine and waits until it has registered `circuits` circuits.
    pub(super) async fn start_with(&self, circuits: usize) -> anyhow::Result<Process> {
        let mut process = self.start()?;
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = process.child.try_wait()? {
                let log = self.state.join("stderr");
                bail!("the engine ended: {status}; see {}", log.display());
            }
            if let Ok(client) = self.client().await
                && let Ok(known) = client.circuits().await
                && known.len() >= circuits
            {
                return Ok(process);
            }
            anyhow::ensure!(
                Instant::now() < until,
                "the engine does not answer after {} s",
                PATIENCE.as_secs()
            );
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// A new client of the running engine.
    pub(super) async fn client(&self) -> Result<Client, ClientError> {
        let socket = Address::Socket(self.state.join(ENGINE_SOCKET));
        Client::connect(&socket, &Credentials::default()).await
    }

    /// Repeats a request until it is answered, across kills and restarts of the engine too.
    ///
    /// # Errors
    ///
    /// Fails if the engine refuses the request for a lasting reason, and if there is no answer within
    /// [`PATIENCE`]. A lack of room and the engine's end are no lasting reasons.
    pub(super) async fn retry_until_answered<T, F>(
        &self,
        mut call: impl FnMut(Client) -> F,
    ) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = match self.client().await {
                Ok(client) => call(client).await,
                Err(error) => Err(error),
            };
            let is_temporary = matches!(
                answer,
                Err(ClientError::Unreachable { .. }
                    | ClientError::Refused {
                        code: Code::Unavailable | Code::ResourceExhausted,
                        ..
                    })
            );
            if !is_temporary || Instant::now() > until {
                return answer;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

// === impl Process ===

impl Process {
    /// The process id.
    pub(super) fn id(&self) -> anyhow::Result<u32> {
        self.child.id().context("the engine has ended")
    }

    /// Kills the engine (SIGKILL), and waits until the process is gone.
    pub(super) async fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("killing the engine")
    }
}
