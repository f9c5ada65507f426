//! Failures of leaders and workers.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{PATIENCE, Roles, emitted, proved, setup, wait_for};

/// Waits until at least `count` tasks have begun.
fn begun(dir: &std::path::Path, count: usize, roles: &Roles) {
    let began = Instant::now();
    while proved(dir).len() < count {
        assert!(
            began.elapsed() < PATIENCE,
            "nothing moves\n{}",
            roles.logs()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A leader is killed, or stopped for longer than its lease. Another one leads, and the tasks that
/// dispatchers prove in the meantime are not proved again.
#[test]
fn leaders_go_and_nothing_is_proved_twice() {
    let (_server, dir, mut roles) = setup(49, 300);
    roles.start_all(&[
        "coordinator-1",
        "coordinator-2",
        "dispatcher-1",
        "sequencer-1",
    ]);
    roles.start("source-1");
    begun(dir.path(), 4, &roles);
    for round in 0..6 {
        let name = if round % 2 == 0 {
            "coordinator-1"
        } else {
            "coordinator-2"
        };
        if round < 4 {
            roles.kill(name);
            std::thread::sleep(Duration::from_millis(2500));
            roles.start(name);
        } else {
            roles.signal(name, Signal::STOP);
            std::thread::sleep(Duration::from_millis(3000));
            roles.signal(name, Signal::CONT);
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    wait_for(dir.path(), 49, PATIENCE, &roles);
    for (task, counts) in proved(dir.path()) {
        assert_eq!(counts, (1, 1), "{task}");
    }
}

/// The tasks of a killed dispatcher are given to another one long before their leases end (30 s).
/// `proofmill-bench cluster recovery` measures the time that it takes.
#[test]
fn a_killed_dispatcher_is_replaced_at_once() {
    let (_server, dir, mut roles) = setup(9_999, 100);
    roles.start_all(&[
        "coordinator-1",
        "dispatcher-1",
        "dispatcher-2",
        "sequencer-1",
    ]);
    roles.start("source-1");
    begun(dir.path(), 4, &roles);
    // A leader that has just connected gives all workers time to connect too.
    std::thread::sleep(Duration::from_secs(4));
    let mut took = Vec::new();
    for _ in 0..15 {
        if took.len() == 5 {
            break;
        }
        roles.kill("dispatcher-1");
        let killed = Instant::now();
        let before = proved(dir.path());
        let orphans: Vec<String> = before
            .into_iter()
            .filter(|(_, (begun, ended))| begun > ended)
            .map(|(task, _)| task)
            .collect();
        if orphans.is_empty() {
            // No task was under way, for instance since the coordinator had no processor.
            roles.start("dispatcher-1");
            std::thread::sleep(Duration::from_millis(1500));
            continue;
        }
        // The tasks of the other dispatcher end by themselves; the rest must be begun again.
        loop {
            let now = proved(dir.path());
            if orphans
                .iter()
                .all(|task| now[task].0 > 1 || now[task].1 > 0)
            {
                break;
            }
            assert!(killed.elapsed() < PATIENCE, "{orphans:?}\n{}", roles.logs());
            std::thread::sleep(Duration::from_millis(5));
        }
        took.push(killed.elapsed());
        roles.start("dispatcher-1");
        std::thread::sleep(Duration::from_millis(1500));
    }
    assert_eq!(took.len(), 5, "tasks were seldom under way");
    assert!(
        took.iter().all(|took| *took < Duration::from_secs(20)),
        "{took:?}\n{}",
        roles.logs()
    );
    assert!(!emitted(dir.path()).is_empty());
}
