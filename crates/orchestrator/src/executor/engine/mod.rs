//! Proving engines, and the routing of tasks to them.
//!
//! An [`Endpoint`] is the interface to one engine. A [`Router`] watches several engines and keeps
//! each job at one of them until it ends; an [`EngineExecutor`] does that with tasks.

mod endpoint;
mod executor;
mod head;
mod polling;
mod router;
mod routing;

pub use endpoint::{
    Endpoint, EndpointError, EngineJob, EngineSnapshot, JobInput, JobOutcome, ProofOutput, Ticket,
    Tier,
};
pub use executor::{EngineExecutor, failure, request_id, stopped};
pub use router::{RouteError, Router};
