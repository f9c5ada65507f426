//! The console of a workflow: a process that asks the leader, and changes nothing.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use proofmill_bus::{BlobStore, ConnectError, Connection, open_blobs};
use proofmill_workflow as file;

use super::error::ClusterError;
use crate::mill::{MillError, Registry};
use crate::plan::Plan;
use crate::port::Ports;
use crate::remote::{Client, Role, Seat};

/// Ports to the leader of a workflow for the process that shows it. The leader answers their queries, and refuses all else.
pub struct Console {
    connection: Connection,
    client: Client,
    ports: Ports,
    blobs: Arc<BlobStore>,
}

// === impl Console ===

impl Console {
    /// Connects to the workflow; `name` is made of ASCII letters, digits, `_` and `-`, and unique among its processes.
    /// There need not be a leader yet.
    pub fn open<'a>(
        connection: Connection,
        workflow: &'a file::Workflow,
        registry: &'a Registry,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Self, ClusterError>> {
        // Boxed, so that it is compiled here and not again in every program that calls it.
        Box::pin(async move {
            let plan = Plan::compile(workflow, registry.strategies()).map_err(MillError::from)?;
            let plan = Arc::new(plan);
            let blobs = open_blobs(&connection).await?.for_workflow(&plan.workflow);
            let blobs = Arc::new(blobs);
            let seat = Seat::of(Role::Console);
            let (client, ports) =
                Client::open(connection.clone(), blobs.clone(), plan, seat, name).await?;
            Ok(Self {
                connection,
                client,
                ports,
                blobs,
            })
        })
    }

    /// The ports. Queries wait while no process leads the workflow.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// The store of large answers.
    pub fn blobs(&self) -> &Arc<BlobStore> {
        &self.blobs
    }

    /// Carries queries and answers until `serve` ends, or until the leader or the server refuses this process.
    pub async fn run(self, serve: impl Future<Output = ()>) -> Result<(), ClusterError> {
        let Self {
            connection,
            client,
            ports: _ports,
            ..
        } = self;
        let carrying = async {
            tokio::select! {
                carried = client.run() => carried.map_err(ClusterError::from),
                () = serve => Ok(()),
            }
        };
        let ended = connection.or_refusal(carrying).await;
        ended.map_err(ConnectError::from)?
    }
}
