//! Where messages are taken, and what has to be there for it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proofmill_bus::{ConnectError, read_secret};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use super::gate::Token;

/// Where messages are taken, and from whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 for any.
    pub address: SocketAddr,
    /// The server's certificate, with those between it and its authority, and its key (PEM).
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// A file with the token that producers show.
    pub token: Option<PathBuf>,
    /// How long a message may wait for room in its queue before its producer is told to ask again.
    pub patience: Duration,
}

/// Why messages cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// Other machines could send messages, and nothing keeps anybody from it.
    #[error(
        "messages are not taken on {0}, which other machines can reach, without TLS and a token: give \
         --submit-cert, --submit-key and --submit-token, or listen on 127.0.0.1"
    )]
    Exposed(SocketAddr),
    /// A file with a secret cannot be used.
    #[error(transparent)]
    Secret(#[from] ConnectError),
    /// A file does not hold what it should.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// In words.
        why: String,
    },
    /// Nobody can listen there.
    #[error("cannot take messages on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

// === impl Options ===

impl Options {
    /// How long a message may wait for room in its queue.
    pub const PATIENCE: Duration = Duration::from_secs(30);

    /// Whether what is given is enough for the address.
    pub(super) fn check(&self) -> Result<(), OptionsError> {
        let is_safe = self.certificate.is_some() && self.token.is_some();
        if self.address.ip().is_loopback() || is_safe {
            return Ok(());
        }
        Err(OptionsError::Exposed(self.address))
    }

    pub(super) async fn token(&self) -> Result<Option<Token>, OptionsError> {
        let Some(path) = &self.token else {
            return Ok(None);
        };
        let text = Zeroizing::new(read_secret(path).await?);
        let token = Token::new(&text).map_err(wrong(path))?;
        Ok(Some(token))
    }

    pub(super) async fn tls(&self) -> Result<Option<TlsAcceptor>, OptionsError> {
        let Some((certificate, key)) = &self.certificate else {
            return Ok(None);
        };
        let pem = tokio::fs::read(certificate).await;
        let pem = pem.map_err(|error| wrong(certificate)(format!("cannot be read: {error}")))?;
        let chain = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| wrong(certificate)(format!("no certificates: {error}")))?;
        if chain.is_empty() {
            return Err(wrong(certificate)("there is no certificate in it".into()));
        }
        let pem = Zeroizing::new(read_secret(key).await?);
        let private = PrivateKeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| wrong(key)(format!("no private key: {error}")))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map(|config| config.with_no_client_auth())
            .and_then(|config| config.with_single_cert(chain, private))
            .map_err(|error| wrong(certificate)(format!("cannot be used: {error}")))?;
        Ok(Some(TlsAcceptor::from(Arc::new(config))))
    }
}

fn wrong(path: &Path) -> impl FnOnce(String) -> OptionsError {
    let path = path.to_owned();
    move |why| OptionsError::File { path, why }
}
