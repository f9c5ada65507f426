//! Requests that come, and that are taken back.

use super::*;
use crate::schedule::source::{Known, State};
use crate::verdict::{Status, Unavailable};

impl Scheduler {
    /// Takes a request, if there is room.
    pub fn submit(&mut self, now: Micros, submission: Submission) -> Admission {
        if let Some(source) = self.sources.get(&submission.source)
            && let Some(known) = source.ids.get(&submission.id)
        {
            return match &known.state {
                _ if known.digest != submission.digest => Admission::Conflict,
                State::UnderWay(ticket) => Admission::Joined(*ticket),
                State::Settled(verdict) => Admission::Known(verdict.clone()),
            };
        }
        if self.is_closed {
            return Admission::Closed;
        }
        if !self.has_room(&submission) || !self.make_source(now, &submission.source) {
            return Admission::Full;
        }
        Admission::Accepted(self.accept(now, submission))
    }

    /// Takes nothing more.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Withdraws a request; true if it was under way.
    pub fn cancel(&mut self, source: &str, id: &str) -> bool {
        let source = self.sources.get(source);
        match source
            .and_then(|source| source.ids.get(id))
            .map(|known| &known.state)
        {
            Some(State::UnderWay(ticket)) => {
                self.give_up(*ticket, &Unavailable::Cancelled);
                true
            }
            _ => false,
        }
    }

    /// Withdraws all requests of a source and returns their number.
    pub fn cancel_source(&mut self, source: &str) -> usize {
        let Some(source) = self.sources.get(source) else {
            return 0;
        };
        let has_no_verdict = |ticket: &&Ticket| {
            self.requests
                .get(ticket)
                .is_some_and(|request| !request.answered)
        };
        let tickets: Vec<_> = source
            .tickets
            .iter()
            .filter(has_no_verdict)
            .copied()
            .collect();
        for ticket in &tickets {
            self.give_up(*ticket, &Unavailable::Cancelled);
        }
        tickets.len()
    }

    /// Answers all requests as unavailable, as the service stops now.
    pub fn stop(&mut self) {
        self.close();
        let mut tickets: Vec<_> = self.requests.keys().copied().collect();
        tickets.sort_unstable();
        for ticket in tickets {
            self.give_up(ticket, &Unavailable::Stopped);
        }
    }

    /// Answers requests whose deadline has passed as unavailable.
    pub fn expire(&mut self, now: Micros) {
        while let Some((deadline, ticket)) = self.deadlines.first().copied()
            && deadline <= now
        {
            self.give_up(ticket, &Unavailable::Deadline);
            // The deadline is already removed, unless the request was answered before it.
            self.deadlines.remove(&(deadline, ticket));
        }
    }

    fn has_room(&self, submission: &Submission) -> bool {
        let (requests, bytes) = self
            .sources
            .get(&submission.source)
            .map_or((0, 0), |source| (source.tickets.len(), source.bytes));
        // A source's only request is always accepted: requests above the limit were refused before.
        let fits = requests < self.limits.requests
            && (requests == 0 || bytes + submission.bytes <= self.limits.bytes);
        // Sources are counted only when all of them together have too much.
        fits && (self.bytes + submission.bytes <= self.limits.total_bytes
            || bytes + submission.bytes <= self.share())
    }

    /// Bytes that each source may have which has any, when all together have too many.
    fn share(&self) -> usize {
        let active = self.sources.values().filter(|source| source.bytes > 0);
        self.limits.total_bytes / active.count().max(1)
    }

    /// Makes room for a source that is new; whether there is.
    fn make_source(&mut self, now: Micros, name: &Arc<str>) -> bool {
        if !self.sources.contains_key(name) {
            if self.sources.len() >= self.limits.sources && !self.forget_source() {
                return false;
            }
            self.sources.insert(name.clone(), Source::default());
        }
        if let Some(source) = self.sources.get_mut(name) {
            source.last_seen = now;
        }
        true
    }

    /// Forgets the least recent source without requests under way, preferably one in good standing.
    fn forget_source(&mut self) -> bool {
        let idle = self
            .sources
            .iter()
            .filter(|(_, source)| source.tickets.is_empty());
        let oldest = idle.min_by_key(|(_, source)| (source.lane(), source.last_seen));
        let Some(name) = oldest.map(|(name, _)| name.clone()) else {
            return false;
        };
        self.sources.remove(&name);
        true
    }

    fn accept(&mut self, now: Micros, submission: Submission) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.bytes += submission.bytes;
        if let Some(deadline) = submission.deadline {
            self.deadlines.insert((deadline, ticket));
        }
        let name = submission.source.clone();
        let request = Request {
            accepted: now,
            begun: None,
            stage: VerificationStage::Held,
            suspect: false,
            answered: false,
            submission,
        };
        if let Some(source) = self.sources.get_mut(&name) {
            if source.queue.is_empty() {
                // A source gains no credit for the time in which it sent nothing.
                source.served = source.served.max(self.served[source.lane() as usize]);
            }
            source.held.insert(request.queue_key(ticket));
            source.tickets.insert(ticket);
            source.bytes += request.submission.bytes;
            let known = Known {
                digest: request.submission.digest,
                state: State::UnderWay(ticket),
            };
            source.ids.insert(request.submission.id.clone(), known);
            if source.lane() == Lane::Trusted {
                self.quarantine_budget.see(now, &name);
            }
        }
        self.requests.insert(ticket, request);
        self.release(&name);
        // The other was alone until now, perhaps.
        if let Some(other) = self.quarantine_budget.other(&name) {
            self.hold_back(&other);
        }
        ticket
    }

    /// Answers a request that will have no other verdict, and takes it out of queue or group. One that
    /// a job works on is forgotten when the job ends.
    fn give_up(&mut self, ticket: Ticket, reason: &Unavailable) {
        let Some(request) = self.requests.get(&ticket) else {
            return;
        };
        if request.answered {
            return;
        }
        let (stage, key) = (request.stage, request.queue_key(ticket));
        let name = request.submission.source.clone();
        let group = self.group_of(&name, request.submission.kind);
        let claim = request.claim(ticket);
        let status = Status::Unavailable(reason.clone());
        match stage {
            VerificationStage::Held => {
                if let Some(source) = self.sources.get_mut(&name) {
                    source.held.remove(&key);
                }
                self.answer(ticket, status, None);
                self.forget(ticket);
            }
            VerificationStage::Queued => {
                if let Some(source) = self.sources.get_mut(&name) {
                    source.queue.remove(&key);
                }
                self.update_turn(&name);
                self.groups.entry(group.clone()).or_default().coming -= 1;
                self.answer(ticket, status, None);
                self.forget(ticket);
            }
            VerificationStage::Reduced(_) => {
                self.groups.entry(group.clone()).or_default().remove(claim);
                self.answer(ticket, status, None);
                self.forget(ticket);
            }
            VerificationStage::Reducing | VerificationStage::Checking(_) => {
                self.answer(ticket, status, None)
            }
        }
        self.tidy(&group);
    }
}
