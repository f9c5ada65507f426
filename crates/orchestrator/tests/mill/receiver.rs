//! An HTTP server that gives scripted answers and keeps the requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use tokio::sync::mpsc;

/// A request, as received.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A server on a free port of this machine; stops when dropped.
pub(crate) struct Receiver {
    pub(crate) url: String,
    requests: mpsc::UnboundedReceiver<Got>,
    answers: Arc<Mutex<VecDeque<u16>>>,
    serving: tokio::task::JoinHandle<()>,
}

/// Status that stands for an answer that never comes.
pub(crate) const SILENCE: u16 = 0;

#[derive(Clone)]
struct Script {
    got: mpsc::UnboundedSender<Got>,
    answers: Arc<Mutex<VecDeque<u16>>>,
}

// === impl Receiver ===

impl Receiver {
    /// Answers with these statuses, one after the other, then with 200.
    pub(crate) async fn start(answers: &[u16]) -> Self {
        let answers = Arc::new(Mutex::new(answers.iter().copied().collect()));
        let (got, requests) = mpsc::unbounded_channel();
        let script = Script {
            got,
            answers: Arc::clone(&answers),
        };
        let app = Router::new()
            .route("/proofs", post(answer))
            .with_state(script);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let serving = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("it serves");
        });
        Self {
            url: format!("http://{address}/proofs"),
            requests,
            answers,
            serving,
        }
    }

    /// Waits for the next request.
    pub(crate) async fn next(&mut self) -> Got {
        let got = tokio::time::timeout(crate::support::PATIENCE, self.requests.recv()).await;
        got.expect("a request comes").expect("the server runs")
    }

    /// Whether every request has been read, and every scripted answer given.
    pub(crate) fn is_through(&self) -> bool {
        self.requests.is_empty() && self.answers.lock().expect("not poisoned").is_empty()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(script): State<Script>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let answer = script.answers.lock().expect("not poisoned").pop_front();
    script
        .got
        .send(Got { headers, body })
        .expect("the test runs");
    match answer.unwrap_or(200) {
        SILENCE => std::future::pending().await,
        status => StatusCode::from_u16(status).expect("a status"),
    }
}

// === impl Got ===

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self
            .headers
            .get(name)
            .unwrap_or_else(|| panic!("no {name}"));
        value.to_str().expect("text")
    }

    pub(crate) fn key(&self) -> &str {
        self.header("idempotency-key")
    }
}
