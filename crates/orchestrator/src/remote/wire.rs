//! What goes over the bus.

use std::sync::Arc;

use bytes::Bytes;
use proofmill_bus::{BlobStore, Connection, Digest, RequestError, Role};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::collector::{HostJoin, ToHost, Verdicts};
use crate::coordinator::{Asked, ToWorker};
use crate::core::{Complete, Fail, Join, LeaseRef, Reply, Status};
use crate::id::{TaskId, WorkerId};
use crate::record::TaskRecord;

/// The version of what follows.
const VERSION: u8 = 3;

/// The bytes follow.
const HERE: u8 = 0;
/// The digest of a blob with the bytes follows.
const BLOB: u8 = 1;

/// What a client says to the leader.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Call {
    /// [`Plan::digest`](crate::plan::Plan::digest) of the client's workflow.
    pub(super) plan: [u8; 16],
    /// The latest term of a leader that the client knows of: an earlier leader does not answer.
    pub(super) term: u64,
    /// Who speaks.
    pub(super) client: Arc<str>,
    pub(super) what: What,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum What {
    /// Things that happened, in order; answered when what follows from them is durable. `number`
    /// grows with each call: the same number again is the same call again.
    Events { number: u64, events: Vec<Said> },
    /// Something to be answered with a [`Reply`]; `number` as above, with its own count.
    Ask { number: u64, asked: Asked },
    /// Where a source goes on.
    SourceNext(Arc<str>),
    /// The whole at this moment.
    Status,
}

/// Something that happened at a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Said {
    Join(Join),
    Retire(WorkerId),
    Leave(WorkerId),
    Heartbeat {
        worker: WorkerId,
        running: Vec<LeaseRef>,
        retired: bool,
        paused: Option<String>,
    },
    Complete(Complete),
    Fail(Fail),
    Release(WorkerId, LeaseRef),
    HostJoin(HostJoin),
    HostBeat(WorkerId),
    HostLeave(WorkerId),
    Verdicts(Verdicts),
    /// The client's sink is to get what is emitted, unless another of a later term does.
    AttachSink {
        term: u64,
    },
    Emitted(TaskId),
}

impl Said {
    /// Who says with this that it is alive, and no more.
    pub(super) fn beats_for(&self) -> Option<&WorkerId> {
        match self {
            Self::Heartbeat { worker, .. } => Some(worker),
            Self::HostBeat(host) => Some(host),
            _ => None,
        }
    }

    /// Whether something would be lost, if only work, were it not heard.
    pub(super) fn matters(&self) -> bool {
        matches!(
            self,
            Self::Complete(_) | Self::Fail(_) | Self::Release(..) | Self::Emitted(_)
        )
    }
}

/// What the leader answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The events' consequences are durable. These workers and hosts are not known: they should
    /// join.
    Done {
        unknown: Vec<WorkerId>,
        sink_unknown: bool,
    },
    Reply(Reply),
    SourceNext(Option<u64>),
    Status(Box<Status>),
    /// The client runs another workflow.
    OtherPlan,
    /// Not carried out, and perhaps never: the leader is stopping.
    Stopping,
    /// Not carried out: it is not for the client's role to say.
    NotYours,
}

/// A new leader is there.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) term: u64,
}

/// What a client answers to a notice.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Heard {
    Yes,
    /// There is a later leader.
    NotFromYou,
}

/// What the leader of a term tells a client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Notice {
    pub(super) term: u64,
    pub(super) tell: Tell,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Tell {
    /// Are you there?
    Ping,
    /// For workers, hosts and the sink, in order.
    All(Vec<Told>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Told {
    Worker(WorkerId, ToWorker),
    Host(WorkerId, ToHost),
    Emit(Arc<TaskRecord>),
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
        /// Who spoke.
        client: String,
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

    /// Where clients of a role call the leader.
    pub(super) fn leader(&self, role: Role) -> String {
        format!("{}.{role}", self.leader)
    }

    /// Where all call the leader.
    pub(super) fn calls(&self) -> String {
        format!("{}.*", self.leader)
    }

    /// Where the client of this name, which begins with its role, hears from the leader.
    pub(super) fn client(&self, name: &str) -> String {
        format!("{}.{name}", self.clients)
    }
}

impl Call {
    /// Whether a call on this subject, by which the server has made sure of the role, may say this,
    /// and under this name.
    pub(super) fn is_proper_on(&self, subject: &str) -> bool {
        let role = subject.rsplit('.').next().unwrap_or_default();
        let is = |expected: Role| role == expected.name();
        let own = self.client.split_once('.');
        own.is_some_and(|(first, name)| first == role && !name.contains(['.', '*', '>', ' ']))
            && match &self.what {
                What::Ask { asked, .. } if !matches!(asked, Asked::Submit(_)) => is(Role::Operator),
                What::Ask { .. } | What::SourceNext(_) | What::Status => is(Role::Source),
                What::Events { events, .. } => events.iter().all(|said| match said {
                    Said::AttachSink { .. } | Said::Emitted(_) => is(Role::Sequencer),
                    Said::HostJoin(_)
                    | Said::HostBeat(_)
                    | Said::HostLeave(_)
                    | Said::Verdicts(_) => is(Role::Collector),
                    _ => is(Role::Dispatcher),
                }),
            }
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
            fetched = blobs.get(&Digest::from(digest)).await?;
            &fetched[..]
        }
        [VERSION, ..] | [] => return Err(RemoteError::Malformed("it is too short".into())),
        [version, ..] => return Err(RemoteError::Version(*version)),
    };
    postcard::from_bytes(content).map_err(|error| RemoteError::Malformed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a client of this name may say that on the subject of a role.
    fn may(role: &str, client: &str, what: What) -> bool {
        let call = Call {
            plan: [0; 16],
            term: 0,
            client: client.into(),
            what,
        };
        call.is_proper_on(&format!("proofmill.leader.w.{role}"))
    }

    fn said(said: Said) -> What {
        What::Events {
            number: 1,
            events: vec![Said::Retire("w".into()), said],
        }
    }

    #[test]
    fn a_role_says_what_is_its_own() {
        let retire = || said(Said::Retire("w".into()));
        let hosts = || What::Events {
            number: 1,
            events: vec![Said::HostLeave("h".into())],
        };
        let source_next = || What::SourceNext("s".into());
        let sink = || What::Events {
            number: 1,
            events: vec![Said::AttachSink { term: 1 }],
        };
        for role in [
            "dispatcher",
            "collector",
            "sequencer",
            "source",
            "coordinator",
        ] {
            let name = format!("{role}.n-1");
            assert_eq!(may(role, &name, retire()), role == "dispatcher", "{role}");
            assert_eq!(may(role, &name, hosts()), role == "collector", "{role}");
            assert_eq!(may(role, &name, sink()), role == "sequencer", "{role}");
            assert_eq!(may(role, &name, source_next()), role == "source", "{role}");
            assert_eq!(may(role, &name, What::Status), role == "source", "{role}");
            // One thing among others that is not.
            assert!(
                !may(role, &name, said(Said::AttachSink { term: 1 })),
                "{role}"
            );
        }
    }

    #[test]
    fn a_role_speaks_in_its_own_name() {
        for name in [
            "dispatcher.n",
            "source",
            "source.*",
            "source.a.b",
            "source.>",
            "n",
        ] {
            assert!(!may("source", name, What::SourceNext("s".into())), "{name}");
        }
    }
}
