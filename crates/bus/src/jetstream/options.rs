//! How to reach a NATS server, and why that may fail.

use std::path::PathBuf;
use std::time::Duration;

use super::refusal::{INBOX, Refusal};
use super::role::Role;
use crate::blob::{BlobError, Bucket};
use crate::secret::SecretError;

/// Who connects.
#[derive(Clone, Default)]
pub enum Credentials {
    /// Nobody, or whoever the address names (`nats://user:password@host`).
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
    /// A file with a JWT and a seed, as `nsc` writes it.
    CredentialsFile(PathBuf),
}

// Secrets are not printed.
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

/// How to reach a NATS server or cluster, and how to use it.
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// Addresses, of which any one will do: `nats://host:4222`, or `tls://host` for TLS.
    pub servers: Vec<String>,
    /// Who connects.
    pub credentials: Credentials,
    /// Certificates (PEM) of the authorities to trust, beside the system's.
    pub ca_file: Option<PathBuf>,
    /// The client's own certificate and key (PEM).
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// What the server shows as the connection's name.
    pub name: String,
    /// What this process does.
    pub role: Role,
    /// The word by which the server's permissions know this process's user in subjects, if it is
    /// another than the user's name: one token of ASCII letters, digits, `_` and `-`.
    pub identity: Option<String>,
    /// First token of every subject, and of the names of streams: several clusters may
    /// share a server. ASCII letters, digits, `_` and `-`.
    pub prefix: String,
    /// Copies of everything that is stored: 1, or 3 on a cluster of at least three servers.
    pub replicas: usize,
    /// Where large payloads are, if not on the server.
    pub blobs: Option<Bucket>,
    /// How long a lease lives that its holder does not renew.
    pub lease_ttl: Duration,
    /// Longest time to wait for a server that cannot be reached, or for a cluster without a
    /// majority of its servers, before connecting fails. Zero: no longer than it takes to find out.
    pub connect_timeout: Duration,
}

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A setting is wrong in itself.
    #[error("{0}")]
    Setting(String),
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file with a secret cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// There is no connection.
    #[error("cannot connect to {servers}: {why}")]
    Unreachable {
        /// The addresses.
        servers: String,
        /// In words.
        why: String,
        /// Whether another try would come to the same: the server answers, and one of the two does not
        /// accept the other.
        is_final: bool,
    },
    /// Too few servers of the cluster run for it to decide anything.
    #[error(
        "{server} answers, and its cluster does not ({why}): a majority of the servers has to run, \
         start those that are missing"
    )]
    NoQuorum {
        /// Its name and version.
        server: String,
        /// In words.
        why: String,
    },
    /// The server, or the account on it, does not offer what is needed.
    #[error("{server} cannot be used: {why}")]
    Unfit {
        /// Its name and version.
        server: String,
        /// What is missing, and what to change.
        why: String,
    },
    /// The server does not let this user do what the role needs.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The place for large payloads cannot be used.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// A stream cannot be made, or is not as it must be.
    #[error("cannot use {what} on the server: {why}")]
    Resource {
        /// Which.
        what: String,
        /// In words.
        why: String,
    },
    /// What the stream holds cannot be read.
    #[error("message {sequence} of stream {stream} is damaged: {why}")]
    Damaged {
        /// The stream.
        stream: String,
        /// The message.
        sequence: u64,
        /// In words.
        why: String,
    },
}

// === impl ConnectError ===

impl ConnectError {
    /// Whether the same try may succeed later, without a change here.
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
    /// The servers of `url` (several are separated by commas), everything else as it usually is.
    pub fn new(url: &str) -> Self {
        Self {
            servers: url.split(',').map(|server| server.trim().into()).collect(),
            credentials: Credentials::default(),
            ca_file: None,
            client_certificate: None,
            name: "proofmill".into(),
            role: Role::default(),
            identity: None,
            prefix: "proofmill".into(),
            replicas: 1,
            blobs: None,
            lease_ttl: Duration::from_millis(1500),
            connect_timeout: Duration::ZERO,
        }
    }

    /// The word for this process's user in subjects: the one that is set, else the user's name.
    pub(super) fn identity(&self) -> Option<&str> {
        let user = match &self.credentials {
            Credentials::UserPassword { user, .. } => Some(user.as_str()),
            _ => None,
        };
        self.identity.as_deref().or(user)
    }

    /// Where answers go: nobody else's role may listen there, and no other user's workers.
    pub(super) fn inbox(&self) -> String {
        let role = format!("{INBOX}.{}.{}", self.prefix, self.role);
        match self.identity() {
            Some(identity) if self.role == Role::Dispatcher => format!("{role}.{identity}"),
            _ => role,
        }
    }

    /// The addresses as they may be shown: without a user's password.
    pub(super) fn shown(&self) -> String {
        let shown = self.servers.iter().map(|server| {
            let (scheme, rest) = server.split_once("://").unwrap_or(("nats", server));
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            format!("{scheme}://{host}")
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}
