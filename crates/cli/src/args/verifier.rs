//! The commands for the verifier.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DrainArg;
use super::circuits::Threads;
use super::listen::ListenArgs;

/// Default folder of a verifier's socket, and of the points that it derives once and keeps.
pub(crate) const STATE: &str = ".proofmill/verifier";

const SERVE_EXAMPLES: &str = "\
Examples:
  proofmill verifier serve
  proofmill verifier serve --pipes /run/node/verifier --batch 16
  proofmill verifier serve --http 127.0.0.1:9470              counters at /metrics
  proofmill verifier serve --listen 127.0.0.1:9471            gRPC, and POST /v1/verify
  proofmill verifier serve --listen 0.0.0.0:9471 --tls-certificate verifier.pem \\
                           --tls-key verifier.key --tokens tokens

Programs send requests to the socket, as frames of MessagePack, or to the port, over gRPC or HTTP:
docs/verifier.md describes both.

Ctrl-C once: the verifier takes no new requests, and ends when all accepted ones are answered.
Twice: it ends at once, and answers the remaining ones as unavailable.";

/// `proofmill verifier`
#[derive(Debug, Subcommand)]
pub(crate) enum Verifier {
    /// Run a verifier, which reads proofs of any kind and answers each with a verdict.
    ///
    /// Proofs that arrive during a check are checked together in the next one, which costs little more than
    /// checking one. Invalid proofs among them are found, and their senders do not slow down others.
    Serve(Serve),
}

/// `proofmill verifier serve`
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct Serve {
    /// Directory of the socket, and of the points that rollup proofs are checked against, which are derived
    /// once.
    #[arg(long, env = "PROOFMILL_VERIFIER_STATE", value_name = "DIR", default_value = STATE)]
    pub(crate) state: PathBuf,
    /// Most proofs that are checked together.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) batch: u16,
    /// Most proofs of one source under way; a source that sends more waits.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) source_requests: u32,
    /// The Unix socket, which only this user can connect to [default: verifier.sock in the state
    /// directory].
    #[arg(long, value_name = "PATH", help_heading = "Listening")]
    pub(crate) socket: Option<PathBuf>,
    /// Folder of the named pipes `requests` and `results`, for one program on this machine; they are made if
    /// they do not exist.
    #[arg(long, value_name = "DIR", help_heading = "Listening")]
    pub(crate) pipes: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// On that port, serve only the clients in this file: a client's name and its token on each line. The
    /// file must not be readable by everybody. Each client has its own keys and limits.
    #[arg(
        long,
        value_name = "FILE",
        requires = "listen",
        help_heading = "Listening"
    )]
    pub(crate) tokens: Option<PathBuf>,
    /// Serve `/metrics` (Prometheus) and `/healthz` on this address.
    #[arg(long, value_name = "ADDRESS", help_heading = "Listening")]
    pub(crate) http: Option<SocketAddr>,
    /// Serve the console, a page that shows batches, and verdicts by source, on this loopback address [without an
    /// address: 127.0.0.1:9469].
    #[arg(long, value_name = "ADDRESS", help_heading = "Listening", num_args = 0..=1,
          default_missing_value = "127.0.0.1:9469", value_parser = super::console::loopback)]
    pub(crate) console: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) drain: DrainArg,
}
