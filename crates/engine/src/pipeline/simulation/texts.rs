//! The texts written down of a history, without times and machine-dependent numbers.

use std::fmt::Debug;

use crate::interface::{Error, JobState, JobView};
use crate::pipeline::background::Completion;

pub(super) fn label(completion: &Completion) -> String {
    let (running, what) = match completion {
        Completion::Key(running, _) => (&**running, "key"),
        Completion::Stage(outcome) => (&outcome.running, outcome.stage.name()),
    };
    let (job, partition) = (running.job(), running.partition());
    format!("{job} {partition} {} {what}", running.attempt())
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
