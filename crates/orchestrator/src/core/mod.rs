//! The deterministic core: all scheduling, as one state machine without input or output.
//!
//! [`Core::handle`] takes an [`Event`] and the time, and returns the [`Action`]s to carry out. The
//! core reads no clock, draws no random number and touches no file, so that the same events give
//! the same actions: the simulator runs thousands of seeded histories through it, and production
//! runs the very same code behind the embedded log or JetStream.
//!
//! # Parts
//!
//! State lies in parts. Each is a file or folder here with private fields, a small set of verbs that keep
//! its indices in step, its unit tests and a `check`; it knows no other part but the numbers of tasks.
//! `machine` holds the parts and calls them:
//!
//! ```text
//!                Event, time                                        Actions
//!                     │                                                ▲
//!   machine ──────────▼────────────────────────────────────────────────┴─────────────
//!     submit      worker     accept      collect    emit      rewind      append
//!     what a      join,      results     offer,     to the    blocks      to the log,
//!     producer    lease,     and what    fire       sink      taken       and what is
//!     brings      fail       goes on     groups               back        accepted
//!       │           │           │           │         │         │           │
//!   parts ───────────────────────────────────────────────────────────────────────────
//!     tasks         live tasks: phases, copies, attempts; what is claimable, waits, is
//!                   leased, held, queued, may be hedged
//!     dead_letters  the dead-letter queue, and decisions about it
//!     marks         what is remembered of finished tasks
//!     workers       what each offers and has; which are free
//!     speculation   how long runs take; when hedging is looked at
//!     progress      attempts that have begun and are not recorded yet
//!     submissions   messages that wait for room, or for an append
//!     sources       where each goes on; blocks that are taken back
//!     collectors    groups that are gathered, and those that fired
//!     hosts         who evaluates the strategies of collectors
//!     sequencer     how far the emission has come
//!     slots         blocks whose deadline is counted
//!     history       how tasks went, as the log keeps it
//!     counts        counters, and what the log has of them
//!     appends       what is on its way to the log
//!     timers        what is to be looked at, and when
//! ```
//!
//! Beside them: `layout`, what the plan comes to for the core; `event`, `view` and `blocks`, what goes in
//! and comes out; `change`, `ending`, `limits` and `tag`, values that parts and machine share.
//!
//! # What survives
//!
//! State is of two kinds. What the log holds (tasks, results, dead letters, barriers that fired,
//! the sequencer's cursor) changes only when an append has been accepted, and is rebuilt by
//! [`Core::replay`]. The rest (workers, leases, timers, producers that wait) is soft: it is lost
//! with the process, and rebuilt from heartbeats and time.
//!
//! Acceptance is not durability. The core goes on as soon as the log has accepted a batch; whatever
//! the outside may see of it (replies, emissions) carries the sequence number that has to be
//! durable first. A crash loses a suffix of what was accepted, and nothing that was shown.

mod appends;
mod block_count;
mod blocks;
mod change;
mod collectors;
mod counts;
mod dead_letters;
mod ending;
mod event;
mod history;
mod hosts;
mod layout;
mod limits;
mod machine;
mod marks;
mod options;
mod progress;
mod sequencer;
mod slots;
mod sources;
mod speculation;
mod submissions;
mod tag;
mod tasks;
mod timers;
mod view;
mod workers;

pub use blocks::{BLOCKS_MAX, BlockState, BlockSummary, BlockView, DeadlineState, LiveStep};
pub use event::{Action, Event, Now, RequestId, Settled, Time, Timing, Token};
pub use history::HistoryOptions;
pub use limits::TASK_MAX;
pub use machine::{Core, GROUP_MAX, KEY_MAX, ReplayError};
pub use options::{CoreOptions, Routing};
pub use tag::{LEASE_KEY_BYTES, LeaseKey, LeaseTag};
pub use view::{
    Counters, GAPS_MAX, HostStatus, PausedWorker, StageStatus, Status, TaskPhase, TaskView,
    WorkerView,
};
