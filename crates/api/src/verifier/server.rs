//! The verifier's front end as a service.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use proofmill_shutdown::{Level, Shutdown};
use proofmill_verifier::{Handle, Service};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::console;
use super::conversation::Peer;
use super::frame::FrameError;
use super::framed::converse;
use super::http;
use super::pipes::{PipePair, make_pipes};
use super::port_state::PortState;
use super::tcp::Tcp;
use crate::access::AccessError;
use crate::port::{PortError, TcpOptions, listen, listen_locally};
use crate::serve::{self, HttpVersions, Terms};
use crate::socket;

/// Name of the verifier's socket in its state directory.
pub const VERIFIER_SOCKET: &str = "verifier.sock";

/// Longest life of an HTTP connection; a scraper then reconnects.
const HTTP_LIFETIME: Duration = Duration::from_secs(600);
/// Most connections of the socket at a time; further ones wait until one has ended.
const CONNECTIONS_MAX: usize = 256;
/// Time for clients to read their answers after the verifier was told to stop at once.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// Client of the socket and the pipes, which only this user can open.
pub(super) const LOCAL: &str = "local";

/// Addresses that a verifier is offered on.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// A Unix socket that only this user can connect to.
    pub socket: Option<PathBuf>,
    /// Named pipes, which are made if they do not exist.
    pub pipes: Option<PipePair>,
    /// A TCP port, which speaks gRPC and HTTP.
    pub tcp: Option<TcpOptions>,
    /// The HTTP port of `/metrics` and `/healthz`.
    pub http: Option<SocketAddr>,
    /// The loopback address of the console, a page in the browser.
    pub console: Option<SocketAddr>,
}

/// The reason that the front end cannot be offered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifierServeError {
    /// A TCP port cannot be offered.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A file of tokens cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Another verifier listens on the socket.
    #[error("a verifier listens on {} already: end it, or use another socket", .0.display())]
    Taken(PathBuf),
    /// The socket or a pipe cannot be used.
    #[error("cannot listen on {}", path.display())]
    Listen {
        /// The path of the socket or pipe.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// A verifier's front end with bound sockets. [`run`](Self::run) serves it.
pub struct Server {
    handle: Handle,
    unix: Option<(UnixListener, socket::SocketFile)>,
    pipes: Option<PipePair>,
    tcp: Option<Tcp>,
    http: Option<TcpListener>,
    console: Option<TcpListener>,
}

// === impl Server ===

impl Server {
    /// Binds the sockets and makes the pipes.
    ///
    /// # Errors
    ///
    /// See [`VerifierServeError`].
    pub async fn bind(handle: Handle, options: ServerOptions) -> Result<Self, VerifierServeError> {
        let tcp = match &options.tcp {
            Some(tcp) => Some(Tcp::bind(tcp).await?),
            None => None,
        };
        let http = match options.http {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let console = match options.console {
            Some(address) => Some(listen_locally(address).await?),
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
            tcp,
            http,
            console,
        })
    }

    /// The address of the TCP port.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().map(Tcp::address)
    }

    /// The URL of the TCP port, such as `https://127.0.0.1:9471`.
    pub fn tcp_url(&self) -> Option<String> {
        self.tcp.as_ref().map(Tcp::url)
    }

    /// The address of the HTTP port.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref()?.local_addr().ok()
    }

    /// The address of the console.
    pub fn console_address(&self) -> Option<SocketAddr> {
        self.console.as_ref()?.local_addr().ok()
    }

    /// Runs `verifier` and serves its clients until `shutdown`. All accepted requests are answered before this
    /// returns, unless `shutdown` reaches [`Level::Stop`].
    ///
    /// # Errors
    ///
    /// The pipes cannot be opened.
    pub async fn run(
        self,
        verifier: Service,
        shutdown: Shutdown,
    ) -> Result<(), VerifierServeError> {
        let Self {
            handle,
            unix,
            pipes,
            tcp,
            http,
            console,
        } = self;
        let mut conversations = JoinSet::new();
        if let Some(pair) = pipes {
            let (reader, writer) = pair
                .open()
                .map_err(|source| failed(&pair.requests, source))?;
            let handle = handle.clone();
            let shutdown = shutdown.clone();
            conversations.spawn(async move {
                run_conversation(handle, "pipes", reader, writer, shutdown).await;
            });
        }
        let (ended, end) = watch::channel(false);
        let port_state = PortState::new(handle.clone(), shutdown.clone());
        let on_tcp = async {
            if let Some(tcp) = tcp {
                tcp.serve(port_state.clone(), end.clone()).await;
            }
        };
        let on_http = async {
            if let Some(listener) = http {
                let router = http::router(handle.clone(), listener.local_addr().ok());
                let terms = Terms::plain(HttpVersions::Http1, HTTP_LIFETIME);
                let mut end = end.clone();
                // An error means that the sender is gone, which ends the service too.
                let stop = async move { drop(end.wait_for(|ended| *ended).await) };
                serve::serve(listener, terms, serve::answers(router), stop).await;
            }
        };
        let on_console = async {
            if let Some(listener) = console {
                let mut end = end.clone();
                // As above.
                let stop = async move { drop(end.wait_for(|ended| *ended).await) };
                console::serve(listener, handle.clone(), stop).await;
            }
        };
        // The verifier itself drains after its clients have had their answers.
        let (draining, drained) = proofmill_shutdown::channel();
        let mut verifying = tokio::spawn(verifier.run(drained));
        // Kept until the last answer is sent.
        let (unix, _bound) = unix.unzip();
        let conversing = async {
            let mut stopping = shutdown.clone();
            tokio::select! {
                () = accept(unix, &handle, &mut conversations, &shutdown) => {}
                () = stopping.reached(Level::Drain) => {}
            }
            let mut answered = pin!(async {
                while conversations.join_next().await.is_some() {}
                port_state.close().await;
            });
            let is_answered = tokio::select! {
                () = &mut answered => true,
                () = stopping.reached(Level::Stop) => false,
            };
            draining.raise(if is_answered {
                Level::Drain
            } else {
                Level::Stop
            });
            tokio::select! {
                _ = &mut verifying => {}
                () = stopping.reached(Level::Stop) => {
                    draining.raise(Level::Stop);
                    let _ = verifying.await;
                }
            }
            if !is_answered {
                // All requests have their answers now; clients that do not read them are not waited for.
                let _ = tokio::time::timeout(LAST_ANSWERS, answered).await;
            }
            // An error only means that there is no listener.
            let _ = ended.send(true);
        };
        tokio::join!(conversing, on_tcp, on_http, on_console);
        Ok(())
    }
}

/// Accepts connections; pending for ever if there is no listener.
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
                    run_conversation(handle, &name, reader, writer, shutdown).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Runs one conversation until it ends.
async fn run_conversation(
    handle: Handle,
    name: &str,
    reader: impl AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin + Send,
    shutdown: Shutdown,
) {
    let peer = Peer::new(LOCAL, name);
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

async fn bind_unix(path: &Path) -> Result<(UnixListener, socket::SocketFile), VerifierServeError> {
    match socket::bind_unless_taken(path).await {
        Ok(bound) => bound.ok_or_else(|| VerifierServeError::Taken(path.to_owned())),
        Err(error) => Err(failed(path, error)),
    }
}
