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
use super::history::History;
use super::http;
use super::proto::DESCRIPTORS;
use super::proto::proving_engine_server::ProvingEngineServer;
use super::service::EngineService;
use crate::access::AccessError;
use crate::connections::{Address, ConnectionLimits};
use crate::grpc::{Bounds, MESSAGE_MAX, MessageLimit, reflection};
use crate::pace::Pressure;
use crate::page::front;
use crate::port::{Port, PortError, TcpOptions, listen};
use crate::serve::{self, Terms, Versions};
use crate::socket;

/// The engine's socket in its state directory.
pub const ENGINE_SOCKET: &str = "engine.sock";

/// A connection over HTTP is closed after so long: whoever scrapes opens another.
const HTTP_LIFETIME: Duration = Duration::from_secs(600);

/// Bytes of a message that may hold witnesses.
pub(super) const WITNESS_MESSAGE_MAX: usize = 4 << 20;
/// KiB of large messages that are being read at once on one listener.
const ROOM_KIB: usize = 8 * WITNESS_MESSAGE_MAX / 1024;

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

/// The front end cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A TCP port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// Another engine answers there.
    #[error("an engine listens on {} already: end it, or use another socket", .0.display())]
    Taken(PathBuf),
    /// The socket cannot be listened on.
    #[error("cannot listen on {}", path.display())]
    Listen {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file of tokens.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Reflection.
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
    tcp: Option<(Port, Gate, ConnectionLimits)>,
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
        Some(self.tcp.as_ref()?.0.address)
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
            let routes = routes(service(true), health_service.clone())?;
            let terms = Terms::local(Versions::Two, Duration::MAX);
            serve(listener, terms, Gate::Open, routes, end.clone()).await;
            Ok::<_, ServeError>(())
        };
        let tcp = async {
            let Some((port, gate, limits)) = tcp else {
                return Ok(());
            };
            let routes = routes(service(false), health_service.clone())?;
            let (listener, terms) = port.with_lifetime(Duration::MAX, limits, Pressure::default());
            serve(listener, terms, gate, routes, end.clone()).await;
            Ok(())
        };
        let http = async {
            let Some(listener) = http else { return Ok(()) };
            let address = listener.local_addr().ok();
            let router = http::router(handle.clone(), history.clone(), address);
            let terms = Terms::plain(Versions::One, HTTP_LIFETIME);
            let answer = serve::answers(router);
            serve::serve(listener, terms, answer, reached(end.clone())).await;
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
    let routes = routes(service, health)?.prepare();
    Ok(Gate::Open.layer(bounds(Pressure::default()).layer(routes)))
}

/// The bounds of one listener; each has its own, so that who fills one leaves the other usable.
fn bounds(pressure: Pressure) -> Bounds {
    Bounds::new(limit, Arc::new(Semaphore::new(ROOM_KIB)), pressure)
}

/// How long the messages of a call may be.
fn limit(path: &str) -> MessageLimit {
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

/// Answers on one listener until `end`, and then until the last answers have left, or nobody reads
/// them.
async fn serve(
    listener: impl Listener<Addr: Address>,
    terms: Terms,
    gate: Gate,
    routes: tonic::service::Routes,
    end: watch::Receiver<bool>,
) {
    let services = bounds(terms.pressure.clone()).layer(routes.prepare());
    // Who may call is known before a call takes a place.
    let services = gate.layer(services);
    let answer = move |request: hyper::Request<hyper::body::Incoming>| {
        // Whoever looks with a browser is told what this is; it needs no token, and tells of no job.
        if request.method() == Method::GET && request.uri().path() == "/" {
            let page = front(&FRONT).map(Body::new);
            return Either::Left(ready(Ok(page)));
        }
        // Routes are always ready.
        Either::Right(services.clone().call(request.map(Body::new)))
    };
    serve::serve(listener, terms, answer, reached(end)).await;
}

/// When it has ended.
async fn reached(mut end: watch::Receiver<bool>) {
    // An error means that nobody is left to end it.
    let _ = end.wait_for(|ended| *ended).await;
}

async fn bind_unix(path: &Path) -> Result<(UnixListener, socket::Bound), ServeError> {
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
    // Of version 1 there is only the page that says what this is.
    let port = Port::open(*address, Versions::Both, tls.as_ref(), tokens.is_some()).await?;
    let gate = match tokens {
        Some(path) => Gate::Tokens(Tokens::read(path).await?),
        None => Gate::Local,
    };
    Ok((port, gate, *connections))
}
