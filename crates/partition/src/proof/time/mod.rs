//! The time that a proof takes on a number of cores, estimated by a formula whose constants are measured on the machine
//! at hand.
//!
//! The steps follow each other, and each begins when the one before has ended:
//!
//! ```text
//! keys → trace of all parts, serial → commitments → challenge → proofs → aggregation
//! ```
//!
//! Commitments and proofs are made on all cores, one part on each core: a core that is free takes the next part. With v
//! variables and d points of the domain in a class:
//!
//! | quantity | estimate |
//! |---|---|
//! | keys | bytes of all keys · [`Rates::load`]: a worker reads all keys before its first part, all workers at once |
//! | trace of a part | constraints · [`Rates::run`], at most: a run with the memory check, which tracing leaves out |
//! | commitment to a part | committed variables · [`Rates::commit`] |
//! | proof of a part | constraints · [`Rates::run`] + (v + d) · [`Rates::prove`] |
//! | challenge | parts · [`Rates::challenge`] |
//! | aggregation | [`Rates::aggregate_least`] + parts · [`Rates::aggregate`], on one core |
//!
//! The formula leaves out the transfer of tasks, the checks of a coordinator, the time of an orchestrator, and disks.
//! Rates of proofs are those of values like random numbers in parts of some thousands of constraints: parts whose values
//! are mostly bits take less, and so do larger parts; a commitment to a few variables takes longer than its share of one to
//! a thousand. Rates are times by the clock: other work on the machine makes them longer.

mod needs;
mod rates;

pub use needs::{PartTimes, StepTimes, TimeNeeds};
pub use rates::{MeasureError, Rates};
