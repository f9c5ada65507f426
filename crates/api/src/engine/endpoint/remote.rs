//! An engine in another process, over gRPC.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use proofmill_orchestrator::executor::engine::{End, Endpoint, EndpointError, Job, Look, Ticket};
use proofmill_workflow::EngineExecutor;
use tokio::sync::OnceCell;

use super::convert::{end, forgotten, look, refused, submission};
use crate::engine::{Address, Client, ClientError, Credentials};

/// What talks to the engines of a stage, in their order. They are connected to when they are first
/// asked, and again when a connection is lost.
pub fn endpoints(engine: &EngineExecutor) -> Vec<Arc<dyn Endpoint>> {
    let credentials = Credentials {
        authority: engine.ca.clone(),
        token: engine.token.clone(),
    };
    let endpoint = |address: String| -> Arc<dyn Endpoint> {
        Arc::new(Remote {
            address,
            credentials: credentials.clone(),
            client: OnceCell::new(),
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
            let client = self.client().await?;
            let submitted = client.submit(submission(request, job)).await;
            let submitted = submitted.map_err(unanswered)?;
            Ok(Ticket {
                job: submitted.job,
                existing: submitted.existing,
            })
        })
    }

    fn result<'a>(&'a self, job: &'a str) -> BoxFuture<'a, Result<End, EndpointError>> {
        Box::pin(async move {
            let result = self.client().await?.await_result(job).await;
            end(result.map_err(|error| forgotten(unanswered(error)))?)
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
