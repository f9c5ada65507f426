//! Connections: checks of the server, and requests between processes.

use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::client::RequestErrorKind;
use async_nats::jetstream::account::Account;
use async_nats::jetstream::context::{AccountError, AccountErrorKind};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt};

use super::connect::connect;
use super::options::{ConnectError, NatsOptions};
use super::refusal::{INBOX, Refusal, Refusals};

/// Version of the oldest server supported and tested.
const SERVER_VERSION_MIN: (i64, i64, i64) = (2, 11, 0);

/// Smallest `max_payload` of a server with which a frame has space for a record, in bytes.
pub(super) const PAYLOAD_BYTES_MIN: usize = 128 << 10;

/// Largest message sent, in bytes, whatever the server allows: larger ones delay those behind them.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Time for which a reachable server may be unable to answer, for example during an election.
const RETRY_MIN: Duration = Duration::from_secs(15);

/// Shortest and longest pause between attempts to connect. Each pause is twice the one before.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Time limit of one answer of the server. A server that dies does not answer, but another may when
/// the request is repeated: see [`RetryDeadline`].
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of answers accepted to a request that goes to all listeners.
const ANSWERS_MAX: usize = 1024;

/// Space reserved in a message for subject and headers, in bytes.
pub(super) const HEADER_BYTES_MAX: usize = 1024;

/// Time since which the connection has existed; `None` while there is none.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectedSince(Arc<Mutex<Option<Instant>>>);

/// A connection to a NATS server or cluster. Reconnects by itself; cheap to clone.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) client: Client,
    pub(super) context: Context,
    pub(super) options: Arc<NatsOptions>,
    connected: ConnectedSince,
    refusals: Refusals,
}

/// A request that another process made.
#[derive(Debug)]
pub struct Request {
    /// The subject that it was sent to.
    pub subject: String,
    /// The content of the request.
    pub payload: Bytes,
    client: Client,
    reply: Option<async_nats::Subject>,
}

/// The reason why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No process listens on the subject, as the server reports at once.
    #[error("nobody listens on {0}")]
    NoResponders(String),
    /// No answer came within the time limit.
    #[error("no answer from {0} in time")]
    TimedOut(String),
    /// The server denies this user the permission to send the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The connection failed.
    #[error("the request to {subject} failed: {why}")]
    Failed {
        /// The subject of the request.
        subject: String,
        /// The reason, as a sentence fragment.
        why: String,
    },
}

// === impl ConnectedSince ===

impl ConnectedSince {
    pub(super) fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    fn since(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Connection ===

impl Connection {
    /// Connects, and checks that the server offers what is needed. Waits up to
    /// [`NatsOptions::connect_timeout`] for a server that cannot be reached and for a cluster
    /// without a quorum.
    ///
    /// # Errors
    /// [`ConnectError`], whose text says what to change.
    pub fn open(options: NatsOptions) -> BoxFuture<'static, Result<Self, ConnectError>> {
        // Boxed, so that it is compiled in this crate and not again in every caller's.
        Box::pin(async move {
            let until = Instant::now() + options.connect_timeout;
            let options = Arc::new(options);
            let mut pause = PAUSE_MIN;
            loop {
                let error = match Self::open_now(&options).await {
                    Err(error) if error.may_pass() => error,
                    opened => return opened,
                };
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(error);
                }
                tracing::warn!(%error, "waiting for the bus");
                tokio::time::sleep(pause.min(left)).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        })
    }

    async fn open_now(options: &Arc<NatsOptions>) -> Result<Self, ConnectError> {
        let connected = ConnectedSince::default();
        let refusals = Refusals::new(options.membership.name());
        let client = connect(options, connected.clone(), refusals.clone()).await?;
        let info = client.server_info();
        let server = format!("nats-server {} at {}", info.version, options.shown());
        let unfit = |why: String| ConnectError::Unfit {
            server: server.clone(),
            why,
        };
        let (major, minor, patch) = SERVER_VERSION_MIN;
        if !client.is_server_compatible(major, minor, patch) {
            let why = format!("version {major}.{minor}.{patch} or newer is needed: update it");
            return Err(unfit(why));
        }
        if client.max_payload() < PAYLOAD_BYTES_MIN {
            return Err(unfit(format!(
                "its max_payload is {} bytes: set it to {PAYLOAD_BYTES_MIN} or more",
                client.max_payload()
            )));
        }
        let mut context = jetstream::new(client.clone());
        context.set_timeout(ANSWER_TIMEOUT);
        let account = refusals.or(retry(|| context.query_account())).await?;
        let account = account.map_err(|error| {
            if lacks_quorum(&error) {
                return ConnectError::NoQuorum {
                    server: server.clone(),
                    why: with_sources(&error),
                };
            }
            unfit(format!(
                "JetStream does not answer ({}): start the server with `--jetstream` (or a \
                 `jetstream` block in its configuration), and enable it for this account",
                with_sources(&error)
            ))
        })?;
        check_limits(&account).map_err(unfit)?;
        Ok(Self {
            client,
            context,
            options: options.clone(),
            connected,
            refusals,
        })
    }

    /// The options that the connection was opened with.
    pub fn options(&self) -> &NatsOptions {
        &self.options
    }

    /// The token for this process's user in subjects, if it has one.
    pub fn identity(&self) -> Option<&str> {
        self.options.identity()
    }

    /// The underlying client, for streams that do not belong to this cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Time since the last interruption of the connection; zero while there is none.
    pub fn connected_for(&self) -> Duration {
        let since = self.connected.since();
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Waits until the server denies a permission that this process needs.
    pub async fn refused(&self) -> Refusal {
        self.refusals.first().await
    }

    /// The result of `work` on this connection, unless the server denies a permission first: the
    /// work would then just get no answer.
    ///
    /// # Errors
    /// The refusal.
    pub async fn or_refusal<T>(&self, work: impl Future<Output = T>) -> Result<T, Refusal> {
        self.refusals.or(work).await
    }

    /// A subject of this cluster of processes: the prefix, then `tokens`.
    pub fn subject(&self, tokens: &[&str]) -> String {
        let mut subject = self.options.prefix.clone();
        for token in tokens {
            subject.push('.');
            subject.push_str(token);
        }
        subject
    }

    /// Maximum payload of a message, in bytes.
    pub fn max_message(&self) -> usize {
        self.client.max_payload().min(MESSAGE_BYTES_MAX) - HEADER_BYTES_MAX
    }

    /// Sends a request to a listener on `subject`, and waits up to `timeout` for the answer.
    ///
    /// # Errors
    /// [`RequestError`]. The request may have been carried out, except after
    /// [`RequestError::NoResponders`].
    pub async fn request(
        &self,
        subject: &str,
        payload: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, RequestError> {
        let request = async_nats::Request::new()
            .payload(payload)
            .timeout(Some(timeout));
        let answer = self.client.send_request(subject.to_owned(), request);
        match self.or_refusal(answer).await? {
            Ok(message) => Ok(message.payload),
            Err(error) => Err(match error.kind() {
                RequestErrorKind::NoResponders => RequestError::NoResponders(subject.into()),
                RequestErrorKind::TimedOut => RequestError::TimedOut(subject.into()),
                _ => RequestError::Failed {
                    subject: subject.into(),
                    why: with_sources(&error),
                },
            }),
        }
    }

    /// Sends a request to all listeners on `subject`, and returns the answers that arrive within
    /// `wait`, 1024 at most. Returns an empty list at once if there are no listeners.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn request_all(
        &self,
        subject: &str,
        payload: Bytes,
        wait: Duration,
    ) -> Result<Vec<Bytes>, RequestError> {
        let failed = |why: String| RequestError::Failed {
            subject: subject.into(),
            why,
        };
        let inbox = self.client.new_inbox();
        let subscribed = self.client.subscribe(inbox.clone()).await;
        let mut answers = subscribed.map_err(|error| failed(with_sources(&error)))?;
        let asked = self
            .client
            .publish_with_reply(subject.to_owned(), inbox, payload);
        asked.await.map_err(|error| failed(with_sources(&error)))?;
        let mut found = Vec::new();
        let gather = async {
            while let Some(answer) = answers.next().await {
                if answer.status.is_some() || found.len() == ANSWERS_MAX {
                    break;
                }
                found.push(answer.payload);
            }
        };
        // The number of listeners is unknown, so the time limit ends the wait.
        let _ = self.or_refusal(tokio::time::timeout(wait, gather)).await?;
        Ok(found)
    }

    /// Sends a message to all listeners on `subject`, without waiting for an answer.
    ///
    /// # Errors
    /// [`RequestError::Failed`] if the connection has been closed.
    pub async fn publish(&self, subject: &str, payload: Bytes) -> Result<(), RequestError> {
        let sent = self.client.publish(subject.to_owned(), payload).await;
        sent.map_err(|error| RequestError::Failed {
            subject: subject.into(),
            why: with_sources(&error),
        })
    }

    /// Subscribes to `subject`. Returns once the server has processed the subscription.
    ///
    /// # Errors
    /// [`RequestError::Failed`] if the connection has been closed or does not come back.
    pub async fn subscribe(
        &self,
        subject: &str,
    ) -> Result<BoxStream<'static, Request>, RequestError> {
        let failed = |why: String| RequestError::Failed {
            subject: subject.into(),
            why,
        };
        let subscriber: Subscriber = self
            .client
            .subscribe(subject.to_owned())
            .await
            .map_err(|error| failed(with_sources(&error)))?;
        self.client
            .flush()
            .await
            .map_err(|error| failed(with_sources(&error)))?;
        let client = self.client.clone();
        let requests = subscriber.filter_map(move |message| {
            // Requests never have headers. Messages with headers are answers of the server that a
            // process without permission to publish here has directed to this subject.
            let request = message.headers.is_none().then(|| Request {
                subject: message.subject.into_string(),
                payload: message.payload,
                client: client.clone(),
                reply: message.reply,
            });
            std::future::ready(request)
        });
        Ok(requests.boxed())
    }
}

// === impl Request ===

impl Request {
    /// Answers the request, if its reply subject is one for answers: this process may have
    /// permission to publish where the asker has not.
    pub async fn reply(self, payload: impl Into<Bytes>) {
        let is_inbox = |reply: &async_nats::Subject| {
            let rest = reply.strip_prefix(INBOX);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        if let Some(reply) = self.reply.filter(is_inbox) {
            // If the connection is lost the asker gets no answer, and asks again.
            let _ = self.client.publish(reply, payload.into()).await;
        }
    }
}

/// Whether JetStream is enabled but cannot answer. If it were not enabled, it would say so, or
/// there would be no responders.
fn lacks_quorum(error: &AccountError) -> bool {
    match error.kind() {
        AccountErrorKind::TimedOut => true,
        AccountErrorKind::JetStream(error) => {
            let is_off = [
                ErrorCode::JETSTREAM_NOT_ENABLED,
                ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT,
            ];
            !is_off.contains(&error.error_code())
        }
        AccountErrorKind::JetStreamUnavailable | AccountErrorKind::Other => false,
    }
}

fn check_limits(account: &Account) -> Result<(), String> {
    // The log, the leaders, the other leases, and the blobs.
    const STREAMS_NEEDED: i64 = 4;
    let limits = &account.limits;
    if limits.max_streams.is_some_and(|most| most < STREAMS_NEEDED) {
        return Err(format!(
            "the account may have {} streams: {STREAMS_NEEDED} are needed, and one more for each further \
             workflow; raise `max_streams`",
            limits.max_streams.unwrap_or_default()
        ));
    }
    if limits.max_storage == Some(0) {
        return Err("the account may store nothing in files: raise its storage limit".into());
    }
    Ok(())
}

/// Deadline for retries: a cluster that elects a leader answers late, or not at all.
pub(super) struct RetryDeadline(Instant);

// === impl RetryDeadline ===

impl RetryDeadline {
    /// A deadline [`RETRY_MIN`] from now.
    pub(super) fn new() -> Self {
        Self::lasting(RETRY_MIN)
    }

    /// A deadline `duration` from now, or [`RETRY_MIN`] if that is longer.
    pub(super) fn lasting(duration: Duration) -> Self {
        Self(Instant::now() + duration.max(RETRY_MIN))
    }

    /// Pauses 250 ms before another attempt; `false` if the deadline has passed.
    pub(super) async fn pause(&self, why: &str) -> bool {
        if Instant::now() >= self.0 {
            return false;
        }
        tracing::info!(why, "the server is not ready; trying on");
        tokio::time::sleep(Duration::from_millis(250)).await;
        true
    }
}

/// Repeats `attempt` until it succeeds, or the deadline of [`RetryDeadline`] has passed.
pub(super) async fn retry<T, E, F>(mut attempt: impl FnMut() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
    E: std::error::Error,
{
    let deadline = RetryDeadline::new();
    loop {
        match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) if !deadline.pause(&with_sources(&error)).await => return Err(error),
            Err(_) => {}
        }
    }
}

/// The text of an error and of its sources, on one line.
pub fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors already include the text of their source.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
