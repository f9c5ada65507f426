//! TLS client settings.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::client::HttpError;

/// A connector that trusts the system's authorities and those in the file `ca` (PEM).
pub(crate) fn connector(ca: Option<&Path>) -> Result<TlsConnector, HttpError> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::warn!(%error, "an authority of the system is not trusted");
    }
    roots.add_parsable_certificates(system.certs);
    if let Some(path) = ca {
        let failed = |why: String| HttpError::Setup(format!("{}: {why}", path.display()));
        let before = roots.len();
        let read = CertificateDer::pem_file_iter(path);
        for certificate in read.map_err(|error| failed(error.to_string()))? {
            let added = certificate.map_err(|error| error.to_string());
            let added = added.and_then(|found| roots.add(found).map_err(|error| error.to_string()));
            added.map_err(failed)?;
        }
        if roots.len() == before {
            return Err(failed("there is no certificate in it".into()));
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpError::Setup(error.to_string()))?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
