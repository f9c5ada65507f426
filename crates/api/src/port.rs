//! TCP ports, with TLS and tokens where other machines can reach them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::serve::{Listener, ListenerExt};
use proofmill_bus::{SecretError, read_secret};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

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
    /// The address can be reached from other machines, and TLS or certificates of clients are missing.
    #[error(
        "{0} can be reached from other machines: without TLS and certificates of clients only a loopback \
         address is allowed"
    )]
    Uncertified(SocketAddr),
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

/// Listens on an address that only this machine reaches, for a page that needs no token.
pub(crate) async fn listen_locally(address: SocketAddr) -> Result<TcpListener, PortError> {
    match address.ip().is_loopback() {
        true => listen(address).await,
        false => Err(PortError::Exposed(address)),
    }
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
        Self::bind(address, versions, tls, None).await
    }

    /// Listens for callers that have no tokens, if that is safe: beyond loopback only with TLS and a CA that has
    /// signed the callers' certificates. With a CA, callers need a certificate on loopback too.
    pub(crate) async fn open_for_certified(
        address: SocketAddr,
        versions: HttpVersions,
        tls: Option<&TlsFiles>,
        client_ca: Option<&Path>,
    ) -> Result<Self, PortError> {
        if !address.ip().is_loopback() && (tls.is_none() || client_ca.is_none()) {
            return Err(PortError::Uncertified(address));
        }
        Self::bind(address, versions, tls, client_ca).await
    }

    async fn bind(
        address: SocketAddr,
        versions: HttpVersions,
        tls: Option<&TlsFiles>,
        client_ca: Option<&Path>,
    ) -> Result<Self, PortError> {
        let tls = match tls {
            Some(files) => Some(files.acceptor(versions, client_ca).await?),
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
    async fn acceptor(
        &self,
        versions: HttpVersions,
        client_ca: Option<&Path>,
    ) -> Result<TlsAcceptor, PortError> {
        let Self { certificate, key } = self;
        let chain = read_certificates(certificate).await?;
        let pem = read_secret(key).await?;
        let private = PrivateKeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| file_error(key)(format!("no private key: {error}")))?;
        let verifier = match client_ca {
            Some(authorities) => client_verifier(authorities).await?,
            None => WebPkiClientVerifier::no_client_auth(),
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map(|config| config.with_client_cert_verifier(verifier))
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

/// The certificates in a file, of which there must be at least one.
async fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PortError> {
    let pem = tokio::fs::read(path).await;
    let pem = pem.map_err(|error| file_error(path)(format!("cannot be read: {error}")))?;
    let found = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| file_error(path)(format!("no certificates: {error}")))?;
    if found.is_empty() {
        return Err(file_error(path)("there is no certificate in it".into()));
    }
    Ok(found)
}

/// Admits clients with a certificate that one of these authorities has signed.
async fn client_verifier(authorities: &Path) -> Result<Arc<dyn ClientCertVerifier>, PortError> {
    let mut roots = RootCertStore::empty();
    for authority in read_certificates(authorities).await? {
        let added = roots.add(authority);
        added.map_err(|error| file_error(authorities)(format!("no authority: {error}")))?;
    }
    let provider = Arc::new(ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| file_error(authorities)(format!("cannot be used: {error}")))
}

fn file_error(path: &Path) -> impl FnOnce(String) -> PortError {
    let path = path.to_owned();
    move |why| PortError::File { path, why }
}
