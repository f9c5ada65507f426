//! Jobs, outside of the service's lock.

use std::time::Instant;

use super::{Shared, State, Work};
use crate::batch::Checks;
use crate::erased::{AnyClaim, AnyKind, AnyProof};
use crate::isolation::ExpectedFalseShare;
use crate::kind::Invalid;
use crate::schedule::{BatchId, Crash, Ticket, VerificationJob};

/// A job with all that it needs.
pub(super) enum Prepared {
    Reduce {
        kind: usize,
        proofs: Vec<(Ticket, AnyProof)>,
    },
    Check {
        batch: BatchId,
        kind: usize,
        claims: Vec<AnyClaim>,
        expected_false_share: ExpectedFalseShare,
    },
    /// The job's proof was missing, which no order of events leads to.
    Lost(VerificationJob),
}

/// The outcome of a job.
pub(super) enum Done {
    Reduced {
        kind: usize,
        results: Vec<(Ticket, Reduction)>,
        time_us: u64,
    },
    Checked {
        batch: BatchId,
        kind: usize,
        size: usize,
        result: Result<Vec<Result<(), Invalid>>, Crash>,
        checks: Checks,
        time_us: u64,
    },
    Lost(VerificationJob),
}

// === impl Done ===

impl Done {
    /// The job's time in microseconds of all `threads` threads. A reduction uses one thread; a check uses all.
    pub(super) fn taken_us(&self, threads: usize) -> u64 {
        match self {
            Self::Reduced { time_us, .. } => time_us / threads.max(1) as u64,
            Self::Checked { time_us, .. } => *time_us,
            Self::Lost(_) => 0,
        }
    }
}

/// Outcome of reducing a proof: its claim, the reason why it is invalid, or a crash.
type Reduction = Result<Result<AnyClaim, Invalid>, Crash>;

// === impl Shared ===

impl Shared {
    pub(super) fn prepare(&self, state: &State, job: VerificationJob) -> Prepared {
        match &job {
            VerificationJob::Reduce { kind, tickets } => {
                let proof = |ticket: &Ticket| match state.work.get(ticket) {
                    Some(Work::Proof(proof)) => Some((*ticket, proof.clone())),
                    _ => None,
                };
                match tickets.iter().map(proof).collect() {
                    Some(proofs) => Prepared::Reduce {
                        kind: *kind,
                        proofs,
                    },
                    None => Prepared::Lost(job),
                }
            }
            VerificationJob::Check {
                batch,
                kind,
                tickets,
                expected_false_share,
            } => {
                let claim = |ticket| match state.work.get(ticket) {
                    Some(Work::Claim(claim)) => Some(claim.clone()),
                    _ => None,
                };
                match tickets.iter().map(claim).collect() {
                    Some(claims) => Prepared::Check {
                        batch: *batch,
                        kind: *kind,
                        claims,
                        expected_false_share: *expected_false_share,
                    },
                    None => Prepared::Lost(job),
                }
            }
        }
    }

    /// Tells the scheduler.
    pub(super) fn record(&self, state: &mut State, done: Done) {
        let now = self.now();
        match done {
            Done::Reduced {
                kind,
                results,
                time_us,
            } => {
                let figures = state.figures.entry(kind).or_default();
                figures.reductions += results.len() as u64;
                figures.reduce_us += time_us;
                for (ticket, result) in results {
                    let result = result.map(|reduced| {
                        reduced.map(|claim| {
                            // A request that has been answered in the meantime has no entry.
                            if let Some(work) = state.work.get_mut(&ticket) {
                                *work = Work::Claim(claim);
                            }
                        })
                    });
                    state.scheduler.reduced(now, ticket, result);
                }
            }
            Done::Checked {
                batch,
                kind,
                size,
                result,
                checks,
                time_us,
            } => {
                let figures = state.figures.entry(kind).or_default();
                figures.add_batch(size, time_us, checks);
                state.scheduler.checked(now, batch, result);
            }
            Done::Lost(job) => {
                let crash = Crash("a proof was lost".to_owned());
                match job {
                    VerificationJob::Reduce { tickets, .. } => {
                        for ticket in tickets {
                            state.scheduler.reduced(now, ticket, Err(crash.clone()));
                        }
                    }
                    VerificationJob::Check { batch, .. } => {
                        state.scheduler.checked(now, batch, Err(crash))
                    }
                }
            }
        }
    }
}

// === impl Prepared ===

impl Prepared {
    pub(super) fn run(self, shared: &Shared) -> Done {
        let begun = Instant::now();
        let time_us = move || begun.elapsed().as_micros() as u64;
        match self {
            Self::Reduce { kind, proofs } => {
                let (tickets, proofs): (Vec<_>, Vec<_>) = proofs.into_iter().unzip();
                let results = reduce_each(&**shared.options.kinds.get(kind), &proofs);
                Done::Reduced {
                    kind,
                    results: tickets.into_iter().zip(results).collect(),
                    time_us: time_us(),
                }
            }
            Self::Check {
                batch,
                kind,
                claims,
                expected_false_share,
            } => {
                let kinds = &shared.options.kinds;
                let outcome = catch_panic(|| kinds.get(kind).check(&claims, expected_false_share))
                    .and_then(|outcome| outcome.map_err(|error| Crash(error.to_string())));
                let (result, checks) = match outcome {
                    Ok(outcome) => (Ok(outcome.verdicts), outcome.checks),
                    Err(crash) => (Err(crash), Checks::default()),
                };
                Done::Checked {
                    batch,
                    kind,
                    size: claims.len(),
                    result,
                    checks,
                    time_us: time_us(),
                }
            }
            Self::Lost(job) => Done::Lost(job),
        }
    }
}

/// Reduces proofs together. If that crashes, reduces each alone; a proof that crashes then gets no verdict.
fn reduce_each(kind: &dyn AnyKind, proofs: &[AnyProof]) -> Vec<Reduction> {
    match (catch_panic(|| kind.reduce_each(proofs)), proofs) {
        (Ok(claims), _) => claims.into_iter().map(Ok).collect(),
        (Err(crash), [_]) => vec![Err(crash)],
        (Err(_), _) => proofs
            .iter()
            .flat_map(|proof| reduce_each(kind, std::slice::from_ref(proof)))
            .collect(),
    }
}

/// Runs `work`, and returns a panic as an error. A panic is a fault of this program, and no verdict on a
/// proof.
fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Crash> {
    // The closure only reads keys and claims.
    proofmill_panics::catch(work).map_err(|reason| {
        tracing::error!(reason, "a job of the verifier panicked");
        Crash(reason)
    })
}
