//! A long computation in stages: its progress on the terminal and the time of each stage.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::progress::{Bar, Screen, span};

/// Stages are printed only once the computation has run for this long; a shorter one needs no progress lines.
const PRINT_AFTER: Duration = Duration::from_secs(2);

/// Progress of a computation whose stages run one after the other.
pub(crate) struct Stages {
    screen: Screen,
    bar: Bar,
    began: Instant,
    /// Start and name of the running stage.
    current: Option<(Instant, String)>,
    done: Vec<(String, Duration)>,
}

// === impl Stages ===

impl Stages {
    /// Starts a computation of `total` stages.
    pub(crate) fn begin(name: &str, total: usize) -> Self {
        let screen = Screen::open();
        let bar = screen.bar(name, Some(total as u64));
        Self {
            screen,
            bar,
            began: Instant::now(),
            current: None,
            done: Vec::new(),
        }
    }

    /// Ends the previous stage, if any, and starts the next.
    pub(crate) fn enter(&mut self, name: &str) {
        self.end_current();
        self.current = Some((Instant::now(), name.to_owned()));
        self.bar.set(self.done.len() as u64, name);
        if self.began.elapsed() >= PRINT_AFTER {
            self.screen.line(name);
        }
    }

    fn end_current(&mut self) {
        if let Some((began, name)) = self.current.take() {
            self.done.push((name, began.elapsed()));
        }
    }

    /// Ends the last stage; returns the time of each and of all.
    pub(crate) fn end(mut self) -> StageTimes {
        self.end_current();
        StageTimes {
            stages: std::mem::take(&mut self.done),
            total: self.began.elapsed(),
        }
    }
}

impl Drop for Stages {
    fn drop(&mut self) {
        self.bar.clear();
        self.screen.close();
    }
}

/// Durations of the stages of a computation, and their total.
pub(crate) struct StageTimes {
    stages: Vec<(String, Duration)>,
    pub(crate) total: Duration,
}

// === impl StageTimes ===

impl StageTimes {
    /// One line, such as `read the key 340 ms, …`.
    pub(crate) fn shown(&self) -> String {
        let stages: Vec<String> = self
            .stages
            .iter()
            .map(|(name, duration)| format!("{name} {}", short(*duration)))
            .collect();
        stages.join(", ")
    }

    /// A JSON array of stage names and milliseconds.
    pub(crate) fn to_json(&self) -> Value {
        let stages = self.stages.iter();
        stages
            .map(|(name, duration)| json!({ "name": name, "ms": milliseconds(*duration) }))
            .collect()
    }
}

/// A duration in milliseconds, with microsecond resolution.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}

/// A duration for people, in milliseconds below one second: `340 ms`, `12 s`.
pub(crate) fn short(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        span(duration)
    }
}
