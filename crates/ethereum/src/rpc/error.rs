//! The reasons why a request has no result.

use alloy_primitives::Bytes;
use hyper::StatusCode;
use proofmill_http::HttpError;

/// The reason why a request has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RpcError {
    /// The request got no HTTP response. The node may have received it nevertheless, except after
    /// [`HttpError::Connect`].
    #[error("{method}: {source}")]
    Http {
        /// The JSON-RPC method.
        method: &'static str,
        /// The error of the connection.
        source: HttpError,
    },
    /// The endpoint does not serve JSON-RPC.
    #[error("it answered {method} with HTTP status {status}")]
    Status {
        /// The JSON-RPC method.
        method: &'static str,
        /// The response's status.
        status: StatusCode,
    },
    /// The response is not of the expected form.
    #[error("its answer to {method} is not what was asked for: {why}")]
    Unexpected {
        /// The JSON-RPC method.
        method: &'static str,
        /// The reason, as a sentence fragment.
        why: String,
    },
    /// The node returned an error.
    #[error("it answered {method} with error {code}: {message}")]
    Node {
        /// The JSON-RPC method.
        method: &'static str,
        /// The error's code.
        code: i64,
        /// The error's message without control characters, cut after 300 characters.
        message: String,
        /// The bytes in the error's `data`, where the node puts what a contract reverted with; `None` if there are
        /// none.
        data: Option<Bytes>,
    },
}
