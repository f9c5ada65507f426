//! Shared parts of the experiments: a state directory on a real disk, a running mill, and a report.

mod disk;
mod emissions;
mod figures;
mod fleet;
mod groups;
mod host;
mod journal;
mod load;
mod program;
mod progress;
mod provers;
mod report;
pub(crate) mod role;
mod running;
mod state_disk;
mod tally;

pub(crate) use emissions::EmissionCounter;
pub(crate) use figures::Figures;
pub(crate) use fleet::Fleet;
pub(crate) use groups::{barriers, is_group, member, member_json};
pub(crate) use host::{describe, memory, peak, processor_time, processor_time_of};
pub(crate) use journal::Journal;
pub(crate) use load::Load;
pub(crate) use program::Program;
pub(crate) use progress::Progress;
pub(crate) use provers::{registry, sleep, work_for};
pub(crate) use report::{Report, Target, mib, round};
pub(crate) use role::Role;
pub(crate) use running::{RunningMill, is_block, json_message, one_stage, parse, sequenced_stage};
pub(crate) use state_disk::{Common, StateDisk};
