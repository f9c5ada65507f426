//! Arguments of `proofmill scale`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use proofmill_api::scaler::ScalerOptions;
use proofmill_api::{ConnectionLimits, TlsFiles};

use super::MillArgs;

const SERVING: &str = "Answering an autoscaler";

const EXAMPLES: &str = "\
Examples:
  proofmill scale --dry-run
  proofmill scale --dry-run --bus nats://127.0.0.1:4222 --workflow NAME --json
  proofmill scale --serve 127.0.0.1:9466 --bus nats://127.0.0.1:4222 --workflow NAME

`[[scaling]]` in the workflow file sets floors, ceilings and fallback pools; see docs/scaling.md.";

/// `proofmill scale`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Scale {
    #[command(flatten)]
    pub(crate) mill: MillArgs,
    /// Print how many workers each pool has and should have, and why.
    #[arg(long, conflicts_with = "serve")]
    pub(crate) dry_run: bool,
    /// Answer KEDA on this address, as an external scaler over gRPC, until a signal. Beyond loopback it needs the
    /// certificate, the key and the CA of the callers.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "json", help_heading = SERVING)]
    pub(crate) serve: Option<SocketAddr>,
    /// The certificate for that address (PEM).
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "serve"], help_heading = SERVING)]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The certificate's key (PEM); it must not be readable by everybody.
    #[arg(long, value_name = "FILE", requires = "tls_certificate", help_heading = SERVING)]
    pub(crate) tls_key: Option<PathBuf>,
    /// Certificates (PEM) of the authority that signs the callers': KEDA shows its own, the `tlsClientCert` of its
    /// TriggerAuthentication.
    #[arg(long, value_name = "FILE", requires = "tls_certificate", help_heading = SERVING)]
    pub(crate) client_ca: Option<PathBuf>,
}

// === impl Scale ===

impl Scale {
    /// Options of the scaler; `None` without `--serve`.
    pub(crate) fn options(&self) -> Option<ScalerOptions> {
        let tls = self.tls_certificate.clone().zip(self.tls_key.clone());
        Some(ScalerOptions {
            address: self.serve?,
            tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
            client_ca: self.client_ca.clone(),
            connections: ConnectionLimits::default(),
        })
    }
}
