//! The byte budget of the engine: every large allocation is reserved in it first.

mod account;
mod reservation;
mod state;

pub(crate) use account::{Budget, OverBudget, Reclaim};
pub(crate) use reservation::Reservation;
