//! The engine's front end as a service.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proofmill_engine::{Error as EngineError, Handle, Service};
use proofmill_shutdown::{Level, Shutdown};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tonic::server::NamedService;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Identity, ServerTlsConfig};
use tonic_health::ServingStatus;

use super::access::{AccessError, Gate, Tokens, read_secret};
use super::calls::{Bounds, WITNESS_MESSAGE_MAX};
use super::history::History;
use super::http;
use super::listen::{Listener, connections};
use super::proto::DESCRIPTORS;
use super::proto::proving_engine_server::ProvingEngineServer;
use super::service::EngineService;
use crate::socket;

/// The engine's socket in its state directory.
pub const ENGINE_SOCKET: &str = "engine.sock";

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a connection may be still before it is asked whether it is there, and then to answer.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How long callers may take to read their last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// Calls on one connection at once.
const STREAMS: u32 = 256;
/// Bytes of a call's headers.
const HEADERS_MAX: u32 = 16 << 10;

type Api = ProvingEngineServer<EngineService>;

/// Where an engine is offered.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// A Unix socket that only this user can connect to.
    pub socket: Option<PathBuf>,
    /// A TCP port.
    pub tcp: Option<TcpOptions>,
    /// `/metrics` and `/healthz` over HTTP; on a loopback address `/status` and `/timeline` too.
    pub http: Option<SocketAddr>,
}

/// A TCP port to offer an engine on. Beyond loopback it must have TLS and tokens.
#[derive(Clone, Debug)]
pub struct TcpOptions {
    /// The address; port 0 is any.
    pub address: SocketAddr,
    /// TLS, or none.
    pub tls: Option<TlsFiles>,
    /// A file of tokens: see [`Tokens::read`].
    pub tokens: Option<PathBuf>,
}

/// What a server shows for itself, as PEM files.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, and those that lead to its authority.
    pub certificate: PathBuf,
    /// Its key; not for everybody to read.
    pub key: PathBuf,
}

/// The front end cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Anybody could listen, or call.
    #[error(
        "{0} can be reached from other machines: give it a certificate, its key and a file of tokens, \
         or a loopback address"
    )]
    Exposed(SocketAddr),
    /// Another engine answers there.
    #[error("an engine listens on {} already: end it, or use another socket", .0.display())]
    Taken(PathBuf),
    /// A place cannot be listened on.
    #[error("cannot listen on {place}: {source}")]
    Listen {
        /// Where.
        place: String,
        /// Why.
        source: std::io::Error,
    },
    /// A certificate, a key or a file of tokens.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The certificate and its key cannot be used.
    #[error("cannot use the certificate {}: {why}", certificate.display())]
    Tls {
        /// The certificate.
        certificate: PathBuf,
        /// Why.
        why: String,
    },
    /// Reflection, or the server itself.
    #[error("cannot serve: {0}")]
    Serve(String),
    /// The engine has failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// An engine's front end whose sockets are bound; [`run`](Self::run) answers.
pub struct Server {
    handle: Handle,
    history: Arc<History>,
    unix: Option<(UnixListener, socket::Bound)>,
    tcp: Option<(TcpListener, Option<ServerTlsConfig>, Gate)>,
    http: Option<TcpListener>,
}

// === impl Server ===

impl Server {
    /// Binds the sockets.
    ///
    /// # Errors
    ///
    /// See [`ServeError`].
    pub async fn bind(handle: Handle, options: &ServerOptions) -> Result<Self, ServeError> {
        let tcp = match &options.tcp {
            Some(tcp) => Some(bind_tcp(tcp).await?),
            None => None,
        };
        let http = match options.http {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let unix = match &options.socket {
            Some(path) => Some(bind_unix(path).await?),
            None => None,
        };
        Ok(Self {
            handle,
            history: History::new(),
            unix,
            tcp,
            http,
        })
    }

    /// The TCP port's address.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref()?.0.local_addr().ok()
    }

    /// The HTTP port's address.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref()?.local_addr().ok()
    }

    /// Runs `engine` and answers for it, until it has ended as `shutdown` says and everybody who
    /// waits has had an answer.
    ///
    /// # Errors
    ///
    /// The engine has failed, or a listener has.
    pub async fn run(self, engine: Service, shutdown: Shutdown) -> Result<(), ServeError> {
        let Self {
            handle,
            history,
            unix,
            tcp,
            http,
        } = self;
        let (ended, end) = watch::channel(false);
        let (health, health_service) = tonic_health::server::health_reporter();
        let serving = |up| match up {
            true => ServingStatus::Serving,
            false => ServingStatus::NotServing,
        };
        health.set_service_status(Api::NAME, serving(true)).await;
        let service = |private| EngineService {
            handle: handle.clone(),
            history: history.clone(),
            private,
        };
        // Kept until the last answer is out.
        let (unix, _bound) = unix.unzip();
        let unix = async {
            let Some(listener) = unix else { return Ok(()) };
            let routes = routes(service(true), Gate(None), health_service.clone())?;
            serve(listener, None, routes, end.clone()).await
        };
        let tcp = async {
            let Some((listener, tls, gate)) = tcp else {
                return Ok(());
            };
            let routes = routes(service(false), gate, health_service.clone())?;
            serve(listener, tls, routes, end.clone()).await
        };
        let http = async {
            let Some(listener) = http else { return Ok(()) };
            let here = listener.local_addr().is_ok_and(|it| it.ip().is_loopback());
            let router = http::router(handle.clone(), history.clone(), here);
            let mut end = end.clone();
            let served = axum::serve(listener, router);
            tokio::select! {
                served = served => served.map_err(|error| ServeError::Serve(error.to_string())),
                // An error means that nobody is left to end it.
                _ = end.wait_for(|ended| *ended) => Ok(()),
            }
        };
        let events = handle.events();
        let recording = history.clone();
        let recorder = tokio::spawn(async move { recording.record(events).await });
        let mut draining = shutdown.clone();
        let engine = async {
            let drain = async {
                draining.reached(Level::Drain).await;
                health.set_service_status("", serving(false)).await;
                health.set_service_status(Api::NAME, serving(false)).await;
                std::future::pending::<()>().await;
            };
            let outcome = tokio::select! {
                outcome = engine.run(shutdown) => outcome,
                () = drain => Ok(()),
            };
            history.close();
            // Nobody may be listening.
            let _ = ended.send(true);
            // What it ended with waits until the callers have been answered.
            Ok(outcome)
        };
        let served = tokio::try_join!(engine, unix, tcp, http);
        recorder.abort();
        let (outcome, ..) = served?;
        Ok(outcome?)
    }
}

/// What a TCP port on loopback answers, without the port: what is called in the same process.
///
/// # Errors
///
/// [`ServeError::Serve`].
pub fn in_process(
    handle: Handle,
) -> Result<
    impl tower_service::Service<
        hyper::Request<tonic::body::Body>,
        Response = hyper::Response<tonic::body::Body>,
        Error = std::convert::Infallible,
    > + Clone,
    ServeError,
> {
    let service = EngineService {
        handle,
        history: History::new(),
        private: false,
    };
    let (_, health) = tonic_health::server::health_reporter();
    let routes = routes(service, Gate(None), health)?.prepare();
    Ok(tower_layer::Layer::layer(&Bounds::default(), routes))
}

/// The services on one listener: the engine, health and reflection.
fn routes(
    service: EngineService,
    gate: Gate,
    health: impl tonic::codegen::Service<
        hyper::Request<tonic::body::Body>,
        Response = hyper::Response<tonic::body::Body>,
        Error = std::convert::Infallible,
        Future: Send,
    > + NamedService
    + Clone
    + Send
    + Sync
    + 'static,
) -> Result<tonic::service::Routes, ServeError> {
    let api = Api::new(service)
        .max_decoding_message_size(WITNESS_MESSAGE_MAX)
        .max_encoding_message_size(usize::MAX);
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(|error| ServeError::Serve(error.to_string()))?;
    let routes = tonic::service::Routes::new(InterceptedService::new(api, gate.clone()))
        .add_service(health)
        .add_service(InterceptedService::new(reflection, gate));
    Ok(routes)
}

/// Answers on one listener until `end`, and then until the last answers have left, or nobody reads
/// them.
async fn serve<L: Listener>(
    listener: L,
    tls: Option<ServerTlsConfig>,
    routes: tonic::service::Routes,
    mut end: watch::Receiver<bool>,
) -> Result<(), ServeError> {
    let failed = |error: tonic::transport::Error| ServeError::Serve(error.to_string());
    let mut server = tonic::transport::Server::builder()
        .max_concurrent_streams(STREAMS)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .http2_max_header_list_size(HEADERS_MAX);
    if let Some(tls) = tls {
        server = server.tls_config(tls).map_err(failed)?;
    }
    let mut late = end.clone();
    let serving = server
        .layer(Bounds::default())
        .add_routes(routes)
        .serve_with_incoming_shutdown(connections(listener), async move {
            // An error means that nobody is left to end it.
            let _ = end.wait_for(|ended| *ended).await;
        });
    let patience = async {
        let _ = late.wait_for(|ended| *ended).await;
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    tokio::select! {
        served = serving => served.map_err(failed),
        () = patience => Ok(()),
    }
}

async fn bind_unix(path: &Path) -> Result<(UnixListener, socket::Bound), ServeError> {
    let failed = |source| ServeError::Listen {
        place: path.display().to_string(),
        source,
    };
    if socket::connect(path).await.map_err(failed)?.is_some() {
        return Err(ServeError::Taken(path.to_owned()));
    }
    socket::bind(path).map_err(failed)
}

async fn bind_tcp(
    options: &TcpOptions,
) -> Result<(TcpListener, Option<ServerTlsConfig>, Gate), ServeError> {
    let exposed = !options.address.ip().is_loopback();
    if exposed && (options.tls.is_none() || options.tokens.is_none()) {
        return Err(ServeError::Exposed(options.address));
    }
    let tokens = options.tokens.as_deref().map(Tokens::read).transpose()?;
    let tls = options.tls.as_ref().map(tls).transpose()?;
    Ok((listen(options.address).await?, tls, Gate(tokens)))
}

fn tls(files: &TlsFiles) -> Result<ServerTlsConfig, ServeError> {
    let key = read_secret(&files.key)?;
    let certificate = std::fs::read(&files.certificate).map_err(|source| AccessError::File {
        path: files.certificate.clone(),
        source,
    })?;
    let config = ServerTlsConfig::new()
        .identity(Identity::from_pem(certificate, key.as_bytes()))
        .timeout(HANDSHAKE);
    // What is wrong with the two shows here, before anything is bound.
    let tried = tonic::transport::Server::builder().tls_config(config.clone());
    match tried {
        Ok(_) => Ok(config),
        Err(error) => Err(ServeError::Tls {
            certificate: files.certificate.clone(),
            why: chain(&error),
        }),
    }
}

/// An error with all that caused it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let told = error.to_string();
        // Some errors tell their cause themselves.
        if !text.ends_with(&told) {
            text.push_str(": ");
            text.push_str(&told);
        }
        cause = error.source();
    }
    text
}

async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let listening = TcpListener::bind(address).await;
    listening.map_err(|source| ServeError::Listen {
        place: address.to_string(),
        source,
    })
}
