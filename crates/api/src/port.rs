//! TCP ports, with TLS and tokens where other machines can reach them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::serve::{Listener, ListenerExt};
use proofmill_bus::{SecretError, read_secret};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::body_timeout::Pressure;
use crate::connections::ConnectionLimits;
use crate::serve::{HttpVersions, Terms};

/// A server's certificate and key, as PEM files.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, followed by intermediate certificates.
    pub certificate: PathBuf,
    /// The certificate's private key. Other users must not be able to read the file.
    pub key: PathBuf,
}

/// A TCP port on which to offer a service. Beyond loopback TLS and tokens are required.
#[derive(Clone, Debug)]
pub struct TcpOptions {
    /// The address to listen on; port 0 for any free port.
    pub address: SocketAddr,
    /// The certificate and key for TLS; none without TLS.
    pub tls: Option<TlsFiles>,
    /// A file of tokens, with a client's name, its token and its rights on each line.
    pub tokens: Option<PathBuf>,
    /// Limits on connections, and the time for which an idle one is kept.
    pub connections: ConnectionLimits,
}

/// The reason that a port cannot be offered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The address can be reached from other machines, and TLS or tokens are missing.
    #[error(
        "{0} can be reached from other machines: without TLS and a token only a loopback address \
         is allowed"
    )]
    Exposed(SocketAddr),
    /// The key cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The content of a file is invalid.
    #[error("{}: {why}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// A TCP port that is listened on.
pub(crate) struct Port {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
    versions: HttpVersions,
    tls: Option<TlsAcceptor>,
}

/// Listens on a port without checks.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, PortError> {
    let listening = TcpListener::bind(address).await;
    listening.map_err(|source| PortError::Listen { address, source })
}

// === impl Port ===

impl Port {
    /// Listens, if that is safe: beyond loopback only with TLS and tokens.
    pub(crate) async fn open(
        address: SocketAddr,
        versions: HttpVersions,
        tls: Option<&TlsFiles>,
        has_tokens: bool,
    ) -> Result<Self, PortError> {
        if !(address.ip().is_loopback() || tls.is_some() && has_tokens) {
            return Err(PortError::Exposed(address));
        }
        let tls = match tls {
            Some(files) => Some(files.acceptor(versions).await?),
            None => None,
        };
        let listener = listen(address).await?;
        let bound = listener.local_addr();
        Ok(Self {
            address: bound.map_err(|source| PortError::Listen { address, source })?,
            listener,
            versions,
            tls,
        })
    }

    /// Its URL, such as `http://127.0.0.1:9465`.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The listener, and the terms on which its connections are served.
    pub(crate) fn into_listener(
        self,
        lifetime: Duration,
        limits: ConnectionLimits,
        pressure: Pressure,
    ) -> (impl Listener<Addr = SocketAddr>, Terms) {
        let listener = self.listener.tap_io(|connection| {
            // Without the option answers are slower, but still correct.
            let _ = connection.set_nodelay(true);
        });
        let terms = Terms {
            versions: self.versions,
            tls: self.tls,
            lifetime,
            limits: Some(limits),
            pressure,
        };
        (listener, terms)
    }
}

// === impl TlsFiles ===

impl TlsFiles {
    async fn acceptor(&self, versions: HttpVersions) -> Result<TlsAcceptor, PortError> {
        let Self { certificate, key } = self;
        let pem = tokio::fs::read(certificate).await;
        let pem =
            pem.map_err(|error| file_error(certificate)(format!("cannot be read: {error}")))?;
        let chain = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| file_error(certificate)(format!("no certificates: {error}")))?;
        if chain.is_empty() {
            return Err(file_error(certificate)(
                "there is no certificate in it".into(),
            ));
        }
        let pem = read_secret(key).await?;
        let private = PrivateKeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| file_error(key)(format!("no private key: {error}")))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map(|config| config.with_no_client_auth())
            .and_then(|config| config.with_single_cert(chain, private))
            .map_err(|error| file_error(certificate)(format!("cannot be used: {error}")))?;
        let names: &[&[u8]] = match versions {
            HttpVersions::Http1 => &[b"http/1.1"],
            HttpVersions::Http2 => &[b"h2"],
            HttpVersions::Both => &[b"h2", b"http/1.1"],
        };
        config.alpn_protocols = names.iter().map(|name| name.to_vec()).collect();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn file_error(path: &Path) -> impl FnOnce(String) -> PortError {
    let path = path.to_owned();
    move |why| PortError::File { path, why }
}
