//! A client of Ethereum's JSON-RPC, for the two methods needed to follow a chain.

use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::HeaderMap;
use proofmill_workflow::HttpUrl;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::{HttpClient, HttpError};

/// Time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a response, in bytes.
const MAX_ANSWER: usize = 8 << 20;

/// Maximum size of a response with a block and its transactions, in bytes.
const MAX_FULL_ANSWER: usize = 32 << 20;

/// Maximum length of a hash in characters: `0x` and 32 bytes in hexadecimal.
const HASH: usize = 66;

/// A client of one endpoint.
pub struct Rpc {
    client: HttpClient,
}

/// A block.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The block's hash, in lower-case hexadecimal after `0x`.
    pub hash: String,
    /// The hash of the block before it, in the same format.
    pub parent: String,
    /// The whole block, as the endpoint returned it.
    pub object: Value,
}

/// The reason why a request has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RpcError {
    /// The request got no HTTP response.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The endpoint does not serve JSON-RPC.
    #[error("it answered with HTTP status {0}")]
    Status(StatusCode),
    /// The response is not of the expected form.
    #[error("its answer to {method} is not what was asked for: {why}")]
    Unexpected {
        /// The JSON-RPC method.
        method: &'static str,
        /// The reason, as a sentence fragment.
        why: String,
    },
    /// The endpoint returned an error.
    #[error("it answered {method} with error {code}: {message}")]
    Refused {
        /// The JSON-RPC method.
        method: &'static str,
        /// The error's code.
        code: i64,
        /// The error's message, cut after 200 characters.
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
    /// A client of `url`. Sends no request yet.
    ///
    /// # Errors
    /// As [`HttpClient::new`].
    pub fn new(url: HttpUrl) -> Result<Self, HttpError> {
        let client = HttpClient::new(url, None)?;
        Ok(Self { client })
    }

    /// Address of the endpoint. Its `Display` leaves out the path, which often holds an API key.
    pub fn url(&self) -> &HttpUrl {
        self.client.url()
    }

    /// The number of the chain's last block.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn head(&self) -> Result<u64, RpcError> {
        const METHOD: &str = "eth_blockNumber";
        let result = self.ask(METHOD, json!([]), MAX_ANSWER).await?;
        let text = result.as_str().unwrap_or_default();
        quantity(text).ok_or_else(|| RpcError::Unexpected {
            method: METHOD,
            why: "it is not a number such as \"0x10\"".to_owned(),
        })
    }

    /// A block, with its transactions or with their hashes only; `None` if the node does not have
    /// it.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn block(&self, number: u64, full: bool) -> Result<Option<Block>, RpcError> {
        const METHOD: &str = "eth_getBlockByNumber";
        let most = if full { MAX_FULL_ANSWER } else { MAX_ANSWER };
        let asked = json!([format!("{number:#x}"), full]);
        let result = self.ask(METHOD, asked, most).await?;
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
            object: result,
        }))
    }

    async fn ask(
        &self,
        method: &'static str,
        params: Value,
        most: usize,
    ) -> Result<Value, RpcError> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = Bytes::from(body.to_string());
        let answer = self
            .client
            .post(HeaderMap::new(), body, most, TIMEOUT)
            .await?;
        if answer.status != StatusCode::OK {
            return Err(RpcError::Status(answer.status));
        }
        let unexpected = |error: serde_json::Error| RpcError::Unexpected {
            method,
            why: error.to_string(),
        };
        let answer: Answer = serde_json::from_slice(&answer.body?).map_err(unexpected)?;
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
}

/// Parses a quantity in JSON-RPC's format, such as `0x10`.
pub(super) fn quantity(text: &str) -> Option<u64> {
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

    /// A server that sends this response once.
    async fn answering(answer: String) -> Rpc {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            // The client may have hung up, which some cases test.
            let _ = stream.write_all(answer.as_bytes()).await;
        });
        Rpc::new(HttpUrl::try_new(&url).unwrap()).unwrap()
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
            assert!(
                answering(ok(body)).await.block(5, false).await.is_err(),
                "{body}"
            );
        }
        assert_eq!(
            answering(ok(r#"{"result":null}"#))
                .await
                .block(5, false)
                .await
                .unwrap(),
            None
        );
        let body = r#"{"result":{"number":"0x5","hash":"0xAB","parentHash":"0xcd"}}"#;
        let block = answering(ok(body))
            .await
            .block(5, false)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (block.hash.as_str(), block.parent.as_str()),
            ("0xab", "0xcd")
        );
    }
}
