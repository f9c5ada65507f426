//! Rates, measured from one look at the mill to the next.

use std::collections::{BTreeMap, VecDeque};

use proofmill_api::MillView;

/// Longest time over which rates are measured, milliseconds.
const WINDOW_MS: u64 = 60_000;
/// Shortest time over which they are, milliseconds: over less, one block more or less would change everything.
const WINDOW_MS_MIN: u64 = 900;

/// The looks of the last minute.
#[derive(Default)]
pub(super) struct Rates(VecDeque<Sample>);

struct Sample {
    at_ms: u64,
    next_block: Option<u64>,
    /// Tasks that ended, by stage.
    done: BTreeMap<String, u64>,
}

/// Rates at the moment of a look; all absent at the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RatesShown {
    /// Blocks emitted a minute.
    pub(super) blocks: Option<f64>,
    /// Tasks done a minute, by stage.
    pub(super) done: BTreeMap<String, f64>,
}

// === impl Rates ===

impl Rates {
    /// Notes a look; returns the rates since the first look of the last minute.
    pub(super) fn note(&mut self, view: &MillView) -> RatesShown {
        let done = view.status.stages.iter().map(|stage| {
            let counters = &stage.counters;
            let done = counters.completed + counters.grouped + counters.emitted;
            (stage.stage.to_string(), done)
        });
        let sample = Sample {
            at_ms: view.at_ms,
            next_block: view.status.next_block,
            done: done.collect(),
        };
        // A clock that was set back would make rates negative.
        if self.0.back().is_some_and(|last| last.at_ms > sample.at_ms) {
            self.0.clear();
        }
        while self
            .0
            .get(1)
            .is_some_and(|next| sample.at_ms - next.at_ms >= WINDOW_MS)
        {
            self.0.pop_front();
        }
        let shown = self
            .0
            .front()
            .map_or_else(RatesShown::default, |first| since(first, &sample));
        self.0.push_back(sample);
        shown
    }
}

fn since(first: &Sample, now: &Sample) -> RatesShown {
    let minutes = (now.at_ms - first.at_ms) as f64 / 60e3;
    if now.at_ms - first.at_ms < WINDOW_MS_MIN {
        return RatesShown::default();
    }
    let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / minutes;
    let blocks = first.next_block.zip(now.next_block);
    let done = now.done.iter().filter_map(|(stage, done)| {
        let before = first.done.get(stage)?;
        Some((stage.clone(), rate(*before, *done)))
    });
    RatesShown {
        blocks: blocks.map(|(before, now)| rate(before, now)),
        done: done.collect(),
    }
}
