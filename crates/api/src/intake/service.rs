//! The listener, and serving on it.

use std::sync::Arc;
use std::time::Duration;

use super::calls::Calls;
use super::gate::Gate;
use super::options::{Options, OptionsError};
use super::routes::router;
use super::taker::Taker;
use crate::connections::ConnectionLimits;
use crate::operations::Operations;
use crate::pace::Pressure;
use crate::port::Port;
use crate::serve::{self, Versions};

/// A connection is closed after so long: a producer opens another.
const LIFETIME: Duration = Duration::from_secs(600);

/// A place where messages are taken.
pub struct Intake {
    port: Port,
    gate: Gate,
    patience: Duration,
    exact: bool,
    connections: ConnectionLimits,
}

/// Router of an intake without tokens and without a port, for calls from within the same process.
pub async fn in_process(operations: Operations, patience: Duration) -> axum::Router {
    let taker = Arc::new(Taker::new(operations, patience, false, Pressure::default()));
    let calls = Calls::new(&taker).await;
    router(taker, calls, Gate::local())
}

// === impl Intake ===

impl Intake {
    /// Reads what has to be there, and listens. Nobody is answered before [`Intake::serve`].
    ///
    /// # Errors
    /// [`OptionsError`], which says what to change.
    pub async fn open(options: &Options) -> Result<Self, OptionsError> {
        let Options {
            address,
            tls,
            tokens,
            patience,
            exact,
            connections,
        } = options;
        let port = Port::open(*address, Versions::Both, tls.as_ref(), tokens.is_some()).await?;
        let gate = match tokens {
            Some(path) => Gate::of_tokens(path).await?,
            None => Gate::local(),
        };
        Ok(Self {
            port,
            gate,
            patience: *patience,
            exact: *exact,
            connections: *connections,
        })
    }

    /// Where it is, such as `http://127.0.0.1:9465`.
    pub fn url(&self) -> String {
        self.port.url()
    }

    /// Takes messages by `operations` until `stop`; who waits for an answer by then has 5 s to get it.
    pub async fn serve(self, operations: Operations, stop: impl Future<Output = ()>) {
        self.gate.warn_of_unknown_queues(operations.plan());
        let pressure = Pressure::default();
        let taker = Taker::new(operations, self.patience, self.exact, pressure.clone());
        let taker = Arc::new(taker);
        let calls = Calls::new(&taker).await;
        let answer = serve::answers(router(taker, calls.clone(), self.gate));
        let (listener, terms) = self
            .port
            .with_lifetime(LIFETIME, self.connections, pressure);
        let stop = async {
            stop.await;
            calls.ends().await;
        };
        serve::serve(listener, terms, answer, stop).await;
    }
}
