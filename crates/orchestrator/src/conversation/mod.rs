//! The vocabulary between the core and the roles around it: one serialisable type for each direction.
//!
//! | role | says | is told |
//! |---|---|---|
//! | worker (of a dispatcher) | [`WorkerEvent`] | [`WorkerCommand`] |
//! | host (of collectors) | [`HostEvent`] | [`HostCommand`] |
//! | sink | [`SinkEvent`] | [`SinkCommand`] |
//! | source, operator | [`Request`] | [`Reply`] |
//! | source, operator | [`Query`], which changes nothing | [`QueryAnswer`], which is bounded |
//!
//! A value is made where something happens and travels unchanged, over the bus or not, into the core:
//! there is no second form of it on the way. A new event of a role is a variant here, an arm in the
//! core (`core/machine/handle.rs`), and an arm in [`admit`](crate::remote::admit), which says who may
//! say it from another process.

mod host;
mod query;
mod request;
mod role;
mod sink;
mod worker;

pub use host::{Do, HostCommand, HostEvent, HostJoin, Judged, Verdict, Verdicts};
pub use query::{
    DeadRow, PAGE_MAX, Page, Query, QueryAnswer, QueueRow, TaskRow, TaskSelection, WorkerRow,
};
pub use request::{Edition, Reply, Request, Rewind, Submit, Target};
pub use role::{RoleCommand, RoleEvent};
pub use sink::{SinkCommand, SinkEvent};
pub use worker::{
    Complete, Fail, Join, Lease, LeaseRef, Output, PAUSE_REASON_MAX, WorkerCommand, WorkerEvent,
};
