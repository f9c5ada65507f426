//! Certificates and secrets for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proofmill_bus::{Connection, NatsOptions};
use proofmill_nats_server::{Authority, Certificate};

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

/// The error of connecting, with its source; `None` if it succeeds.
pub(crate) async fn says(mut options: NatsOptions) -> Option<String> {
    // A refusal is final; another attempt is made only where the machine was too slow for this one.
    options.connect_timeout = Duration::from_secs(30);
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
