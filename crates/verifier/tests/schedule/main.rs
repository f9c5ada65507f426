//! The scheduler, without threads or clocks.

mod histories;
mod turns;
