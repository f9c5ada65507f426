//! Jobs that end.

use super::*;
use crate::kind::Invalid;
use crate::verdict::{Status, Unavailable, VerdictStats};

/// The time and the batch of a verdict.
#[derive(Clone, Copy)]
pub(super) struct Reached {
    now: Micros,
    batch: u32,
    failures: u32,
}

impl Scheduler {
    /// Records that a proof was reduced, is invalid already, or crashed its reduction.
    pub fn reduced(
        &mut self,
        now: Micros,
        ticket: Ticket,
        result: Result<Result<(), Invalid>, Crash>,
    ) {
        let Some(request) = self.requests.get_mut(&ticket) else {
            return;
        };
        let name = request.submission.source.clone();
        let kind = request.submission.kind;
        let claim = request.claim(ticket);
        let is_wanted = !request.answered;
        if is_wanted && matches!(result, Ok(Ok(()))) {
            request.stage = VerificationStage::Reduced(now);
        }
        let key = self.group_of(&name, kind);
        let group = self.groups.entry(key.clone()).or_default();
        group.coming -= 1;
        let reached = Reached {
            now,
            batch: 0,
            failures: 0,
        };
        match result {
            Ok(Ok(())) if is_wanted => return group.insert(claim, now),
            // The final check would have told.
            Ok(Ok(())) => self.forget(ticket),
            Ok(Err(reason)) => self.settle(ticket, Status::Invalid(reason), reached),
            Err(Crash(reason)) => {
                let status = Status::Unavailable(Unavailable::Internal(reason));
                self.answer(ticket, status, Some(reached));
                self.forget(ticket);
            }
        }
        self.tidy(&key);
    }

    /// A batch was checked, or its check crashed: then each of its claims is checked alone, and what
    /// crashes alone has no verdict.
    ///
    /// # Panics
    ///
    /// If there is not one verdict for each claim.
    pub fn checked(
        &mut self,
        now: Micros,
        batch: BatchId,
        result: Result<Vec<Result<(), Invalid>>, Crash>,
    ) {
        let Some(Batch {
            group,
            tickets,
            begun,
        }) = self.batches.remove(&batch)
        else {
            return;
        };
        if let Some(group) = self.groups.get_mut(&group) {
            group.checks -= 1;
            group.last_check = now.since(begun);
        }
        match result {
            Ok(verdicts) => self.conclude(now, &tickets, verdicts),
            Err(Crash(reason)) if tickets.len() == 1 => {
                let status = Status::Unavailable(Unavailable::Internal(reason));
                for ticket in tickets {
                    self.answer(ticket, status.clone(), None);
                    self.forget(ticket);
                }
            }
            Err(_) => tickets
                .into_iter()
                .for_each(|ticket| self.retry(now, ticket)),
        }
        self.tidy(&group);
    }

    fn conclude(&mut self, now: Micros, tickets: &[Ticket], verdicts: Vec<Result<(), Invalid>>) {
        assert_eq!(tickets.len(), verdicts.len(), "a verdict for each claim");
        let reached = Reached {
            now,
            batch: tickets.len() as u32,
            failures: verdicts.iter().filter(|verdict| verdict.is_err()).count() as u32,
        };
        for (ticket, verdict) in tickets.iter().zip(verdicts) {
            let status = verdict.map_or_else(Status::Invalid, |()| Status::Valid);
            self.settle(*ticket, status, reached);
        }
    }

    /// Puts a claim of a batch that crashed back, to be checked alone.
    fn retry(&mut self, now: Micros, ticket: Ticket) {
        let Some(request) = self.requests.get_mut(&ticket) else {
            return;
        };
        if request.answered {
            return self.forget(ticket);
        }
        request.suspect = true;
        request.stage = VerificationStage::Reduced(now);
        let claim = request.claim(ticket);
        let (name, kind) = (request.submission.source.clone(), request.submission.kind);
        let group = self.group_of(&name, kind);
        self.groups.entry(group).or_default().insert(claim, now);
    }

    /// Gives a verdict about the proof itself. It counts for the source even if no caller waits for it any more.
    fn settle(&mut self, ticket: Ticket, status: Status, reached: Reached) {
        let Some(request) = self.requests.get(&ticket) else {
            return;
        };
        let name = request.submission.source.clone();
        let is_valid = status.is_valid();
        self.answer(ticket, status, Some(reached));
        self.forget(ticket);
        self.record(&name, is_valid);
    }

    /// Counts a proof for its source, which may change its lane.
    fn record(&mut self, name: &Arc<str>, is_valid: bool) {
        let Some(source) = self.sources.get_mut(name) else {
            return;
        };
        let mut standing = source.standing;
        standing.record(is_valid);
        if standing.is_good() == source.standing.is_good() {
            source.standing = standing;
            return self.release(name);
        }
        // All waiting requests of the source move to the other lane.
        let waiting: Vec<_> = source.tickets.iter().copied().collect();
        if let Some(turn) = source.turn.take() {
            self.turns[source.lane() as usize].remove(&turn);
        }
        let left: Vec<_> = waiting.iter().map(|ticket| self.leave(*ticket)).collect();
        if let Some(source) = self.sources.get_mut(name) {
            source.standing = standing;
            source.served = source.served.max(self.served[source.lane() as usize]);
        }
        for (ticket, group) in waiting.into_iter().zip(left) {
            self.enter(ticket);
            if let Some(group) = group {
                self.tidy(&group);
            }
        }
        self.release(name);
        self.update_turn(name);
        let others = self.sources.values();
        let others = others.filter(|source| source.lane() == Lane::Trusted);
        let last = others.map(|source| source.last_seen).max();
        self.quarantine_budget.see_others(last);
    }

    /// Takes a request out of its group.
    fn leave(&mut self, ticket: Ticket) -> Option<GroupKey> {
        let request = self.requests.get(&ticket)?;
        let key = self.group_of(&request.submission.source, request.submission.kind);
        let group = self.groups.get_mut(&key)?;
        match request.stage {
            VerificationStage::Queued | VerificationStage::Reducing => group.coming -= 1,
            VerificationStage::Reduced(_) => {
                group.remove(request.claim(ticket));
            }
            VerificationStage::Held | VerificationStage::Checking(_) => {}
        }
        Some(key)
    }

    /// Puts a request into the group that is its source's now.
    fn enter(&mut self, ticket: Ticket) {
        let Some(request) = self.requests.get(&ticket) else {
            return;
        };
        let key = self.group_of(&request.submission.source, request.submission.kind);
        let (stage, claim) = (request.stage, request.claim(ticket));
        if matches!(
            stage,
            VerificationStage::Held | VerificationStage::Checking(_)
        ) {
            return;
        }
        let group = self.groups.entry(key).or_default();
        match stage {
            VerificationStage::Queued | VerificationStage::Reducing => group.coming += 1,
            VerificationStage::Reduced(since) => group.insert(claim, since),
            VerificationStage::Held | VerificationStage::Checking(_) => {}
        }
    }

    /// Gives a request its verdict, unless it has one.
    pub(super) fn answer(&mut self, ticket: Ticket, status: Status, reached: Option<Reached>) {
        let Some(request) = self.requests.get_mut(&ticket) else {
            return;
        };
        if std::mem::replace(&mut request.answered, true) {
            return;
        }
        let submission = &request.submission;
        if let Some(deadline) = submission.deadline {
            self.deadlines.remove(&(deadline, ticket));
        }
        let stats = reached.map_or_else(VerdictStats::default, |reached| {
            let begun = request.begun.unwrap_or(reached.now);
            VerdictStats {
                queue_us: begun.since(request.accepted),
                verify_us: reached.now.since(begun),
                batch: reached.batch,
                batch_failures: reached.failures,
            }
        });
        let verdict = Verdict { status, stats };
        if let Some(source) = self.sources.get_mut(&submission.source) {
            let counts = &mut source.counts;
            match verdict.status {
                Status::Valid => counts.valid += 1,
                Status::Invalid(_) => counts.invalid += 1,
                Status::Unavailable(_) => counts.unavailable += 1,
            }
            if matches!(verdict.status, Status::Unavailable(_)) {
                // Another attempt may give a verdict.
                source.ids.remove(&submission.id);
            } else {
                source.remember(&submission.id, verdict.clone());
            }
        }
        self.verdicts.push((ticket, verdict));
    }

    /// Forgets a request that has its verdict and that no job works on.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        let Some(request) = self.requests.remove(&ticket) else {
            return;
        };
        debug_assert!(request.answered, "a request without a verdict");
        self.bytes -= request.submission.bytes;
        if let Some(source) = self.sources.get_mut(&request.submission.source) {
            source.tickets.remove(&ticket);
            source.bytes -= request.submission.bytes;
        }
        self.release(&request.submission.source);
    }
}
