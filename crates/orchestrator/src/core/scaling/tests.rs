//! Pools together: fallback, ceiling, failover.

use std::time::Duration;

use super::*;

const MINUTE: u64 = 60_000_000;

fn pool(name: &str, labels: &[&str], fallback: Option<usize>) -> PoolPlan {
    PoolPlan {
        name: name.into(),
        group: "g".into(),
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        min: 0,
        max: 50,
        slots: 2,
        estimate: Duration::from_secs(60),
        within: Duration::from_secs(300),
        hold: Duration::from_secs(300),
        fallback,
        fallback_after: Duration::from_secs(120),
    }
}

fn scaling(pools: &[PoolPlan]) -> Scaling {
    let plan = Plan {
        workflow: "w".into(),
        stages: Vec::new(),
        queues: Vec::new(),
        sources: Vec::new(),
        retain_blocks: 1,
        cuts_blocks: false,
        deadline: None,
    };
    Scaling::new(pools, &plan, &Layout::new(&plan))
}

/// Work that needs `assignments` at the same time.
fn input(assignments: u64, present: u64) -> PoolInput {
    let run = Duration::from_secs(10);
    PoolInput {
        work: vec![Work {
            left: run,
            block: None,
            runs: assignments * TASK,
            run,
        }],
        present,
        blocked: 0,
        busy: 0,
    }
}

fn wanted(scaling: &Scaling) -> Vec<u64> {
    scaling.status().iter().map(|pool| pool.wanted).collect()
}

#[test]
fn the_fallback_is_asked_for_what_the_first_lacks_and_let_go_when_it_is_back() {
    let pools = [pool("spot", &["spot"], Some(1)), pool("rest", &[], None)];
    let mut scaling = scaling(&pools);
    let mut at = |half_minute: u64, present| {
        let now = Time(half_minute * MINUTE / 2);
        scaling.evaluate(now, vec![input(20, present), input(0, 0)]);
        wanted(&scaling)
    };
    for half_minute in 0..4 {
        assert_eq!(at(half_minute, 3), [10, 0], "{half_minute}");
    }
    assert_eq!(at(4, 3), [10, 7]);
    assert_eq!(at(5, 10), [10, 7]);
    // The fallback's workers stay for `hold`.
    for half_minute in 6..15 {
        assert_eq!(at(half_minute, 10), [10, 7], "{half_minute}");
    }
    for half_minute in 15..18 {
        at(half_minute, 10);
    }
    assert_eq!(at(18, 10), [10, 0]);
}

#[test]
fn what_the_ceiling_cuts_off_goes_to_the_fallback() {
    let pools = [pool("spot", &["spot"], Some(1)), pool("rest", &[], None)];
    let mut scaling = scaling(&pools);
    for minute in 0..4 {
        scaling.evaluate(Time(minute * MINUTE), vec![input(140, 50), input(0, 0)]);
    }
    assert_eq!(wanted(&scaling), [50, 20]);
    let status = &scaling.status()[0];
    assert_eq!((status.needed, status.handed_on), (70, 20));
    assert!(
        status.why.contains("20 asked of rest instead"),
        "{}",
        status.why
    );
    assert!(
        status.why.contains("70 are needed, and 50 are the limit"),
        "{}",
        status.why
    );
}

#[test]
fn after_a_failover_those_present_are_kept_for_a_while() {
    let mut scaling = scaling(&[pool("p", &[], None)]);
    scaling.begin_grace(Time(0));
    scaling.evaluate(Time(0), vec![input(2, 9)]);
    assert_eq!(wanted(&scaling), [9]);
    let why = &scaling.status()[0].why;
    assert!(why.contains("kept after a failover"), "{why}");
    for minute in 1..=11 {
        scaling.evaluate(Time(minute * MINUTE), vec![input(2, 9)]);
    }
    assert_eq!(wanted(&scaling), [1]);
}

#[test]
fn a_blocked_worker_is_replaced_and_floors_hold() {
    let floor = PoolPlan {
        min: 3,
        ..pool("p", &[], None)
    };
    let mut scaling = scaling(&[floor]);
    assert_eq!(wanted(&scaling), [3]);
    scaling.evaluate(Time(0), vec![PoolInput::default()]);
    assert_eq!(wanted(&scaling), [3]);
    let blocked = PoolInput {
        blocked: 3,
        ..input(8, 6)
    };
    scaling.evaluate(Time(1), vec![blocked]);
    assert_eq!(wanted(&scaling), [6]);
}

#[test]
fn the_time_of_a_run_follows_measurements_that_have_moved_only() {
    let mut scaling = scaling(&[]);
    scaling.runs = vec![None];
    scaling.pool_of_stage = vec![None];
    let mut run = |measured: Option<u64>| {
        let measured = measured.map(Duration::from_millis);
        let (run, is_measured) = scaling.run_of(StageIx(0), measured);
        is_measured.then_some(run.as_millis())
    };
    assert_eq!(run(None), None);
    assert_eq!(run(Some(1_000)), Some(1_000));
    assert_eq!(run(Some(1_100)), Some(1_000));
    assert_eq!(run(Some(800)), Some(1_000));
    assert_eq!(run(None), Some(1_000));
    assert_eq!(run(Some(1_200)), Some(1_200));
    assert_eq!(run(Some(700)), Some(700));
}

#[test]
fn a_worker_belongs_to_the_pool_with_most_of_its_labels() {
    let pools = [
        pool("all", &[], None),
        pool("gpu", &["gpu"], None),
        pool("spot-gpu", &["gpu", "spot"], None),
    ];
    let scaling = scaling(&pools);
    let of = |labels: &[&str]| {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        scaling.pool_of_worker("g", &labels)
    };
    assert_eq!(of(&[]), Some(0));
    assert_eq!(of(&["spot"]), Some(0));
    assert_eq!(of(&["gpu", "x"]), Some(1));
    assert_eq!(of(&["spot", "gpu"]), Some(2));
    assert_eq!(scaling.pool_of_worker("other", &BTreeSet::new()), None);
}
