//! The engine's front end as a service.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use futures_util::future::{Either, ready};
use hyper::Method;
use proofmill_engine::{Error as EngineError, Handle, Service};
use proofmill_shutdown::{Level, Shutdown};
use proofmill_telemetry::FrontPage;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tonic::body::Body;
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tower_layer::Layer;
use tower_service::Service as _;

use super::access::{Gate, Tokens};
use super::console;
use super::history::History;
use super::http;
use super::proto::DESCRIPTORS;
use super::proto::proving_engine_server::ProvingEngineServer;
use super::service::EngineService;
use crate::access::AccessError;
use crate::body_timeout::Pressure;
use crate::connections::{Address, ConnectionLimits};
use crate::grpc::{Bounds, MESSAGE_MAX, MessageLimit, reflection};
use crate::page::front;
use crate::port::{Port, PortError, TcpOptions, listen, listen_locally};
use crate::serve::{self, HttpVersions, Terms};
use crate::socket;

/// Name of the engine's socket in its state directory.
pub const ENGINE_SOCKET: &str = "engine.sock";

/// Longest life of an HTTP connection; a scraper then reconnects.
const HTTP_LIFETIME: Duration = Duration::from_secs(600);

/// Most bytes of a message that may hold witnesses.
pub(super) const WITNESS_MESSAGE_MAX: usize = 4 << 20;
/// Memory for the large messages that one listener reads at a time, in KiB.
const LARGE_MESSAGES_KIB: usize = 8 * WITNESS_MESSAGE_MAX / 1024;

type Api = ProvingEngineServer<EngineService>;

const FRONT: FrontPage<'_> = FrontPage {
    title: "proofmill engine",
    about: "A proving engine takes jobs here over gRPC, which a browser does not speak.",
    links: &[],
    calls: &[
        (
            "proofmill.engine.v1.ProvingEngine",
            "the service; the server has reflection, and grpc.health.v1",
        ),
        (
            "proofmill engine status --engine URL",
            "the same from a terminal; with --ca and --token where they are needed",
        ),
    ],
    document: "engine.md",
};

/// The addresses at which an engine is offered.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// A Unix socket that only this user can connect to.
    pub socket: Option<PathBuf>,
    /// A TCP port.
    pub tcp: Option<TcpOptions>,
    /// The HTTP port of `/metrics` and `/healthz`; on a loopback address also of `/status` and `/timeline`.
    pub http: Option<SocketAddr>,
    /// The loopback address of the console, a page in the browser.
    pub console: Option<SocketAddr>,
}

/// The reason that the front end cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A TCP port cannot be offered.
    #[error(transparent)]
    Port(#[from] PortError),
    /// Another engine listens on the socket.
    #[error("an engine listens on {} already: end it, or use another socket", .0.display())]
    Taken(PathBuf),
    /// The socket cannot be listened on.
    #[error("cannot listen on {}", path.display())]
    Listen {
        /// The path of the socket.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A file of tokens cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Reflection cannot be set up.
    #[error("cannot serve: {0}")]
    Serve(String),
    /// The engine has failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// An engine's front end with bound sockets. [`run`](Self::run) serves it.
pub struct Server {
    handle: Handle,
    history: Arc<History>,
    unix: Option<(UnixListener, socket::SocketFile)>,
    tcp: Option<(Port, Gate, ConnectionLimits)>,
    http: Option<TcpListener>,
    console: Option<TcpListener>,
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
        let console = match options.console {
            Some(address) => Some(listen_locally(address).await?),
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
            console,
        })
    }

    /// The address of the TCP port.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        Some(self.tcp.as_ref()?.0.address)
    }

    /// The address of the HTTP port.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref()?.local_addr().ok()
    }

    /// The address of the console.
    pub fn console_address(&self) -> Option<SocketAddr> {
        self.console.as_ref()?.local_addr().ok()
    }

    /// Runs `engine` and serves its callers until it has ended by `shutdown` and every waiting caller has
    /// an answer.
    ///
    /// # Errors
    ///
    /// The engine or a listener has failed.
    pub async fn run(self, engine: Service, shutdown: Shutdown) -> Result<(), ServeError> {
        let Self {
            handle,
            history,
            unix,
            tcp,
            http,
            console,
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
        // Kept until the last answer is sent.
        let (unix, _bound) = unix.unzip();
        let unix = async {
            let Some(listener) = unix else { return Ok(()) };
            let routes = routes(service(true), health_service.clone())?;
            let terms = Terms::local(HttpVersions::Http2, Duration::MAX);
            serve(listener, terms, Gate::Open, routes, end.clone()).await;
            Ok::<_, ServeError>(())
        };
        let tcp = async {
            let Some((port, gate, limits)) = tcp else {
                return Ok(());
            };
            let routes = routes(service(false), health_service.clone())?;
            let (listener, terms) = port.into_listener(Duration::MAX, limits, Pressure::default());
            serve(listener, terms, gate, routes, end.clone()).await;
            Ok(())
        };
        let http = async {
            let Some(listener) = http else { return Ok(()) };
            let address = listener.local_addr().ok();
            let router = http::router(handle.clone(), history.clone(), address);
            let terms = Terms::plain(HttpVersions::Http1, HTTP_LIFETIME);
            let answer = serve::answers(router);
            serve::serve(listener, terms, answer, reached(end.clone())).await;
            Ok(())
        };
        let console = async {
            if let Some(listener) = console {
                let end = reached(end.clone());
                console::serve(listener, handle.clone(), history.clone(), end).await;
            }
            Ok(())
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
            // An error only means that there is no listener.
            let _ = ended.send(true);
            // The engine's outcome is returned after the callers have been answered.
            Ok(outcome)
        };
        let served = tokio::try_join!(engine, unix, tcp, http, console);
        recorder.abort();
        let (outcome, ..) = served?;
        Ok(outcome?)
    }
}

/// The services of a loopback TCP port without the port, for calls within the process.
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
    let routes = routes(service, health)?.prepare();
    Ok(Gate::Open.layer(bounds(Pressure::default()).layer(routes)))
}

/// The bounds of one listener. Each listener has its own, so that a caller who exhausts one leaves the
/// others usable.
fn bounds(pressure: Pressure) -> Bounds {
    Bounds::new(
        message_limit,
        Arc::new(Semaphore::new(LARGE_MESSAGES_KIB)),
        pressure,
    )
}

/// Most bytes of a message of the call at `path`.
fn message_limit(path: &str) -> MessageLimit {
    match path.strip_prefix("/proofmill.engine.v1.ProvingEngine/") {
        Some("Submit" | "SubmitStream" | "Prove") => MessageLimit {
            bytes: WITNESS_MESSAGE_MAX,
            beyond: ", and SubmitStream larger witnesses",
        },
        _ => MessageLimit {
            bytes: MESSAGE_MAX,
            beyond: "",
        },
    }
}

/// The services on one listener: the engine, health and reflection.
fn routes(
    service: EngineService,
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
    let reflection =
        reflection(DESCRIPTORS).map_err(|error| ServeError::Serve(error.to_string()))?;
    let routes = tonic::service::Routes::new(api)
        .add_service(health)
        .add_service(reflection);
    Ok(routes)
}

/// Serves one listener until `end`, and then until the last answers have been sent or are no longer read.
async fn serve(
    listener: impl Listener<Addr: Address>,
    terms: Terms,
    gate: Gate,
    routes: tonic::service::Routes,
    end: watch::Receiver<bool>,
) {
    let services = bounds(terms.pressure.clone()).layer(routes.prepare());
    // A call is authorised before it takes a place.
    let services = gate.layer(services);
    let answer = move |request: hyper::Request<hyper::body::Incoming>| {
        // A browser gets a page about the server. It needs no token, and shows nothing about jobs.
        if request.method() == Method::GET && request.uri().path() == "/" {
            let page = front(&FRONT).map(Body::new);
            return Either::Left(ready(Ok(page)));
        }
        // Routes are always ready.
        Either::Right(services.clone().call(request.map(Body::new)))
    };
    serve::serve(listener, terms, answer, reached(end)).await;
}

/// Waits until the engine has ended.
async fn reached(mut end: watch::Receiver<bool>) {
    // An error means that the sender is gone, which ends the service too.
    let _ = end.wait_for(|ended| *ended).await;
}

async fn bind_unix(path: &Path) -> Result<(UnixListener, socket::SocketFile), ServeError> {
    match socket::bind_unless_taken(path).await {
        Ok(bound) => bound.ok_or_else(|| ServeError::Taken(path.to_owned())),
        Err(source) => Err(ServeError::Listen {
            path: path.to_owned(),
            source,
        }),
    }
}

async fn bind_tcp(options: &TcpOptions) -> Result<(Port, Gate, ConnectionLimits), ServeError> {
    let TcpOptions {
        address,
        tls,
        tokens,
        connections,
    } = options;
    // Version 1 serves only the page for browsers.
    let port = Port::open(*address, HttpVersions::Both, tls.as_ref(), tokens.is_some()).await?;
    let gate = match tokens {
        Some(path) => Gate::Tokens(Tokens::read(path).await?),
        None => Gate::Local,
    };
    Ok((port, gate, *connections))
}
