//! The scaler's port.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware;
use axum::routing::get;
use proofmill_telemetry::FrontPage;
use tokio::sync::Semaphore;
use tonic::server::NamedService;
use tonic::service::Routes;

use super::pools::{PoolReader, ScaledMill};
use super::proto::DESCRIPTORS;
use super::proto::external_scaler_server::ExternalScalerServer;
use super::service::ScalerCalls;
use crate::body_timeout::Pressure;
use crate::connections::ConnectionLimits;
use crate::grpc::{Bounds, Calls, MESSAGE_MAX, MessageLimit};
use crate::page::{PageGate, front};
use crate::port::{Port, PortError, TlsFiles};
use crate::serve::{self, HttpVersions};

type Api = ExternalScalerServer<ScalerCalls>;

/// Memory for messages that are being read, in KiB.
const ROOM_KIB: usize = 4 << 10;

const KNOWN: &str = "there is the gRPC service externalscaler.ExternalScaler";

const FRONT: FrontPage<'_> = FrontPage {
    title: "proofmill scale: an external scaler for KEDA",
    about: "Says how many workers each pool of a workflow should have.",
    links: &[],
    calls: &[
        (
            "externalscaler.ExternalScaler",
            "KEDA's protocol over gRPC; the server has reflection",
        ),
        ("proofmill scale --dry-run", "the same numbers, and why"),
    ],
    document: "scaling.md",
};

/// Options of a scaler. Beyond loopback TLS and certificates of clients are required.
#[derive(Clone, Debug)]
pub struct ScalerOptions {
    /// The address to listen on; port 0 for any free port.
    pub address: SocketAddr,
    /// The certificate and key for TLS; none without TLS.
    pub tls: Option<TlsFiles>,
    /// A file of CA certificates (PEM): callers must show a certificate that one of them has signed.
    pub client_ca: Option<PathBuf>,
    /// Limits on connections, and the time for which an idle one is kept.
    pub connections: ConnectionLimits,
}

/// A scaler that listens.
pub struct Scaler {
    port: Port,
    connections: ConnectionLimits,
}

// === impl Scaler ===

impl Scaler {
    /// Listens, if that is safe.
    ///
    /// # Errors
    /// [`PortError`], which says what to change.
    pub async fn open(options: &ScalerOptions) -> Result<Self, PortError> {
        let ScalerOptions {
            address,
            tls,
            client_ca,
            connections,
        } = options;
        let (tls, client_ca) = (tls.as_ref(), client_ca.as_deref());
        Ok(Self {
            port: Port::open_for_certified(*address, HttpVersions::Both, tls, client_ca).await?,
            connections: *connections,
        })
    }

    /// The address that is listened on.
    pub fn address(&self) -> SocketAddr {
        self.port.address
    }

    /// The URL of the scaler, such as `http://127.0.0.1:9466`.
    pub fn url(&self) -> String {
        self.port.url()
    }

    /// Answers calls about the pools of a mill until `stop`.
    pub async fn serve(self, mill: ScaledMill, stop: impl Future<Output = ()>) {
        let pressure = Pressure::default();
        let api = Api::new(ScalerCalls::new(PoolReader::new(mill)))
            .max_decoding_message_size(MESSAGE_MAX);
        let room = Arc::new(Semaphore::new(ROOM_KIB));
        let bounds = Bounds::new(message_limit, room, pressure.clone());
        let calls = Calls::new(Routes::new(api), Api::NAME, DESCRIPTORS, &bounds, KNOWN).await;
        let answering = calls.clone();
        let gate = PageGate::for_port(Some(self.port.address));
        let router = Router::new()
            .route("/", get(async || front(&FRONT)))
            .fallback(move |request: Request| answering.clone().answer(request))
            .layer(middleware::from_fn_with_state(gate, PageGate::pass));
        // Streams last as long as their clients want.
        let lifetime = Duration::MAX;
        let (listener, terms) = self
            .port
            .into_listener(lifetime, self.connections, pressure);
        let stop = async {
            stop.await;
            calls.report_stopping().await;
        };
        serve::serve(listener, terms, serve::answers(router), stop).await;
    }
}

fn message_limit(_: &str) -> MessageLimit {
    MessageLimit {
        bytes: MESSAGE_MAX,
        beyond: "",
    }
}
