//! The number of workers that the work left needs: work over time.

use std::time::Duration;

/// Thousandths of a task, in which work is counted: of tasks to come, a fraction may fall to a stage.
pub(in crate::core) const TASK: u64 = 1000;

/// Work of one stage that must be done by one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) struct Work {
    /// Time left until the tasks must be done.
    pub left: Duration,
    /// Block whose deadline that is; `None` without deadlines.
    pub block: Option<u64>,
    /// Runs to be made, in thousandths.
    pub runs: u64,
    /// Duration of a run.
    pub run: Duration,
}

/// Demand of the work left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::core) struct Demand {
    /// Runs to be made at the same time.
    pub assignments: u64,
    /// All runs to be made, rounded up.
    pub tasks: u64,
    /// Duration of the longest run.
    pub run: Duration,
    /// Time left of the work that decides: the earliest that needs so many at the same time.
    pub left: Duration,
    /// Block whose deadline that is.
    pub block: Option<u64>,
}

/// Runs that must be made at the same time, so that for every deadline all the work due by then is done by then.
///
/// The work due by a deadline is all work with that time left or less, since lower blocks go first. Of the time left a
/// quarter is reserve: for workers that have yet to start, for failures and retries. Half a run is taken off too: on
/// average that much of a worker's last run would lie behind the deadline. There is always time for one run, so that
/// never more is needed than there are tasks.
pub(in crate::core) fn demand(mut work: Vec<Work>) -> Demand {
    work.sort_by_key(|work| (work.left, work.block));
    let mut found = Demand::default();
    let (mut total, mut runs, mut longest) = (0_u128, 0_u64, Duration::ZERO);
    for due in work.iter().filter(|due| due.runs > 0) {
        longest = longest.max(due.run);
        total = total.saturating_add(u128::from(due.runs) * due.run.as_micros().max(1));
        runs = runs.saturating_add(due.runs);
        let needed = total.div_ceil(usable_micros(due.left, longest) * u128::from(TASK));
        let needed = u64::try_from(needed).unwrap_or(u64::MAX);
        if needed > found.assignments {
            found = Demand {
                assignments: needed,
                left: due.left,
                block: due.block,
                ..found
            };
        }
    }
    Demand {
        tasks: runs.div_ceil(TASK),
        run: longest,
        ..found
    }
}

fn usable_micros(left: Duration, run: Duration) -> u128 {
    let (left, run) = (left.as_micros(), run.as_micros());
    (left / 4 * 3).saturating_sub(run / 2).max(run).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(left: u64, runs: u64, run: u64) -> Work {
        Work {
            left: Duration::from_secs(left),
            block: Some(left),
            runs: runs * TASK,
            run: Duration::from_secs(run),
        }
    }

    #[test]
    fn needed_is_work_over_the_time_left_less_its_reserve() {
        // 300 runs of 10 s in 400 s: three quarters less half a run are 295 s.
        let found = demand(vec![work(400, 300, 10)]);
        assert_eq!(found.assignments, 3000_u64.div_ceil(295));
        assert_eq!((found.tasks, found.run.as_secs()), (300, 10));
        assert_eq!(demand(Vec::new()), Demand::default());
        assert_eq!(demand(vec![work(400, 0, 10)]).assignments, 0);
    }

    #[test]
    fn the_deadline_that_needs_most_decides() {
        // Little work that is due soon; much that is due late; together less than the first alone.
        let soon = work(40, 10, 10);
        let late = work(4000, 100, 10);
        let found = demand(vec![late, soon]);
        assert_eq!((found.assignments, found.block), (4, Some(40)));
        let later = work(4000, 10_000, 10);
        let found = demand(vec![later, soon]);
        assert_eq!(found.block, Some(4000));
        assert_eq!(found.assignments, 100_100_u64.div_ceil(2995));
    }

    #[test]
    fn no_more_is_needed_than_there_are_tasks() {
        for left in [0, 1, 10, 15] {
            assert_eq!(demand(vec![work(left, 7, 10)]).assignments, 7);
        }
        let half = Work {
            runs: TASK / 2,
            ..work(0, 0, 10)
        };
        assert_eq!(demand(vec![half]).assignments, 1);
        // Hostile numbers neither overflow nor divide by zero.
        let endless = Work {
            left: Duration::MAX,
            block: None,
            runs: u64::MAX,
            run: Duration::from_secs(u64::from(u32::MAX)),
        };
        assert!(demand(vec![endless, endless]).assignments > 0);
        let instant = Work {
            run: Duration::ZERO,
            ..work(0, 3, 0)
        };
        assert!(demand(vec![instant]).assignments <= 3);
    }
}
