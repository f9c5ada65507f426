//! The console: a page in the browser that shows a mill, and on which operators act.
//!
//! It answers pages of its own only (`guard`). A visitor logs in with a token for a session with a role: viewers look,
//! operators act, and each action is in the audit log. On loopback without a file of tokens everybody looks, and an operator
//! of this run logs in with an address that the program prints. Beyond loopback TLS and a file of tokens are required. All
//! pages share one look at the mill, which nobody takes while nobody watches.

mod assets;
mod engines;
mod guard;
mod limiter;
mod login;
mod operate;
mod overview;
mod rates;
mod sessions;
mod visitors;
mod watched;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Extension, Path, State};
use axum::http::{StatusCode, Uri};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;

use crate::access::AccessError;
use crate::body_timeout::Pressure;
use crate::connections::{AdmittedCall, ConnectionLimits};
use crate::operations::{OperationError, Operations};
use crate::port::{Port, PortError, TcpOptions};
use crate::serve::{self, HttpVersions, Terms};
pub(crate) use assets::asset;
use engines::EnginesLook;
use guard::{Door, MaybeVisitor};
use limiter::LoginLimiter;
use overview::{MillLook, NO_ANSWER};
use sessions::Visitor;
use visitors::Visitors;
pub(crate) use watched::{Look, Watched, answered};

/// Longest life of a connection; the page then connects anew and gets a whole overview.
const LIFETIME: Duration = Duration::from_secs(3600);
/// Most bytes of a request's body.
const BODY_BYTES_MAX: usize = 16 << 10;

/// The reason that the console cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConsoleError {
    /// The port cannot be offered.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The file of tokens cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// No token can be made for this run.
    #[error("{0}")]
    Random(String),
}

/// The console, on a port that is listened on.
pub struct Console {
    port: Port,
    limits: ConnectionLimits,
    door: Door,
}

#[derive(Clone)]
struct Shared {
    operations: Operations,
    watched: Arc<Watched>,
    /// The engines that the mill uses, which are asked while pages watch this.
    engines: Arc<Watched>,
    door: Arc<Door>,
    limiter: Arc<LoginLimiter>,
}

// === impl Console ===

impl Console {
    /// Listens, if that is safe: beyond loopback only with TLS and tokens.
    ///
    /// # Errors
    /// The port or the file of tokens cannot be used.
    pub async fn open(options: &TcpOptions) -> Result<Self, ConsoleError> {
        let visitors = match &options.tokens {
            Some(path) => Visitors::of_file(path).await?,
            None => Visitors::of_this_run().map_err(ConsoleError::Random)?,
        };
        let has_tokens = options.tokens.is_some();
        let (versions, tls) = (HttpVersions::Http1, options.tls.as_ref());
        let port = Port::open(options.address, versions, tls, has_tokens).await?;
        let (is_loopback, number) = (port.address.ip().is_loopback(), port.address.port());
        Ok(Self {
            door: Door::new(visitors, tls.is_some(), is_loopback, number),
            limits: options.connections,
            port,
        })
    }

    /// Its URL, such as `http://127.0.0.1:9467/`.
    pub fn url(&self) -> String {
        format!("{}/", self.port.url())
    }

    /// URL with which an operator logs in for as long as this process runs. The token in it is a secret; browsers do not send
    /// it as part of the address. None if there is a file of tokens.
    pub fn login_url(&self) -> Option<String> {
        let token = self.door.visitors.token_of_this_run()?;
        Some(format!("{}#/login/{token}", self.url()))
    }

    /// Serves the console until the future is dropped.
    pub async fn serve(self, operations: Operations) {
        let (app, looking) = mill(operations, Arc::new(self.door));
        let (listener, terms) = self
            .port
            .into_listener(LIFETIME, self.limits, Pressure::default());
        let serving = serve::serve(listener, terms, serve::answers(app), std::future::pending());
        tokio::join!(serving, looking);
    }
}

/// Serves a console on which nobody acts, on a loopback address, until the future is dropped.
pub async fn serve_read_only(listener: TcpListener, operations: Operations) {
    let (app, looking) = mill(operations, Arc::new(Door::of_onlookers(&listener)));
    tokio::join!(serve_plainly(listener, app), looking);
}

/// The routes of a mill's console behind a door, and the looks at the mill that they show.
fn mill(operations: Operations, door: Arc<Door>) -> (Router, impl Future<Output = ()>) {
    let (watched, engines) = (Watched::new(), Watched::new());
    let looking = {
        let (watched, look) = (watched.clone(), MillLook::new(operations.clone()));
        let (engines, engines_look) = (engines.clone(), EnginesLook::new(&operations));
        async move {
            tokio::join!(watched.keep(look), engines.keep(engines_look));
        }
    };
    let shared = Shared {
        operations,
        watched,
        engines,
        door,
        limiter: Arc::default(),
    };
    (router(shared), looking)
}

/// Serves routes to pages of their own, on a loopback address where everybody looks, until the future is dropped.
pub(crate) async fn serve_pages(listener: TcpListener, app: Router) {
    let door = Arc::new(Door::of_onlookers(&listener));
    let app = app.layer(middleware::from_fn_with_state(door, guard::guard));
    serve_plainly(listener, app).await;
}

async fn serve_plainly(listener: TcpListener, app: Router) {
    let terms = Terms::plain(HttpVersions::Http1, LIFETIME);
    serve::serve(listener, terms, serve::answers(app), std::future::pending()).await;
}

fn router(shared: Shared) -> Router {
    Router::new()
        .route("/api/action", post(operate::act))
        .route("/api/audit", get(operate::audit))
        .route("/api/block/{block}", get(block))
        .route("/api/bundle", post(operate::bundle))
        .route("/api/dead", get(operate::dead_letters))
        .route("/api/engines", get(engine_events))
        .route("/api/engines/{place}/timeline.svg", get(engines::drawing))
        .route("/api/events", get(events))
        .route("/api/login", post(login::log_in))
        .route("/api/logout", post(login::log_out))
        .route("/api/session", get(login::session))
        .fallback(page)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn_with_state(
            shared.door.clone(),
            guard::guard,
        ))
        .with_state(shared)
}

async fn page(uri: Uri) -> Response {
    assets::asset(uri.path())
}

async fn block(State(shared): State<Shared>, Path(block): Path<u64>) -> Response {
    // A question to a leader that does not answer stays under way, so none is asked while it is known that none does.
    if let Some(why) = shared.watched.lost() {
        return refused(&OperationError::Unavailable(why.to_string()));
    }
    let late = || OperationError::Unavailable(NO_ANSWER.to_owned());
    match answered(shared.operations.block(block), late).await {
        Ok(status) => axum::Json(status).into_response(),
        Err(error) => refused(&error),
    }
}

fn refused(error: &OperationError) -> Response {
    let status = match error {
        OperationError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    };
    (status, format!("{error}\n")).into_response()
}

/// The overview, whole, at once and after every change, until the visitor's session ends.
async fn events(
    State(shared): State<Shared>,
    Extension(MaybeVisitor(visitor)): Extension<MaybeVisitor>,
    admitted: Option<Extension<AdmittedCall>>,
) -> impl IntoResponse {
    watch(&shared.watched, shared.door, visitor, admitted)
}

/// The engines that the mill uses, in the same way.
async fn engine_events(
    State(shared): State<Shared>,
    Extension(MaybeVisitor(visitor)): Extension<MaybeVisitor>,
    admitted: Option<Extension<AdmittedCall>>,
) -> impl IntoResponse {
    watch(&shared.engines, shared.door, visitor, admitted)
}

fn watch(
    watched: &Watched,
    door: Arc<Door>,
    visitor: Option<Visitor>,
    admitted: Option<Extension<AdmittedCall>>,
) -> impl IntoResponse + use<> {
    let session = visitor.map(|visitor| visitor.session);
    watched.events(move || {
        // While the stream goes on, its connection is not idle.
        let _ = &admitted;
        // An open page uses its session; the stream ends with it.
        session.is_none_or(|session| door.sessions.touch(session).is_some())
    })
}
