//! Speculation: the usual durations of each stage's runs, and the time at which a task that takes longer is
//! given to one more worker (a hedge).

use std::collections::VecDeque;
use std::time::Duration;

use super::event::Time;
use crate::plan::{Hedge, StageIx};

/// Number of runs remembered for each stage.
const HISTORY: usize = 256;

/// Minimum number of runs for a meaningful percentile.
const HISTORY_MIN: usize = 8;

/// With fewer runs a task is overdue after so many times the longest of them.
const FEW_RUNS_FACTOR: u32 = 4;

/// Durations and hedging timers, by stage.
pub(super) struct Speculation {
    runs: Vec<Runs>,
    /// Time of each stage's next hedging check.
    due: Vec<Option<Time>>,
}

/// Durations of the latest runs of a stage.
#[derive(Clone, Default)]
struct Runs {
    recent: VecDeque<Duration>,
    sorted: Vec<Duration>,
}

/// Change of a stage's hedging timer: the timer to cancel, and the one to set.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TimerChange {
    pub cancel: Option<Time>,
    pub set: Option<Time>,
}

// === impl Speculation ===

impl Speculation {
    /// No runs, for `stages` stages.
    pub(super) fn new(stages: usize) -> Self {
        Self {
            runs: vec![Runs::default(); stages],
            due: vec![None; stages],
        }
    }

    /// Adds the duration of a run; `None`, an unknown duration, is ignored.
    pub(super) fn note_run(&mut self, stage: StageIx, took: Option<Duration>) {
        self.runs[stage.0].note(took);
    }

    /// Age of a lease from which its task is hedged; `None` while no run is known.
    pub(super) fn limit(&self, stage: StageIx, hedge: &Hedge) -> Option<Duration> {
        self.runs[stage.0].limit(hedge)
    }

    /// A percentile (nearest rank) of the stage's latest runs; `None` while too few are known.
    pub(super) fn percentile(&self, stage: StageIx, percentile: u32) -> Option<Duration> {
        self.runs[stage.0].percentile(percentile)
    }

    /// Sets the time at which the stage's next task becomes overdue. Returns the change of the timer, if
    /// there is one.
    pub(super) fn set_next_due(
        &mut self,
        stage: StageIx,
        next: Option<Time>,
    ) -> Option<TimerChange> {
        let before = std::mem::replace(&mut self.due[stage.0], next);
        (before != next).then_some(TimerChange {
            cancel: before,
            set: next,
        })
    }

    /// Notes that the stage's timer has fired.
    pub(super) fn timer_fired(&mut self, stage: StageIx) {
        self.due[stage.0] = None;
    }

    /// `is_set` tells whether the timer of a stage is set.
    #[cfg(debug_assertions)]
    pub(super) fn check(&self, is_set: impl Fn(Time, StageIx) -> bool) -> Result<(), String> {
        for (ix, (runs, due)) in self.runs.iter().zip(&self.due).enumerate() {
            if runs.recent.len() != runs.sorted.len() || !runs.sorted.is_sorted() {
                return Err(format!("stage {ix}: the order of its runs is off"));
            }
            if due.is_some_and(|due| !is_set(due, StageIx(ix))) {
                return Err(format!("stage {ix}: nothing wakes its hedging"));
            }
        }
        Ok(())
    }
}

// === impl Runs ===

impl Runs {
    fn note(&mut self, took: Option<Duration>) {
        let Some(took) = took else { return };
        if self.recent.len() == HISTORY
            && let Some(oldest) = self.recent.pop_front()
        {
            let at = self.sorted.partition_point(|other| *other < oldest);
            self.sorted.remove(at);
        }
        self.recent.push_back(took);
        let at = self.sorted.partition_point(|other| *other < took);
        self.sorted.insert(at, took);
    }

    /// The percentile of the remembered runs, or a multiple of the longest of a few; at least the configured minimum.
    fn limit(&self, hedge: &Hedge) -> Option<Duration> {
        let few = || Some(self.sorted.last()?.saturating_mul(FEW_RUNS_FACTOR));
        let usual = self.percentile(hedge.percentile).or_else(few)?;
        Some(usual.max(hedge.min))
    }

    /// The percentile (nearest rank) of the remembered runs.
    fn percentile(&self, percentile: u32) -> Option<Duration> {
        if self.sorted.len() < HISTORY_MIN {
            return None;
        }
        let rank = (self.sorted.len() * percentile as usize).div_ceil(100);
        let at = rank.clamp(1, self.sorted.len()) - 1;
        Some(self.sorted[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_percentile_of_the_latest_runs_and_at_least_the_minimum() {
        let ms = Duration::from_millis;
        let hedge = |percentile, min| Hedge {
            percentile,
            min: ms(min),
        };
        let mut runs = Runs::default();
        assert_eq!(runs.limit(&hedge(50, 1)), None);
        for run in 1..8 {
            runs.note(Some(ms(run)));
        }
        assert_eq!(runs.limit(&hedge(50, 1)), Some(ms(28)));
        assert_eq!(runs.limit(&hedge(50, 29)), Some(ms(29)));
        for run in 8..=1_000 {
            runs.note(Some(ms(run)));
        }
        // The runs 745 to 1000 are left.
        assert_eq!(runs.limit(&hedge(50, 1)), Some(ms(872)));
        assert_eq!(runs.limit(&hedge(99, 1)), Some(ms(998)));
        assert_eq!(runs.limit(&hedge(50, 2_000)), Some(ms(2_000)));
    }

    #[test]
    fn a_timer_is_set_anew_only_when_the_next_overdue_task_changes() {
        let (mut speculation, stage) = (Speculation::new(1), StageIx(0));
        let set = |cancel, set| Some(TimerChange { cancel, set });
        let (early, late) = (Some(Time(1)), Some(Time(2)));
        assert_eq!(speculation.set_next_due(stage, early), set(None, early));
        assert_eq!(speculation.set_next_due(stage, early), None);
        assert_eq!(speculation.set_next_due(stage, late), set(early, late));
        speculation.timer_fired(stage);
        assert_eq!(speculation.set_next_due(stage, late), set(None, late));
        assert_eq!(speculation.check(|due, _| late == Some(due)), Ok(()));
    }
}
