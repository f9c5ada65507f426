//! The life of jobs: one task decides what comes next, and workers do it.
//!
//! [`Scheduler`] takes one event at a time: a command, a partition that comes back, granted memory,
//! progress of the log, the clock. Its state is divided into parts. Each part is a file with private
//! fields, and depends on no other part. An event that concerns several parts is handled in the files
//! beside `scheduler`, one for each kind of event.
//!
//! ```text
//!   callers ── Command ──▶ scheduler ◀── Completion ─── background ──▶ keys, stages
//!                             │                          (slow work)
//!          events             │            parts
//!   command  requests         ├──▶ jobs        unfinished jobs: by id, client, deadline
//!   submit   accepting        │      └ job     partitions, attempts, proofs, waiting callers
//!   progress partitions       ├──▶ admission   partitions that wait for memory, in one line
//!   end      jobs that end    ├──▶ underway    the number that have their memory, and those that multiply
//!   view     the status       ├──▶ lanes       the stages, and the partitions before each
//!                             ├──▶ devices     the choice of a free one, faults of each
//!                             │      └ device
//!                             ├──▶ results     ended jobs whose results are kept
//!                             ├──▶ unwritten   consequences of records, until they are on disk
//!                             └──▶ tally       counters, and the rate at which jobs end
//! ```
//!
//! A partition that has its memory is a [`RunningPartition`](flight::RunningPartition). It is in one place
//! at a time: in `background` or before a stage in `lanes`. `failure` interprets a failed attempt at it. In
//! tests each part has a `check`, which `simulation` calls after every event of its seeded histories.

mod admission;
mod background;
mod command;
mod device;
mod devices;
mod end;
mod failure;
mod flight;
mod job;
mod jobs;
mod lanes;
mod progress;
mod results;
mod scheduler;
mod step;
mod submit;
mod tally;
mod underway;
mod unwritten;
mod view;

pub(crate) use command::Command;
pub(crate) use device::{Device, pool};
pub(crate) use scheduler::{Env, Scheduler};
pub(crate) use submit::{Prepared, PreparedPartition};
