//! The deterministic core: all scheduling, as one state machine without input or output.
//!
//! [`Core::handle`] takes an [`Event`] and the time, and returns the [`Action`]s to carry out. The core reads
//! no clock, draws no random number and touches no file, so the same events always give the same actions. The
//! simulator runs thousands of seeded histories through it, and production runs the same code behind the
//! embedded log or JetStream.
//!
//! # Parts
//!
//! The state is split into parts. Each part is a file or folder here with private fields, a small set of
//! methods that keep its indices in step, unit tests and a `check`. A part knows nothing of the other parts
//! except task numbers. `machine` holds the parts and calls them:
//!
//! ```text
//!                Event, time                                        Actions
//!                     │                                                ▲
//!   machine ──────────▼────────────────────────────────────────────────┴─────────────
//!     submit      worker     accept      collect    emit      rewind      append
//!     messages    join,      results     offer,     to the    blocks      writes to
//!     from        lease,     and their   fire       sink      taken       the log, and
//!     producers   fail       outputs     groups               back        their acceptance
//!       │           │           │           │         │         │           │
//!   parts ───────────────────────────────────────────────────────────────────────────
//!     tasks         live tasks: phases, copies, attempts; indices of the claimable, waiting,
//!                   leased, held, queued and hedgeable ones
//!     dead_letters  the dead-letter queue, and decisions about it
//!     marks         marks of finished tasks
//!     workers       each worker's offer and assignments; the free workers
//!     speculation   durations of runs; the time of the next hedging check
//!     progress      attempts that have begun and are not recorded yet
//!     submissions   messages that wait for room, for their paused source, or for an append
//!     pauses        stages and sources that an operator has paused
//!     sources       each source's position; blocks being taken back
//!     collectors    groups being gathered, and groups that fired
//!     hosts         the evaluators of collectors' strategies: the core, or hosts
//!     sequencer     position of the emission
//!     slots         blocks whose deadline is counted
//!     history       the timeline of ended tasks, as kept in the log
//!     counts        counters, and their values in the log
//!     scaling       pools of workers: how many each should have
//!     appends       appends that the log has not answered yet
//!     timers        pending timers, by due time
//!     spans         values by span of blocks: the index of tasks, dead letters, marks, slots and history by block
//! ```
//!
//! Besides the parts: `layout` is the compiled plan as the core uses it; `event`, `view` and `blocks` are the
//! core's inputs and outputs; `change`, `ending`, `limits` and `tag` are values that parts and machine share.
//!
//! # Durability
//!
//! State is of two kinds. The state that the log holds (tasks, results, dead letters, fired barriers, the
//! sequencer's cursor) changes only when an append has been accepted, and [`Core::replay`] rebuilds it. The
//! rest (workers, leases, timers, waiting producers) is soft: it is lost with the process, and rebuilt from
//! heartbeats and time.
//!
//! Acceptance is not durability. The core proceeds as soon as the log has accepted a batch; everything that
//! becomes visible outside (replies, emissions) carries the sequence number that must be durable first. A
//! crash loses a suffix of the accepted records, and nothing that was visible outside.

mod appends;
mod block_count;
mod blocks;
mod change;
mod collectors;
mod counts;
mod dead_letters;
mod durations;
mod ending;
mod event;
mod history;
mod hosts;
mod layout;
mod limits;
mod machine;
mod marks;
mod measures;
mod options;
mod pauses;
mod progress;
mod scaling;
mod sequencer;
mod slots;
mod sources;
mod spans;
mod speculation;
mod steps;
mod submissions;
mod tag;
mod tasks;
mod timers;
mod usage;
mod view;
mod waiting;
mod work;
mod workers;

pub use blocks::{
    ATTEMPTS_MAX, BLOCKS_MAX, BlockState, BlockSummary, BlockView, DeadStep, DeadlineState,
    LeaseSpan, LiveStep, STREAM_END_MAX,
};
pub use event::{
    Action, Event, FalseResult, Now, RequestId, Settled, TaskReport, TaskReportKind, Time, Timing,
    Token,
};
pub use history::HistoryOptions;
pub use limits::TASK_MAX;
pub use machine::{Core, GROUP_MAX, KEY_MAX, ReplayError};
pub use measures::{GroupMeasure, Measures, OldestMeasure, WaitMeasure};
pub use options::{CoreOptions, Routing};
pub use scaling::PoolStatus;
pub use steps::{
    BlockSteps, OldestPart, STEP_BLOCKS_MAX, SlowestPart, StageCounts, Step, StepsView,
};
pub use tag::{LEASE_KEY_BYTES, LeaseKey, LeaseTag};
pub use view::{
    Counters, DistrustedUser, GAPS_MAX, HostStatus, PausedWorker, SourceStatus, StageStatus,
    Status, TaskPhase, TaskView, WorkerView,
};
pub use waiting::{LowerBlock, WaitReason, WorkerLack};
pub use work::WorkEvent;
