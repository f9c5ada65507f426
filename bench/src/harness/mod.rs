//! What every experiment needs: a place on a real disk, a mill that runs, and a report.

mod disk;
mod figures;
mod host;
mod place;
mod progress;
mod provers;
mod report;
pub(crate) mod role;
mod running;

pub(crate) use figures::Figures;
pub(crate) use host::describe;
pub(crate) use place::{Common, Place};
pub(crate) use progress::Progress;
pub(crate) use provers::{registry, work_for};
pub(crate) use report::{Report, Target, round};
pub(crate) use running::{Running, json_message, one_stage, parse};
