//! Leases: who does what only one process may do at a time.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv::{self, CreateErrorKind, Operation, Store, UpdateErrorKind};
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

use super::connection::{Connection, patiently, with_sources};
use super::options::ConnectError;
use super::stream::ensure_fits;

/// A lease is renewed so many times while it lives.
const RENEWALS: u32 = 4;

/// The leases of a cluster of processes, in a bucket whose keys vanish when they are not renewed.
#[derive(Clone, Debug)]
pub struct Leases {
    store: Store,
    ttl: Duration,
}

/// A lease that this process holds, and renews until it is dropped or lost.
///
/// A process that is stopped for longer than the lease lives may believe for a moment that it still
/// has it: whatever it writes must be refused by other means (the log is).
#[derive(Debug)]
pub struct Lease {
    key: Arc<str>,
    term: u64,
    lost: watch::Receiver<bool>,
    store: Store,
    renewing: tokio::task::JoinHandle<()>,
}

/// Why a lease could not be asked for.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot ask for the lease {key:?}: {why}")]
pub struct LeaseError {
    key: String,
    why: String,
}

// === impl Leases ===

impl Leases {
    /// The leases on the server, whose bucket is made if it is not there.
    pub async fn open(connection: &Connection) -> Result<Self, ConnectError> {
        let options = connection.options();
        let bucket = format!("{}_leases", options.prefix);
        let config = kv::Config {
            bucket: bucket.clone(),
            description: "Proofmill: who does what only one process may do".into(),
            history: 1,
            max_age: options.lease_ttl,
            num_replicas: options.replicas,
            ..kv::Config::default()
        };
        let resource = |why: String| ConnectError::Resource {
            what: format!("the bucket {bucket}"),
            why,
        };
        let context = &connection.context;
        let store = patiently(|| async {
            match context.get_key_value(&bucket).await {
                Ok(store) => Ok(store),
                Err(_) => context.create_key_value(config.clone()).await,
            }
        });
        let store = store
            .await
            .map_err(|error| resource(with_sources(&error)))?;
        let status = patiently(|| store.status())
            .await
            .map_err(|error| resource(with_sources(&error)))?;
        let found = &status.info.config;
        ensure_fits(found, options.replicas).map_err(resource)?;
        Ok(Self {
            store,
            ttl: found.max_age,
        })
    }

    /// How long a lease lives that is not renewed.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Takes the lease `key` if nobody has it. `holder` is what others see, and should be different
    /// for each process.
    pub async fn try_take(&self, key: &str, holder: &str) -> Result<Option<Lease>, LeaseError> {
        let value = Bytes::copy_from_slice(holder.as_bytes());
        let term = match self.store.create(key, value.clone()).await {
            Ok(revision) => revision,
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => return Ok(None),
            Err(error) => {
                return Err(LeaseError {
                    key: key.into(),
                    why: with_sources(&error),
                });
            }
        };
        let (sender, lost) = watch::channel(false);
        let renewing = Renewing {
            store: self.store.clone(),
            key: key.into(),
            value,
            revision: term,
            every: self.ttl / RENEWALS,
        };
        Ok(Some(Lease {
            key: key.into(),
            term,
            lost,
            store: self.store.clone(),
            renewing: tokio::spawn(async move {
                renewing.run().await;
                sender.send_replace(true);
            }),
        }))
    }

    /// Waits until the lease is this process's.
    pub async fn take(&self, key: &str, holder: &str) -> Lease {
        loop {
            let begun = Instant::now();
            match self.try_take(key, holder).await {
                Ok(Some(lease)) => return lease,
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "no lease"),
            }
            tokio::time::sleep_until(begun + self.ttl / (2 * RENEWALS)).await;
        }
    }

    /// Who holds the lease.
    pub async fn holder(&self, key: &str) -> Result<Option<String>, LeaseError> {
        let entry = self.store.entry(key).await.map_err(|error| LeaseError {
            key: key.into(),
            why: with_sources(&error),
        })?;
        let held = entry.filter(|entry| entry.operation == Operation::Put);
        Ok(held.map(|entry| String::from_utf8_lossy(&entry.value).into_owned()))
    }
}

// === impl Lease ===

impl Lease {
    /// A number that is higher for each later holder.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// Waits until another process has it.
    pub async fn lost(&self) {
        let mut lost = self.lost.clone();
        // The sender sends before it goes; it goes early only if the runtime ends.
        let _ = lost.wait_for(|lost| *lost).await;
    }

    /// Gives it back, so that another process need not wait for it to end.
    pub async fn give_back(self) {
        if *self.lost.borrow() {
            return;
        }
        self.renewing.abort();
        // It ends by itself otherwise.
        let _ = self.store.purge(&*self.key).await;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

struct Renewing {
    store: Store,
    key: Arc<str>,
    value: Bytes,
    revision: u64,
    every: Duration,
}

impl Renewing {
    /// Renews until somebody else has it. While the server does not answer, nobody can.
    async fn run(mut self) {
        loop {
            tokio::time::sleep(self.every).await;
            let update = self
                .store
                .update(&*self.key, self.value.clone(), self.revision);
            match tokio::time::timeout(self.every * 2, update).await {
                Ok(Ok(revision)) => self.revision = revision,
                Ok(Err(error)) if error.kind() == UpdateErrorKind::WrongLastRevision => {
                    if !self.look().await {
                        return;
                    }
                }
                Ok(Err(error)) => {
                    tracing::debug!(key = %self.key, error = %with_sources(&error), "not renewed");
                }
                Err(_) => tracing::debug!(key = %self.key, "not renewed in time"),
            }
        }
    }

    /// The revision is not what it was: an answer was lost, or the lease. Whether it is still held.
    async fn look(&mut self) -> bool {
        match self.store.entry(&*self.key).await {
            Ok(Some(entry)) if entry.operation == Operation::Put => {
                self.revision = entry.revision;
                entry.value == self.value
            }
            // It ended, and nobody has taken it: the server was away, or this process was.
            Ok(_) => match self.store.create(&*self.key, self.value.clone()).await {
                Ok(revision) => {
                    self.revision = revision;
                    true
                }
                Err(error) => error.kind() != CreateErrorKind::AlreadyExists,
            },
            Err(_) => true,
        }
    }
}
