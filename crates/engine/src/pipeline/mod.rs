//! Jobs on their way: one task decides what goes next, and workers do it.

mod admission;
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
mod unwritten;
mod view;

pub(crate) use device::{Device, pool};
pub(crate) use scheduler::{Command, Env, Scheduler};
pub(crate) use submit::{Prepared, PreparedPartition};
