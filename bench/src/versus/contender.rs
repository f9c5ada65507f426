//! An implementation that takes part in a comparison.

use std::time::{Duration, Instant};

/// Purpose of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Warms up and returns a result that is compared; the time is not counted.
    Check,
    /// Is timed.
    Measure,
}

/// Result of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// Times in milliseconds: one, or several if a peer that is a command makes several runs at once.
    pub(crate) ms: Vec<f64>,
    /// Fingerprint of the result, compared between contenders; `None` is not checked.
    pub(crate) result: Option<String>,
    /// Times of the stages in milliseconds, for contenders that report them.
    pub(crate) stages: Vec<(&'static str, f64)>,
}

/// An implementation that takes part in a comparison, set up on its input.
pub(crate) struct Contender<'a> {
    /// Name in the table.
    pub(crate) name: String,
    run: Box<dyn FnMut(Purpose) -> anyhow::Result<Sample> + 'a>,
}

// === impl Contender ===

impl<'a> Contender<'a> {
    /// A contender whose runs are calls of `run`.
    pub(crate) fn new(
        name: impl Into<String>,
        run: impl FnMut(Purpose) -> anyhow::Result<Sample> + 'a,
    ) -> Self {
        Self {
            name: name.into(),
            run: Box::new(run),
        }
    }

    /// A contender that runs in this process. `work` returns the time of its measured part and the
    /// result, which `fingerprint` turns into the text that is compared.
    pub(crate) fn in_process<R>(
        name: impl Into<String>,
        mut work: impl FnMut() -> (Duration, R) + 'a,
        fingerprint: impl Fn(R) -> String + 'a,
    ) -> Self {
        Self::new(name, move |purpose| {
            let (elapsed, result) = work();
            Ok(Sample {
                ms: vec![elapsed.as_secs_f64() * 1e3],
                result: (purpose == Purpose::Check).then(|| fingerprint(result)),
                stages: Vec::new(),
            })
        })
    }

    pub(crate) fn run(&mut self, purpose: Purpose) -> anyhow::Result<Sample> {
        (self.run)(purpose)
    }
}

/// Runs `work`; returns its time and its value.
pub(crate) fn time<R>(work: impl FnOnce() -> R) -> (Duration, R) {
    let began = Instant::now();
    let result = work();
    (began.elapsed(), result)
}
