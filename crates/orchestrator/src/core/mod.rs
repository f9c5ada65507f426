//! The deterministic core: all scheduling, as one state machine without input or output.
//!
//! [`Core::handle`] takes an [`Event`] and the time, and returns the [`Action`]s to carry out. The
//! core reads no clock, draws no random number and touches no file, so that the same events give
//! the same actions: the simulator runs thousands of seeded histories through it, and production
//! runs the very same code behind the embedded log or JetStream.
//!
//! State is of two kinds. What the log holds (tasks, results, dead letters, barriers that fired,
//! the sequencer's cursor) changes only when an append has been accepted, and is rebuilt by
//! [`Core::replay`]. The rest (workers, leases, timers, producers that wait) is soft: it is lost
//! with the process, and rebuilt from heartbeats and time.
//!
//! Acceptance is not durability. The core goes on as soon as the log has accepted a batch; whatever
//! the outside may see of it (replies, emissions) carries the sequence number that has to be
//! durable first. A crash loses a suffix of what was accepted, and nothing that was shown.

mod blocks;
mod change;
mod event;
mod limits;
mod machine;
mod ready;
mod tag;
mod view;

pub use blocks::{BLOCKS_MAX, BlockState, BlockSummary, BlockView, DeadlineState, LiveStep};
pub use event::{
    Action, Complete, Edition, Event, Fail, Join, Lease, LeaseRef, Now, Output, PAUSE_REASON_MAX,
    Reply, RequestId, Rewind, Settled, Submit, Target, Time, Timing, Token,
};
pub use limits::TASK_MAX;
pub use machine::{Core, CoreOptions, GROUP_MAX, HistoryOptions, KEY_MAX, ReplayError, Routing};
pub use tag::{LEASE_KEY_BYTES, LeaseKey, LeaseTag};
pub use view::{
    Counters, GAPS_MAX, HostStatus, PausedWorker, StageStatus, Status, TaskPhase, TaskView,
    WorkerView,
};
