//! The simulation against closed forms.

use super::constants::Constants;
use super::paper;
use super::phase::Allocation;
use super::simulation::{Job, Steps, simulate};
use super::workers::{Faults, Worker, Workers};

const BOTH: [Allocation; 2] = [Allocation::Pull, Allocation::Fixed];

fn run(constants: &Constants, allocation: Allocation, parts: usize, workers: usize) -> Steps {
    let job = Job { parts, allocation };
    let workers = Workers::new(workers, &Faults::NONE);
    simulate(constants, job, workers, 0.0).expect("nobody dies")
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    let difference = (found - expected).abs();
    assert!(
        difference <= 1e-9 * expected.abs().max(1.0),
        "{found} instead of {expected}"
    );
}

#[test]
fn equal_parts_take_as_many_rounds_as_needed() {
    let constants = Constants {
        commit_s: 0.25,
        prove_s: 2.0,
        ..Constants::NONE
    };
    for allocation in BOTH {
        for (parts, workers) in [
            (1, 1),
            (7, 1),
            (7, 2),
            (8, 8),
            (9, 8),
            (1000, 64),
            (3, 1024),
        ] {
            let steps = run(&constants, allocation, parts, workers);
            let rounds = parts.div_ceil(workers) as f64;
            assert_close(steps.commit_s, 0.25 * rounds);
            assert_close(steps.prove_s, 2.0 * rounds);
            assert_close(steps.total_s(), 2.25 * rounds);
        }
    }
}

#[test]
fn the_leaders_steps_are_serial() {
    let constants = Constants {
        trace_s: 0.5,
        challenge_s: 0.25,
        aggregate_s: 0.125,
        ..Constants::NONE
    };
    let steps = run(&constants, Allocation::Pull, 100, 1024);
    assert_close(steps.trace_s, 50.0);
    assert_close(steps.challenge_s, 25.0);
    assert_close(steps.aggregate_s, 12.5);
    assert_close(steps.commit_s + steps.prove_s, 0.0);
}

/// Amdahl's law, with no more shards than workers.
#[test]
fn a_sharded_aggregation_keeps_its_serial_share() {
    let constants = |shards| Constants {
        aggregate_s: 1.0,
        aggregate_serial: 0.1,
        shards,
        ..Constants::NONE
    };
    for (shards, workers, expected) in [
        (1, 64, 100.0),
        (9, 64, 10.0 + 10.0),
        (64, 9, 10.0 + 10.0),
        (90, 90, 10.0 + 1.0),
    ] {
        let steps = run(&constants(shards), Allocation::Pull, 100, workers);
        assert_close(steps.aggregate_s, expected);
    }
}

/// With more workers than the coordinator can feed, its time for all tasks counts, and the last part.
#[test]
fn a_coordinator_that_is_too_slow_is_the_limit() {
    let constants = Constants {
        prove_s: 3.0,
        dispatch_s: 1.0,
        latency_s: 0.5,
        ..Constants::NONE
    };
    let steps = run(&constants, Allocation::Pull, 1000, 1000);
    assert_close(steps.prove_s, 1000.0 + 0.5 + 3.0);
    // A worker is back after 4.5 seconds, so five workers keep the coordinator busy.
    let steps = run(&constants, Allocation::Pull, 1000, 8);
    assert_close(steps.prove_s, 1000.0 + 0.5 + 3.0);
    // One worker waits for each task.
    let steps = run(&constants, Allocation::Pull, 10, 1);
    assert_close(steps.prove_s, 10.0 * 4.5);
}

#[test]
fn the_leaders_network_is_shared() {
    let constants = Constants {
        prove_s: 3.0,
        prove_bytes: 500.0,
        bandwidth: 1000.0,
        ..Constants::NONE
    };
    for allocation in BOTH {
        let steps = run(&constants, allocation, 100, 100);
        assert_close(steps.prove_s, 100.0 * 0.5 + 3.0);
    }
}

/// Each worker loads all keys once, before its first task.
#[test]
fn keys_are_loaded_once() {
    let constants = Constants {
        commit_s: 1.0,
        prove_s: 2.0,
        classes: 3,
        key_load_s: 5.0,
        ..Constants::NONE
    };
    for allocation in BOTH {
        let steps = run(&constants, allocation, 8, 4);
        assert_close(steps.commit_s, 15.0 + 2.0);
        assert_close(steps.prove_s, 4.0);
        // A worker without a part loads none.
        let steps = run(&constants, allocation, 1, 4);
        assert_close(steps.commit_s + steps.prove_s, 15.0 + 3.0);
    }
}

/// One of two workers takes twice as long: pulled parts are shared 2 to 1, fixed ones 1 to 1.
#[test]
fn slow_workers_pull_less() {
    let constants = Constants {
        prove_s: 1.0,
        ..Constants::NONE
    };
    let healthy = Worker {
        slowness: 1.0,
        dies_at: f64::INFINITY,
        keys_s: 0.0,
    };
    let slow = Worker {
        slowness: 2.0,
        ..healthy
    };
    for (allocation, expected) in [(Allocation::Pull, 4.0), (Allocation::Fixed, 6.0)] {
        let job = Job {
            parts: 6,
            allocation,
        };
        let workers = Workers {
            all: vec![healthy, slow],
        };
        let steps = simulate(&constants, job, workers, 0.0).expect("a proof");
        assert_close(steps.prove_s, expected);
    }
}

/// Graham's bound: pulled parts are done no later than the mean load and one part.
#[test]
fn pulling_stays_within_one_part_of_the_ideal() {
    let constants = Constants {
        prove_s: 1.0,
        ..Constants::NONE
    };
    let faults = Faults {
        slow: 0.25,
        slow_factor: 3.0,
        ..Faults::NONE
    };
    for parts in [1, 10, 100, 1000] {
        let job = Job {
            parts,
            allocation: Allocation::Pull,
        };
        let workers = Workers::new(16, &faults);
        // 12 workers do a part a second, four a third of one.
        let ideal = parts as f64 / (12.0 + 4.0 / 3.0);
        let found = simulate(&constants, job, workers, 0.0)
            .expect("a proof")
            .prove_s;
        assert!((ideal..=ideal + 3.0).contains(&found), "{parts}: {found}");
    }
}

/// A part of a dead worker is made by another when its lease has ended; without a queue there is no proof.
#[test]
fn parts_of_the_dead_return() {
    let constants = Constants {
        commit_s: 1.0,
        ..Constants::NONE
    };
    let lives = Worker {
        slowness: 1.0,
        dies_at: f64::INFINITY,
        keys_s: 0.0,
    };
    let dies = Worker {
        dies_at: 0.5,
        ..lives
    };
    let simulated = |allocation, all: Vec<Worker>| {
        let job = Job {
            parts: 2,
            allocation,
        };
        simulate(&constants, job, Workers { all }, 10.0)
    };
    let steps = simulated(Allocation::Pull, vec![lives, dies]).expect("a proof");
    assert_close(steps.commit_s, 0.5 + 10.0 + 1.0);
    assert_eq!(simulated(Allocation::Fixed, vec![lives, dies]), None);
    assert_eq!(simulated(Allocation::Pull, vec![dies, dies]), None);
    // A worker that dies idle costs nothing.
    let later = Worker {
        dies_at: 1.5,
        ..lives
    };
    let steps = simulated(Allocation::Pull, vec![lives, later, later]).expect("a proof");
    assert_close(steps.total_s(), 1.0);
}

#[test]
fn a_seed_chooses_the_same_workers() {
    let faults = |seed| Faults {
        slow: 0.1,
        slow_factor: 4.0,
        deaths: 0.05,
        deaths_within: 100.0,
        lease_s: 1.0,
        seed,
    };
    let chosen = |seed| Workers::new(1000, &faults(seed)).all;
    assert_eq!(chosen(7), chosen(7));
    assert_ne!(chosen(7), chosen(8));
    let workers = chosen(7);
    let slow = workers
        .iter()
        .filter(|worker| worker.slowness > 1.0)
        .count();
    let dying = workers
        .iter()
        .filter(|worker| worker.dies_at.is_finite())
        .count();
    assert_eq!((slow, dying), (100, 50));
    let deaths = workers.iter().filter(|worker| worker.dies_at.is_finite());
    assert!(
        deaths
            .clone()
            .all(|worker| (0.0..100.0).contains(&worker.dies_at))
    );
}

/// The statement about seconds and that about throughput are one.
#[test]
fn statements_of_the_paper_are_consistent() {
    let constants = Constants {
        constraints: 1 << 20,
        prove_s: 1.0,
        ..Constants::NONE
    };
    let compared = paper::compare(&constants);
    assert_eq!(compared.len(), 4);
    for statement in compared {
        if let (Some(log), Some(seconds)) = (statement.log_constraints, statement.paper_seconds) {
            let rate = (1u64 << log) as f64 / (1e3 * statement.cores as f64 * seconds);
            assert!((rate - statement.paper_thousands_a_core_second).abs() < 0.005);
        }
    }
}

#[test]
fn impossible_options_are_refused() {
    let constants = [
        Constants {
            prove_s: -1.0,
            ..Constants::NONE
        },
        Constants {
            aggregate_serial: 1.5,
            ..Constants::NONE
        },
        Constants {
            bandwidth: 0.0,
            ..Constants::NONE
        },
        Constants {
            trace_s: f64::NAN,
            ..Constants::NONE
        },
    ];
    for constants in constants {
        assert!(constants.check().is_err(), "{constants:?}");
    }
    Constants::NONE.check().expect("possible");
    let faults = [
        Faults {
            slow: 1.1,
            ..Faults::NONE
        },
        Faults {
            slow_factor: 0.5,
            ..Faults::NONE
        },
        Faults {
            lease_s: -1.0,
            ..Faults::NONE
        },
    ];
    for faults in faults {
        assert!(faults.check().is_err(), "{faults:?}");
    }
    Faults::NONE.check().expect("possible");
}
