//! Servers with certificates and users.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proofmill_bus::{Connection, Credentials, NatsOptions, Role};
use proofmill_nats_server::{Authority, Certificate, NatsServer};

/// Nothing here takes as long unless it is stuck.
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

/// An authority, and what it has signed for a server and a client.
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

/// A server as deploy/nats/cluster.conf has it.
pub(crate) struct Deployed {
    pub(crate) server: NatsServer,
    pub(crate) certificates: Certificates,
}

impl Deployed {
    pub(crate) fn start() -> Self {
        let certificates = Certificates::new();
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/nats/cluster.conf");
        let server = NatsServer::with_file(&config, |dir| {
            let files = [
                ("NATS_STORE", &dir.join("store")),
                ("TLS_CERT", &certificates.server.certificate),
                ("TLS_KEY", &certificates.server.key),
                ("TLS_CA", &certificates.authority),
            ];
            let files = files.map(|(name, path)| (name.to_owned(), path.display().to_string()));
            let passwords = ROLES.map(|role| {
                let name = role.name().to_uppercase();
                (format!("{name}_PASSWORD"), password(role))
            });
            let variables = files.into_iter().chain(passwords);
            variables
                .map(|(name, value)| (format!("PROOFMILL_{name}"), value))
                .collect()
        });
        Self {
            server,
            certificates,
        }
    }

    /// How a role connects.
    pub(crate) fn options(&self, role: Role) -> NatsOptions {
        NatsOptions {
            role,
            credentials: Credentials::UserPassword {
                user: role.name().into(),
                password: password(role),
            },
            ca_file: Some(self.certificates.authority.clone()),
            client_certificate: Some((
                self.certificates.client.certificate.clone(),
                self.certificates.client.key.clone(),
            )),
            ..NatsOptions::new(&self.server.url())
        }
    }

    pub(crate) async fn connect(&self, role: Role) -> Connection {
        Connection::open(self.options(role)).await.unwrap()
    }
}

fn password(role: Role) -> String {
    format!("pass{role}")
}

/// What connecting comes to: nothing, or the error.
pub(crate) async fn says(options: NatsOptions) -> Option<String> {
    Connection::open(options).await.err().map(|error| {
        let text = error.to_string();
        std::error::Error::source(&error).map_or(text.clone(), |source| format!("{text}: {source}"))
    })
}

/// Writes a file that nobody else may read.
pub(crate) fn write_secret(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}
