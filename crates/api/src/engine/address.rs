//! The address of an engine in another process.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hyper::Uri;

/// The address of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Socket(PathBuf),
    /// A TCP port: `http://HOST:PORT`, or with TLS `https://HOST:PORT`.
    Tcp(Uri),
}

/// A text that is not an address of an engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address of an engine: `unix:PATH`, `http://HOST:PORT` or `https://HOST:PORT`")]
pub struct InvalidAddress(String);

// === impl Address ===

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            let path = Path::new(path);
            return match path.file_name() {
                Some(_) => Ok(Self::Socket(path.to_owned())),
                None => Err(invalid()),
            };
        }
        let uri: Uri = text.parse().map_err(|_| invalid())?;
        let known = matches!(uri.scheme_str(), Some("http" | "https"));
        if known && uri.port().is_some() && matches!(uri.path(), "" | "/") {
            Ok(Self::Tcp(uri))
        } else {
            Err(invalid())
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(uri) => uri.fmt(f),
        }
    }
}
