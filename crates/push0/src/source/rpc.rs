//! A client of Ethereum's JSON-RPC, for the two questions a source has.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::environment::Endpoint;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Largest answer, in bytes. A block comes with the hashes of its transactions, not with themselves.
const MAX_ANSWER: usize = 8 << 20;

/// Longest hash, in characters: 32 bytes in hexadecimal.
const HASH: usize = 66;

/// A client.
#[derive(Debug)]
pub(super) struct Rpc {
    endpoint: Endpoint,
}

/// What is needed of a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) hash: String,
    pub(super) parent: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum RpcError {
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    TimedOut,
    #[error("no connection: {0}")]
    Connect(std::io::Error),
    #[error("the request failed: {0}")]
    Http(String),
    #[error("it answered with HTTP status {0}")]
    Status(StatusCode),
    #[error("its answer is over {MAX_ANSWER} bytes")]
    TooLarge,
    #[error("its answer to {method} is not what was asked for: {why}")]
    Unexpected { method: &'static str, why: String },
    #[error("it answered {method} with error {code}: {message}")]
    Refused {
        method: &'static str,
        code: i64,
        message: String,
    },
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    result: Value,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

// === impl Rpc ===

impl Rpc {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    /// The number of the chain's last block.
    pub(super) async fn head(&self) -> Result<u64, RpcError> {
        const METHOD: &str = "eth_blockNumber";
        let result = self.ask(METHOD, json!([])).await?;
        let text = result.as_str().unwrap_or_default();
        quantity(text).ok_or_else(|| RpcError::Unexpected {
            method: METHOD,
            why: "it is not a number such as \"0x10\"".to_owned(),
        })
    }

    /// A block; `None` if the node does not have it.
    pub(super) async fn block(&self, number: u64) -> Result<Option<Block>, RpcError> {
        const METHOD: &str = "eth_getBlockByNumber";
        let result = self
            .ask(METHOD, json!([format!("{number:#x}"), false]))
            .await?;
        if result.is_null() {
            return Ok(None);
        }
        let text = |field: &str| {
            let text = result
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default();
            let fits = text.len() <= HASH
                && text.strip_prefix("0x").is_some_and(|digits| {
                    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
                });
            fits.then(|| text.to_ascii_lowercase())
                .ok_or_else(|| RpcError::Unexpected {
                    method: METHOD,
                    why: format!("`{field}` is not a number in hexadecimal"),
                })
        };
        if text("number").is_ok_and(|text| quantity(&text) != Some(number)) {
            let why = format!("it is another block than {number}");
            return Err(RpcError::Unexpected {
                method: METHOD,
                why,
            });
        }
        Ok(Some(Block {
            hash: text("hash")?,
            parent: text("parentHash")?,
        }))
    }

    async fn ask(&self, method: &'static str, params: Value) -> Result<Value, RpcError> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = tokio::time::timeout(TIMEOUT, self.post(body.to_string()));
        let answer = answer.await.map_err(|_| RpcError::TimedOut)??;
        let answer: Answer =
            serde_json::from_slice(&answer).map_err(|error| RpcError::Unexpected {
                method,
                why: error.to_string(),
            })?;
        match answer.error {
            Some(Refusal { code, message }) => {
                let message = message.chars().take(200).collect();
                Err(RpcError::Refused {
                    method,
                    code,
                    message,
                })
            }
            None => Ok(answer.result),
        }
    }

    async fn post(&self, body: String) -> Result<Bytes, RpcError> {
        let http = |error: hyper::Error| RpcError::Http(error.to_string());
        let stream = TcpStream::connect(&self.endpoint.authority)
            .await
            .map_err(RpcError::Connect)?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(http)?;
        let request = Request::post(&self.endpoint.path)
            .header(HOST, &self.endpoint.authority)
            .header(CONTENT_TYPE, "application/json")
            .header(CONNECTION, "close")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| RpcError::Http(error.to_string()))?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(http)?;
            let status = response.status();
            if status != StatusCode::OK {
                return Err(RpcError::Status(status));
            }
            let body = Limited::new(response.into_body(), MAX_ANSWER)
                .collect()
                .await;
            let body = body.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    RpcError::TooLarge
                } else {
                    RpcError::Http(error.to_string())
                }
            })?;
            Ok(body.to_bytes())
        };
        // The connection is driven beside the exchange, and goes with it.
        let mut exchange = std::pin::pin!(exchange);
        tokio::select! {
            biased;
            answer = &mut exchange => answer,
            ended = connection => {
                ended.map_err(http)?;
                exchange.await
            }
        }
    }
}

/// A quantity as JSON-RPC writes it: `0x10`.
fn quantity(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| u64::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_hexadecimal() {
        assert_eq!(quantity("0x10"), Some(16));
        assert_eq!(quantity("0xffffffffffffffff"), Some(u64::MAX));
        for wrong in ["", "0x", "10", "0x+1", "0x10000000000000000", "0xg"] {
            assert_eq!(quantity(wrong), None, "{wrong}");
        }
    }

    /// A server that answers once, with this and nothing else.
    async fn answering(answer: String) -> Rpc {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            // The client may have hung up: that is what is tested.
            let _ = stream.write_all(answer.as_bytes()).await;
        });
        Rpc::new(Endpoint::parse(&url).unwrap())
    }

    fn ok(body: &str) -> String {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    #[tokio::test]
    async fn answers_that_are_none_are_errors() {
        let large = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{}",
            "x".repeat(9 << 20)
        );
        for (answer, expected) in [
            (String::new(), "the request failed"),
            ("nonsense\r\n\r\n".to_owned(), "the request failed"),
            (
                "HTTP/1.1 301 Moved\r\nLocation: http://x\r\n\r\n".to_owned(),
                "HTTP status 301",
            ),
            (large, "over 8388608 bytes"),
            (ok("{"), "not what was asked for"),
            (ok("{}"), "not a number"),
            (ok(r#"{"result":16}"#), "not a number"),
            (
                ok(r#"{"error":{"code":-32000,"message":"busy"}}"#),
                "error -32000: busy",
            ),
        ] {
            let error = answering(answer)
                .await
                .head()
                .await
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error} is not {expected}");
        }
        for body in [
            r#"{"result":{"number":"0x6","hash":"0xab","parentHash":"0xcd"}}"#,
            r#"{"result":{"number":"0x5","hash":"ab","parentHash":"0xcd"}}"#,
            r#"{"result":{"number":"0x5","hash":"0xab"}}"#,
            r#"{"result":[1]}"#,
        ] {
            assert!(answering(ok(body)).await.block(5).await.is_err(), "{body}");
        }
        assert_eq!(
            answering(ok(r#"{"result":null}"#))
                .await
                .block(5)
                .await
                .unwrap(),
            None
        );
        let body = r#"{"result":{"number":"0x5","hash":"0xAB","parentHash":"0xcd"}}"#;
        let block = answering(ok(body)).await.block(5).await.unwrap().unwrap();
        assert_eq!(
            (block.hash.as_str(), block.parent.as_str()),
            ("0xab", "0xcd")
        );
    }
}
