//! An engine with its front end, and clients of it.

use std::path::PathBuf;

use proofmill_api::ConnectionLimits;
use proofmill_api::engine::proto::partition::Input;
use proofmill_api::engine::proto::{self, SubmitRequest};
use proofmill_api::engine::{
    Address, Client, ClientError, Credentials, ServeError, Server, ServerOptions, TcpOptions,
};
use proofmill_engine::{AnyProof, Handle, Options, Service};
use proofmill_shutdown::{Level, Trigger, channel};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tonic::Code;

use crate::engines::{BN254, Chain, options};

/// An engine with [`BN254`], offered on a Unix socket, a TCP port and over HTTP.
pub(crate) struct Site {
    pub(crate) folder: TempDir,
    pub(crate) handle: Handle,
    pub(crate) tcp: Option<std::net::SocketAddr>,
    pub(crate) http: Option<std::net::SocketAddr>,
    pub(crate) console: Option<std::net::SocketAddr>,
    trigger: Trigger,
    task: JoinHandle<Result<(), ServeError>>,
}

/// The ports at which an engine is offered beside its socket.
#[derive(Default)]
pub(crate) struct Offer {
    pub(crate) tcp: Option<TcpOptions>,
    pub(crate) http: bool,
}

// === impl Offer ===

impl Offer {
    /// A TCP port beside the socket.
    pub(crate) fn tcp(tcp: TcpOptions) -> Self {
        Self {
            tcp: Some(tcp),
            http: false,
        }
    }

    /// A TCP port on loopback, without TLS and tokens.
    pub(crate) fn loopback() -> Self {
        Self::tcp(TcpOptions {
            address: "127.0.0.1:0".parse().unwrap(),
            tls: None,
            tokens: None,
            connections: ConnectionLimits::default(),
        })
    }

    /// The pages over HTTP, and the console.
    pub(crate) fn http() -> Self {
        Self {
            tcp: None,
            http: true,
        }
    }
}

// === impl Site ===

impl Site {
    pub(crate) async fn open() -> Self {
        Self::with(options(), Offer::default()).await
    }

    /// An engine with these options.
    pub(crate) async fn with(options: Options, offer: Offer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (service, handle) = Service::open(options).await.unwrap();
        let places = ServerOptions {
            socket: Some(folder.path().join("engine.sock")),
            tcp: offer.tcp,
            http: offer.http.then(|| "127.0.0.1:0".parse().unwrap()),
            console: offer.http.then(|| "127.0.0.1:0".parse().unwrap()),
        };
        let server = Server::bind(handle.clone(), &places).await.unwrap();
        let (tcp, http) = (server.tcp_address(), server.http_address());
        let console = server.console_address();
        let (trigger, shutdown) = channel();
        let task = tokio::spawn(server.run(service, shutdown));
        BN254.register(&handle).await;
        Self {
            folder,
            handle,
            tcp,
            http,
            console,
            trigger,
            task,
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    /// A client on the Unix socket.
    pub(crate) async fn client(&self) -> Client {
        Client::find(&self.socket()).await.unwrap().unwrap()
    }

    /// A client on the TCP port, without TLS.
    pub(crate) async fn over_tcp(&self, token: Option<PathBuf>) -> Client {
        let address = Address::Tcp(format!("http://{}", self.tcp.unwrap()).parse().unwrap());
        let credentials = Credentials {
            authority: None,
            token,
        };
        Client::connect(&address, &credentials).await.unwrap()
    }

    pub(crate) fn raise(&self, level: Level) {
        self.trigger.raise(level);
    }

    /// Drains the engine, and waits until it has ended.
    pub(crate) async fn stop(self) {
        self.trigger.raise(Level::Stop);
        self.task.await.unwrap().unwrap();
    }

    /// Stops the engine at once, and waits until it has ended.
    pub(crate) async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }

    /// Waits until the engine has ended.
    pub(crate) async fn ended(self) {
        self.task.await.unwrap().unwrap();
    }
}

/// A request for a proof of a witness.
pub(crate) fn request(id: &str, chain: Chain, seed: u64) -> SubmitRequest {
    SubmitRequest {
        request_id: id.to_owned(),
        partitions: vec![proto::Partition {
            circuit: chain.name(),
            input: Some(Input::Vector(chain.vector(seed))),
        }],
        ..SubmitRequest::default()
    }
}

/// The code and the text of a refusal.
#[track_caller]
pub(crate) fn refusal<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> (Code, String) {
    match answer {
        Err(ClientError::Refused { code, message, .. }) => (code, message),
        other => panic!("not refused: {other:?}"),
    }
}

/// Checks that a call is refused with this code and reason.
#[track_caller]
pub(crate) fn assert_refused<T: std::fmt::Debug>(
    answer: Result<T, ClientError>,
    expected: Code,
    why: &str,
) {
    let (code, text) = refusal(answer);
    assert_eq!(code, expected, "{text}");
    assert!(text.contains(why), "no {why:?} in {text:?}");
}

/// Checks the proof of a result as the engine's tests do.
pub(crate) fn check(chain: Chain, proof: &proto::Proof, seed: u64) {
    let made = proofmill_engine::PartitionProof {
        circuit: proof.circuit_id.parse().unwrap(),
        proof: AnyProof::decode(chain.curve, &proof.proof, &proof.public_inputs).unwrap(),
    };
    assert_eq!(proof.curve, chain.curve.name());
    chain.check(&made, seed);
}
