//! What every role of a workflow needs.

use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::sync::Arc;

use proofmill_bus as bus;
use proofmill_bus::{BlobStore, Connection, Lease, Leases, open_blobs};
use proofmill_workflow as file;

use super::error::ClusterError;
use crate::core::Routing;
use crate::mill::{BlobSweep, MillError, Registry, Roles, make_private};
use crate::plan::Plan;
use crate::port::Ports;
use crate::remote::{Client, Seat};
use crate::shutdown::{Level, Shutdown};

/// A process's part in a workflow that runs on a cluster.
#[derive(Clone)]
pub struct Site {
    /// The bus.
    pub connection: Connection,
    /// Where large payloads are.
    pub blobs: Arc<BlobStore>,
    /// Who does what only one process may do.
    pub leases: Leases,
    /// The workflow: the same in every process.
    pub workflow: Arc<file::Workflow>,
    /// The workflow as the core sees it.
    pub plan: Arc<Plan>,
    /// Provers, sources and strategies of this program.
    pub registry: Registry,
    /// Everything that is kept on this machine; one process at a time.
    pub state: PathBuf,
    /// This process's name, different from all others.
    pub name: Arc<str>,
    /// For an experiment: how messages find their collector, if this process leads.
    pub routing: Routing,
    /// When unreferenced blobs are removed, if this process leads.
    pub blob_sweep: BlobSweep,
}

// === impl Site ===

impl Site {
    /// Gets everything ready; `name` is made of ASCII letters, digits, `_` and `-`.
    pub fn open<'a>(
        connection: Connection,
        workflow: &'a file::Workflow,
        registry: Registry,
        state: PathBuf,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Self, ClusterError>> {
        // Boxed: compiled here, and not again in every program that calls it.
        Box::pin(async move {
            let plan = Plan::compile(workflow, registry.strategies()).map_err(MillError::from)?;
            make_private(&state).map_err(|source| MillError::State {
                path: state.clone(),
                source,
            })?;
            let blobs = open_blobs(&connection).await?.of(&plan.workflow);
            // What this process holds is not to be swept by whoever leads.
            tokio::spawn(blobs.keep_renewing());
            Ok(Self {
                blobs: Arc::new(blobs),
                leases: Leases::open(&connection).await?,
                connection,
                workflow: Arc::new(workflow.clone()),
                plan: Arc::new(plan),
                registry,
                state,
                name: name.into(),
                routing: Routing::default(),
                blob_sweep: BlobSweep::default(),
            })
        })
    }

    /// Waits until this process is the one that does `what` for the workflow; `None` if it is told to
    /// drain first.
    pub(super) async fn turn(&self, what: &str, shutdown: &mut Shutdown) -> Option<Lease> {
        let key = self.plan.lease(what);
        tokio::select! {
            lease = self.leases.take(&key, &self.name) => Some(lease),
            () = shutdown.reached(Level::Drain) => None,
        }
    }

    /// The user that this process is on the bus, as its permissions there know it; its own name
    /// where the server has no users.
    pub(super) fn user(&self) -> &str {
        self.connection.identity().unwrap_or(&self.name)
    }

    /// A way to whoever leads the workflow, for a seat of this process; `name` is unique there.
    pub(super) async fn client(
        &self,
        seat: Seat,
        name: &str,
    ) -> Result<(Client, Ports), ClusterError> {
        let opened = Client::open(
            self.connection.clone(),
            self.blobs.clone(),
            self.plan.clone(),
            seat,
            name,
        );
        Ok(opened.await?)
    }

    /// What a role of this process comes to, unless the server refuses it something: it would just
    /// wait otherwise.
    pub async fn unless_refused<T>(
        &self,
        role: impl Future<Output = Result<T, ClusterError>>,
    ) -> Result<T, ClusterError> {
        let ended = self.connection.unless_refused(role).await;
        ended.map_err(bus::ConnectError::from)?
    }

    pub(super) fn roles<'a>(&'a self, ports: &'a Ports) -> Roles<'a> {
        Roles {
            workflow: &self.workflow,
            registry: &self.registry,
            state: &self.state,
            ports,
            blobs: &self.blobs,
        }
    }
}
