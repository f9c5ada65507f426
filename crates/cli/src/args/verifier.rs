//! The commands for the verifier.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DrainArg;
use super::circuits::Threads;
use super::listen::ListenArgs;

/// Default folder of a verifier's socket and of the points that it derives once.
pub(crate) const STATE: &str = ".proofmill/verifier";

const SERVE_EXAMPLES: &str = "\
Examples:
  proofmill verifier serve
  proofmill verifier serve --pipes /run/node/verifier --batch 16
  proofmill verifier serve --http 127.0.0.1:9470              counters at /metrics
  proofmill verifier serve --listen 127.0.0.1:9471            gRPC, and POST /v1/verify
  proofmill verifier serve --listen 0.0.0.0:9471 --tls-certificate verifier.pem \\
                           --tls-key verifier.key --tokens tokens

Programs speak with it in frames of MessagePack on its socket, over gRPC or HTTP on its port:
docs/verifier.md describes them.

Ctrl-C once: nothing new is taken, and it ends when everything that was accepted is answered.
Twice: it ends now, and answers what is left as unavailable.";

/// `proofmill verifier`
#[derive(Debug, Subcommand)]
pub(crate) enum Verifier {
    /// Run a verifier: proofs of any kinds in, a verdict for each out.
    ///
    /// Proofs that come while others are checked are checked together, which costs little more than
    /// one check; the false ones among them are found, and those who send them slow nobody else down.
    Serve(Serve),
}

/// `proofmill verifier serve`
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct Serve {
    /// Where the socket is, and the points that rollup proofs are checked against, which are derived
    /// once.
    #[arg(long, env = "PROOFMILL_VERIFIER_STATE", value_name = "DIR", default_value = STATE)]
    pub(crate) state: PathBuf,
    /// Proofs that are checked together, at most.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) batch: u16,
    /// Proofs of one source that are under way, at most; whoever sends more waits.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) source_requests: u32,
    /// The Unix socket, which only this user can connect to [default: verifier.sock in the state
    /// directory].
    #[arg(long, value_name = "PATH", help_heading = "Listening")]
    pub(crate) socket: Option<PathBuf>,
    /// Named pipes `requests` and `results` in a folder, for one program beside it; made if they are
    /// not there.
    #[arg(long, value_name = "DIR", help_heading = "Listening")]
    pub(crate) pipes: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Serve only the clients in this file there: a client's name and its token on each line; not for
    /// everybody to read. Keys and limits are each client's own.
    #[arg(
        long,
        value_name = "FILE",
        requires = "listen",
        help_heading = "Listening"
    )]
    pub(crate) tokens: Option<PathBuf>,
    /// Counters for Prometheus, and /healthz, on this address.
    #[arg(long, value_name = "ADDRESS", help_heading = "Listening")]
    pub(crate) http: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) drain: DrainArg,
}
