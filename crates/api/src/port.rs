//! TCP ports, and what is needed where other machines can reach them.

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

use crate::connections::ConnectionLimits;
use crate::pace::Pressure;
use crate::serve::{Terms, Versions};

/// What a server shows for itself, as PEM files.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, with those between it and its authority.
    pub certificate: PathBuf,
    /// Its key; not for everybody to read.
    pub key: PathBuf,
}

/// A TCP port to offer a service on. Beyond loopback TLS and tokens are needed.
#[derive(Clone, Debug)]
pub struct TcpOptions {
    /// The address; port 0 is any.
    pub address: SocketAddr,
    /// TLS, or none.
    pub tls: Option<TlsFiles>,
    /// A file of tokens, with a client's name, its token and its rights on each line.
    pub tokens: Option<PathBuf>,
    /// Connections at a time, and how long one is kept that asks nothing.
    pub connections: ConnectionLimits,
}

/// A port cannot be offered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// Anybody could listen, or ask.
    #[error(
        "{0} can be reached from other machines: without TLS and a token only a loopback address is \
         offered"
    )]
    Exposed(SocketAddr),
    /// The key cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A file does not hold what it should.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Nobody can listen there.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// A port that is listened on.
pub(crate) struct Port {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
    versions: Versions,
    tls: Option<TlsAcceptor>,
}

/// Listens on a port of any kind.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, PortError> {
    let listening = TcpListener::bind(address).await;
    listening.map_err(|source| PortError::Listen { address, source })
}

// === impl Port ===

impl Port {
    /// Listens, if that is safe: beyond loopback with TLS, for callers with tokens.
    pub(crate) async fn open(
        address: SocketAddr,
        versions: Versions,
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

    /// Where it is, such as `http://127.0.0.1:9465`.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// What accepts its connections, and how they are served.
    pub(crate) fn with_lifetime(
        self,
        lifetime: Duration,
        limits: ConnectionLimits,
        pressure: Pressure,
    ) -> (impl Listener<Addr = SocketAddr>, Terms) {
        let listener = self.listener.tap_io(|connection| {
            // Without it answers come later, but they come.
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
    async fn acceptor(&self, versions: Versions) -> Result<TlsAcceptor, PortError> {
        let Self { certificate, key } = self;
        let pem = tokio::fs::read(certificate).await;
        let pem = pem.map_err(|error| wrong(certificate)(format!("cannot be read: {error}")))?;
        let chain = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| wrong(certificate)(format!("no certificates: {error}")))?;
        if chain.is_empty() {
            return Err(wrong(certificate)("there is no certificate in it".into()));
        }
        let pem = read_secret(key).await?;
        let private = PrivateKeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| wrong(key)(format!("no private key: {error}")))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map(|config| config.with_no_client_auth())
            .and_then(|config| config.with_single_cert(chain, private))
            .map_err(|error| wrong(certificate)(format!("cannot be used: {error}")))?;
        let names: &[&[u8]] = match versions {
            Versions::One => &[b"http/1.1"],
            Versions::Two => &[b"h2"],
            Versions::Both => &[b"h2", b"http/1.1"],
        };
        config.alpn_protocols = names.iter().map(|name| name.to_vec()).collect();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn wrong(path: &Path) -> impl FnOnce(String) -> PortError {
    let path = path.to_owned();
    move |why| PortError::File { path, why }
}
