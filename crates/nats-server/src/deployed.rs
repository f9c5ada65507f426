//! A server with the configuration of `deploy/nats/cluster.conf`.

use std::path::{Path, PathBuf};

use crate::{Authority, Certificate, NatsServer};

/// The users of the configuration: one for each role, except that each worker group of dispatchers has a
/// user of its own.
const USERS: [&str; 8] = [
    "coordinator",
    "prover",
    "verifier",
    "collector",
    "sequencer",
    "source",
    "operator",
    "console",
];

/// A server with the documented configuration: TLS, and a user for each role.
#[derive(Debug)]
pub struct Deployed {
    /// The server.
    pub server: NatsServer,
    /// The certificate of the authority that signed the server's.
    pub authority: PathBuf,
    /// A client certificate that the server accepts.
    pub client: Certificate,
    _certificates: tempfile::TempDir,
}

// === impl Deployed ===

impl Deployed {
    /// Starts the server.
    pub fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let authority = Authority::new(dir.path(), "authority");
        let certificate = authority.sign("server", "127.0.0.1");
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/nats/cluster.conf");
        let server = NatsServer::with_file(&config, |store| {
            let files = [
                ("NATS_STORE", &store.join("store")),
                ("TLS_CERT", &certificate.certificate),
                ("TLS_KEY", &certificate.key),
                ("TLS_CA", &authority.certificate),
            ];
            let files = files.map(|(name, path)| (name.to_owned(), path.display().to_string()));
            let passwords = USERS.map(|user| {
                let name = format!("{}_PASSWORD", user.to_uppercase());
                (name, Self::password(user))
            });
            let variables = files.into_iter().chain(passwords);
            variables
                .map(|(name, value)| (format!("PROOFMILL_{name}"), value))
                .collect()
        });
        Self {
            server,
            client: authority.sign("client", "client"),
            authority: authority.certificate,
            _certificates: dir,
        }
    }

    /// The password of the user of this name.
    pub fn password(user: &str) -> String {
        format!("pass{user}")
    }
}
