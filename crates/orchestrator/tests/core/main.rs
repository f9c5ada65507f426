//! The core's behaviour, by topic, through its public interface.

mod backpressure;
mod collectors;
mod dead_letters;
mod deadlines;
mod hosts;
mod restart;
mod sequencer;
mod speculation;
mod support;
mod workers;
