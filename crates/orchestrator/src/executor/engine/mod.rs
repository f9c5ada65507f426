//! Engines that make a stage's proofs: which of them gets which task.
//!
//! An [`Endpoint`] is what there is to say to one engine. A [`Router`] looks at several, brings each
//! job to one of them and stays with it to its end; an [`EngineExecutor`] does that with tasks.

mod endpoint;
mod executor;
mod head;
mod router;
mod routing;
mod seen;

pub use endpoint::{End, Endpoint, EndpointError, Job, JobInput, Look, Made, Ticket, Tier};
pub use executor::{EngineExecutor, failure, request_id, stopped};
pub use router::{RouteError, Router};
