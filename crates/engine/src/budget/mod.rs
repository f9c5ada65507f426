//! One byte budget for everything large: what is allocated was reserved before.

mod account;
mod reservation;
mod state;

pub(crate) use account::{Budget, OverBudget, Reclaim};
pub(crate) use reservation::Reservation;
