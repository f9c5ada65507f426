//! Jobs on their way: one task decides what goes next, and workers do it.
//!
//! [`Scheduler`] takes one event at a time: a command, a partition that comes back, memory that is there,
//! the log's progress, the clock. Its state is in parts. Each part is a file, its fields are private, and it
//! knows no other part; what an event means for several of them is written down in the files beside
//! `scheduler`, one for each sort of event.
//!
//! ```text
//!   callers ── Command ──▶ scheduler ◀── Back ───────── background ──▶ keys, stages
//!                             │                          (what takes time)
//!          events             │            parts
//!   command  what is asked    ├──▶ jobs        jobs that are not at their end: by id, client, deadline
//!   submit   accepting        │      └ job     partitions, attempts, proofs, who waits for it
//!   progress partitions       ├──▶ admission   partitions that wait for memory, in one line
//!   end      jobs that end    ├──▶ underway    how many have their memory; which of them multiply
//!   view     the status       ├──▶ lanes       the stages, and what waits before each
//!                             ├──▶ devices     which is free, what each is blamed for
//!                             │      └ device
//!                             ├──▶ results     jobs at their end, as long as their results are kept
//!                             ├──▶ unwritten   what follows when the log is on disk
//!                             └──▶ tally       counts, and how often a job ends
//! ```
//!
//! A partition that has its memory is a [`Flight`](flight::Flight). It is in one place at a time: in
//! `background` or before a stage in `lanes`; `failure` says what a failed attempt at it means. Under test
//! each part has a `check`, which `simulation` calls after every event of its seeded histories.

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
