//! A server that gives each connection the next of the test's responses.

use std::sync::{Arc, Mutex};

use proofmill_workflow::HttpUrl;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A running server.
pub(crate) struct Server {
    /// Its address.
    pub(crate) url: HttpUrl,
    requests: Arc<Mutex<Vec<Value>>>,
}

// === impl Server ===

impl Server {
    /// A server that sends these HTTP responses, byte for byte, to the first connections.
    pub(crate) async fn sending(responses: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        tokio::spawn(async move {
            for response in responses {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let request = body_of(&mut stream).await;
                seen.lock().expect("no panic").push(request);
                // The client may have hung up, which some cases test.
                let _ = stream.write_all(response.as_bytes()).await;
            }
        });
        let url = HttpUrl::try_new(&format!("http://{address}")).expect("an address");
        Self { url, requests }
    }

    /// A server that answers the first requests with these results, in JSON.
    pub(crate) async fn returning<const N: usize>(results: [&str; N]) -> Self {
        let bodies =
            results.map(|result| ok(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)));
        Self::sending(bodies.to_vec()).await
    }

    /// A server that answers the first requests with these errors, in JSON.
    pub(crate) async fn failing<const N: usize>(errors: [&str; N]) -> Self {
        let bodies =
            errors.map(|error| ok(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#)));
        Self::sending(bodies.to_vec()).await
    }

    /// Method and parameters of the requests so far.
    pub(crate) fn requests(&self) -> Vec<(String, Value)> {
        let requests = self.requests.lock().expect("no panic");
        let parts = |request: &Value| {
            assert_eq!(
                (&request["jsonrpc"], &request["id"]),
                (&"2.0".into(), &1.into())
            );
            let method = request["method"].as_str().expect("a method").to_owned();
            (method, request["params"].clone())
        };
        requests.iter().map(parts).collect()
    }
}

/// A response with this body.
pub(crate) fn ok(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// The body of the one request on a connection.
async fn body_of(stream: &mut TcpStream) -> Value {
    let mut received = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&received);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.expect("a length").trim().parse().expect("a number");
            if body.len() >= length {
                return serde_json::from_str(body).expect("a request in JSON");
            }
        }
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.expect("a request");
        assert!(count > 0, "the request ended early");
        received.extend(&part[..count]);
    }
}
