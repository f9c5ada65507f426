//! Messages on the bus, and their encoding.

use std::sync::Arc;

use bytes::Bytes;
use proofmill_bus::{BlobStore, Connection, Digest, RequestError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::seat::Seat;
use crate::conversation::{
    Query, QueryAnswer, Reply, Request, RoleCommand, RoleEvent, WorkerEvent,
};
use crate::id::WorkerId;

/// Version of the encoding and of the messages.
const VERSION: u8 = 10;

/// Maximum size of a message in bytes: a larger one that is stored as a blob is not fetched.
const MESSAGE_MAX: u64 = 256 << 20;

/// Marks a message whose content follows.
const HERE: u8 = 0;
/// Marks a message whose content is in a blob, whose digest follows.
const BLOB: u8 = 1;

/// A client's message to the leader.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// [`Plan::digest`](crate::plan::Plan::digest) of the client's workflow.
    pub plan: [u8; 16],
    /// The highest term of a leader that the client knows. A leader with a lower one checks whether
    /// it still leads.
    pub term: u64,
    /// The client's name: its seat, a dot, and one token that differs between processes.
    pub client: Arc<str>,
    /// Number of the process's life under this name. A later process with the name has another
    /// number, a higher one unless a clock was set back.
    pub session: u64,
    /// The client has received the answers to all calls of the session with a lower number.
    pub open_from: u64,
    /// The content.
    pub body: CallBody,
}

/// The content of a [`Call`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CallBody {
    /// Events, in order; answered when their consequences are durable.
    Events {
        /// Increases with each call of the session; the same number is the same call.
        number: u64,
        /// The events.
        events: Vec<RoleEvent>,
        /// The joins of the client's workers and the heartbeats that wait behind this call. Its answer may take
        /// longer than a lease lasts, when it waits for the check of a result: each further attempt shows that the workers live.
        presence: Vec<WorkerEvent>,
    },
    /// A request, answered with a [`Reply`].
    Request {
        /// As for events, from the same counter.
        number: u64,
        /// The request.
        request: Request,
    },
    /// A query, answered with a [`QueryAnswer`].
    Query(Query),
}

/// The leader's answer to a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The events' consequences are durable.
    Done {
        /// Workers and hosts that are not known and should join again.
        unknown: Vec<WorkerId>,
        /// Whether another client's sink gets the emissions.
        sink_unknown: bool,
    },
    /// The reply to a request.
    Reply(Reply),
    /// The answer to a query.
    Query(QueryAnswer),
    /// The client runs another workflow.
    OtherPlan,
    /// Not carried out, unless another leader does: this one is stopping.
    Stopping,
    /// Not carried out: the client's role may not make this call.
    NotPermitted,
    /// Not carried out: a value in the call is invalid.
    Invalid(String),
}

/// Announcement of a leader, which may be new.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) term: u64,
}

/// A client's answer to a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoticeAck {
    /// The notice was accepted, now or before.
    Accepted,
    /// Refused: there is a later leader.
    StaleLeader,
    /// Refused: the notice is for another session, whose process is gone.
    UnknownSession,
}

/// The message of a leader to a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Notice {
    /// The leader's term.
    pub term: u64,
    /// See [`Call::session`].
    pub session: u64,
    /// A number that increases with each session that the leader begins with a client.
    pub incarnation: u64,
    /// Increases with each notice of the incarnation; the same number is the same notice.
    pub number: u64,
    /// The content.
    pub body: NoticeBody,
}

/// The content of a [`Notice`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum NoticeBody {
    /// Requests an answer, to check that the client is alive.
    Ping,
    /// Commands for workers, hosts and the sink, in order.
    Commands(Vec<RoleCommand>),
}

/// The reason why communication with another process failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// There was no answer.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The message received does not decode.
    #[error("a message from another process does not decode: {0}")]
    Malformed(String),
    /// The message has a version that this program does not support.
    #[error(
        "a message from another process has version {0}, this program reads {VERSION}: use the \
             same release everywhere"
    )]
    Version(u8),
    /// A large message could not be stored or fetched.
    #[error(transparent)]
    Blob(#[from] proofmill_bus::BlobError),
    /// The leader runs another workflow under the same name.
    #[error("the coordinator runs another version of workflow {0:?}: use the same file everywhere")]
    OtherPlan(String),
    /// The client has sent a message of another role.
    #[error(
        "the coordinator of workflow {workflow:?} refuses a call of {client:?}: its role does not \
         permit the call"
    )]
    NotPermitted {
        /// The workflow.
        workflow: String,
        /// The client that sent it.
        client: String,
    },
    /// The client has sent an invalid value.
    #[error("the coordinator of workflow {workflow:?} refuses a call of {client:?}: {why}")]
    Invalid {
        /// The workflow.
        workflow: String,
        /// The client that sent it.
        client: String,
        /// The reason, as a sentence fragment.
        why: String,
    },
}

/// The subjects of a workflow. Those of clients contain their role's name, so that the server can
/// decide who may use which.
#[derive(Clone, Debug)]
pub(super) struct Subjects {
    pub(super) hello: String,
    leader: String,
    clients: String,
}

impl Subjects {
    pub(super) fn new(connection: &Connection, workflow: &str) -> Self {
        Self {
            hello: connection.subject(&["hello", workflow]),
            leader: connection.subject(&["leader", workflow]),
            clients: connection.subject(&["client", workflow]),
        }
    }

    /// Subject on which clients of a seat call the leader.
    pub(super) fn leader(&self, seat: &Seat) -> String {
        format!("{}.{seat}", self.leader)
    }

    /// Subject, with a wildcard, of all calls to the leader.
    pub(super) fn calls(&self) -> String {
        format!("{}.>", self.leader)
    }

    /// Subject on which the client with this name (which begins with its seat) receives notices.
    pub(super) fn client(&self, name: &str) -> String {
        format!("{}.{name}", self.clients)
    }
}

/// Encodes `message`: inline, or as the digest of a blob if it is too large for a message.
///
/// # Errors
/// [`RemoteError::Blob`] if `message` is large and cannot be stored.
pub async fn encode<T: Serialize + Sync>(
    message: &T,
    connection: &Connection,
    blobs: &BlobStore,
) -> Result<Bytes, RemoteError> {
    let bytes = postcard::to_extend(message, vec![VERSION, HERE])
        .expect("messages hold nothing that postcard cannot encode");
    if bytes.len() <= connection.max_message() {
        return Ok(bytes.into());
    }
    let digest = blobs.put(Bytes::from(bytes).slice(2..)).await?;
    let mut bytes = vec![VERSION, BLOB];
    bytes.extend_from_slice(digest.as_bytes());
    Ok(bytes.into())
}

/// Decodes the message in `bytes`.
///
/// # Errors
/// [`RemoteError`] if `bytes` are not an encoding of this version, or a blob cannot be fetched.
pub async fn decode<T: DeserializeOwned>(
    bytes: &Bytes,
    blobs: &BlobStore,
) -> Result<T, RemoteError> {
    let fetched;
    let content = match &bytes[..] {
        [VERSION, HERE, content @ ..] => content,
        [VERSION, BLOB, digest @ ..] => {
            let digest: [u8; 32] = digest
                .try_into()
                .map_err(|_| RemoteError::Malformed("a digest has 32 bytes".into()))?;
            fetched = blobs.get_within(&Digest::from(digest), MESSAGE_MAX).await?;
            &fetched[..]
        }
        [VERSION, ..] | [] => return Err(RemoteError::Malformed("it is too short".into())),
        [version, ..] => return Err(RemoteError::Version(*version)),
    };
    parse(content)
}

/// Decodes the content of a message, without the header that [`encode`] adds.
///
/// # Errors
/// [`RemoteError::Malformed`].
pub fn parse<T: DeserializeOwned>(content: &[u8]) -> Result<T, RemoteError> {
    postcard::from_bytes(content).map_err(|error| RemoteError::Malformed(error.to_string()))
}
