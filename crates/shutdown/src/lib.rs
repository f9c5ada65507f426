//! Shutdown signals to services: drain, then stop.
//!
//! ```
//! use proofmill_shutdown::{Level, channel};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let (trigger, mut shutdown) = channel();
//! trigger.raise(Level::Drain);
//! shutdown.reached(Level::Drain).await;
//! assert_eq!(shutdown.level(), Level::Drain);
//! # });
//! ```

use tokio::sync::watch;

/// Stage of a shutdown. It only rises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Normal operation.
    #[default]
    Run,
    /// Accept no new work, finish the work under way, then return.
    Drain,
    /// Return now and hand unfinished work back.
    Stop,
}

/// The sending end, which requests the shutdown.
#[derive(Debug)]
pub struct Trigger(watch::Sender<Level>);

/// The receiving end, cloned to every service.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<Level>);

/// A trigger and the receiver connected to it, at [`Level::Run`].
pub fn channel() -> (Trigger, Shutdown) {
    let (sender, receiver) = watch::channel(Level::Run);
    (Trigger(sender), Shutdown(receiver))
}

// === impl Trigger ===

impl Trigger {
    /// Raises the level; it never falls.
    pub fn raise(&self, level: Level) {
        self.0.send_if_modified(|current| {
            let raised = level > *current;
            *current = level.max(*current);
            raised
        });
    }

    /// The level reached.
    pub fn level(&self) -> Level {
        *self.0.borrow()
    }
}

// === impl Shutdown ===

impl Shutdown {
    /// Waits until the level is at least `level`. Returns at once if the trigger was dropped.
    pub async fn reached(&mut self, level: Level) {
        // An error means that the trigger was dropped: nothing is left to wait for.
        let _ = self.0.wait_for(|current| *current >= level).await;
    }

    /// The level reached.
    pub fn level(&self) -> Level {
        *self.0.borrow()
    }
}
