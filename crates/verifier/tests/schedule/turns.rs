//! Tests of the order in which sources are served, and of the time at which a batch begins.

use proofmill_verifier::schedule::{
    Admission, Lane, Limits, Micros, Scheduler, Submission, Ticket, VerificationJob,
};
use proofmill_verifier::{Invalid, Status};

const LIMITS: Limits = Limits {
    batch: 16,
    requests: 1000,
    bytes: 1 << 20,
    total_bytes: 4 << 20,
    sources: 100,
};

fn submission(source: &str, id: usize) -> Submission {
    Submission {
        source: source.into(),
        id: id.to_string().into(),
        digest: [0; 32],
        kind: 0,
        reduced_together: 1,
        side_by_side: 1,
        priority: 0,
        deadline: None,
        bytes: 100,
    }
}

fn submit(scheduler: &mut Scheduler, submission: Submission) -> Ticket {
    match scheduler.submit(Micros(0), submission) {
        Admission::Accepted(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

fn reduction(scheduler: &mut Scheduler, lane: Lane) -> Ticket {
    match scheduler.next(Micros(0), lane) {
        Some(VerificationJob::Reduce { tickets, .. }) => {
            let [ticket] = tickets[..] else {
                panic!("{tickets:?}");
            };
            ticket
        }
        other => panic!("{other:?}"),
    }
}

/// Reduces everything in a lane, then checks it with these verdicts.
fn check_all(
    scheduler: &mut Scheduler,
    lane: Lane,
    verdict: impl Fn(Ticket) -> Result<(), Invalid>,
) -> Vec<usize> {
    let mut sizes = Vec::new();
    while let Some(job) = scheduler.next(Micros(0), lane) {
        match job {
            VerificationJob::Reduce { tickets, .. } => {
                for ticket in tickets {
                    scheduler.reduced(Micros(0), ticket, Ok(Ok(())));
                }
            }
            VerificationJob::Check { batch, tickets, .. } => {
                sizes.push(tickets.len());
                let verdicts = tickets.into_iter().map(&verdict).collect();
                scheduler.checked(Micros(0), batch, Ok(verdicts));
            }
        }
        scheduler.ended(Micros(0), lane, 0);
    }
    sizes
}

/// A scheduler to which these sources are known by valid proofs.
fn knows(threads: usize, sources: &[&str]) -> Scheduler {
    let mut scheduler = Scheduler::new(LIMITS, threads);
    for source in sources {
        (1000..1016).for_each(|id| {
            submit(&mut scheduler, submission(source, id));
        });
    }
    check_all(&mut scheduler, Lane::Trusted, |_| Ok(()));
    assert!(scheduler.is_idle());
    scheduler
}

#[test]
fn a_lone_proof_waits_for_nobody() {
    let mut scheduler = Scheduler::new(LIMITS, 1);
    let ticket = submit(&mut scheduler, submission("a", 0));
    assert_eq!(reduction(&mut scheduler, Lane::Trusted), ticket);
    assert_eq!(scheduler.next(Micros(0), Lane::Trusted), None);
    scheduler.reduced(Micros(5), ticket, Ok(Ok(())));
    let job = scheduler.next(Micros(5), Lane::Trusted);
    assert!(matches!(job, Some(VerificationJob::Check { tickets, .. }) if tickets == [ticket]));
}

#[test]
fn a_job_is_taken_ahead_only_if_two_more_batches_wait_for_each_thread() {
    let mut scheduler = knows(2, &["a", "b"]);
    let full = 3 * 2 * LIMITS.batch;
    for id in 0..full - 1 {
        submit(&mut scheduler, submission("a", id));
    }
    assert!(!scheduler.has_backlog());
    // One that is being reduced waits for its check as well.
    reduction(&mut scheduler, Lane::Trusted);
    submit(&mut scheduler, submission("b", 0));
    assert!(scheduler.has_backlog());
    let sizes = check_all(&mut scheduler, Lane::Trusted, |_| Ok(()));
    assert!(!scheduler.has_backlog(), "after checks of {sizes:?}");
}

#[test]
fn proofs_that_come_during_a_check_make_the_next_batch() {
    let mut scheduler = knows(1, &["a"]);
    let first = submit(&mut scheduler, submission("a", 0));
    reduction(&mut scheduler, Lane::Trusted);
    scheduler.reduced(Micros(0), first, Ok(Ok(())));
    let Some(VerificationJob::Check { batch, .. }) = scheduler.next(Micros(0), Lane::Trusted)
    else {
        panic!("nothing is checked");
    };
    let others: Vec<_> = (1..=20)
        .map(|id| submit(&mut scheduler, submission("a", id)))
        .collect();
    for ticket in &others {
        assert_eq!(reduction(&mut scheduler, Lane::Trusted), *ticket);
        scheduler.reduced(Micros(1), *ticket, Ok(Ok(())));
    }
    assert_eq!(scheduler.next(Micros(2), Lane::Trusted), None);
    scheduler.checked(Micros(3), batch, Ok(vec![Ok(())]));
    let job = scheduler.next(Micros(3), Lane::Trusted);
    assert!(matches!(job, Some(VerificationJob::Check { tickets, .. }) if tickets == others[..16]));
}

/// Batches of a source with false proofs are small, so one does not occupy the threads.
#[test]
fn in_quarantine_full_batches_are_checked_beside_each_other() {
    let mut scheduler = Scheduler::new(LIMITS, 1);
    let refused = |_| Err(Invalid("false".into()));
    (0..16).for_each(|id| {
        submit(&mut scheduler, submission("bad", id));
    });
    assert_eq!(check_all(&mut scheduler, Lane::Trusted, refused), [16]);
    let tickets: Vec<_> = (16..24)
        .map(|id| submit(&mut scheduler, submission("bad", id)))
        .collect();
    for ticket in &tickets {
        assert_eq!(reduction(&mut scheduler, Lane::Quarantine), *ticket);
    }
    let mut batches = Vec::new();
    for four in tickets.chunks(4) {
        for ticket in four {
            assert_eq!(scheduler.next(Micros(0), Lane::Quarantine), None);
            scheduler.reduced(Micros(0), *ticket, Ok(Ok(())));
        }
        match scheduler.next(Micros(0), Lane::Quarantine) {
            Some(VerificationJob::Check { batch, tickets, .. }) if tickets == four => {
                batches.push(batch)
            }
            other => panic!("{other:?}"),
        }
    }
    // They end in any order.
    for batch in batches.into_iter().rev() {
        scheduler.checked(Micros(1), batch, Ok(vec![Ok(()); 4]));
    }
    assert_eq!(scheduler.take_verdicts().len(), 24);
    assert!(scheduler.is_idle());
}

#[test]
fn requests_of_new_sources_are_held_back_once_there_are_two_sources() {
    let limits = Limits {
        batch: 64,
        ..LIMITS
    };
    let mut scheduler = Scheduler::new(limits, 1);
    for source in ["a", "b"] {
        (0..40).for_each(|id| {
            submit(&mut scheduler, submission(source, id));
        });
    }
    assert_eq!(
        check_all(&mut scheduler, Lane::Trusted, |_| Ok(())),
        [4 + 4, 16 + 16, 20 + 20]
    );
    assert!(scheduler.is_idle());
}

#[test]
fn a_new_source_that_is_alone_is_not_held_back() {
    let mut scheduler = Scheduler::new(LIMITS, 1);
    (0..40).for_each(|id| {
        submit(&mut scheduler, submission("a", id));
    });
    assert_eq!(
        check_all(&mut scheduler, Lane::Trusted, |_| Ok(())),
        [16, 16, 8]
    );
}

#[test]
fn a_new_sources_requests_in_work_are_finished_when_others_come() {
    let mut scheduler = Scheduler::new(LIMITS, 1);
    let first: Vec<_> = (0..40)
        .map(|id| submit(&mut scheduler, submission("flooder", id)))
        .collect();
    for ticket in &first[..8] {
        assert_eq!(reduction(&mut scheduler, Lane::Trusted), *ticket);
    }
    let good = submit(&mut scheduler, submission("good", 0));
    assert_eq!(reduction(&mut scheduler, Lane::Trusted), good);
    assert_eq!(scheduler.next(Micros(0), Lane::Trusted), None);
    for ticket in first[..8].iter().chain([&good]) {
        scheduler.reduced(Micros(0), *ticket, Ok(Ok(())));
    }
    let refused = |ticket: Ticket| match ticket == good {
        true => Ok(()),
        false => Err(Invalid("false".into())),
    };
    assert_eq!(check_all(&mut scheduler, Lane::Trusted, refused), [9]);
    assert_eq!(scheduler.take_verdicts().len(), 9);
}

#[test]
fn a_new_source_that_sends_false_proofs_brings_few_into_the_common_lane() {
    let mut scheduler = knows(1, &["a"]);
    submit(&mut scheduler, submission("a", 0));
    for id in 0..100 {
        submit(&mut scheduler, submission("bad", id));
    }
    let ahead = scheduler.take_verdicts().len();
    assert_eq!(ahead, 16);
    let refused = |ticket: Ticket| match ticket.0 {
        0..17 => Ok(()),
        _ => Err(Invalid("false".into())),
    };
    assert_eq!(check_all(&mut scheduler, Lane::Trusted, refused), [5]);
    assert_eq!(scheduler.take_verdicts().len(), 5);
}

#[test]
fn cancelling_works_for_held_requests_and_lets_the_next_ones_go_on() {
    let mut scheduler = Scheduler::new(LIMITS, 1);
    submit(&mut scheduler, submission("other", 0));
    for id in 0..20 {
        submit(&mut scheduler, submission("a", id));
    }
    assert!(scheduler.cancel("a", "18"), "held back");
    assert!(scheduler.cancel("a", "3"), "queued");
    let reduced = std::iter::from_fn(|| scheduler.next(Micros(0), Lane::Trusted)).count();
    assert_eq!(reduced, 1 + 4);
    assert_eq!(scheduler.cancel_source("a"), 18);
    assert_eq!(scheduler.take_verdicts().len(), 20);
}

#[test]
fn a_batch_waits_at_most_four_times_as_long_as_the_last_check_took() {
    let mut scheduler = Scheduler::new(LIMITS, 1);
    let first = submit(&mut scheduler, submission("a", 0));
    reduction(&mut scheduler, Lane::Trusted);
    scheduler.reduced(Micros(0), first, Ok(Ok(())));
    let Some(VerificationJob::Check { batch, .. }) = scheduler.next(Micros(0), Lane::Trusted)
    else {
        panic!("nothing is checked");
    };
    scheduler.checked(Micros(50), batch, Ok(vec![Ok(())]));
    // One is ready; another's reduction takes long.
    let [ready, _] = [1, 2].map(|id| submit(&mut scheduler, submission("a", id)));
    reduction(&mut scheduler, Lane::Trusted);
    reduction(&mut scheduler, Lane::Trusted);
    scheduler.reduced(Micros(100), ready, Ok(Ok(())));
    assert_eq!(scheduler.next(Micros(299), Lane::Trusted), None);
    let job = scheduler.next(Micros(300), Lane::Trusted);
    assert!(matches!(job, Some(VerificationJob::Check { tickets, .. }) if tickets == [ready]));
}

#[test]
fn sources_take_turns() {
    let mut scheduler = knows(1, &["a", "b"]);
    let flood: Vec<_> = (0..500)
        .map(|id| submit(&mut scheduler, submission("a", id)))
        .collect();
    let few: Vec<_> = (0..10)
        .map(|id| submit(&mut scheduler, submission("b", id)))
        .collect();
    let first: Vec<_> = (0..20)
        .map(|_| reduction(&mut scheduler, Lane::Trusted))
        .collect();
    assert!(few.iter().all(|ticket| first.contains(ticket)));
    // Who was served alone for long does not wait for it afterwards.
    for _ in 0..100 {
        assert!(flood.contains(&reduction(&mut scheduler, Lane::Trusted)));
    }
    (20..40).for_each(|id| {
        submit(&mut scheduler, submission("b", id));
    });
    let next: Vec<_> = (0..20)
        .map(|_| reduction(&mut scheduler, Lane::Trusted))
        .collect();
    let of_flood = next.iter().filter(|ticket| flood.contains(ticket)).count();
    assert_eq!(of_flood, 10);
}

#[test]
fn priority_then_deadline_go_first() {
    let mut scheduler = Scheduler::new(LIMITS, 1);
    let usual = submit(&mut scheduler, submission("a", 0));
    let due = submit(
        &mut scheduler,
        Submission {
            deadline: Some(Micros(1000)),
            ..submission("a", 1)
        },
    );
    let urgent = submit(
        &mut scheduler,
        Submission {
            priority: 1,
            ..submission("b", 0)
        },
    );
    let order = [(); 3].map(|()| reduction(&mut scheduler, Lane::Trusted));
    assert_eq!(order, [urgent, due, usual]);
}

#[test]
fn a_source_with_a_false_proof_is_quarantined_and_comes_back() {
    let mut scheduler = Scheduler::new(LIMITS, 1);
    let bad = submit(&mut scheduler, submission("bad", 0));
    let good = submit(&mut scheduler, submission("good", 0));
    let is_bad = |ticket| match ticket == bad {
        true => Err(Invalid("false".into())),
        false => Ok(()),
    };
    assert_eq!(check_all(&mut scheduler, Lane::Trusted, is_bad), [2]);
    let verdicts: Vec<_> = scheduler.take_verdicts();
    assert!(matches!(&verdicts[0], (ticket, verdict)
        if *ticket == bad && matches!(verdict.status, Status::Invalid(_))));
    assert!(matches!(&verdicts[1], (ticket, verdict)
        if *ticket == good && verdict.status == Status::Valid && verdict.stats.batch_failures == 1));

    for round in 1..=16 {
        assert!(
            scheduler.sources().any(|source| source.is_quarantined),
            "{round}"
        );
        submit(&mut scheduler, submission("bad", round));
        assert_eq!(scheduler.next(Micros(0), Lane::Trusted), None);
        assert_eq!(check_all(&mut scheduler, Lane::Quarantine, |_| Ok(())), [1]);
    }
    assert!(scheduler.sources().all(|source| !source.is_quarantined));
    submit(&mut scheduler, submission("bad", 100));
    assert_eq!(check_all(&mut scheduler, Lane::Trusted, |_| Ok(())), [1]);
    assert!(scheduler.is_idle());
}

#[test]
fn waiting_requests_are_quarantined_with_their_source() {
    let mut scheduler = Scheduler::new(LIMITS, 1);
    let tickets: Vec<_> = (0..40)
        .map(|id| submit(&mut scheduler, submission("bad", id)))
        .collect();
    submit(&mut scheduler, submission("good", 0));
    // The first of them is false already when it is reduced.
    let first = reduction(&mut scheduler, Lane::Trusted);
    assert_eq!(first, tickets[0]);
    scheduler.reduced(Micros(0), first, Ok(Err(Invalid("false".into()))));
    assert_eq!(check_all(&mut scheduler, Lane::Trusted, |_| Ok(())), [1]);
    // Enough of them are valid for the source to return to the trusted lane, with its remaining requests.
    assert_eq!(
        check_all(&mut scheduler, Lane::Quarantine, |_| Ok(())),
        [8, 10]
    );
    assert_eq!(
        check_all(&mut scheduler, Lane::Trusted, |_| Ok(())),
        [16, 5]
    );
    assert!(scheduler.is_idle());
}

#[test]
fn one_source_cannot_use_all_the_room() {
    let mut scheduler = Scheduler::new(
        Limits {
            total_bytes: 1000,
            ..LIMITS
        },
        1,
    );
    let flood = (0..100).filter(|id| {
        let admission = scheduler.submit(Micros(0), submission("a", *id));
        matches!(admission, Admission::Accepted(_))
    });
    assert_eq!(flood.count(), 10);
    for id in 0..4 {
        submit(&mut scheduler, submission("b", id));
    }
}

#[test]
fn proofs_that_are_reduced_together_are_shared_out_among_threads() {
    let mut scheduler = knows(2, &["a", "b"]);
    for id in 0..20 {
        let mut submission = submission(["a", "b"][id % 2], id);
        submission.kind = usize::from(id == 19);
        submission.reduced_together = 8;
        submit(&mut scheduler, submission);
    }
    let sizes: Vec<_> = std::iter::from_fn(|| match scheduler.next(Micros(0), Lane::Trusted) {
        Some(VerificationJob::Reduce { tickets, kind }) => Some((kind, tickets.len())),
        _ => None,
    })
    .collect();
    assert_eq!(sizes, [(0, 8), (0, 8), (0, 3), (1, 1)]);
}

/// A scheduler with two threads and a source in the quarantine lane, whose next proofs wait.
fn with_a_source_apart() -> Scheduler {
    let mut scheduler = Scheduler::new(LIMITS, 2);
    let refused = |_| Err(Invalid("false".into()));
    submit(&mut scheduler, submission("bad", 0));
    assert_eq!(check_all(&mut scheduler, Lane::Trusted, refused), [1]);
    (1..=8).for_each(|id| {
        submit(&mut scheduler, submission("bad", id));
    });
    scheduler
}

#[test]
fn the_quarantine_has_all_threads_while_the_trusted_lane_is_idle() {
    let mut scheduler = with_a_source_apart();
    for _ in 0..4 {
        assert!(scheduler.next(Micros(0), Lane::Quarantine).is_some());
    }
    scheduler.ended(Micros(10), Lane::Quarantine, 10);
    assert!(scheduler.next(Micros(10), Lane::Quarantine).is_some());
    assert_eq!(scheduler.next_turn(Micros(10)), None);
}

#[test]
fn the_quarantine_has_little_time_while_the_trusted_lane_is_busy() {
    let mut scheduler = with_a_source_apart();
    submit(&mut scheduler, submission("good", 0));
    // One job at a time.
    assert!(scheduler.next(Micros(0), Lane::Quarantine).is_some());
    assert_eq!(scheduler.next(Micros(0), Lane::Quarantine), None);
    scheduler.ended(Micros(100), Lane::Quarantine, 100);
    // Then it makes up for it.
    assert_eq!(scheduler.next(Micros(100), Lane::Quarantine), None);
    assert_eq!(scheduler.next_turn(Micros(100)), Some(Micros(40_100)));
    assert!(scheduler.next(Micros(40_100), Lane::Quarantine).is_some());
    scheduler.ended(Micros(41_100), Lane::Quarantine, 1000);
    // The other sources are inactive: they have no requests under way and have sent none for a while.
    assert_eq!(scheduler.next_turn(Micros(41_100)), Some(Micros(100_000)));
    assert!(scheduler.next(Micros(100_000), Lane::Quarantine).is_some());
    assert!(scheduler.next(Micros(100_000), Lane::Quarantine).is_some());
}

#[test]
fn others_are_served_as_long_as_a_job_of_theirs_runs() {
    let mut scheduler = with_a_source_apart();
    submit(&mut scheduler, submission("good", 0));
    assert!(scheduler.next(Micros(0), Lane::Trusted).is_some());
    assert!(scheduler.next(Micros(0), Lane::Quarantine).is_some());
    scheduler.ended(Micros(1000), Lane::Quarantine, 1000);
    assert_eq!(scheduler.next(Micros(150_000), Lane::Quarantine), None);
    assert_eq!(scheduler.next_turn(Micros(150_000)), Some(Micros(401_000)));
    scheduler.ended(Micros(150_001), Lane::Trusted, 0);
    assert!(scheduler.next(Micros(150_001), Lane::Quarantine).is_some());
}

#[test]
fn a_source_is_not_delayed_by_its_own_earlier_requests() {
    let mut scheduler = with_a_source_apart();
    // Its first proof was in the trusted lane a moment ago.
    assert!(scheduler.next(Micros(1), Lane::Quarantine).is_some());
    assert!(scheduler.next(Micros(1), Lane::Quarantine).is_some());
}
