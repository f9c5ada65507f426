//! Options for a NATS server, and the errors of connecting to it.

use std::path::PathBuf;
use std::time::Duration;

use super::membership::Membership;
use super::refusal::{INBOX, Refusal};
use crate::blob::{BlobError, Bucket};
use crate::secret::SecretError;

/// Credentials of the client.
#[derive(Clone, Default)]
pub enum Credentials {
    /// None, or those in the address (`nats://user:password@host`).
    #[default]
    None,
    /// A user and a password.
    UserPassword {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// A token.
    Token(String),
    /// A file with the seed of an nkey.
    NkeyFile(PathBuf),
    /// A credentials file: a JWT and a seed, as `nsc` writes it.
    CredentialsFile(PathBuf),
}

// The secrets are not shown.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::UserPassword { .. } => "UserPassword",
            Self::Token(_) => "Token",
            Self::NkeyFile(_) => "NkeyFile",
            Self::CredentialsFile(_) => "CredentialsFile",
        })
    }
}

/// Options for a connection to a NATS server or cluster, and for the use of it.
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// Addresses of the servers, tried until one answers: `nats://host:4222`, or `tls://host` for
    /// TLS.
    pub servers: Vec<String>,
    /// Credentials of the client; none by default.
    pub credentials: Credentials,
    /// A file of CA certificates (PEM) to trust in addition to the system's. If set, TLS is
    /// required.
    pub ca_file: Option<PathBuf>,
    /// Files with the client's own certificate and its key (PEM).
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// Name of the connection at the server; `proofmill` by default.
    pub name: String,
    /// Membership of this process in its cluster; by default that of a process named `process`
    /// that creates missing streams.
    pub membership: Membership,
    /// Token for this process's user in subjects, as the server's permissions have it: ASCII
    /// letters, digits, `_` and `-`. If absent, the user's name.
    pub identity: Option<String>,
    /// First token of every subject, and of the names of streams, so that several clusters can
    /// share a server; `proofmill` by default. ASCII letters, digits, `_` and `-`.
    pub prefix: String,
    /// Number of copies of everything stored: 1 (the default), 3 or 5, which need as many servers.
    pub replicas: usize,
    /// Bucket for blobs; if absent, they are stored on the server.
    pub blobs: Option<Bucket>,
    /// Lifetime of a lease that its holder does not renew; 1.5 s by default.
    pub lease_ttl: Duration,
    /// Longest time to wait for a server that cannot be reached, or for a cluster without a
    /// majority of its servers, before connecting fails. Zero, the default, means a single attempt.
    pub connect_timeout: Duration,
}

/// The reason why a server cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A setting is invalid.
    #[error("{0}")]
    Setting(String),
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// A file with a secret cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The servers cannot be reached, or refuse the connection.
    #[error("cannot connect to {servers}: {why}")]
    Unreachable {
        /// The addresses.
        servers: String,
        /// The reason, as a sentence fragment.
        why: String,
        /// Whether another attempt would fail too: the server answers, and one side does not accept
        /// the other.
        is_final: bool,
    },
    /// Too few servers of the cluster run for a quorum.
    #[error(
        "{server} answers, and its cluster does not ({why}): a majority of the servers has to run, \
         start those that are missing"
    )]
    NoQuorum {
        /// The server's name and version.
        server: String,
        /// The reason, as a sentence fragment.
        why: String,
    },
    /// The server, or the account on it, lacks something that is needed.
    #[error("{server} cannot be used: {why}")]
    Unfit {
        /// The server's name and version.
        server: String,
        /// The fault, and the change that mends it.
        why: String,
    },
    /// The server denies this user a permission that the process needs.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The blob store cannot be used.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// A stream cannot be created, or has other settings than required.
    #[error("cannot use {what} on the server: {why}")]
    Resource {
        /// The resource, as in "the stream NAME".
        what: String,
        /// The reason, as a sentence fragment.
        why: String,
    },
    /// A message of the stream is not a valid frame, or a frame is incomplete.
    #[error("message {sequence} of stream {stream} is damaged: {why}")]
    Damaged {
        /// The stream.
        stream: String,
        /// Stream sequence of the message.
        sequence: u64,
        /// The reason, as a sentence fragment.
        why: String,
    },
}

// === impl ConnectError ===

impl ConnectError {
    /// Whether another attempt may succeed without a change on this side.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { is_final, .. } => !is_final,
            Self::NoQuorum { .. } => true,
            _ => false,
        }
    }
}

// === impl NatsOptions ===

impl NatsOptions {
    /// Options for the servers of `url` (several are separated by commas), with defaults otherwise.
    pub fn new(url: &str) -> Self {
        Self {
            servers: url.split(',').map(|server| server.trim().into()).collect(),
            credentials: Credentials::default(),
            ca_file: None,
            client_certificate: None,
            name: "proofmill".into(),
            membership: Membership::default(),
            identity: None,
            prefix: "proofmill".into(),
            replicas: 1,
            blobs: None,
            lease_ttl: Duration::from_millis(1500),
            connect_timeout: Duration::ZERO,
        }
    }

    /// The token for this process's user in subjects: `identity` if set, else the user's name.
    pub(super) fn identity(&self) -> Option<&str> {
        let user = match &self.credentials {
            Credentials::UserPassword { user, .. } => Some(user.as_str()),
            _ => None,
        };
        self.identity.as_deref().or(user)
    }

    /// Prefix of the subjects on which this process receives answers. Permissions keep processes of
    /// other memberships, and of other users, from listening there.
    pub(super) fn inbox(&self) -> String {
        let inbox = format!("{INBOX}.{}.{}", self.prefix, self.membership.name());
        match self.identity() {
            Some(identity) if self.membership.has_user() => format!("{inbox}.{identity}"),
            _ => inbox,
        }
    }

    /// The addresses without user names and passwords, for messages.
    pub fn shown(&self) -> String {
        let shown = self.servers.iter().map(|server| {
            let (scheme, rest) = server.split_once("://").unwrap_or(("nats", server));
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            format!("{scheme}://{host}")
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}
