//! A mill with an intake, and raw requests to it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use proofmill_api::intake::{Intake, Options};
use proofmill_api::{ConnectionLimits, Submissions, TlsFiles};
use proofmill_http::HttpClient;
use proofmill_nats_server::{Authority, Certificate};
use proofmill_orchestrator::mill::{self, Mill, Registry};
use proofmill_orchestrator::shutdown::{self, Level, Trigger};
use proofmill_workflow::{HttpUrl, Workflow};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// A workflow without workers, so that messages stay. `few` holds one message.
const WORKFLOW: &str = r#"
name = "taken"
[[queue]]
name = "few"
q_max = 1
[[queue]]
name = "proofs"
writers = "many"
[[source]]
name = "outside"
kind = "submit"
output = "in"
[[source]]
name = "more"
kind = "submit"
output = "few"
[[source]]
name = "made"
kind = "submit"
output = "groups"
[[collector]]
name = "gather"
inputs = ["in"]
output = "gathered"
strategy = { kind = "match", k = 2, group_by = "/group" }
[[dispatcher]]
name = "prove"
input = "groups"
output = "proofs"
executor = { kind = "native", prover = "none" }
[[dispatcher]]
name = "wrap"
input = "gathered"
output = "proofs"
executor = { kind = "native", prover = "none" }
[[dispatcher]]
name = "slow"
input = "few"
output = "proofs"
executor = { kind = "native", prover = "none" }
[sequencer]
input = "proofs"
"#;

/// Time limit that is reached only if a test hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const TOKEN: &str = "0123456789abcdef";

/// A mill with an intake.
pub(crate) struct Site {
    pub(crate) mill: Mill,
    pub(crate) address: SocketAddr,
    serving: Mutex<Option<JoinHandle<()>>>,
    stopping: Trigger,
    _folder: tempfile::TempDir,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// 0 if there was no answer.
    pub(crate) status: u16,
    /// Status line and headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Files with certificates and a token.
pub(crate) struct Files {
    pub(crate) authority: PathBuf,
    pub(crate) server: Certificate,
    pub(crate) other_authority: PathBuf,
    pub(crate) other: Certificate,
    pub(crate) token: PathBuf,
}

// === impl Site ===

impl Site {
    pub(crate) async fn open(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let workflow = Workflow::parse(WORKFLOW, Path::new("taken.toml")).expect("a workflow");
        let options = mill::Options::in_directory(folder.path());
        let mill = Mill::open(&workflow, Registry::default(), options)
            .await
            .expect("open");
        let mut options = options_on_loopback();
        change(&mut options);
        let intake = Intake::open(&options).await.expect("it listens");
        let address = address_of(&intake);
        let submissions = Submissions::new(mill.handle().source(), mill.blobs().clone());
        let (stopping, mut shutdown) = shutdown::channel();
        let serving = tokio::spawn(async move {
            let stop = async { shutdown.reached(Level::Drain).await };
            intake.serve(submissions, stop).await;
        });
        Self {
            mill,
            address,
            serving: Mutex::new(Some(serving)),
            stopping,
            _folder: folder,
        }
    }

    /// A site that requires TLS and the token.
    pub(crate) async fn guarded(files: &Files) -> Self {
        Self::open(|options| {
            options.tls = Some(files.tls());
            options.tokens = Some(files.token.clone());
        })
        .await
    }

    pub(crate) async fn post(&self, queue: &str, message: &str) -> Answer {
        self.post_to(&format!("/v1/queues/{queue}/messages"), message)
            .await
    }

    /// Posts a message until it is taken, and returns the status. For intakes with little patience: on a loaded machine
    /// it may end before the answer is there, and the message is known when it comes again.
    pub(crate) async fn post_until_taken(&self, queue: &str, message: &str) -> u16 {
        for _ in 0..20 {
            let answer = self.post(queue, message).await;
            if [200, 201].contains(&answer.status) {
                return answer.status;
            }
            assert!([429, 503].contains(&answer.status), "{answer:?}");
        }
        panic!("never taken: {message}");
    }

    pub(crate) async fn post_to(&self, path: &str, body: &str) -> Answer {
        post(self.address, path, body).await
    }

    pub(crate) async fn post_lines(&self, queue: &str, lines: &str) -> Answer {
        let headers = [
            ("host", "localhost"),
            ("content-type", "application/x-ndjson"),
        ];
        let path = format!("/v1/queues/{queue}/messages");
        self.request("POST", &path, &headers, lines).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        let headers = [("host", "localhost")];
        self.request("GET", path, &headers, "").await
    }

    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        request(self.address, method, path, headers, body).await
    }

    pub(crate) async fn raw(&self, request: &[u8]) -> Answer {
        raw(self.address, request).await
    }

    /// The status of the answer, or the error if there is none.
    pub(crate) async fn post_over_tls(
        &self,
        ca: Option<&Path>,
        authorization: Option<&str>,
        message: &str,
    ) -> Result<u16, String> {
        let port = self.address.port();
        let url = format!("https://127.0.0.1:{port}/v1/queues/groups/messages");
        let url = HttpUrl::try_new(&url).expect("an address");
        let client = HttpClient::new(url, ca).expect("a client");
        let headers = authorization.map(|value| {
            let value = value.parse().expect("a value");
            (axum::http::header::AUTHORIZATION, value)
        });
        let body = message.to_owned().into();
        let answer = client.post(headers.into_iter().collect(), body, 1 << 20, PATIENCE);
        match answer.await {
            Ok(answer) => Ok(answer.status.as_u16()),
            Err(error) => Err(proofmill_bus::with_sources(&error)),
        }
    }

    /// The mill's own status.
    pub(crate) async fn status(&self) -> Value {
        let status = self
            .mill
            .handle()
            .operator()
            .status()
            .await
            .expect("it runs");
        serde_json::to_value(status).expect("JSON")
    }

    /// Waits until the mill's status satisfies `is`.
    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Value) -> bool) {
        let reached = async {
            while !is(&self.status().await) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let reached = tokio::time::timeout(PATIENCE, reached).await;
        reached.unwrap_or_else(|_| panic!("not in time: {what}"));
    }

    pub(crate) fn stop(&self) {
        self.stopping.raise(Level::Drain);
    }

    /// Waits until the port is closed.
    pub(crate) async fn until_refused(&self) {
        let refused = async {
            while TcpStream::connect(self.address).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let refused = tokio::time::timeout(PATIENCE, refused).await;
        refused.expect("the port is closed");
    }

    /// Waits until serving has ended.
    pub(crate) async fn ended(&self) {
        let serving = self.serving.lock().expect("no panic").take();
        let serving = serving.expect("it was not waited for");
        let ended = tokio::time::timeout(PATIENCE, serving).await;
        ended.expect("it ends").expect("no panic");
    }
}

// === impl Answer ===

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
    }
}

// === impl Files ===

impl Files {
    pub(crate) fn new(folder: &Path) -> Self {
        let authority = Authority::new(folder, "authority");
        let other_authority = Authority::new(folder, "other-authority");
        let token = folder.join("token");
        std::fs::write(&token, format!("{TOKEN}\n")).expect("written");
        let files = Self {
            server: authority.sign("server", "127.0.0.1"),
            other: authority.sign("other", "127.0.0.1"),
            authority: authority.certificate,
            other_authority: other_authority.certificate,
            token,
        };
        files.private(&files.token);
        files
    }

    pub(crate) fn tls(&self) -> TlsFiles {
        TlsFiles {
            certificate: self.server.certificate.clone(),
            key: self.server.key.clone(),
        }
    }

    pub(crate) fn private(&self, file: &Path) {
        set_mode(file, 0o600);
    }

    pub(crate) fn readable_by_all(&self, file: &Path) {
        set_mode(file, 0o644);
    }
}

fn set_mode(file: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(file, permissions).expect("it is ours");
}

/// Options for any port of this machine, without TLS and without a token.
pub(crate) fn options_on_loopback() -> Options {
    Options {
        address: "127.0.0.1:0".parse().expect("an address"),
        tls: None,
        tokens: None,
        patience: Options::PATIENCE,
        exact: false,
        connections: ConnectionLimits::default(),
    }
}

pub(crate) fn address_of(intake: &Intake) -> SocketAddr {
    let url = intake.url();
    let (_, address) = url.split_once("://").expect("a scheme");
    address.parse().expect("an address")
}

/// A message of a block.
pub(crate) fn submission(block: u64, payload: &str) -> String {
    format!(r#"{{"block": {block}, "payload": {payload}}}"#)
}

/// The lines of a text, parsed as JSON.
pub(crate) fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

pub(crate) async fn post(address: SocketAddr, path: &str, body: &str) -> Answer {
    let headers = [("host", "localhost"), ("content-type", "application/json")];
    request(address, "POST", path, &headers, body).await
}

pub(crate) async fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut request = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    let length = body.len();
    request += &format!("content-length: {length}\r\nconnection: close\r\n\r\n{body}");
    raw(address, request.as_bytes()).await
}

/// Sends raw bytes, and returns the answer.
pub(crate) async fn raw(address: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    let (mut reader, mut writer) = stream.split();
    let mut bytes = Vec::new();
    // The server may answer and close before it has read everything.
    let exchange = async {
        let (_, _) = tokio::join!(writer.write_all(request), reader.read_to_end(&mut bytes));
    };
    let exchanged = tokio::time::timeout(PATIENCE, exchange).await;
    exchanged.expect("an answer, or the end");
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.get(9..12).and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or(0),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}
