//! The TCP port: gRPC and HTTP, behind TLS and tokens where other machines reach it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proofmill_shutdown::Level;
use tokio::sync::watch;
use tonic::server::NamedService;
use tonic::service::Routes;

use super::calls::VerifierCalls;
use super::frame::MAX_FRAME_BYTES;
use super::port_state::{PortState, Rights};
use super::proto::DESCRIPTORS;
use super::proto::verifier_server::VerifierServer;
use super::routes::{KNOWN, router};
use super::server::{LOCAL, VerifierServeError};
use crate::access::{AccessError, Clients};
use crate::bodies::BodyMemory;
use crate::body_timeout::Pressure;
use crate::connections::ConnectionLimits;
use crate::gate::Gate;
use crate::grpc::{Bounds, Calls, MESSAGE_MAX, MessageLimit};
use crate::port::{Port, TcpOptions};
use crate::serve::{self, HttpVersions};

type Api = VerifierServer<VerifierCalls>;

/// Most bytes of a message in a stream: the largest request, and its envelope.
const REQUEST_MESSAGE_MAX: usize = (4 << 20) + MESSAGE_MAX;
/// Number of requests of the largest size that fit into memory at a time.
const BODIES_AT_ONCE: usize = 16;
/// Longest wait of a request for memory.
const MEMORY_WAIT_MAX: Duration = Duration::from_secs(30);

/// A verifier's TCP port that is listened on.
pub(super) struct Tcp {
    port: Port,
    gate: Gate<Rights>,
    connections: ConnectionLimits,
}

// === impl Tcp ===

impl Tcp {
    pub(super) async fn bind(options: &TcpOptions) -> Result<Self, VerifierServeError> {
        let TcpOptions {
            address,
            tls,
            tokens,
            connections,
        } = options;
        let port = Port::open(*address, HttpVersions::Both, tls.as_ref(), tokens.is_some()).await?;
        let gate = match tokens {
            Some(path) => Gate::with_tokens(read_tokens(path).await?, "--tokens"),
            None => Gate::local(),
        };
        Ok(Self {
            port,
            gate,
            connections: *connections,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.port.address
    }

    /// The URL of the port, such as `https://127.0.0.1:9471`.
    pub(super) fn url(&self) -> String {
        self.port.url()
    }

    /// Serves until `end`, which comes after all admitted calls have an answer.
    pub(super) async fn serve(self, port_state: Arc<PortState>, mut end: watch::Receiver<bool>) {
        let pressure = Pressure::default();
        let bodies = BodyMemory::new(
            MAX_FRAME_BYTES,
            BODIES_AT_ONCE,
            MEMORY_WAIT_MAX,
            pressure.clone(),
        );
        let api =
            Api::new(VerifierCalls(port_state.clone())).max_decoding_message_size(MAX_FRAME_BYTES);
        let bounds = Bounds::new(message_limit, bodies.room.clone(), pressure.clone());
        let calls = Calls::new(Routes::new(api), Api::NAME, DESCRIPTORS, &bounds, KNOWN).await;
        let mut draining = port_state.shutdown.clone();
        let router = router(port_state, Arc::new(bodies), calls.clone(), self.gate);
        // Streams last as long as their clients want.
        let lifetime = Duration::MAX;
        let (listener, terms) = self
            .port
            .into_listener(lifetime, self.connections, pressure);
        let stop = async {
            draining.reached(Level::Drain).await;
            calls.report_stopping().await;
            // An error means that the sender is gone, which ends the service too.
            let _ = end.wait_for(|ended| *ended).await;
        };
        serve::serve(listener, terms, serve::answers(router), stop).await;
    }
}

/// The clients in a file: a name and a token on each line.
async fn read_tokens(path: &Path) -> Result<Clients<Rights>, AccessError> {
    let clients = Clients::read(path, None, rights).await?;
    if clients.iter().any(|client| &*client.name == LOCAL) {
        return Err(AccessError::Content {
            path: path.to_owned(),
            why: format!("{LOCAL:?} is the client of the Unix socket: name the client otherwise"),
        });
    }
    Ok(clients)
}

fn rights(words: &[&str]) -> Result<Rights, String> {
    match words {
        [] => Ok(()),
        [word, ..] => Err(format!(
            "{word:?}: expected nothing after a client's name and its token"
        )),
    }
}

/// Most bytes of a message of the call at `path`.
fn message_limit(path: &str) -> MessageLimit {
    let bytes = match path.strip_prefix("/proofmill.verifier.v1.Verifier/") {
        Some("Verify") => REQUEST_MESSAGE_MAX,
        Some("AddKey") => MAX_FRAME_BYTES,
        _ => MESSAGE_MAX,
    };
    MessageLimit { bytes, beyond: "" }
}
