//! Resources shared by all roles of a workflow in one process.

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
pub struct ProcessContext {
    /// The bus.
    pub connection: Connection,
    /// Store for large payloads.
    pub blobs: Arc<BlobStore>,
    /// Leases for roles that only one process may fill at a time.
    pub leases: Leases,
    /// The workflow file; the same in every process.
    pub workflow: Arc<file::Workflow>,
    /// The workflow as the core sees it.
    pub plan: Arc<Plan>,
    /// Provers, sources and strategies of this program.
    pub registry: Registry,
    /// Folder for all state on this machine; used by one process at a time.
    pub state: PathBuf,
    /// Name of this process, unique in the cluster.
    pub name: Arc<str>,
    /// Assignment of messages to collectors' partitions, used if this process leads; set for an experiment
    /// only.
    pub routing: Routing,
    /// Schedule for removing unreferenced blobs, used if this process leads.
    pub blob_sweep: BlobSweep,
}

// === impl ProcessContext ===

impl ProcessContext {
    /// Opens the resources; `name` is made of ASCII letters, digits, `_` and `-`.
    pub fn open<'a>(
        connection: Connection,
        workflow: &'a file::Workflow,
        registry: Registry,
        state: PathBuf,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Self, ClusterError>> {
        // Boxed, so that it is compiled here and not again in every program that calls it.
        Box::pin(async move {
            let plan = Plan::compile(workflow, registry.strategies()).map_err(MillError::from)?;
            make_private(&state).map_err(|source| MillError::State {
                path: state.clone(),
                source,
            })?;
            let blobs = open_blobs(&connection).await?.for_workflow(&plan.workflow);
            // Renewal keeps the leader's sweep from removing blobs that this process holds.
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

    /// Waits until this process holds the workflow's lease for `what`; `None` if a drain begins first.
    pub(super) async fn take_role_lease(
        &self,
        what: &str,
        shutdown: &mut Shutdown,
    ) -> Option<Lease> {
        let key = self.plan.lease(what);
        tokio::select! {
            lease = self.leases.take(&key, &self.name) => Some(lease),
            () = shutdown.reached(Level::Drain) => None,
        }
    }

    /// User of this process on the bus, as the server's permissions name it; the process's own name if the
    /// server has no users.
    pub(super) fn user(&self) -> &str {
        self.connection.identity().unwrap_or(&self.name)
    }

    /// A client of the workflow's leader for a seat of this process; `name` is unique for the seat.
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

    /// Runs a role of this process to its end, or until the server refuses it a permission; otherwise the
    /// role would wait without end.
    pub async fn or_refusal<T>(
        &self,
        role: impl Future<Output = Result<T, ClusterError>>,
    ) -> Result<T, ClusterError> {
        let ended = self.connection.or_refusal(role).await;
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
