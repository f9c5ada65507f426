//! The core's behaviour, by topic, through its public interface.

mod backpressure;
mod collectors;
mod dead_letters;
mod deadlines;
mod distrust;
mod draft;
mod forged;
mod history;
mod hosts;
mod late;
mod measures;
mod origins;
mod pauses;
mod queries;
mod restart;
mod rewind;
mod sequencer;
mod set_aside;
mod speculation;
mod steps;
mod support;
mod traces;
mod waiting;
mod workers;
