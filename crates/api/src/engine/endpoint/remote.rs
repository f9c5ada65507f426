//! An engine in another process, over gRPC.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use proofmill_orchestrator::executor::engine::{End, Endpoint, EndpointError, Job, Look, Ticket};
use proofmill_workflow::EngineExecutor;
use tokio::sync::OnceCell;

use super::convert::{end, forgotten, look, refused, submission};
use crate::engine::{Address, AnswerKey, Client, ClientError, Credentials};

/// What talks to the engines of a stage, in their order. They are connected to when they are first
/// asked, and again when a connection is lost.
pub fn endpoints(engine: &EngineExecutor) -> Vec<Arc<dyn Endpoint>> {
    let credentials = Credentials {
        authority: engine.ca.clone(),
        token: engine.token.clone(),
    };
    let key = Arc::new(OnceCell::new());
    let endpoint = |address: String| -> Arc<dyn Endpoint> {
        Arc::new(Remote {
            address,
            credentials: credentials.clone(),
            client: OnceCell::new(),
            key_path: engine.verifying_key.clone(),
            key: key.clone(),
        })
    };
    let addresses = engine.endpoints.iter();
    addresses.map(|at| endpoint(at.to_string())).collect()
}

struct Remote {
    address: String,
    credentials: Credentials,
    /// There once it was connected; it connects itself again.
    client: OnceCell<Client>,
    /// The file with the key that proofs are verified with.
    key_path: Option<PathBuf>,
    /// That key, read when the first proof comes; one for all engines of the stage.
    key: Arc<OnceCell<Arc<AnswerKey>>>,
}

// === impl Remote ===

impl Remote {
    async fn client(&self) -> Result<&Client, EndpointError> {
        let connect = || async {
            let address = self.address.parse::<Address>();
            let address = address.map_err(|error| EndpointError::Unavailable(error.to_string()))?;
            let connected = Client::connect(&address, &self.credentials).await;
            connected.map_err(unanswered)
        };
        self.client.get_or_try_init(connect).await
    }

    async fn verifying_key(&self) -> Result<Option<Arc<AnswerKey>>, EndpointError> {
        let Some(path) = &self.key_path else {
            return Ok(None);
        };
        let load = || async {
            let path = path.clone();
            let loaded = tokio::task::spawn_blocking(move || AnswerKey::load(&path)).await;
            let loaded = loaded.unwrap_or_else(|error| Err(error.to_string()));
            let unusable = |why| EndpointError::Unavailable(format!("verifying key: {why}"));
            loaded.map(Arc::new).map_err(unusable)
        };
        self.key.get_or_try_init(load).await.cloned().map(Some)
    }
}

impl Endpoint for Remote {
    fn address(&self) -> &str {
        &self.address
    }

    fn look<'a>(&'a self, circuit: &'a str) -> BoxFuture<'a, Result<Look, EndpointError>> {
        Box::pin(async move {
            let listed = self.client().await?.list_circuits().await;
            Ok(look(circuit, &listed.map_err(unanswered)?))
        })
    }

    fn submit<'a>(
        &'a self,
        request: &'a str,
        job: &'a Job,
    ) -> BoxFuture<'a, Result<Ticket, EndpointError>> {
        Box::pin(async move {
            // Better known before the work than after.
            self.verifying_key().await?;
            let client = self.client().await?;
            let submitted = client.submit(submission(request, job)).await;
            let submitted = submitted.map_err(unanswered)?;
            Ok(Ticket {
                job: submitted.job,
                existing: submitted.existing,
            })
        })
    }

    fn result<'a>(
        &'a self,
        id: &'a str,
        job: &'a Job,
    ) -> BoxFuture<'a, Result<End, EndpointError>> {
        Box::pin(async move {
            let key = self.verifying_key().await?;
            let result = self.client().await?.await_result(id).await;
            let result = result.map_err(|error| forgotten(unanswered(error)))?;
            end(result, job, key).await
        })
    }

    fn cancel<'a>(
        &'a self,
        job: &'a str,
        waiting: u32,
    ) -> BoxFuture<'a, Result<(), EndpointError>> {
        Box::pin(async move {
            let client = self.client().await?;
            let cancelled = client.cancel_unless_wanted(job, waiting).await;
            cancelled.map(drop).map_err(unanswered)
        })
    }
}

/// Why a call has no answer that says yes.
fn unanswered(error: ClientError) -> EndpointError {
    match error {
        ClientError::Refused {
            code,
            message,
            retry_after,
        } => refused(code, message, retry_after),
        // Whose address it is, whoever reports it says.
        ClientError::Unreachable { why, .. } => EndpointError::Unavailable(why),
        error => EndpointError::Unavailable(error.to_string()),
    }
}
