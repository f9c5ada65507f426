//! Servers with certificates and users for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proofmill_bus::{Connection, Credentials, NatsOptions, Role};
use proofmill_nats_server::{Authority, Certificate, Deployed};

/// Longer than anything here takes unless it is stuck.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const ROLES: [Role; 6] = [
    Role::Coordinator,
    Role::Dispatcher,
    Role::Collector,
    Role::Sequencer,
    Role::Source,
    Role::Operator,
];

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// An authority, with the certificates that it has signed for a server and a client.
pub(crate) struct Certificates {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) authority: PathBuf,
    pub(crate) server: Certificate,
    pub(crate) client: Certificate,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new(dir.path(), "authority");
        Self {
            server: authority.sign("server", "127.0.0.1"),
            client: authority.sign("client", "client"),
            authority: authority.certificate,
            dir,
        }
    }
}

/// The user of a role; of the dispatchers' two users, the one with worker group `prove`.
pub(crate) fn user_of(role: Role) -> &'static str {
    match role {
        Role::Dispatcher => "prover",
        role => role.name(),
    }
}

/// Options with which a role connects, as the user of that role.
pub(crate) fn options(deployed: &Deployed, role: Role) -> NatsOptions {
    options_of(deployed, role, user_of(role))
}

/// Options with which a user connects.
pub(crate) fn options_of(deployed: &Deployed, role: Role, user: &str) -> NatsOptions {
    let client = deployed.client.clone();
    NatsOptions {
        role,
        credentials: Credentials::UserPassword {
            user: user.into(),
            password: Deployed::password(user),
        },
        ca_file: Some(deployed.authority.clone()),
        client_certificate: Some((client.certificate, client.key)),
        ..NatsOptions::new(&deployed.server.url())
    }
}

pub(crate) async fn connect(deployed: &Deployed, role: Role) -> Connection {
    Connection::open(options(deployed, role)).await.unwrap()
}

/// The error of connecting, with its source; `None` if it succeeds.
pub(crate) async fn says(options: NatsOptions) -> Option<String> {
    Connection::open(options).await.err().map(|error| {
        let text = error.to_string();
        std::error::Error::source(&error).map_or(text.clone(), |source| format!("{text}: {source}"))
    })
}

/// Writes a file that only its owner can read.
pub(crate) fn write_secret(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}
