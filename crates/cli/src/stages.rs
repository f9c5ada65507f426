//! One long computation, stage by stage: what a person sees of it, and how the time splits.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::progress::{Bar, Screen, span};

/// What takes less long is done before anyone wonders.
const QUIET: Duration = Duration::from_secs(2);

/// The stages of something, one after the other.
pub(crate) struct Stages {
    screen: Screen,
    bar: Bar,
    began: Instant,
    /// When the stage that runs began, and its name.
    current: Option<(Instant, String)>,
    done: Vec<(String, Duration)>,
}

// === impl Stages ===

impl Stages {
    /// Begins, with `total` stages to come.
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

    /// The stage before has ended, and this one begins.
    pub(crate) fn enter(&mut self, name: &str) {
        self.leave();
        self.current = Some((Instant::now(), name.to_owned()));
        self.bar.set(self.done.len() as u64, name);
        if self.began.elapsed() >= QUIET {
            self.screen.line(name);
        }
    }

    fn leave(&mut self) {
        if let Some((began, name)) = self.current.take() {
            self.done.push((name, began.elapsed()));
        }
    }

    /// All stages have ended: how long each took, and all of them.
    pub(crate) fn end(mut self) -> Split {
        self.leave();
        Split {
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

/// How the time of something splits.
pub(crate) struct Split {
    stages: Vec<(String, Duration)>,
    pub(crate) total: Duration,
}

// === impl Split ===

impl Split {
    /// In one line: `read the key 0.2 s, …`.
    pub(crate) fn shown(&self) -> String {
        let stages: Vec<String> = self
            .stages
            .iter()
            .map(|(name, took)| format!("{name} {}", short(*took)))
            .collect();
        stages.join(", ")
    }

    /// A list of names and milliseconds.
    pub(crate) fn to_json(&self) -> Value {
        let stages = self.stages.iter();
        stages
            .map(|(name, took)| json!({ "name": name, "ms": milliseconds(*took) }))
            .collect()
    }
}

/// Milliseconds, to the microsecond.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}

/// `340 ms`, `12 s`.
pub(crate) fn short(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        span(duration)
    }
}
