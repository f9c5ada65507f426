//! The listener, and serving on it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::gate::Gate;
use super::options::{Options, OptionsError};
use super::routes::router;
use super::taker::Taker;
use crate::operations::Operations;
use crate::serve;

/// A connection is closed after so long: a producer opens another.
const LIFETIME: Duration = Duration::from_secs(600);

/// A place where messages are taken.
pub struct Intake {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    gate: Gate,
    patience: Duration,
}

// === impl Intake ===

impl Intake {
    /// Reads what has to be there, and listens. Nobody is answered before [`Intake::serve`].
    ///
    /// # Errors
    /// [`OptionsError`], which says what to change.
    pub async fn open(options: &Options) -> Result<Self, OptionsError> {
        options.check()?;
        let address = options.address;
        let failed = |source| OptionsError::Listen { address, source };
        let tls = options.tls().await?;
        let token = options.token().await?;
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        Ok(Self {
            address: listener.local_addr().map_err(failed)?,
            listener,
            tls,
            gate: Gate { token },
            patience: options.patience,
        })
    }

    /// Where it is, such as `http://127.0.0.1:9465`.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Takes messages by `operations` until `stop`; who waits for an answer by then has 5 s to get it.
    pub async fn serve(self, operations: Operations, stop: impl Future<Output = ()>) {
        let taker = Arc::new(Taker::new(operations, self.patience));
        let router = router(taker, Arc::new(self.gate));
        serve::serve(self.listener, self.tls, router, LIFETIME, stop).await;
    }
}
