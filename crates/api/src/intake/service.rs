//! The listener, and serving on it.

use std::sync::Arc;
use std::time::Duration;

use super::calls::Calls;
use super::gate::Gate;
use super::options::{Options, OptionsError};
use super::routes::router;
use super::taker::Taker;
use crate::access::Token;
use crate::operations::Operations;
use crate::port::Port;
use crate::serve::{self, Versions};

/// A connection is closed after so long: a producer opens another.
const LIFETIME: Duration = Duration::from_secs(600);

/// A place where messages are taken.
pub struct Intake {
    port: Port,
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
        let Options {
            address,
            tls,
            token,
            patience,
        } = options;
        let port = Port::open(*address, Versions::Both, tls.as_ref(), token.is_some()).await?;
        let token = match token {
            Some(path) => Some(Token::read(path).await?),
            None => None,
        };
        Ok(Self {
            port,
            gate: Gate { token },
            patience: *patience,
        })
    }

    /// Where it is, such as `http://127.0.0.1:9465`.
    pub fn url(&self) -> String {
        self.port.url()
    }

    /// Takes messages by `operations` until `stop`; who waits for an answer by then has 5 s to get it.
    pub async fn serve(self, operations: Operations, stop: impl Future<Output = ()>) {
        let taker = Arc::new(Taker::new(operations, self.patience));
        let calls = Calls::new(&taker).await;
        let answer = serve::answers(router(taker, calls.clone(), Arc::new(self.gate)));
        let (listener, terms) = self.port.with_lifetime(LIFETIME);
        let stop = async {
            stop.await;
            calls.ends().await;
        };
        serve::serve(listener, terms, answer, stop).await;
    }
}
