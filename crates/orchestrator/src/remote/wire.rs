//! What goes over the bus.

use std::sync::Arc;

use bytes::Bytes;
use proofmill_bus::{BlobStore, Connection, Digest, RequestError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::seat::Seat;
use crate::conversation::{Query, QueryAnswer, Reply, Request, RoleCommand, RoleEvent};
use crate::id::WorkerId;

/// The version of what follows.
const VERSION: u8 = 6;

/// Bytes of a message, at most: one that is kept as a blob is not fetched if it is larger.
const MESSAGE_MAX: u64 = 256 << 20;

/// The bytes follow.
const HERE: u8 = 0;
/// The digest of a blob with the bytes follows.
const BLOB: u8 = 1;

/// A client's message to the leader.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// [`Plan::digest`](crate::plan::Plan::digest) of the client's workflow.
    pub plan: [u8; 16],
    /// The latest term of a leader that the client knows of. A leader of an earlier one looks whether
    /// it still leads.
    pub term: u64,
    /// The client's name: its seat, a dot, and one token that differs between processes.
    pub client: Arc<str>,
    /// Number of the process's life under this name: another process that has the name later has another, a higher one
    /// where clocks allow.
    pub session: u64,
    /// The client has the answers to all calls of the session whose number is lower.
    pub open_from: u64,
    /// The content.
    pub body: CallBody,
}

/// The content of a [`Call`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CallBody {
    /// Things that happened, in order; answered when what follows from them is durable.
    Events {
        /// Grows with each call of the session: the same number again is the same call again.
        number: u64,
        /// The events.
        events: Vec<RoleEvent>,
    },
    /// Something to be answered with a [`Reply`].
    Request {
        /// As for events, and of the same count.
        number: u64,
        /// The request.
        request: Request,
    },
    /// Something to be answered with a [`QueryAnswer`].
    Query(Query),
}

/// What the leader answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The events' consequences are durable.
    Done {
        /// Workers and hosts that are not known: they should join.
        unknown: Vec<WorkerId>,
        /// Whether the client is not the one whose sink gets what is emitted.
        sink_unknown: bool,
    },
    /// To a request.
    Reply(Reply),
    /// To a query.
    Query(QueryAnswer),
    /// The client runs another workflow.
    OtherPlan,
    /// Not carried out, and perhaps never: the leader is stopping.
    Stopping,
    /// Not carried out: it is not for the client's role to say.
    NotYours,
    /// Not carried out: something in it is no valid value.
    Invalid(String),
}

/// A leader is there, perhaps a new one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) term: u64,
}

/// What a client answers to a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Heard {
    /// It was taken, or had been.
    Yes,
    /// There is a later leader.
    NotFromYou,
    /// It is for another session: that process is gone.
    NotMe,
}

/// The message of a leader to a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Notice {
    /// The leader's term.
    pub term: u64,
    /// See [`Call::session`].
    pub session: u64,
    /// Higher for each session that the leader begins with a client.
    pub incarnation: u64,
    /// Grows with each notice of the incarnation: the same number again is the same notice again.
    pub number: u64,
    /// The content.
    pub body: NoticeBody,
}

/// The content of a [`Notice`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum NoticeBody {
    /// Asks for a sign of life.
    Ping,
    /// For workers, hosts and the sink, in order.
    Commands(Vec<RoleCommand>),
}

/// Why something could not be said to, or understood from, another process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// Nobody answered.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// What came does not decode.
    #[error("a message from another process does not decode: {0}")]
    Malformed(String),
    /// It is of a version that this program does not know.
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
    /// The client has said what another role says.
    #[error(
        "the coordinator of workflow {workflow:?} does not take that from {client:?}: it is not for \
         its role to say"
    )]
    NotYours {
        /// The workflow.
        workflow: String,
        /// Client that spoke.
        client: String,
    },
    /// The client has said something that the coordinator does not take from anyone.
    #[error("the coordinator of workflow {workflow:?} refuses what {client:?} says: {why}")]
    Invalid {
        /// The workflow.
        workflow: String,
        /// Client that spoke.
        client: String,
        /// In words.
        why: String,
    },
}

/// The subjects of a workflow. The server decides who may use which: those of clients have their
/// role's name in them.
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

    /// Where clients of a seat call the leader.
    pub(super) fn leader(&self, seat: &Seat) -> String {
        format!("{}.{seat}", self.leader)
    }

    /// Where all call the leader.
    pub(super) fn calls(&self) -> String {
        format!("{}.>", self.leader)
    }

    /// Where the client of this name, which begins with its seat, hears from the leader.
    pub(super) fn client(&self, name: &str) -> String {
        format!("{}.{name}", self.clients)
    }
}

/// Bytes for `message`: itself, or the digest of a blob that holds it.
///
/// # Errors
/// [`RemoteError::Blob`] if it is large and cannot be stored.
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

/// The message in `bytes`.
///
/// # Errors
/// [`RemoteError`] for anything that [`encode`] of this version did not make, and for a blob that
/// cannot be fetched.
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

/// The message that these bytes are, without what [`encode`] puts before it.
///
/// # Errors
/// [`RemoteError::Malformed`].
pub fn parse<T: DeserializeOwned>(content: &[u8]) -> Result<T, RemoteError> {
    postcard::from_bytes(content).map_err(|error| RemoteError::Malformed(error.to_string()))
}
