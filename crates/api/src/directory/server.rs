//! The listener of a directory, and serving on it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proofmill_directory::store::KeyDirectory;

use super::routes::{Rights, router};
use super::state::ServedDirectory;
use crate::access::{AccessError, Clients};
use crate::body_timeout::Pressure;
use crate::connections::ConnectionLimits;
use crate::gate::Gate;
use crate::port::{Port, PortError, TcpOptions};
use crate::serve::{self, HttpVersions};

/// Longest life of a connection; a client then connects again.
const LIFETIME: Duration = Duration::from_secs(600);

/// The reason that a directory cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryServeError {
    /// The TCP port cannot be offered.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The file of tokens cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
}

/// A server of a directory that listens. Requests wait until [`serve`](Self::serve).
pub struct DirectoryServer {
    served: Arc<ServedDirectory>,
    port: Port,
    gate: Gate<Rights>,
    connections: ConnectionLimits,
}

// === impl DirectoryServer ===

impl DirectoryServer {
    /// Reads the file of tokens and listens. Beyond loopback TLS and tokens are required.
    ///
    /// # Errors
    ///
    /// See [`DirectoryServeError`].
    pub async fn bind(
        directory: KeyDirectory,
        options: &TcpOptions,
    ) -> Result<Self, DirectoryServeError> {
        let TcpOptions {
            address,
            tls,
            tokens,
            connections,
        } = options;
        let versions = HttpVersions::Http1;
        let port = Port::open(*address, versions, tls.as_ref(), tokens.is_some()).await?;
        let gate = match tokens {
            Some(path) => Gate::with_tokens(read_tokens(path).await?, "--tokens"),
            None => Gate::local(),
        };
        Ok(Self {
            served: Arc::new(ServedDirectory::new(directory)),
            port,
            gate,
            connections: *connections,
        })
    }

    /// The URL of the port, such as `http://127.0.0.1:9473`.
    pub fn url(&self) -> String {
        self.port.url()
    }

    /// Answers requests, and takes over new epochs, until `stop`; requests in progress then have 5 s to be answered.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let answers = serve::answers(router(Arc::clone(&self.served), self.gate));
        let pressure = Pressure::default();
        let (listener, terms) = self
            .port
            .into_listener(LIFETIME, self.connections, pressure);
        tokio::select! {
            () = serve::serve(listener, terms, answers, stop) => {}
            () = self.served.follow() => {}
        }
    }
}

/// The clients in a file: a name and a token on each line.
async fn read_tokens(path: &Path) -> Result<Clients<Rights>, AccessError> {
    let no_rights = |words: &[&str]| match words {
        [] => Ok(()),
        [word, ..] => Err(format!(
            "{word:?}: expected nothing after a client's name and its token"
        )),
    };
    Clients::read(path, None, no_rights).await
}
