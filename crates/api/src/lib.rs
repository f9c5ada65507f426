//! The APIs of mills, engines, verifiers and key directories, with their clients.
//!
//! [`Operations`] are the requests to an open mill. A running mill offers them over HTTP on a socket in its
//! state directory that only its user can open ([`control`]); [`Client`] is its client. The leader of a
//! workflow on a cluster offers the same over the bus ([`over_bus`]). Producers on other machines post
//! messages to a TCP port ([`intake`]), and metrics and health are on another one ([`metrics`]); both ports
//! are optional.
//!
//! The proving engine has a front end of its own ([`engine`]), and so have the verifier ([`verifier`]) and key
//! directories ([`directory`]).

mod access;
mod actions;
mod audit;
mod blocks;
mod bodies;
mod body_timeout;
mod client;
mod connections;
pub mod console;
pub mod control;
pub mod directory;
pub mod engine;
mod gate;
mod grpc;
mod handshake_deadline;
pub mod intake;
pub mod metrics;
mod operations;
pub mod over_bus;
mod page;
mod port;
mod refused;
pub mod scaler;
mod serve;
mod socket;
mod submissions;
pub mod traces;
mod types;
pub mod verifier;
mod view;

pub use access::AccessError;
pub use actions::{Action, ActionResult, DeadFilter};
pub use audit::{Actor, AuditEntry, AuditLog};
pub use blocks::{
    BlockDeadLetter, BlockEntry, BlockEventKind, BlockFailure, BlockStatus, BlockStep, BlockTask,
    BlockWorker, BlocksQuery,
};
pub use client::{Client, ClientError};
pub use connections::ConnectionLimits;
pub use operations::{OperationError, Operations};
pub use port::{PortError, TcpOptions, TlsFiles};
pub use socket::{SOCKET_NAME, socket_path};
pub use submissions::Submissions;
pub use types::{
    BundleQuery, Cancellation, DeadLetter, DeadSummary, Dropped, FailedAttempt, Gap, QueueStatus,
    Submission, SubmitAnswer, TaskSummary, TasksQuery,
};
pub use view::{HeadBlock, MillView, SourceHead, WaitingTask};
