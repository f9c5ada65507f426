//! Arguments for a service's TCP port and its TLS.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use proofmill_api::{ConnectionLimits, TcpOptions, TlsFiles};

/// The TCP port of a service, beside its Unix socket.
#[derive(Clone, Debug, Args)]
pub(crate) struct ListenArgs {
    /// Listen on this TCP address too. Beyond loopback it needs a certificate and tokens.
    #[arg(long, value_name = "ADDRESS", help_heading = "Listening")]
    pub(crate) listen: Option<SocketAddr>,
    /// The certificate for that address (PEM).
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "listen"], help_heading = "Listening")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The certificate's key (PEM); it must not be readable by everybody.
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_certificate",
        help_heading = "Listening"
    )]
    pub(crate) tls_key: Option<PathBuf>,
}

// === impl ListenArgs ===

impl ListenArgs {
    /// Options of the service, with its file of tokens; `None` without `--listen`.
    pub(crate) fn options(&self, tokens: Option<&PathBuf>) -> Option<TcpOptions> {
        let tls = self.tls_certificate.clone().zip(self.tls_key.clone());
        Some(TcpOptions {
            address: self.listen?,
            tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
            tokens: tokens.cloned(),
            connections: ConnectionLimits::default(),
        })
    }
}
