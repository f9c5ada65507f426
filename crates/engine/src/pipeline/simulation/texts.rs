//! The texts written down of a history, without times and machine-dependent numbers.

use std::fmt::Debug;

use crate::interface::{Error, JobState, JobView};
use crate::pipeline::background::Back;

pub(super) fn label(back: &Back) -> String {
    let (flight, what) = match back {
        Back::Key(flight, _) => (&**flight, "key"),
        Back::Stepped(stepped) => (&stepped.flight, stepped.stage.name()),
    };
    let (job, partition) = (flight.job(), flight.partition());
    format!("{job} {partition} {} {what}", flight.attempt())
}

pub(super) fn shown_as<T: Debug>(it: &T) -> String {
    format!("{it:?}")
}

/// A job's state, without numbers of bytes.
pub(super) fn shown(state: &JobState) -> String {
    match state {
        JobState::Failed(why) if why.contains("budget") => "failed: too large".to_owned(),
        state => state.to_string(),
    }
}

pub(super) fn view(view: &JobView) -> String {
    let JobView {
        id,
        priority,
        partitions,
        proven,
        running,
        retries,
        circuits,
        bytes,
        ..
    } = view;
    let state = shown(&view.state);
    let holds = *bytes > 0;
    let began = (view.started_ms.is_some(), view.ended_ms.is_some());
    format!(
        "{id} {priority} {state} {partitions} {proven} {running} {retries} {circuits:?} {holds} {began:?}"
    )
}

/// A refusal, without times and numbers of bytes.
pub(super) fn refusal(error: &Error) -> String {
    match error {
        Error::Exhausted {
            resource,
            used,
            limit,
            ..
        } => format!("exhausted: {resource} {used} {limit}"),
        Error::Impossible { .. } => "impossible".to_owned(),
        error => error.to_string(),
    }
}
