//! The task that settles, and the handle by which it is asked.

use std::path::Path;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::contract::Emission;
use crate::error::SettleError;
use crate::journal::Journal;
use crate::options::Options;
use crate::settler::Settler;

/// Longest time between two looks at the chain while nothing is asked for.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Asks the task that settles. The task ends when all handles are gone.
#[derive(Clone, Debug)]
pub struct Settlement {
    requests: mpsc::Sender<Request>,
}

struct Request {
    emissions: Vec<Emission>,
    answer: oneshot::Sender<Result<(), SettleError>>,
}

// === impl Settlement ===

impl Settlement {
    /// Starts the task on the current runtime, with the journal in the folder `journal`.
    ///
    /// # Errors
    /// [`SettleError::Journal`].
    pub fn start(options: Options, journal: &Path) -> Result<Self, SettleError> {
        let settler = Settler::new(options, Journal::open(journal)?);
        let (requests, receiver) = mpsc::channel(1);
        tokio::spawn(run(settler, receiver));
        Ok(Self { requests })
    }

    /// Settles emissions in order; returns when each has its confirmations. Emissions that the chain has settled are passed
    /// over, so the same may be asked again after any error. If the future is dropped, what was sent is watched on.
    ///
    /// # Errors
    /// [`SettleError`]; some of the first emissions may have been settled.
    pub async fn settle(&self, emissions: Vec<Emission>) -> Result<(), SettleError> {
        let (answer, answered) = oneshot::channel();
        let request = Request { emissions, answer };
        let sent = self.requests.send(request).await;
        sent.map_err(|_| SettleError::Ended)?;
        answered.await.unwrap_or(Err(SettleError::Ended))
    }
}

async fn run(mut settler: Settler, mut requests: mpsc::Receiver<Request>) {
    let mut pause = settler.poll();
    loop {
        tokio::select! {
            request = requests.recv() => {
                let Some(Request { emissions, mut answer }) = request else {
                    return;
                };
                let result = tokio::select! {
                    result = settler.settle(&emissions) => result,
                    () = answer.closed() => continue,
                };
                // Whoever asked may be gone by now.
                let _ = answer.send(result);
                pause = settler.poll();
            }
            () = tokio::time::sleep(pause), if settler.has_to_watch() => {
                pause = match settler.look().await {
                    Ok(_) => settler.poll(),
                    Err(error) => {
                        tracing::warn!("settled transactions cannot be watched: {error}");
                        (pause * 2).min(IDLE_MAX)
                    }
                };
            }
        }
    }
}
