//! Messages between the core and the roles around it: one serialisable type for each direction.
//!
//! | role | to the core | from the core |
//! |---|---|---|
//! | worker (of a dispatcher) | [`WorkerEvent`] | [`WorkerCommand`] |
//! | host (of collectors) | [`HostEvent`] | [`HostCommand`] |
//! | sink | [`SinkEvent`] | [`SinkCommand`] |
//! | source, operator | [`Request`] | [`Reply`] |
//! | source, operator | [`Query`] (read-only) | [`QueryAnswer`] (bounded) |
//!
//! A value is created where the event happens and travels unchanged into the core, over the bus or within the
//! process; it has no second form on the way. A new event of a role needs a variant here, an arm in the core
//! (`core/machine/handle.rs`), and an arm in [`admit`](crate::remote::admit), which decides whose event it
//! may be when it comes from another process.

mod host;
mod query;
mod request;
mod role;
mod sink;
mod worker;

pub use host::{Decision, HostCommand, HostEvent, HostJoin, HostRequest, Verdict, Verdicts};
pub use query::{
    DeadRow, PAGE_MAX, Page, Query, QueryAnswer, QueueRow, TaskRow, TaskSelection, WorkerRow,
};
pub use request::{Reply, Request, Rewind, Submit, Target, Uniqueness};
pub use role::{RoleCommand, RoleEvent};
pub use sink::{SinkCommand, SinkEvent};
pub use worker::{
    Lease, LeaseRef, Output, PAUSE_REASON_MAX, WorkerCommand, WorkerEvent, WorkerFailure,
    WorkerJoin, WorkerResult,
};
