//! Leases: exclusive rights to work that only one process may do at a time.

use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

use async_nats::header::{NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_STREAM};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, LastRawMessageErrorKind, Stream};
use bytes::Bytes;
use rand::Rng;
use tokio::sync::watch;
use tokio::time::Instant;

use super::connection::{Connection, with_sources};
use super::options::ConnectError;
use super::resource::open_stream;

/// Number of renewals within a lease's lifetime.
const RENEWALS_PER_TTL: u32 = 4;

/// The leases of a cluster: a stream with one message per lease, which expires if it is not
/// renewed.
///
/// The server's own key-value buckets are not used: permission to write one key of such a bucket is
/// permission to remove all of them. Here a user's permission for a subject is permission for that
/// lease alone.
///
/// Leases of processes that create streams (the lead of a workflow) are in a separate stream, whose
/// subjects contain a secret word that only these processes can look up: the server sends its
/// answers to any subject that an asker names, and an answer on a lease's subject would end the
/// lease.
#[derive(Clone, Debug)]
pub struct Leases {
    entries: Entries,
    ttl: Duration,
}

/// A lease that this process holds, renewed until it is dropped or lost.
///
/// A process that is stopped for longer than the lease's lifetime may believe for a moment that it
/// still holds it: its writes must be refused by other means, as the log does.
#[derive(Debug)]
pub struct Lease {
    key: Arc<str>,
    holder: Bytes,
    term: u64,
    lost: watch::Receiver<bool>,
    entries: Entries,
    renewing: tokio::task::JoinHandle<()>,
}

/// Read access to a lease, for code of this process that does not own the [`Lease`].
#[derive(Clone, Debug)]
pub struct LeaseView {
    key: Arc<str>,
    holder: Bytes,
    entries: Entries,
}

/// The reason why the state of a lease is unknown.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot ask for the lease {key:?}: {why}")]
pub struct LeaseError {
    key: String,
    why: String,
}

/// The stream of leases as a map from key to holder.
#[derive(Clone, Debug)]
struct Entries {
    connection: Connection,
    stream: Stream,
    /// Beginning of every subject, up to the lease's own tokens.
    base: Arc<str>,
}

/// The latest message of a lease.
struct Entry {
    revision: u64,
    /// The holder; empty if the lease was given back.
    holder: Bytes,
}

// === impl Entries ===

impl Entries {
    fn subject(&self, key: &str) -> String {
        format!("{}{key}", self.base)
    }

    async fn last(&self, key: &str) -> Result<Option<Entry>, LeaseError> {
        let subject = self.subject(key);
        match self.stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => {
                // The answer to another process's request, which that process has directed to this
                // subject, is not a holder.
                let headers = &message.headers;
                let is_ours = headers.get(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE).is_some()
                    && headers.get(NATS_STREAM).is_none();
                Ok(Some(Entry {
                    revision: message.sequence,
                    holder: if is_ours {
                        message.payload
                    } else {
                        Bytes::new()
                    },
                }))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(LeaseError::new(key, &error)),
        }
    }

    /// Writes if the latest message has revision `after` (0: there is no message), and returns the
    /// new revision. `None` if there is a later message.
    async fn write(&self, key: &str, holder: Bytes, after: u64) -> Result<Option<u64>, LeaseError> {
        let message = PublishMessage::build()
            .payload(holder)
            .expected_last_subject_sequence(after);
        let context = &self.connection.context;
        let sent = context.send_publish(self.subject(key), message).await;
        let written = match sent {
            Ok(acknowledged) => acknowledged.await,
            Err(error) => Err(error),
        };
        match written {
            Ok(written) => Ok(Some(written.sequence)),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
            Err(error) => Err(LeaseError::new(key, &error)),
        }
    }

    /// Takes the lease if it is free, and returns the revision.
    async fn take(&self, key: &str, holder: &Bytes) -> Result<Option<u64>, LeaseError> {
        let after = match self.last(key).await? {
            Some(entry) if entry.holder.is_empty() => entry.revision,
            Some(_) => return Ok(None),
            None => 0,
        };
        self.write(key, holder.clone(), after).await
    }
}

// === impl Leases ===

impl Leases {
    /// The leases on the server.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn open(connection: &Connection) -> BoxFuture<'_, Result<Self, ConnectError>> {
        // Boxed, so that it is compiled in this crate and not again in every caller's.
        Box::pin(async move {
            let options = connection.options();
            let config = Config {
                name: format!("{}_leases", options.prefix),
                description: Some("Proofmill: who does what only one process may do".into()),
                subjects: vec![connection.subject(&["lease", ">"])],
                max_messages_per_subject: 1,
                max_age: options.lease_ttl,
                ..Config::default()
            };
            let stream = open_stream(connection, config).await?;
            let (stream, base) = if options.membership.creates_streams() {
                Self::open_leaders(connection, &stream).await?
            } else {
                (stream, connection.subject(&["lease", ""]))
            };
            Ok(Self {
                ttl: stream.cached_info().config.max_age,
                entries: Entries {
                    connection: connection.clone(),
                    stream,
                    base: base.into(),
                },
            })
        })
    }

    /// The stream of the leaders' leases, and the beginning of its subjects. `others` is the stream
    /// of all other leases, which earlier versions also used for these.
    async fn open_leaders(
        connection: &Connection,
        others: &Stream,
    ) -> Result<(Stream, String), ConnectError> {
        let options = connection.options();
        let word: u128 = rand::rng().random();
        let last = others.cached_info().state.last_sequence;
        let config = Config {
            name: format!("{}_leaders", options.prefix),
            description: Some("Proofmill: who leads which workflow".into()),
            subjects: vec![connection.subject(&["lead", &format!("{word:032x}"), ">"])],
            max_messages_per_subject: 1,
            max_age: options.lease_ttl,
            // Terms continue from those of the older stream: clients follow the highest.
            first_sequence: Some(last + 1),
            ..Config::default()
        };
        let stream = open_stream(connection, config).await?;
        let found = &stream.cached_info().config;
        let ours = connection.subject(&["lead", ""]);
        let base = match &found.subjects[..] {
            [subject] if subject.starts_with(&ours) => subject.strip_suffix('>'),
            _ => None,
        };
        let base = base.ok_or_else(|| ConnectError::Resource {
            what: format!("the stream {}", found.name),
            why: format!("its subjects are {:?}: remove it", found.subjects),
        })?;
        let base = base.to_owned();
        Ok((stream, base))
    }

    /// Lifetime of a lease that is not renewed.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Takes the lease `key` (tokens of a subject) if it is free. `holder` is visible to other
    /// processes, and should be unique to this process.
    pub async fn try_take(&self, key: &str, holder: &str) -> Result<Option<Lease>, LeaseError> {
        let holder = Bytes::copy_from_slice(holder.as_bytes());
        let Some(term) = self.entries.take(key, &holder).await? else {
            return Ok(None);
        };
        let (sender, lost) = watch::channel(false);
        let renewing = Renewing {
            entries: self.entries.clone(),
            key: key.into(),
            holder: holder.clone(),
            revision: term,
            every: self.ttl / RENEWALS_PER_TTL,
        };
        Ok(Some(Lease {
            key: key.into(),
            holder,
            term,
            lost,
            entries: self.entries.clone(),
            renewing: tokio::spawn(async move {
                renewing.run().await;
                sender.send_replace(true);
            }),
        }))
    }

    /// Waits until this process has taken the lease.
    pub async fn take(&self, key: &str, holder: &str) -> Lease {
        loop {
            let begun = Instant::now();
            match self.try_take(key, holder).await {
                Ok(Some(lease)) => return lease,
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "no lease"),
            }
            tokio::time::sleep_until(begun + self.ttl / (2 * RENEWALS_PER_TTL)).await;
        }
    }

    /// The holder of the lease; `None` if it is free.
    pub async fn holder(&self, key: &str) -> Result<Option<String>, LeaseError> {
        let entry = self.entries.last(key).await?;
        let held = entry.filter(|entry| !entry.holder.is_empty());
        Ok(held.map(|entry| String::from_utf8_lossy(&entry.holder).into_owned()))
    }
}

// === impl Lease ===

impl Lease {
    /// A number that increases with each holder.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// Read access to the lease, for code that does not own it.
    pub fn view(&self) -> LeaseView {
        LeaseView {
            key: self.key.clone(),
            holder: self.holder.clone(),
            entries: self.entries.clone(),
        }
    }

    /// Waits until the lease is lost.
    pub async fn lost(&self) {
        let mut lost = self.lost.clone();
        // The sender is dropped without sending only if the runtime ends.
        let _ = lost.wait_for(|lost| *lost).await;
    }

    /// Gives the lease back, so that another process need not wait for it to expire.
    pub async fn give_back(self) {
        if *self.lost.borrow() {
            return;
        }
        self.renewing.abort();
        // If this fails, the lease expires.
        if let Ok(Some(entry)) = self.entries.last(&self.key).await
            && entry.holder == self.holder
        {
            let given = self.entries.write(&self.key, Bytes::new(), entry.revision);
            let _ = given.await;
        }
    }
}

// === impl LeaseView ===

impl LeaseView {
    /// Whether that process still holds the lease. An expired lease counts as lost: another process
    /// may have held it since.
    ///
    /// # Errors
    /// [`LeaseError`]: the server does not answer.
    pub async fn is_held(&self) -> Result<bool, LeaseError> {
        let entry = self.entries.last(&self.key).await?;
        Ok(entry.is_some_and(|entry| entry.holder == self.holder))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

// === impl LeaseError ===

impl LeaseError {
    fn new(key: &str, error: &dyn std::error::Error) -> Self {
        Self {
            key: key.into(),
            why: with_sources(error),
        }
    }
}

struct Renewing {
    entries: Entries,
    key: Arc<str>,
    holder: Bytes,
    revision: u64,
    every: Duration,
}

impl Renewing {
    /// Renews until the lease is lost. While the server does not answer, no other process can take
    /// it.
    async fn run(mut self) {
        loop {
            tokio::time::sleep(self.every).await;
            let renewal = self
                .entries
                .write(&self.key, self.holder.clone(), self.revision);
            match tokio::time::timeout(self.every * 2, renewal).await {
                Ok(Ok(Some(revision))) => self.revision = revision,
                Ok(Ok(None)) => {
                    if !self.look().await {
                        return;
                    }
                }
                Ok(Err(error)) => tracing::debug!(%error, "not renewed"),
                Err(_) => tracing::debug!(key = %self.key, "not renewed in time"),
            }
        }
    }

    /// Called when the revision is not the expected one: an answer was lost, or the lease. Returns
    /// whether it is still held.
    async fn look(&mut self) -> bool {
        match self.entries.last(&self.key).await {
            Ok(Some(entry)) if !entry.holder.is_empty() => {
                self.revision = entry.revision;
                entry.holder == self.holder
            }
            // The lease expired because the server or this process was away. Another process may
            // have held it since, with a higher term, and lost it too: this process's term would be
            // too low for clients that know the other's.
            Ok(_) => false,
            Err(_) => true,
        }
    }
}
