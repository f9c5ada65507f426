//! The state machine.

mod accept;
mod finish;
mod quarantine_budget;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::Lane;
use super::group::{Group, GroupKey, Reduced};
use super::request::{Micros, Request, Submission, Ticket, VerificationStage};
use super::source::{Source, SourceReport, Turn};
use crate::batch::MAX_BATCH;
use crate::isolation::ExpectedFalseShare;
use crate::verdict::Verdict;
use quarantine_budget::QuarantineBudget;

/// Limits of the requests under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Proofs of a batch: at most [`MAX_BATCH`].
    pub batch: usize,
    /// The most requests under way of one source.
    pub requests: usize,
    /// Bytes of one source's requests.
    pub bytes: usize,
    /// Bytes of all requests. A source that has less than its share of them is not held up by others,
    /// so that there may be twice as many.
    pub total_bytes: usize,
    /// Sources that are remembered, the least recent being forgotten first.
    pub sources: usize,
}

/// The answer to a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The request is under way.
    Accepted(Ticket),
    /// The same request was already under way.
    Joined(Ticket),
    /// The same request had this verdict.
    Known(Verdict),
    /// The id is that of another request.
    Conflict,
    /// There is no room now.
    Full,
    /// The scheduler accepts no more requests.
    Closed,
}

/// A batch that is being checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// A job for a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum VerificationJob {
    /// Reduce proofs of one kind: one by one, or together if that takes less time.
    Reduce {
        /// The requests' kind.
        kind: usize,
        /// The requests.
        tickets: Vec<Ticket>,
    },
    /// Check claims together.
    Check {
        /// Id of the batch, for reporting the outcome.
        batch: BatchId,
        /// The requests' kind.
        kind: usize,
        /// The requests.
        tickets: Vec<Ticket>,
        /// The share of them that is expected to be false.
        expected_false_share: ExpectedFalseShare,
    },
}

/// A job that came to no end: for this reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash(pub String);

/// The state machine: events in, jobs and verdicts out. See the module.
#[derive(Debug)]
pub struct Scheduler {
    limits: Limits,
    /// Threads of a lane.
    threads: usize,
    is_closed: bool,
    requests: HashMap<Ticket, Request>,
    sources: BTreeMap<Arc<str>, Source>,
    groups: BTreeMap<GroupKey, Group>,
    batches: HashMap<BatchId, Batch>,
    /// Sources with a queue, in each lane.
    turns: [BTreeSet<Turn>; 2],
    /// The count of the source served last, in each lane: sources that come back begin there.
    served: [u64; 2],
    deadlines: BTreeSet<(Micros, Ticket)>,
    bytes: usize,
    next_ticket: u64,
    next_batch: u64,
    verdicts: Vec<(Ticket, Verdict)>,
    quarantine_budget: QuarantineBudget,
}

#[derive(Debug)]
struct Batch {
    group: GroupKey,
    tickets: Vec<Ticket>,
    begun: Micros,
}

/// The share of false proofs that is expected of sources in good standing.
const EXPECTED: ExpectedFalseShare = ExpectedFalseShare(0.01);

// === impl Scheduler ===

impl Scheduler {
    /// A scheduler without requests, for `threads` threads in each lane.
    ///
    /// # Panics
    ///
    /// If a limit is zero or a batch exceeds [`MAX_BATCH`].
    pub fn new(limits: Limits, threads: usize) -> Self {
        assert!((1..=MAX_BATCH).contains(&limits.batch), "proofs of a batch");
        assert!(
            limits.requests > 0 && limits.sources > 0,
            "limits above zero"
        );
        Self {
            limits,
            threads: threads.max(1),
            is_closed: false,
            requests: HashMap::new(),
            sources: BTreeMap::new(),
            groups: BTreeMap::new(),
            batches: HashMap::new(),
            turns: Default::default(),
            served: [0; 2],
            deadlines: BTreeSet::new(),
            bytes: 0,
            next_ticket: 0,
            next_batch: 0,
            verdicts: Vec::new(),
            quarantine_budget: QuarantineBudget::default(),
        }
    }

    /// The next job of a lane that [takes one](Self::takes_job); the caller must call [`ended`](Self::ended) when
    /// it has ended. For the quarantine lane, call this again whenever a job of either lane has ended, and at
    /// [`next_turn`](Self::next_turn).
    pub fn next(&mut self, now: Micros, lane: Lane) -> Option<VerificationJob> {
        if !self.quarantine_budget.allows(now, lane) {
            return None;
        }
        let check = self
            .ripe(now, lane)
            .map(|group| self.begin_check(now, group));
        let job = check.or_else(|| self.begin_reduction(now, lane))?;
        self.quarantine_budget.begin(lane);
        Some(job)
    }

    /// Records that a job of a lane ended; its outcome must have been reported before. `taken_us` is its time in
    /// microseconds of all threads: the time of a job on one thread is divided by the number of threads.
    pub fn ended(&mut self, now: Micros, lane: Lane, taken_us: u64) {
        self.quarantine_budget.end(now, lane, taken_us);
    }

    /// Whether each thread of a lane has a job.
    pub fn is_busy(&self, lane: Lane) -> bool {
        self.quarantine_budget.running(lane) >= self.threads
    }

    /// Whether a lane may be given one more job. A thread has a second one at hand where another thread reports
    /// the end of the first: always in the quarantine lane, and in the trusted lane if that makes no batch smaller.
    pub fn takes_job(&self, lane: Lane) -> bool {
        !self.is_busy(lane)
            || (self.quarantine_budget.running(lane) < 2 * self.threads
                && (lane == Lane::Quarantine || self.has_backlog()))
    }

    /// Whether three batches of one kind wait for each thread of the trusted lane, those that are being reduced
    /// included. A job that is taken before a thread is free makes no batch smaller then.
    pub fn has_backlog(&self) -> bool {
        // For each thread a batch that is being reduced, the next one, and one that waits.
        let backlog = 3 * self.limits.batch * self.threads;
        // A kind's group of the trusted lane comes before those of its sources in quarantine, which may be many.
        let first_from = |kind| {
            let trusted = GroupKey { kind, source: None };
            self.groups.range(trusted..).next()
        };
        let kinds = std::iter::successors(first_from(0), |(key, _)| first_from(key.kind + 1));
        let mut trusted = kinds.filter(|(key, _)| key.lane() == Lane::Trusted);
        trusted.any(|(_, group)| group.waiting() >= backlog)
    }

    /// The time at which to ask for the next job of the quarantine lane; `None` unless a job there waits only for the
    /// time.
    pub fn next_turn(&self, now: Micros) -> Option<Micros> {
        let has_work = |_: &Micros| {
            let mut groups = self.groups.keys();
            !self.turns[Lane::Quarantine as usize].is_empty()
                || groups.any(|group| group.lane() == Lane::Quarantine)
        };
        self.quarantine_budget.next_turn(now).filter(has_work)
    }

    /// Verdicts since the last call. A ticket has exactly one.
    pub fn take_verdicts(&mut self) -> Vec<(Ticket, Verdict)> {
        std::mem::take(&mut self.verdicts)
    }

    /// The next deadline.
    pub fn next_deadline(&self) -> Option<Micros> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Whether nothing more is taken.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether every request has its verdict and no job is under way.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// Requests under way.
    pub fn under_way(&self) -> usize {
        self.requests.len()
    }

    /// Sources that are remembered.
    pub fn sources(&self) -> impl Iterator<Item = SourceReport> {
        self.sources
            .iter()
            .map(|(name, source)| source.report(name))
    }

    /// The group that should be checked now: of several, the one with the most urgent claim.
    fn ripe(&mut self, now: Micros, lane: Lane) -> Option<GroupKey> {
        let mut best: Option<(Reduced, GroupKey)> = None;
        for (key, group) in &mut self.groups {
            if key.lane() != lane {
                continue;
            }
            let lanes = side_by_side(&self.requests, group);
            let size = batch_size(&self.sources, self.limits.batch, lanes, key);
            if !group.is_ripe(now, lane, size) {
                continue;
            }
            if let Some(first) = group.first()
                && best.as_ref().is_none_or(|(other, _)| first < *other)
            {
                best = Some((first, key.clone()));
            }
        }
        best.map(|(_, key)| key)
    }

    fn begin_check(&mut self, now: Micros, key: GroupKey) -> VerificationJob {
        let group = self.groups.get(&key);
        let lanes = group.map_or(1, |group| side_by_side(&self.requests, group));
        let size = batch_size(&self.sources, self.limits.batch, lanes, &key);
        let tickets = self.choose(&key, size);
        let batch = BatchId(self.next_batch);
        self.next_batch += 1;
        let group = self.groups.entry(key.clone()).or_default();
        group.checks += 1;
        for ticket in &tickets {
            if let Some(request) = self.requests.get_mut(ticket) {
                group.remove(request.claim(*ticket));
                request.stage = VerificationStage::Checking(batch);
            }
        }
        let source = key.source.as_ref().and_then(|name| self.sources.get(name));
        let expected_false_share = source.map_or(EXPECTED, |source| {
            ExpectedFalseShare(source.standing.false_share())
        });
        let kind = key.kind;
        let running = Batch {
            group: key,
            tickets: tickets.clone(),
            begun: now,
        };
        self.batches.insert(batch, running);
        VerificationJob::Check {
            batch,
            kind,
            tickets,
            expected_false_share,
        }
    }

    /// The first claims of a group; one that was in a batch which crashed comes alone.
    fn choose(&self, key: &GroupKey, size: usize) -> Vec<Ticket> {
        let claims = self.groups.get(key).into_iter().flat_map(Group::claims);
        let mut tickets = Vec::new();
        for (_, ticket) in claims {
            if tickets.len() == size {
                break;
            }
            let Some(request) = self.requests.get(&ticket) else {
                continue;
            };
            if request.suspect {
                if tickets.is_empty() {
                    return vec![ticket];
                }
                continue;
            }
            tickets.push(ticket);
        }
        tickets
    }

    fn begin_reduction(&mut self, now: Micros, lane: Lane) -> Option<VerificationJob> {
        let first = self.take_turn(now, lane, None)?;
        let submission = &self.requests.get(&first)?.submission;
        let together = submission.reduced_together;
        let key = self.group_of(&submission.source, submission.kind);
        // At most a thread's share of the queued requests, so that the other threads have work too.
        let coming = self.groups.get(&key).map_or(1, |group| group.coming);
        let most = coming.div_ceil(self.threads).min(together);
        // A request that is being reduced can no longer be held back when other sources send requests.
        let source = self.sources.get(&submission.source);
        let most = source.map_or(most, |source| most.min(source.standing.allowance()));
        let mut tickets = vec![first];
        while tickets.len() < most
            && let Some(ticket) = self.take_turn(now, lane, Some(&key))
        {
            tickets.push(ticket);
        }
        Some(VerificationJob::Reduce {
            kind: key.kind,
            tickets,
        })
    }

    /// The next request of a lane to be reduced; if a group is given, only one of that group.
    fn take_turn(&mut self, now: Micros, lane: Lane, group: Option<&GroupKey>) -> Option<Ticket> {
        let (_, served, name) = self.turns[lane as usize].first()?.clone();
        let (.., ticket) = *self.sources.get(&name)?.queue.first()?;
        let kind = self.requests.get(&ticket)?.submission.kind;
        if group.is_some_and(|group| *group != self.group_of(&name, kind)) {
            return None;
        }
        let request = self.requests.get_mut(&ticket)?;
        request.stage = VerificationStage::Reducing;
        request.begun = Some(now);
        let source = self.sources.get_mut(&name)?;
        source.queue.pop_first();
        source.served = served + 1;
        self.served[lane as usize] = served;
        self.update_turn(&name);
        Some(ticket)
    }

    /// Releases held-back requests of a source, up to its allowance.
    fn release(&mut self, name: &Arc<str>) {
        let source = self.sources.get(name);
        if source.is_none_or(|source| source.held.is_empty()) {
            return;
        }
        let has_others = self.quarantine_budget.serves_others(name);
        while let Some(source) = self.sources.get_mut(name)
            && (!has_others || source.may_begin())
            && let Some(key) = source.held.pop_first()
        {
            source.queue.insert(key);
            let (.., ticket) = key;
            if let Some(request) = self.requests.get_mut(&ticket) {
                request.stage = VerificationStage::Queued;
                let kind = request.submission.kind;
                let group = self.group_of(name, kind);
                self.groups.entry(group).or_default().coming += 1;
            }
        }
        self.update_turn(name);
    }

    /// Holds back again the requests that a source had released while it was the only one, beyond its allowance beside
    /// other sources, as far as no job has begun on them.
    fn hold_back(&mut self, name: &Arc<str>) {
        let source = self.sources.get(name);
        if !source.is_some_and(Source::is_beyond_allowance)
            || !self.quarantine_budget.serves_others(name)
        {
            return;
        }
        while let Some(source) = self.sources.get_mut(name)
            && source.is_beyond_allowance()
            && let Some(key) = source.queue.pop_last()
        {
            source.held.insert(key);
            let (.., ticket) = key;
            if let Some(request) = self.requests.get_mut(&ticket) {
                request.stage = VerificationStage::Held;
                let kind = request.submission.kind;
                let group = self.group_of(name, kind);
                if let Some(group) = self.groups.get_mut(&group) {
                    group.coming -= 1;
                }
            }
        }
        self.update_turn(name);
    }

    /// Puts a source where its turn is, after its queue has changed.
    fn update_turn(&mut self, name: &Arc<str>) {
        let Some(source) = self.sources.get_mut(name) else {
            return;
        };
        let turns = &mut self.turns[source.lane() as usize];
        if let Some(old) = source.turn.take() {
            turns.remove(&old);
        }
        source.turn = source.next_turn(name);
        turns.extend(source.turn.clone());
    }

    /// The group of a source's claims of a kind.
    fn group_of(&self, source: &Arc<str>, kind: usize) -> GroupKey {
        let apart = self
            .sources
            .get(source)
            .filter(|source| source.lane() == Lane::Quarantine);
        GroupKey {
            kind,
            source: apart.map(|_| source.clone()),
        }
    }

    /// Forgets a group that has nothing, unless it is one of the few common ones, which know how long
    /// checks take.
    fn tidy(&mut self, key: &GroupKey) {
        if key.source.is_some() && self.groups.get(key).is_some_and(Group::is_empty) {
            self.groups.remove(key);
        }
    }
}

/// Claims of a group that its kind checks side by side, each for itself.
fn side_by_side(requests: &HashMap<Ticket, Request>, group: &Group) -> usize {
    let first = group.first().and_then(|(_, ticket)| requests.get(&ticket));
    first.map_or(1, |request| request.submission.side_by_side)
}

/// The most claims of a group for one job, if its kind checks `lanes` claims side by side.
fn batch_size(
    sources: &BTreeMap<Arc<str>, Source>,
    most: usize,
    lanes: usize,
    key: &GroupKey,
) -> usize {
    let apart = key.source.as_ref().and_then(|name| sources.get(name));
    apart.map_or(most, |source| source.standing.batch(most, lanes))
}
