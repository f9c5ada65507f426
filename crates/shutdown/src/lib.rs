//! Telling services to finish, or to stop.
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

/// How far a shutdown has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Carry on.
    #[default]
    Run,
    /// Take nothing new, finish what is under way, then return.
    Drain,
    /// Return now; what is under way is handed back.
    Stop,
}

/// The end that asks.
#[derive(Debug)]
pub struct Trigger(watch::Sender<Level>);

/// The end that listens; cloned to every service.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<Level>);

/// A trigger and what listens to it.
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
    /// Waits until the level is at least `level`. If the trigger is gone, that is [`Level::Stop`].
    pub async fn reached(&mut self, level: Level) {
        // An error means that the trigger was dropped: nobody is left to run for.
        let _ = self.0.wait_for(|current| *current >= level).await;
    }

    /// The level reached.
    pub fn level(&self) -> Level {
        *self.0.borrow()
    }
}
