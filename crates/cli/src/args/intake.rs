//! Arguments for accepting messages over HTTP and gRPC.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use proofmill_api::{ConnectionLimits, TlsFiles, intake};

const INTAKE_HELP: &str = "Messages over HTTP and gRPC";

/// Address and access control of the endpoint where other programs and machines submit messages.
#[derive(Clone, Debug, Args)]
pub(crate) struct IntakeArgs {
    /// Accept messages over HTTP and gRPC on this address, such as 127.0.0.1:9465. An address that other
    /// machines can reach needs the certificate, the key and the tokens.
    #[arg(long, env = "PROOFMILL_SUBMIT", value_name = "ADDRESS", help_heading = INTAKE_HELP)]
    pub(crate) submit: Option<SocketAddr>,
    /// The certificate for that address (PEM), with its intermediate certificates; turns TLS on.
    #[arg(long, env = "PROOFMILL_SUBMIT_CERT", value_name = "FILE", help_heading = INTAKE_HELP,
          requires_all = ["submit", "submit_key"])]
    pub(crate) submit_cert: Option<PathBuf>,
    /// The key of that certificate (PEM).
    #[arg(long, env = "PROOFMILL_SUBMIT_KEY", value_name = "FILE", help_heading = INTAKE_HELP,
          requires = "submit_cert")]
    pub(crate) submit_key: Option<PathBuf>,
    /// A file with the tokens that clients must present: TOKEN, CLIENT TOKEN, or CLIENT TOKEN
    /// queues=NAME,NAME on each line. Without queues a token is for those that no stage writes.
    #[arg(long, env = "PROOFMILL_SUBMIT_TOKEN", value_name = "FILE", help_heading = INTAKE_HELP,
          requires = "submit")]
    pub(crate) submit_token: Option<PathBuf>,
    /// Answer 409 to a message for a finished block with other content than before; without this option the
    /// answer is 200, as a duplicate with "same": false.
    #[arg(long, env = "PROOFMILL_SUBMIT_EXACT", help_heading = INTAKE_HELP, requires = "submit",
          value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) submit_exact: bool,
}

// === impl IntakeArgs ===

impl IntakeArgs {
    /// Options of the service; `None` without `--submit`.
    pub(crate) fn options(&self) -> Option<intake::Options> {
        let tls = self.submit_cert.clone().zip(self.submit_key.clone());
        Some(intake::Options {
            address: self.submit?,
            tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
            tokens: self.submit_token.clone(),
            patience: intake::Options::PATIENCE,
            exact: self.submit_exact,
            connections: ConnectionLimits::default(),
        })
    }
}
