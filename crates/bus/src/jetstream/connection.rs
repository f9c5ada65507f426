//! A connection, what the server must offer, and requests between processes.

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

/// The oldest server that is known to work, and is tested for.
const OLDEST: (i64, i64, i64) = (2, 11, 0);

/// The smallest limit of a message's payload with which a frame has room for a record.
pub(super) const LEAST_PAYLOAD: usize = 128 << 10;

/// The largest message that is sent, whatever the server allows: a larger one delays those behind it.
const LARGEST_MESSAGE: usize = 1 << 20;

/// How long a server that has been reached may take to do what it is asked.
const SETTLING: Duration = Duration::from_secs(15);

/// Between two tries to connect: doubled from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long the server may take to answer. One that dies does not answer, and the next that is asked
/// may: it is asked again, see [`Patience`].
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Answers that are taken of those who are all asked at once.
const ANSWERS_MAX: usize = 1024;

/// Room for what a message has beside its payload: subject, headers.
pub(super) const HEADERS: usize = 1024;

/// Since when there has been a connection, if there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct Connected(Arc<Mutex<Option<Instant>>>);

/// A connection to a NATS server or cluster. Reconnects by itself; cheap to clone.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) client: Client,
    pub(super) context: Context,
    pub(super) options: Arc<NatsOptions>,
    connected: Connected,
    refusals: Refusals,
}

/// A request that another process made.
#[derive(Debug)]
pub struct Request {
    /// The subject that it was sent to.
    pub subject: String,
    /// What it asks.
    pub payload: Bytes,
    client: Client,
    reply: Option<async_nats::Subject>,
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Nobody listens: known at once.
    #[error("nobody listens on {0}")]
    NoResponders(String),
    /// No answer came in time.
    #[error("no answer from {0} in time")]
    TimedOut(String),
    /// The server does not let this user ask.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The connection failed.
    #[error("the request to {subject} failed: {why}")]
    Failed {
        /// Whom.
        subject: String,
        /// In words.
        why: String,
    },
}

// === impl Connected ===

impl Connected {
    pub(super) fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    fn since(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Connection ===

impl Connection {
    /// Connects, and checks that the server offers what is needed. A server that cannot be reached and
    /// a cluster without a quorum are waited for, for [`NatsOptions::connect_timeout`].
    ///
    /// # Errors
    /// [`ConnectError`], which says what to change.
    pub fn open(options: NatsOptions) -> BoxFuture<'static, Result<Self, ConnectError>> {
        // Boxed: compiled here, and not again in every program that calls it.
        Box::pin(async move {
            let until = Instant::now() + options.connect_timeout;
            let options = Arc::new(options);
            let mut pause = FIRST_PAUSE;
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
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        })
    }

    async fn open_now(options: &Arc<NatsOptions>) -> Result<Self, ConnectError> {
        let connected = Connected::default();
        let refusals = Refusals::new(options.role);
        let client = connect(options, connected.clone(), refusals.clone()).await?;
        let info = client.server_info();
        let server = format!("nats-server {} at {}", info.version, options.shown());
        let unfit = |why: String| ConnectError::Unfit {
            server: server.clone(),
            why,
        };
        let (major, minor, patch) = OLDEST;
        if !client.is_server_compatible(major, minor, patch) {
            let why = format!("version {major}.{minor}.{patch} or newer is needed: update it");
            return Err(unfit(why));
        }
        if client.max_payload() < LEAST_PAYLOAD {
            return Err(unfit(format!(
                "its max_payload is {} bytes: set it to {LEAST_PAYLOAD} or more",
                client.max_payload()
            )));
        }
        let mut context = jetstream::new(client.clone());
        context.set_timeout(ANSWER_TIMEOUT);
        let account = refusals.or(patiently(|| context.query_account())).await?;
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

    /// The settings it was opened with.
    pub fn options(&self) -> &NatsOptions {
        &self.options
    }

    /// The word for this process's user in subjects, if it has one.
    pub fn identity(&self) -> Option<&str> {
        self.options.identity()
    }

    /// The client beneath, for streams that are not this cluster's own.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// For how long there has been a connection without a break; zero if there is none now.
    pub fn connected_for(&self) -> Duration {
        let since = self.connected.since();
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Waits until the server has refused something that this process's role needs.
    pub async fn refused(&self) -> Refusal {
        self.refusals.first().await
    }

    /// What `work` on this connection comes to, unless the server refuses something first: the work
    /// itself would just get no answer.
    ///
    /// # Errors
    /// What was refused.
    pub async fn unless_refused<T>(&self, work: impl Future<Output = T>) -> Result<T, Refusal> {
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

    /// The largest payload of a message, in bytes.
    pub fn max_message(&self) -> usize {
        self.client.max_payload().min(LARGEST_MESSAGE) - HEADERS
    }

    /// Asks whoever listens on `subject`.
    ///
    /// # Errors
    /// [`RequestError`]; the request may have been carried out all the same, unless nobody listened.
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
        match self.unless_refused(answer).await? {
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

    /// Asks everybody who listens on `subject`: the answers that come within `wait`, 1024 at most. None
    /// at once if nobody listens.
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
        // Nobody knows how many there are: time ends it.
        let _ = self
            .unless_refused(tokio::time::timeout(wait, gather))
            .await?;
        Ok(found)
    }

    /// Tells whoever listens on `subject`, without waiting for anyone.
    ///
    /// # Errors
    /// [`RequestError::Failed`] if the connection has been closed.
    pub async fn tell(&self, subject: &str, payload: Bytes) -> Result<(), RequestError> {
        let sent = self.client.publish(subject.to_owned(), payload).await;
        sent.map_err(|error| RequestError::Failed {
            subject: subject.into(),
            why: with_sources(&error),
        })
    }

    /// Listens on `subject`. Returns once the server knows of it.
    ///
    /// # Errors
    /// [`RequestError::Failed`] if the connection has been closed or does not come back.
    pub async fn listen(&self, subject: &str) -> Result<BoxStream<'static, Request>, RequestError> {
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
            // Nobody here sends headers. The server does, in answers that somebody without the right
            // to speak on this subject has made it send here.
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
    /// Answers it, unless the answer is wanted elsewhere than where answers go: this process may
    /// speak where whoever asks may not.
    pub async fn reply(self, payload: impl Into<Bytes>) {
        let is_inbox = |reply: &async_nats::Subject| {
            let rest = reply.strip_prefix(INBOX);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        if let Some(reply) = self.reply.filter(is_inbox) {
            // If the connection is gone the asker hears nothing, and asks again.
            let _ = self.client.publish(reply, payload.into()).await;
        }
    }
}

/// Whether JetStream is there, and cannot answer: it would say so, or nobody would listen, if it were
/// not enabled.
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
    // The log, the leaders, the other leases, the blobs.
    const STREAMS: i64 = 4;
    let limits = &account.limits;
    if limits.max_streams.is_some_and(|most| most < STREAMS) {
        return Err(format!(
            "the account may have {} streams: {STREAMS} are needed, and one more for each further \
             workflow; raise `max_streams`",
            limits.max_streams.unwrap_or_default()
        ));
    }
    if limits.max_storage == Some(0) {
        return Err("the account may store nothing in files: raise its storage limit".into());
    }
    Ok(())
}

/// How long failures are borne: a cluster that elects a leader answers late, or not at all.
pub(super) struct Patience(Instant);

// === impl Patience ===

impl Patience {
    /// From now on, for [`SETTLING`].
    pub(super) fn new() -> Self {
        Self::lasting(SETTLING)
    }

    /// From now on, for so long, or for [`SETTLING`] if that is longer.
    pub(super) fn lasting(duration: Duration) -> Self {
        Self(Instant::now() + duration.max(SETTLING))
    }

    /// Waits a moment before another try. False: it has been tried for long enough.
    pub(super) async fn bears(&self, why: &str) -> bool {
        if Instant::now() >= self.0 {
            return false;
        }
        tracing::info!(why, "the server is not ready; trying on");
        tokio::time::sleep(Duration::from_millis(250)).await;
        true
    }
}

/// Tries until it succeeds, or [`Patience`] has ended.
pub(super) async fn patiently<T, E, F>(mut attempt: impl FnMut() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
    E: std::error::Error,
{
    let patience = Patience::new();
    loop {
        match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) if !patience.bears(&with_sources(&error)).await => return Err(error),
            Err(_) => {}
        }
    }
}

/// An error with all that caused it, on one line.
pub fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors print their cause themselves.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
