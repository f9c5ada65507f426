//! The controller: a deterministic state machine of `docs/zkpu.md` over any [`MsmDevice`].
//!
//! Commands and their data go in, replies come out; there is no input, output or clock but the device's. A transport
//! asks [`Controller::plan`] what data a command has, moves it, and calls [`Controller::execute`].

mod admin;
mod cycles;
mod device;
mod events;
mod features;
mod identify;
mod io;
mod jobs;
mod logs;
mod model;
mod programs;
mod properties;
mod state;
#[cfg(test)]
pub(crate) mod tests;
mod transport;

pub use cycles::{CycleModel, best_window};
pub use device::{
    Area, CoreCounters, CoreEnd, CoreJob, CoreState, DeviceDescription, DeviceError, MsmDevice,
    Stop, Work,
};
pub use model::{Execution, FunctionalModel, ModelOptions};
pub use state::{Controller, QUEUE_ENTRIES_MAX, QUEUES_MAX, Reply};
pub use transport::NvmeController;
