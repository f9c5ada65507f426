//! The verifier's front end as a service.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proofmill_shutdown::{Level, Shutdown};
use proofmill_verifier::{Handle, Service};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;

use super::conversation::{Peer, converse};
use super::frame::FrameError;
use super::http;
use super::pipes::{PipePair, make_pipes};
use crate::port::{PortError, listen};
use crate::serve::{self, Terms, Versions};
use crate::socket;

/// The verifier's socket in its state directory.
pub const VERIFIER_SOCKET: &str = "verifier.sock";

/// A connection over HTTP is closed after so long: whoever scrapes opens another.
const HTTP_LIFETIME: Duration = Duration::from_secs(600);
/// Connections of the socket at a time; further ones wait until one has ended.
const CONNECTIONS_MAX: usize = 256;
/// The client behind the socket and the pipes, which only this user can open.
const LOCAL: &str = "local";

/// Addresses that a verifier is offered on.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// A Unix socket that only this user can connect to.
    pub socket: Option<PathBuf>,
    /// Named pipes, which are made if they are not there.
    pub pipes: Option<PipePair>,
    /// `/metrics` and `/healthz` over HTTP.
    pub http: Option<SocketAddr>,
}

/// The front end cannot be offered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifierServeError {
    /// A TCP port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// Another verifier answers there.
    #[error("a verifier listens on {} already: end it, or use another socket", .0.display())]
    Taken(PathBuf),
    /// The socket or a pipe cannot be used.
    #[error("cannot listen on {}", path.display())]
    Listen {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// A verifier's front end whose sockets are bound; [`run`](Self::run) answers.
pub struct Server {
    handle: Handle,
    unix: Option<(UnixListener, socket::Bound)>,
    pipes: Option<PipePair>,
    http: Option<TcpListener>,
}

// === impl Server ===

impl Server {
    /// Binds the sockets and makes the pipes.
    ///
    /// # Errors
    ///
    /// See [`VerifierServeError`].
    pub async fn bind(handle: Handle, options: ServerOptions) -> Result<Self, VerifierServeError> {
        let http = match options.http {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        if let Some(pair) = &options.pipes {
            make_pipes(pair).map_err(|source| failed(&pair.requests, source))?;
        }
        let unix = match &options.socket {
            Some(path) => Some(bind_unix(path).await?),
            None => None,
        };
        Ok(Self {
            handle,
            unix,
            pipes: options.pipes,
            http,
        })
    }

    /// The HTTP port's address.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref()?.local_addr().ok()
    }

    /// Runs `verifier` and answers for it until `shutdown` says so; everything that
    /// was accepted is answered before it returns, unless it is told to stop at once.
    ///
    /// # Errors
    ///
    /// The pipes cannot be opened.
    pub async fn run(
        self,
        verifier: Service,
        mut shutdown: Shutdown,
    ) -> Result<(), VerifierServeError> {
        let Self {
            handle,
            unix,
            pipes,
            http,
        } = self;
        // The verifier itself drains after its clients have had their answers.
        let (draining, drained) = proofmill_shutdown::channel();
        let verifying = tokio::spawn(verifier.run(drained));
        let mut conversations = JoinSet::new();
        if let Some(pair) = pipes {
            let (reader, writer) = pair
                .open()
                .map_err(|source| failed(&pair.requests, source))?;
            conversations.spawn(talk(
                handle.clone(),
                "pipes",
                reader,
                writer,
                shutdown.clone(),
            ));
        }
        let (unix, _bound) = unix.unzip();
        let serving = async {
            if let Some(listener) = http {
                let router = http::router(handle.clone(), listener.local_addr().ok());
                let terms = Terms::plain(Versions::One, HTTP_LIFETIME);
                let answer = serve::answers(router);
                serve::serve(listener, terms, answer, std::future::pending()).await;
            }
            std::future::pending::<()>().await;
        };
        let accepting = accept(unix, &handle, &mut conversations, &shutdown);
        let mut ending = shutdown.clone();
        tokio::select! {
            () = serving => {}
            () = accepting => {}
            () = ending.reached(Level::Drain) => {}
        }
        let talking = async { while conversations.join_next().await.is_some() {} };
        tokio::select! {
            () = talking => draining.raise(Level::Drain),
            () = shutdown.reached(Level::Stop) => draining.raise(Level::Stop),
        }
        let mut verifying = verifying;
        tokio::select! {
            _ = &mut verifying => {}
            () = shutdown.reached(Level::Stop) => {
                draining.raise(Level::Stop);
                let _ = verifying.await;
            }
        }
        Ok(())
    }
}

/// Takes connections; for ever, if there is no listener.
async fn accept(
    listener: Option<UnixListener>,
    handle: &Handle,
    conversations: &mut JoinSet<()>,
    shutdown: &Shutdown,
) {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    for number in 1_u64.. {
        while conversations.len() >= CONNECTIONS_MAX {
            conversations.join_next().await;
        }
        while conversations.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let name = format!("connection {number}");
                let (reader, writer) = stream.into_split();
                let handle = handle.clone();
                let shutdown = shutdown.clone();
                conversations.spawn(async move {
                    talk(handle, &name, reader, writer, shutdown).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// One conversation, until it ends.
async fn talk(
    handle: Handle,
    name: &str,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    shutdown: Shutdown,
) {
    let peer = Peer {
        client: Arc::from(LOCAL),
        conversation: Arc::from(name),
    };
    match converse(handle, peer, reader, writer, shutdown).await {
        Ok(()) => {}
        Err(FrameError::Io(error)) => tracing::debug!(%error, name, "a conversation broke off"),
        Err(error) => tracing::warn!(%error, name, "a conversation is ended"),
    }
}

fn failed(path: &Path, source: std::io::Error) -> VerifierServeError {
    VerifierServeError::Listen {
        path: path.to_owned(),
        source,
    }
}

async fn bind_unix(path: &Path) -> Result<(UnixListener, socket::Bound), VerifierServeError> {
    match socket::bind_unless_taken(path).await {
        Ok(bound) => bound.ok_or_else(|| VerifierServeError::Taken(path.to_owned())),
        Err(error) => Err(failed(path, error)),
    }
}
