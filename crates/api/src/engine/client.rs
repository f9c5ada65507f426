//! The client of an engine in another process.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream;
use hyper::Uri;
use hyper_util::rt::TokioIo;
use proofmill_bus::{SecretError, read_secret, with_sources};
use proofmill_trace::TraceContext;
use prost::Message;
use tokio::net::UnixStream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use tower_service::Service;

use super::Address;
use super::proto;
use super::proto::partition::Input;
use super::proto::proving_engine_client::ProvingEngineClient;
use super::proto::submit_stream_request::Part;
use super::server::WITNESS_MESSAGE_MAX;
use super::unreachable::unreachable;
use crate::access::AccessError;
use crate::grpc::retry_after;
use crate::socket;

/// Most bytes of a job that is sent in one message. The witnesses of larger jobs are streamed.
const SINGLE_MESSAGE_BYTES_MAX: usize = WITNESS_MESSAGE_MAX - (64 << 10);
/// Size of a streamed chunk in bytes.
const CHUNK_BYTES: usize = 1 << 20;
/// Longest time to connect.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Time without traffic after which the engine is pinged, and time limit of its answer. Without pings, a caller that
/// waits for a proof would wait for ever for a machine that has disappeared.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// Most bytes of an answer: proofs of many partitions exceed gRPC's default.
const ANSWER_MAX: usize = 256 << 20;

/// The reason that a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The engine refused the request.
    #[error("{message}")]
    Refused {
        /// The gRPC code; the proto file explains each.
        code: Code,
        /// The engine's message.
        message: String,
        /// Wait before the next try, if that helps.
        retry_after: Option<Duration>,
    },
    /// No engine answers at the address.
    #[error("no engine answers at {address}: {why}")]
    Unreachable {
        /// The address.
        address: Address,
        /// The cause.
        why: String,
    },
    /// The file of the authority cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The file of the token cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The file holds no token.
    #[error("{} holds no token: one line with a token, or with a client and its token", .0.display())]
    NoToken(PathBuf),
}

/// The client's token, and the authority by which it verifies the engine.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// The authority of the engine's certificate (PEM).
    pub authority: Option<PathBuf>,
    /// A file whose first line is the token, or a client's name, its token and its rights.
    pub token: Option<PathBuf>,
}

/// A client of one engine. Clones share its connection.
#[derive(Clone, Debug)]
pub struct Client {
    calls: ProvingEngineClient<InterceptedService<Channel, Bearer>>,
    address: Address,
    /// Whether an engine ever answered at the address.
    answered: Arc<AtomicBool>,
}

/// Adds the token to each call.
#[derive(Clone)]
struct Bearer(Option<MetadataValue<Ascii>>);

/// Connects to a Unix socket.
#[derive(Clone)]
struct Connector(PathBuf);

/// A call with the context of a trace in its metadata.
fn in_trace<T>(message: T, trace: Option<&TraceContext>) -> Request<T> {
    let mut request = Request::new(message);
    let Some(trace) = trace else { return request };
    let state = trace.tracestate().map(|state| state.to_string());
    let parent = ("traceparent", trace.traceparent());
    let state = state.map(|state| ("tracestate", state));
    for (name, value) in std::iter::once(parent).chain(state) {
        // A context consists of printable characters alone.
        if let Ok(value) = value.parse::<MetadataValue<Ascii>>() {
            request.metadata_mut().insert(name, value);
        }
    }
    request
}

// === impl Client ===

impl Client {
    /// Connects to an engine.
    ///
    /// # Errors
    ///
    /// No engine answers at the address, its certificate is not valid, or a file cannot be used.
    pub async fn connect(
        address: &Address,
        credentials: &Credentials,
    ) -> Result<Self, ClientError> {
        let failed =
            |error: tonic::transport::Error| unreachable(address, with_sources(&error), false);
        let channel = match address {
            Address::Socket(path) => {
                // The host is ignored.
                let endpoint = with_keepalive(Endpoint::from_static("http://engine"));
                let connector = Connector(path.clone());
                endpoint
                    .connect_with_connector(connector)
                    .await
                    .map_err(failed)?
            }
            Address::Tcp(uri) => {
                let mut endpoint = with_keepalive(Endpoint::from(uri.clone()));
                if uri.scheme_str() == Some("https") {
                    let tls = tls(credentials)?;
                    endpoint = endpoint.tls_config(tls).map_err(failed)?;
                }
                endpoint.connect().await.map_err(failed)?
            }
        };
        let bearer = match &credentials.token {
            Some(path) => Bearer(Some(token(path).await?)),
            None => Bearer(None),
        };
        let calls = ProvingEngineClient::with_interceptor(channel, bearer)
            .max_decoding_message_size(ANSWER_MAX);
        Ok(Self {
            calls,
            address: address.clone(),
            answered: Arc::default(),
        })
    }

    /// The same client, which refuses messages of the engine with more bytes.
    #[must_use]
    pub(crate) fn with_answer_bytes_max(self, bytes: usize) -> Self {
        Self {
            calls: self.calls.max_decoding_message_size(bytes),
            ..self
        }
    }

    /// The address of the engine.
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// The client of the engine that listens on a Unix socket; none if none does.
    ///
    /// # Errors
    ///
    /// The socket belongs to another user, and may not be used.
    pub async fn find(socket_path: &Path) -> Result<Option<Self>, ClientError> {
        let address = Address::Socket(socket_path.to_owned());
        match socket::connect(socket_path).await {
            Ok(None) => Ok(None),
            Ok(Some(_)) => Self::connect(&address, &Credentials::default())
                .await
                .map(Some),
            Err(error) => Err(ClientError::Unreachable {
                address,
                why: error.to_string(),
            }),
        }
    }

    /// Submits a job. If it is larger than a message, its witnesses are streamed.
    pub async fn submit(
        &self,
        request: proto::SubmitRequest,
    ) -> Result<proto::SubmitResponse, ClientError> {
        self.submit_in_trace(request, None).await
    }

    /// [`Client::submit`], with the context of the span that the engine's spans belong to.
    pub async fn submit_in_trace(
        &self,
        request: proto::SubmitRequest,
        trace: Option<&TraceContext>,
    ) -> Result<proto::SubmitResponse, ClientError> {
        let mut calls = self.calls.clone();
        let answer = if request.encoded_len() <= SINGLE_MESSAGE_BYTES_MAX {
            calls.submit(in_trace(request, trace)).await
        } else {
            let messages = stream::iter(stream_messages(request));
            calls.submit_stream(in_trace(messages, trace)).await
        };
        self.receive_answer(answer)
    }

    /// Waits for a job's end, and returns its result.
    pub async fn await_result(&self, job: &str) -> Result<proto::JobResult, ClientError> {
        self.await_result_in_trace(job, None).await
    }

    /// [`Client::await_result`], with the context of the span that the engine's spans belong to: an engine
    /// that was started again since the job was submitted learns it here.
    pub async fn await_result_in_trace(
        &self,
        job: &str,
        trace: Option<&TraceContext>,
    ) -> Result<proto::JobResult, ClientError> {
        let request = proto::AwaitRequest {
            job: job.to_owned(),
        };
        let request = in_trace(request, trace);
        self.receive_answer(self.calls.clone().r#await(request).await)
    }

    /// Submits a job and waits for its proofs; `timeout` is the job's deadline too. A job that ends without
    /// proofs is returned as a refusal.
    pub async fn prove(
        &self,
        request: proto::SubmitRequest,
        timeout: Option<Duration>,
    ) -> Result<proto::JobResult, ClientError> {
        let mut request = Request::new(request);
        if let Some(timeout) = timeout {
            request.set_timeout(timeout);
        }
        self.receive_answer(self.calls.clone().prove(request).await)
    }

    /// Cancels a job.
    pub async fn cancel(&self, job: &str) -> Result<proto::Job, ClientError> {
        let request = proto::CancelRequest {
            job: job.to_owned(),
            waiting: None,
        };
        self.receive_answer(self.calls.clone().cancel(request).await)
    }

    /// Cancels a job, unless more than `waiting` callers wait for its result.
    pub async fn cancel_unless_wanted(
        &self,
        job: &str,
        waiting: u32,
    ) -> Result<proto::Job, ClientError> {
        let request = proto::CancelRequest {
            job: job.to_owned(),
            waiting: Some(waiting),
        };
        self.receive_answer(self.calls.clone().cancel(request).await)
    }

    /// The current state of a job.
    pub async fn job(&self, job: &str) -> Result<proto::Job, ClientError> {
        let request = proto::GetJobRequest {
            job: job.to_owned(),
        };
        self.receive_answer(self.calls.clone().get_job(request).await)
    }

    /// Streams events. `request` selects remembered events, new ones, or both.
    pub async fn events(
        &self,
        request: proto::StreamEventsRequest,
    ) -> Result<Streaming<proto::Event>, ClientError> {
        self.receive_answer(self.calls.clone().stream_events(request).await)
    }

    /// The remembered events.
    pub async fn past_events(&self) -> Result<Vec<proto::Event>, ClientError> {
        let mut events = Vec::new();
        self.each_past_event(|event| events.push(event)).await?;
        Ok(events)
    }

    /// Gives each remembered event to `take`, in order.
    pub(crate) async fn each_past_event(
        &self,
        mut take: impl FnMut(proto::Event),
    ) -> Result<(), ClientError> {
        let request = proto::StreamEventsRequest {
            past: true,
            end: true,
            job: String::new(),
        };
        let mut stream = self.events(request).await?;
        while let Some(event) = stream.message().await.map_err(|it| self.refused(it))? {
            take(event);
        }
        Ok(())
    }

    /// The current state of the whole engine.
    pub async fn status(&self) -> Result<proto::EngineStatus, ClientError> {
        let request = proto::GetStatusRequest {};
        self.receive_answer(self.calls.clone().get_status(request).await)
    }

    /// Registers a circuit.
    pub async fn register(
        &self,
        request: proto::RegisterRequest,
    ) -> Result<proto::Circuit, ClientError> {
        self.receive_answer(self.calls.clone().register(request).await)
    }

    /// Removes a circuit from the registry.
    pub async fn unregister(&self, name: &str) -> Result<(), ClientError> {
        let request = proto::UnregisterRequest {
            name: name.to_owned(),
        };
        let answer = self.calls.clone().unregister(request).await;
        self.receive_answer(answer)
            .map(|proto::UnregisterResponse {}| ())
    }

    /// The registered circuits.
    pub async fn circuits(&self) -> Result<Vec<proto::Circuit>, ClientError> {
        self.list_circuits().await.map(|it| it.circuits)
    }

    /// The registered circuits, the number of unfinished jobs, and whether the engine drains.
    pub async fn list_circuits(&self) -> Result<proto::ListCircuitsResponse, ClientError> {
        let request = proto::ListCircuitsRequest {};
        self.receive_answer(self.calls.clone().list_circuits(request).await)
    }

    /// Brings a key to a tier.
    pub async fn preload(
        &self,
        circuit: &str,
        tier: proto::Tier,
    ) -> Result<proto::Circuit, ClientError> {
        let request = proto::PreloadRequest {
            circuit: circuit.to_owned(),
            tier: tier.into(),
        };
        self.receive_answer(self.calls.clone().preload(request).await)
    }

    /// Evicts a key from memory, and returns the number of bytes given back.
    pub async fn evict(&self, circuit: &str) -> Result<u64, ClientError> {
        let request = proto::EvictRequest {
            circuit: circuit.to_owned(),
        };
        let answer = self.calls.clone().evict(request).await;
        self.receive_answer(answer).map(|it| it.bytes)
    }

    /// Pins or unpins a key.
    pub async fn pin(&self, circuit: &str, pinned: bool) -> Result<proto::Circuit, ClientError> {
        let request = proto::PinRequest {
            circuit: circuit.to_owned(),
            pinned,
        };
        self.receive_answer(self.calls.clone().pin(request).await)
    }

    fn receive_answer<T>(
        &self,
        answer: Result<tonic::Response<T>, Status>,
    ) -> Result<T, ClientError> {
        let answered = match &answer {
            Ok(_) => true,
            Err(status) => std::error::Error::source(status).is_none(),
        };
        self.answered.fetch_or(answered, Ordering::Relaxed);
        match answer {
            Ok(answer) => Ok(answer.into_inner()),
            Err(status) => Err(self.refused(status)),
        }
    }

    fn refused(&self, status: Status) -> ClientError {
        // An error has a cause only if it arose in this process and was not sent by the engine.
        match std::error::Error::source(&status) {
            Some(cause) => {
                let answered = self.answered.load(Ordering::Relaxed);
                unreachable(&self.address, with_sources(cause), answered)
            }
            None => ClientError::Refused {
                code: status.code(),
                retry_after: retry_after(&status),
                message: status.message().to_owned(),
            },
        }
    }
}

fn with_keepalive(endpoint: Endpoint) -> Endpoint {
    endpoint
        .connect_timeout(CONNECT_TIME_MAX)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_INTERVAL)
}

/// The messages of a streamed job: the job without its witnesses, then the witnesses in chunks.
fn stream_messages(
    mut request: proto::SubmitRequest,
) -> impl Iterator<Item = proto::SubmitStreamRequest> + Send {
    let mut witnesses = Vec::new();
    for partition in &mut request.partitions {
        let bytes = match partition.input.take() {
            Some(Input::Wtns(bytes) | Input::Vector(bytes)) => bytes,
            other => {
                partition.input = other;
                continue;
            }
        };
        let streamed = proto::StreamedWitness {
            bytes: bytes.len() as u64,
        };
        partition.input = Some(Input::Streamed(streamed));
        witnesses.push(zeroize::Zeroizing::new(bytes));
    }
    let chunks = witnesses.into_iter().flat_map(|bytes| {
        (0..bytes.len()).step_by(CHUNK_BYTES).map(move |from| {
            let to = bytes.len().min(from + CHUNK_BYTES);
            Part::Chunk(bytes[from..to].to_vec())
        })
    });
    std::iter::once(Part::Job(request))
        .chain(chunks)
        .map(|part| proto::SubmitStreamRequest { part: Some(part) })
}

fn tls(credentials: &Credentials) -> Result<ClientTlsConfig, ClientError> {
    let config = ClientTlsConfig::new();
    let Some(path) = &credentials.authority else {
        return Ok(config.with_enabled_roots());
    };
    let pem = std::fs::read(path).map_err(|source| AccessError::File {
        path: path.clone(),
        source,
    })?;
    Ok(config.ca_certificate(Certificate::from_pem(pem)))
}

async fn token(path: &Path) -> Result<MetadataValue<Ascii>, ClientError> {
    let text = read_secret(path).await?;
    let words = text.lines().next().unwrap_or_default().split_whitespace();
    let words: Vec<&str> = words.collect();
    // The token alone, or as in the engine's file: after the client's name and before its rights.
    let token = words.get(1).or(words.first());
    let header = token.and_then(|token| format!("Bearer {token}").parse().ok());
    let mut header: MetadataValue<Ascii> =
        header.ok_or_else(|| ClientError::NoToken(path.to_owned()))?;
    header.set_sensitive(true);
    Ok(header)
}

// === impl Bearer ===

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request
                .metadata_mut()
                .insert("authorization", token.clone());
        }
        Ok(request)
    }
}

// === impl Connector ===

impl Service<Uri> for Connector {
    type Response = TokioIo<UnixStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let path = self.0.clone();
        Box::pin(async move {
            let stream = socket::connect(&path).await?;
            let stream = stream.ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, "nobody listens on the socket")
            })?;
            Ok(TokioIo::new(stream))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_shown() {
        for text in [
            "unix:.proofmill/engine/engine.sock",
            "http://127.0.0.1:7000/",
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
        }
        for bad in [
            "",
            "unix:",
            "unix:/",
            "127.0.0.1:7000",
            "ftp://a:1",
            "http://a",
            "http://a:1/b",
        ] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }

    #[test]
    fn large_witnesses_are_sent_in_chunks() {
        let witness = |bytes: usize| proto::Partition {
            circuit: "c".to_owned(),
            input: Some(Input::Wtns(vec![7; bytes])),
        };
        let request = proto::SubmitRequest {
            partitions: vec![witness(CHUNK_BYTES + 1), witness(3)],
            ..proto::SubmitRequest::default()
        };
        let sizes: Vec<usize> = stream_messages(request)
            .filter_map(|it| match it.part {
                Some(Part::Chunk(bytes)) => Some(bytes.len()),
                _ => None,
            })
            .collect();
        assert_eq!(sizes, [CHUNK_BYTES, 1, 3]);
    }
}
