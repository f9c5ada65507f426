//! Storage of a mill's log and blobs: in a directory, or on a NATS server.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use proofmill_bus::{
    BlobStore, ConnectError, Connection, EmbeddedLog, JetStreamLog, Lease, Leases, Log, LogFailure,
    MemoryLog, open_blobs,
};

use super::options::MillError;
use crate::plan::Plan;
use crate::remote::Leadership;

/// An open log, and the lock or lease that excludes other processes.
pub(super) enum Store {
    Directory(Arc<EmbeddedLog>),
    /// A copy in memory of the log in a directory.
    Copied(Arc<MemoryLog>),
    Bus(Arc<JetStreamLog>, Box<Lease>),
}

// === impl Store ===

impl Store {
    /// The log and the blobs in `state`, for reading only.
    pub(super) fn copied(state: &Path) -> Result<(Self, BlobStore), MillError> {
        let log = EmbeddedLog::read(state.join("log"))?;
        let blobs = BlobStore::open_existing(state.join("blobs"))?;
        Ok((Self::Copied(Arc::new(log)), blobs))
    }

    /// The log and the blobs in `state`.
    pub(super) fn in_directory(
        state: &Path,
        accept_loss: bool,
    ) -> Result<(Self, BlobStore), MillError> {
        let options = proofmill_bus::Options::default().with_accepted_loss(accept_loss);
        let log = EmbeddedLog::open(state.join("log"), options)?;
        let blobs = BlobStore::open(state.join("blobs"))?;
        Ok((Self::Directory(Arc::new(log)), blobs))
    }

    /// The log and the blobs on a server. Waits for the lease of another process that leads the
    /// workflow, which may be ending or dead.
    pub(super) async fn on_bus(
        connection: &Connection,
        plan: &Plan,
    ) -> Result<(Self, BlobStore), MillError> {
        let leases = Leases::open(connection).await?;
        let key = plan.lease(Plan::LEADER);
        let holder = format!("a mill, process {}", std::process::id());
        let until = Instant::now() + connection.options().connect_timeout;
        let lease = loop {
            let lease = tokio::time::timeout(leases.ttl() * 2, leases.take(&key, &holder));
            let lease = connection.or_refusal(lease).await;
            if let Ok(lease) = lease.map_err(ConnectError::from)? {
                break lease;
            }
            let holder = match leases.holder(&key).await {
                // No holder is known, since the cluster does not answer.
                Err(error) if Instant::now() < until => {
                    tracing::warn!(%error, "waiting for the bus");
                    continue;
                }
                holder => holder.ok().flatten(),
            };
            return Err(MillError::AlreadyLed {
                workflow: plan.workflow.to_string(),
                holder: holder.unwrap_or_else(|| "another process".into()),
            });
        };
        let log = JetStreamLog::open(connection, &plan.workflow).await?;
        let blobs = open_blobs(connection).await?.for_workflow(&plan.workflow);
        // Dispatchers of this process also hold results while another process leads.
        tokio::spawn(blobs.keep_renewing());
        Ok((Self::Bus(Arc::new(log), Box::new(lease)), blobs))
    }

    /// Whether no other process can use the log and the blobs.
    pub(super) fn is_alone(&self) -> bool {
        matches!(self, Self::Directory(_))
    }

    pub(super) fn log(&self) -> Arc<dyn Log> {
        match self {
            Self::Directory(log) => log.clone(),
            Self::Copied(log) => log.clone(),
            Self::Bus(log, _) => log.clone(),
        }
    }

    /// Description of the loss found when the log was opened; `None` if nothing was missing, or the
    /// log is not in a directory.
    pub(super) fn accepted_loss(&self) -> Option<String> {
        let Self::Directory(log) = self else {
            return None;
        };
        let loss = log.accepted_loss()?;
        Some(match loss.kept_in() {
            Some(kept) => format!("{loss}; the damaged files are in {}", kept.display()),
            None => loss.to_string(),
        })
    }

    /// The leadership of the workflow, visible to other processes.
    pub(super) fn leadership(&self) -> Leadership {
        match self {
            Self::Directory(_) | Self::Copied(_) => Leadership::sole(),
            Self::Bus(_, lease) => Leadership::under(lease),
        }
    }

    /// Accepts nothing more, makes everything accepted durable, and releases the lock or lease.
    pub(super) async fn close(self) -> Result<(), Arc<LogFailure>> {
        match self {
            Self::Directory(log) => log.close().await,
            Self::Copied(_) => Ok(()),
            Self::Bus(log, lease) => {
                let closed = log.close().await;
                lease.give_back().await;
                closed
            }
        }
    }
}
