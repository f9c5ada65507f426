//! Errors that end a role.

use std::net::SocketAddr;

use proofmill_bus::ConnectError;
use proofmill_http::HttpError;
use proofmill_process::ProcessError;

use crate::environment::EnvError;

/// The reason that a role cannot run. Faults of single messages are never errors of this kind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A variable that the role needs is missing or invalid.
    #[error(transparent)]
    Environment(#[from] EnvError),
    /// The server cannot be reached or used.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The endpoint of the chain cannot be asked.
    #[error("L1_RPC: {0}")]
    Endpoint(#[from] HttpError),
    /// An existing stream, made by others, does not have the settings that are needed.
    #[error("the stream {stream} cannot be used: {why}")]
    Stream {
        /// The name of the stream.
        stream: String,
        /// The fault, and what to do about it.
        why: String,
    },
    /// An existing consumer, made by others, does not have the settings that are needed.
    #[error("the consumer {consumer} of stream {stream} cannot be used: {why}")]
    Consumer {
        /// The name of the consumer.
        consumer: String,
        /// The stream it reads.
        stream: String,
        /// The fault, and what to do about it.
        why: String,
    },
    /// The program cannot be run.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A directory cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Directory {
        /// The path of the directory.
        path: std::path::PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Metrics cannot be served.
    #[error(
        "cannot serve metrics on {address}: {source}; choose another METRICS_PORT or METRICS_BIND"
    )]
    Metrics {
        /// `METRICS_PORT` at `METRICS_BIND`.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
}
