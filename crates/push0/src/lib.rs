//! push0 in place: dispatchers and collectors on plain JetStream queues, configured only by the environment
//! variables of the push0 paper and of its public demo, so that they can join or replace the processes of
//! an existing deployment. There is no coordinator.
//!
//! A role reads its variables and runs until it is told to stop:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use proofmill_orchestrator::shutdown;
//! use proofmill_push0::{Environment, dispatcher};
//!
//! let config = Environment::read(|name| std::env::var(name).ok())?;
//! let (_trigger, shutdown) = shutdown::channel();
//! dispatcher::run(config, shutdown, Arc::new(|text| println!("{text}"))).await?;
//! # Ok(()) }
//! ```
//!
//! All guarantees rest on JetStream alone: a message is acknowledged when its results are stored, and a
//! result that is stored twice has the same id. `docs/push0.md` describes these guarantees, and those that
//! need a workflow instead; [`import`] makes a workflow of a deployment's environments.

pub mod collector;
pub mod dispatcher;
mod environment;
mod error;
pub mod import;
mod metrics;
mod payload;
mod port;
mod queues;
pub mod source;

pub use environment::{
    Collection, Config, EnvError, Environment, Field, MAX_INPUTS, MAX_QUEUES, Program, Start,
    Strategy,
};
pub use error::RunError;

/// A callback for one-line messages to a person, such as that a role is ready.
pub type Notices = std::sync::Arc<dyn Fn(&str) + Send + Sync>;
