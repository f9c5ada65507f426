//! Messages over HTTP and gRPC.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use proofmill_api::{ConnectionLimits, TlsFiles, intake};

const INTAKE_HELP: &str = "Messages over HTTP and gRPC";

/// Where messages are taken from other programs and machines.
#[derive(Clone, Debug, Args)]
pub(crate) struct IntakeArgs {
    /// Take messages over HTTP and gRPC here, such as 127.0.0.1:9465. Where other machines can reach it,
    /// it needs the certificate, the key and the token.
    #[arg(long, env = "PROOFMILL_SUBMIT", value_name = "ADDRESS", help_heading = INTAKE_HELP)]
    pub(crate) submit: Option<SocketAddr>,
    /// The certificate for it (PEM), with those between it and its authority: TLS then.
    #[arg(long, env = "PROOFMILL_SUBMIT_CERT", value_name = "FILE", help_heading = INTAKE_HELP,
          requires_all = ["submit", "submit_key"])]
    pub(crate) submit_cert: Option<PathBuf>,
    /// The key of that certificate (PEM).
    #[arg(long, env = "PROOFMILL_SUBMIT_KEY", value_name = "FILE", help_heading = INTAKE_HELP,
          requires = "submit_cert")]
    pub(crate) submit_key: Option<PathBuf>,
    /// A file with the tokens that whoever submits has to show: TOKEN, CLIENT TOKEN, or CLIENT TOKEN
    /// queues=NAME,NAME on each line. Without queues: those that no stage writes.
    #[arg(long, env = "PROOFMILL_SUBMIT_TOKEN", value_name = "FILE", help_heading = INTAKE_HELP,
          requires = "submit")]
    pub(crate) submit_token: Option<PathBuf>,
    /// Answer 409 to a message whose block is finished and that carries something else; without this it
    /// is answered 200, as a duplicate with "same": false.
    #[arg(long, env = "PROOFMILL_SUBMIT_EXACT", help_heading = INTAKE_HELP, requires = "submit",
          value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) submit_exact: bool,
}

// === impl IntakeArgs ===

impl IntakeArgs {
    /// As the service wants them; `None` if no messages are to be taken.
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
