//! Why a role cannot run.

use std::net::SocketAddr;

use proofmill_bus::ConnectError;
use proofmill_orchestrator::executor::process::ProcessError;
use proofmill_orchestrator::http::HttpError;

use crate::environment::EnvError;

/// Why a role cannot run. What goes wrong with a message is never one of these.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The environment does not say what the role needs.
    #[error(transparent)]
    Environment(#[from] EnvError),
    /// The server cannot be reached or used.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The endpoint of the chain cannot be asked.
    #[error("L1_RPC: {0}")]
    Endpoint(#[from] HttpError),
    /// A stream is not as it must be, and was made by others.
    #[error("the stream {stream} cannot be used: {why}")]
    Stream {
        /// Its name.
        stream: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A consumer is not as it must be, and was made by others.
    #[error("the consumer {consumer} of stream {stream} cannot be used: {why}")]
    Consumer {
        /// Its name.
        consumer: String,
        /// The stream it reads.
        stream: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The program cannot be run.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A directory cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Directory {
        /// Which.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Metrics cannot be served.
    #[error(
        "cannot serve metrics on {address}: {source}; choose another METRICS_PORT or METRICS_BIND"
    )]
    Metrics {
        /// `METRICS_PORT` at `METRICS_BIND`.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}
