//! Attacks on the port by callers without a token, during which callers with a token must be served.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper_util::rt::{TokioExecutor, TokioIo};
use proofmill_api::engine::proto::StreamEventsRequest;
use proofmill_api::engine::{Address, Client, Credentials, TcpOptions};
use proofmill_api::{ConnectionLimits, TlsFiles};
use proofmill_nats_server::Authority;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::access::private_file;
use crate::engines::{BN254, Gate, options};
use crate::site::{Offer, Site, request};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A limit that is reached only if something is stuck.
const PATIENCE: Duration = Duration::from_secs(30);

/// An engine on TCP that requires a token, with TLS if there is an authority.
struct Guarded {
    site: Site,
    authority: Option<PathBuf>,
    token: PathBuf,
    _folder: TempDir,
}

impl Guarded {
    async fn open(has_tls: bool, connections: ConnectionLimits) -> Self {
        Self::with(has_tls, connections, options()).await
    }

    async fn with(
        has_tls: bool,
        connections: ConnectionLimits,
        options: proofmill_engine::Options,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "authority");
        let signed = authority.sign("engine", "localhost");
        let token = private_file(folder.path(), "tokens", &format!("rollup {TOKEN}\n"));
        let tls = TlsFiles {
            certificate: signed.certificate,
            key: signed.key,
        };
        let tcp = TcpOptions {
            address: "127.0.0.1:0".parse().unwrap(),
            tls: has_tls.then_some(tls),
            tokens: Some(token.clone()),
            connections,
        };
        Self {
            site: Site::with(options, Offer::tcp(tcp)).await,
            authority: has_tls.then_some(authority.certificate),
            token,
            _folder: folder,
        }
    }

    fn url(&self) -> String {
        let scheme = if self.authority.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://localhost:{}", self.site.tcp.unwrap().port())
    }

    /// A connection without a token.
    async fn channel(&self) -> Result<Channel, tonic::transport::Error> {
        let mut endpoint = Endpoint::from_shared(self.url()).unwrap();
        if let Some(authority) = &self.authority {
            let pem = std::fs::read(authority).unwrap();
            let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem));
            endpoint = endpoint.tls_config(tls).unwrap();
        }
        endpoint.connect().await
    }

    /// A client with a token.
    async fn client(&self) -> Client {
        let address = Address::Tcp(self.url().parse().unwrap());
        let credentials = Credentials {
            authority: self.authority.clone(),
            token: Some(self.token.clone()),
        };
        let connecting = Client::connect(&address, &credentials);
        let connected = tokio::time::timeout(PATIENCE, connecting).await;
        connected.expect("in time").unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_health_watches_without_a_token_lock_nobody_out() {
    let guarded = Guarded::open(true, ConnectionLimits::default()).await;
    // More calls than a listener allows at a time, on as few connections as possible.
    let mut watched = Vec::new();
    let mut codes = Vec::new();
    for _ in 0..5 {
        let mut health = HealthClient::new(guarded.channel().await.unwrap());
        for _ in 0..250 {
            match health.watch(HealthCheckRequest::default()).await {
                Ok(stream) => watched.push(stream),
                Err(status) => codes.push(status.code()),
            }
        }
    }
    let client = guarded.client().await;
    client.status().await.unwrap();
    client.prove(request("1", BN254, 7), None).await.unwrap();
    assert_eq!(watched.len(), 0);
    assert!(codes.iter().all(|code| *code == Code::Unauthenticated));

    // Health can be checked by all callers, and watched with a token.
    let mut health = HealthClient::new(guarded.channel().await.unwrap());
    health.check(HealthCheckRequest::default()).await.unwrap();
    let mut question = Request::new(HealthCheckRequest::default());
    let bearer: MetadataValue<_> = format!("Bearer {TOKEN}").parse().unwrap();
    question.metadata_mut().insert("authorization", bearer);
    let mut stream = health.watch(question).await.unwrap().into_inner();
    assert!(stream.message().await.unwrap().is_some());
    drop((stream, health));
    guarded.site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_open_health_checks_lock_out_neither_calls_nor_checks_with_a_token() {
    let guarded = Guarded::open(false, ConnectionLimits::default()).await;
    let mut asking = JoinSet::new();
    let mut connections = Vec::new();
    for _ in 0..5 {
        let (sender, connection) = hand_shake(&guarded).await;
        connections.push(connection);
        for _ in 0..250 {
            let question = check(&guarded, StreamBody::new(stream::pending()).boxed());
            let mut sender = sender.clone();
            asking.spawn(async move { sender.send_request(question).await.map(drop) });
        }
    }
    // When a complete health check has its answer, all incomplete ones have been sent.
    let (mut sender, connection) = hand_shake(&guarded).await;
    let question = check(&guarded, empty_message());
    sender.send_request(question).await.unwrap();
    connections.push(connection);
    guarded.client().await.status().await.unwrap();
    guarded.site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_from_one_address_lock_nobody_out() {
    let gate = Gate::closed();
    let options = proofmill_engine::Options {
        interference: Some(gate.clone()),
        ..options()
    };
    let guarded = Guarded::with(true, ConnectionLimits::default(), options).await;
    // A connection that existed before is not closed for new ones.
    let before = guarded.client().await;
    let job = before.submit(request("1", BN254, 7)).await.unwrap().job;
    let mut events = before
        .events(StreamEventsRequest {
            past: false,
            end: false,
            job: job.clone(),
        })
        .await
        .unwrap();
    let mut idle = Vec::new();
    for _ in 0..300 {
        // Some may be refused, which does not matter here.
        idle.extend(guarded.channel().await);
    }
    assert!(idle.len() > 256, "{} connections", idle.len());
    guarded.client().await.status().await.unwrap();
    gate.open();
    before.await_result(&job).await.unwrap();
    assert!(events.message().await.unwrap().is_some());
    drop((idle, events));
    guarded.site.stop().await;
}

/// Limits under which an idle connection is closed soon.
fn short_idle_limit() -> ConnectionLimits {
    ConnectionLimits {
        idle: Duration::from_millis(500),
        ..ConnectionLimits::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_asks_nothing_is_closed() {
    let guarded = Guarded::open(false, short_idle_limit()).await;
    let mut stream = TcpStream::connect(guarded.site.tcp.unwrap()).await.unwrap();
    let began = Instant::now();
    // The preface of HTTP/2, and settings.
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    let mut received = Vec::new();
    let ended = tokio::time::timeout(PATIENCE / 2, stream.read_to_end(&mut received)).await;
    ended.expect("it is closed").unwrap();
    assert!(began.elapsed() >= Duration::from_millis(500));
    guarded.site.stop().await;
}

type HealthCheckBody = BoxBody<Bytes, Infallible>;
type Sender = hyper::client::conn::http2::SendRequest<HealthCheckBody>;

/// A health check with this body.
fn check(guarded: &Guarded, body: HealthCheckBody) -> hyper::Request<HealthCheckBody> {
    hyper::Request::post(format!("{}/grpc.health.v1.Health/Check", guarded.url()))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(body)
        .unwrap()
}

/// An empty message.
fn empty_message() -> HealthCheckBody {
    Full::new(Bytes::from_static(&[0; 5])).boxed()
}

/// A connection, and the task that drives it.
async fn hand_shake(guarded: &Guarded) -> (Sender, tokio::task::JoinHandle<()>) {
    let stream = TcpStream::connect(guarded.site.tcp.unwrap()).await.unwrap();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let connection = tokio::spawn(async move {
        // Any end is acceptable.
        let _ = connection.await;
    });
    (sender, connection)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_not_kept_by_health_checks_without_a_token() {
    let guarded = Guarded::open(false, short_idle_limit()).await;
    let (mut sender, connection) = hand_shake(&guarded).await;
    let asking = async {
        let mut answers = 0;
        loop {
            let question = check(&guarded, empty_message());
            let Ok(answer) = sender.send_request(question).await else {
                return answers;
            };
            // The connection may be closed before the whole answer has arrived.
            answers += usize::from(answer.into_body().collect().await.is_ok());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let answers = tokio::time::timeout(PATIENCE / 2, asking).await;
    assert!(answers.expect("it is closed") > 0);
    connection.await.unwrap();
    guarded.site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_with_a_call_under_way_is_kept() {
    let gate = Gate::closed();
    let options = proofmill_engine::Options {
        interference: Some(gate.clone()),
        ..options()
    };
    let guarded = Guarded::with(false, short_idle_limit(), options).await;
    let client = guarded.client().await;
    let job = client.submit(request("1", BN254, 7)).await.unwrap().job;
    let opening = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        gate.open();
    };
    let (result, ()) = tokio::join!(client.await_result(&job), opening);
    result.unwrap();
    // A connection that was closed as idle is opened again by the next call.
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Where this test waits long for its turn of the processor, the server may close it just as the call begins.
    if client.status().await.is_err() {
        client.status().await.unwrap();
    }
    guarded.site.stop().await;
}
