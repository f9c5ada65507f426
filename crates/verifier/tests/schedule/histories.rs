//! Random histories of the scheduler: good and bad sources, slow and crashing jobs, withdrawn requests.
//! `SEEDS=n` runs n seeds, `SEED=n` runs one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use proofmill_verifier::schedule::{
    Admission, Crash, Lane, Limits, Micros, Scheduler, Submission, Ticket, VerificationJob,
};
use proofmill_verifier::{Invalid, Status, Unavailable};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const STEPS: usize = 400;
const KINDS: usize = 2;
const LIMITS: Limits = Limits {
    batch: 8,
    requests: 20,
    bytes: 2000,
    total_bytes: 6000,
    sources: 5,
};
/// Threads of each lane.
const THREADS: usize = 2;

/// The truth about a proof, which the scheduler does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    Valid,
    FalseWhenReduced,
    FalseWhenChecked,
    CrashesReduction,
    /// The check of every batch that contains the proof crashes.
    CrashesCheck,
}

struct Sent {
    submission: Submission,
    truth: Truth,
    taken_back: bool,
}

struct World {
    rng: StdRng,
    now: Micros,
    scheduler: Scheduler,
    /// Maximum number of proofs of a batch.
    batch: usize,
    /// Running jobs, by the time at which they end.
    running: BTreeMap<(Micros, u64), (Lane, VerificationJob)>,
    sent: HashMap<Ticket, Sent>,
    verdicts: HashMap<Ticket, Status>,
    number: u64,
}

#[test]
fn histories_keep_the_invariants() {
    let seeds = match (variable("SEED"), variable("SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => 0..count.unwrap_or(2000),
    };
    for seed in seeds {
        let history = std::panic::catch_unwind(|| World::new(seed).run());
        assert!(history.is_ok(), "SEED={seed}");
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

// === impl World ===

impl World {
    fn new(seed: u64) -> Self {
        // Small batches leave a backlog, in which the common lane takes jobs before a thread is free.
        let batch = if seed.is_multiple_of(2) {
            LIMITS.batch
        } else {
            2
        };
        let limits = Limits { batch, ..LIMITS };
        Self {
            rng: StdRng::seed_from_u64(seed),
            now: Micros(0),
            scheduler: Scheduler::new(limits, THREADS),
            batch,
            running: BTreeMap::new(),
            sent: HashMap::new(),
            verdicts: HashMap::new(),
            number: 0,
        }
    }

    fn run(mut self) {
        for _ in 0..STEPS {
            // Small batches come with more proofs than can be verified.
            let from = if self.batch < LIMITS.batch { 6 } else { 4 };
            match self.rng.random_range(0..10) {
                step if step < from => self.submit(),
                step if step == from => self.take_back(),
                _ => self.finish_job(),
            }
            self.settle();
        }
        self.scheduler.close();
        while !self.scheduler.is_idle() || !self.running.is_empty() {
            self.finish_job();
            self.settle();
        }
        assert!(self.scheduler.is_idle(), "requests that nobody works on");
        assert_eq!(self.scheduler.next_deadline(), None);
        self.compare();
    }

    fn submit(&mut self) {
        let source = self.rng.random_range(0..7_u8);
        // Sources 0 to 2 are honest, the others less and less.
        let truth = match self.rng.random_range(0..100) {
            share if share < 15 * source.saturating_sub(2) => match self.rng.random_range(0..8) {
                0 => Truth::CrashesReduction,
                1 => Truth::CrashesCheck,
                2..5 => Truth::FalseWhenReduced,
                _ => Truth::FalseWhenChecked,
            },
            _ => Truth::Valid,
        };
        let deadline = self.rng.random_bool(0.2).then(|| {
            let time = self.rng.random_range(0..3000);
            Micros(self.now.0 + time)
        });
        self.number += 1;
        let kind = self.rng.random_range(0..KINDS);
        let submission = Submission {
            source: format!("source {source}").into(),
            id: self.number.to_string().into(),
            digest: [source; 32],
            kind,
            reduced_together: 1 + 4 * kind,
            side_by_side: 1 + 7 * kind,
            priority: u8::from(self.rng.random_bool(0.1)),
            deadline,
            bytes: self.rng.random_range(1..400),
        };
        match self.scheduler.submit(self.now, submission.clone()) {
            Admission::Accepted(ticket) => {
                self.check_again(ticket, &submission);
                let sent = Sent {
                    submission,
                    truth,
                    taken_back: false,
                };
                assert!(self.sent.insert(ticket, sent).is_none(), "a ticket twice");
            }
            Admission::Full => {}
            other => panic!("a new request is {other:?}"),
        }
    }

    /// The same id again.
    fn check_again(&mut self, ticket: Ticket, submission: &Submission) {
        let again = self.scheduler.submit(self.now, submission.clone());
        assert_eq!(again, Admission::Joined(ticket));
        let other = Submission {
            digest: [255; 32],
            ..submission.clone()
        };
        let other = self.scheduler.submit(self.now, other);
        assert_eq!(other, Admission::Conflict);
    }

    fn take_back(&mut self) {
        let source: Arc<str> = format!("source {}", self.rng.random_range(0..7)).into();
        let mut waiting: Vec<_> = self
            .sent
            .iter_mut()
            .filter(|(ticket, sent)| {
                sent.submission.source == source && !self.verdicts.contains_key(ticket)
            })
            .collect();
        waiting.sort_by_key(|(ticket, _)| **ticket);
        if self.rng.random_bool(0.1) {
            let count = self.scheduler.cancel_source(&source);
            assert_eq!(count, waiting.len(), "jobs that are gone are not counted");
            waiting
                .iter_mut()
                .for_each(|(_, sent)| sent.taken_back = true);
        } else if !waiting.is_empty() {
            let chosen = self.rng.random_range(0..waiting.len());
            let (_, sent) = &mut waiting[chosen];
            assert!(self.scheduler.cancel(&source, &sent.submission.id));
            sent.taken_back = true;
        }
        assert!(!self.scheduler.cancel(&source, "none"));
    }

    /// Goes on to where the next job ends.
    fn finish_job(&mut self) {
        let Some(((end, _), (lane, job))) = self.running.pop_first() else {
            let turn = self.scheduler.next_turn(self.now);
            self.now = turn.unwrap_or(Micros(self.now.0 + self.rng.random_range(0..500)));
            return;
        };
        self.now = self.now.max(end);
        match job {
            VerificationJob::Reduce { tickets, .. } => {
                for ticket in tickets {
                    let result = match self.sent[&ticket].truth {
                        Truth::CrashesReduction => Err(Crash("reduction".to_owned())),
                        Truth::FalseWhenReduced => Ok(Err(Invalid("false".into()))),
                        _ => Ok(Ok(())),
                    };
                    self.scheduler.reduced(self.now, ticket, result);
                }
            }
            VerificationJob::Check { batch, tickets, .. } => {
                let truths = tickets.iter().map(|ticket| self.sent[ticket].truth);
                let verdicts = truths
                    .map(|truth| match truth {
                        Truth::CrashesCheck => Err(Crash("check".to_owned())),
                        Truth::FalseWhenChecked => Ok(Err(Invalid("false".into()))),
                        _ => Ok(Ok(())),
                    })
                    .collect();
                self.scheduler.checked(self.now, batch, verdicts);
            }
        }
        let taken_us = self.rng.random_range(0..1000);
        self.scheduler.ended(self.now, lane, taken_us);
    }

    /// Gives lanes the jobs that they take, and takes verdicts.
    fn settle(&mut self) {
        self.scheduler.expire(self.now);
        for lane in Lane::ALL {
            while self.scheduler.takes_job(lane)
                && let Some(job) = self.scheduler.next(self.now, lane)
            {
                self.inspect(lane, &job);
                let time = self.rng.random_range(1..1000);
                self.number += 1;
                let key = (Micros(self.now.0 + time), self.number);
                self.running.insert(key, (lane, job));
            }
        }
        for (ticket, verdict) in self.scheduler.take_verdicts() {
            let earlier = self.verdicts.insert(ticket, verdict.status);
            assert_eq!(earlier, None, "two verdicts");
        }
        if self.running.is_empty() {
            let turn = self.scheduler.next_turn(self.now);
            assert!(
                self.scheduler.is_idle() || turn.is_some_and(|turn| turn > self.now),
                "work that nobody is given"
            );
        }
        let under_way = self
            .sent
            .iter()
            .filter(|(ticket, _)| !self.verdicts.contains_key(ticket));
        let bytes: usize = under_way.map(|(_, sent)| sent.submission.bytes).sum();
        assert!(bytes <= 2 * LIMITS.total_bytes, "{bytes} bytes under way");
    }

    /// Checks that a job may begin.
    fn inspect(&self, lane: Lane, job: &VerificationJob) {
        let apart: BTreeSet<_> = self
            .scheduler
            .sources()
            .filter(|source| source.is_quarantined)
            .map(|source| source.source)
            .collect();
        let (tickets, kind, most) = match job {
            VerificationJob::Reduce { tickets, kind } => (tickets, *kind, 1 + 4 * kind),
            VerificationJob::Check { tickets, kind, .. } => (tickets, *kind, self.batch),
        };
        assert!((1..=most).contains(&tickets.len()));
        let mut kinds = tickets
            .iter()
            .map(|ticket| self.sent[ticket].submission.kind);
        assert!(kinds.all(|other| other == kind));
        let distinct: BTreeSet<_> = tickets.iter().collect();
        assert_eq!(distinct.len(), tickets.len());
        let under_way = self.running.values().filter_map(|(_, job)| match job {
            VerificationJob::Check { tickets, .. } => Some(tickets),
            VerificationJob::Reduce { .. } => None,
        });
        for other in under_way.flatten() {
            assert!(!distinct.contains(other), "checked twice at once");
        }
        let sources: BTreeSet<_> = tickets
            .iter()
            .map(|ticket| &self.sent[ticket].submission.source)
            .collect();
        for ticket in tickets {
            assert!(!self.verdicts.contains_key(ticket), "work for nobody");
        }
        match lane {
            Lane::Trusted => assert!(sources.iter().all(|source| !apart.contains(*source))),
            Lane::Quarantine => {
                assert_eq!(sources.len(), 1, "sources that are apart share a batch");
                assert!(sources.iter().all(|source| apart.contains(*source)));
            }
        }
    }

    /// Checks that every accepted request has the right verdict.
    fn compare(&self) {
        for (ticket, sent) in &self.sent {
            let status = &self.verdicts[ticket];
            let may_be_late = sent.submission.deadline.is_some();
            match status {
                Status::Unavailable(Unavailable::Cancelled) => assert!(sent.taken_back),
                Status::Unavailable(Unavailable::Deadline) => assert!(may_be_late),
                Status::Valid => assert_eq!(sent.truth, Truth::Valid),
                Status::Invalid(_) => assert!(
                    matches!(
                        sent.truth,
                        Truth::FalseWhenReduced | Truth::FalseWhenChecked
                    ),
                    "{:?} is called invalid",
                    sent.truth
                ),
                Status::Unavailable(Unavailable::Internal(_)) => assert!(
                    matches!(sent.truth, Truth::CrashesReduction | Truth::CrashesCheck),
                    "{:?} is called unavailable",
                    sent.truth
                ),
                other => panic!("nothing leads to {other:?}"),
            }
        }
    }
}
