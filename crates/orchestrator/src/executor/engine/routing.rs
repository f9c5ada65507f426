//! The choice of an engine for each job. Free of input and output; time is passed in.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::endpoint::{EngineSnapshot, Tier};
use crate::plan::Backoff;

/// Pauses after an engine refuses jobs without a time to retry.
pub(super) const BACKOFF: Backoff = Backoff {
    initial: Duration::from_millis(250),
    max: Duration::from_secs(15),
    factor: 2.0,
    jitter: 0.0,
};

/// Longest time for which an engine without capacity is not asked, whatever time it states.
const REST_MAX: Duration = Duration::from_secs(60);

/// Known state of each engine, in the order of the workflow file.
#[derive(Debug)]
pub(super) struct Routing {
    engines: Vec<EngineEntry>,
}

/// Known state of an engine.
#[derive(Debug)]
struct EngineEntry {
    state: EngineState,
    /// Unfinished jobs at the engine that are not ours.
    others: u64,
    /// Requests of this router at the engine, one for each task that waits for it.
    ours: Vec<String>,
    rest: Option<Rest>,
    /// Number of jobs refused, or lost with the engine, since it last finished one.
    refusals: u32,
}

/// Result of the last poll of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
enum EngineState {
    /// The engine has not been polled yet.
    Unknown,
    /// The engine's answer.
    Answered(EngineSnapshot),
    /// The engine did not answer, for this reason.
    Unreachable(String),
}

/// A period in which an engine is given no jobs.
#[derive(Clone, Copy, Debug)]
struct Rest {
    until: Instant,
    /// Whether the engine itself stated that it has no capacity.
    full: bool,
}

/// The result of choosing an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The engine with this index.
    Engine(usize),
    /// Every engine that could do the job is out of capacity. The caller waits until this time, or until
    /// the state of an engine changes.
    AtCapacity(Instant),
    /// No engine that answers could do the job.
    Unavailable {
        /// Time at which an engine that refused a job may be asked again.
        until: Option<Instant>,
    },
}

// === impl Routing ===

impl Routing {
    pub(super) fn new(count: usize) -> Self {
        let engine = || EngineEntry {
            state: EngineState::Unknown,
            others: 0,
            ours: Vec::new(),
            rest: None,
            refusals: 0,
        };
        Self {
            engines: std::iter::repeat_with(engine).take(count).collect(),
        }
    }

    /// Chooses an engine for a job, other than those in `tried`: the one with the shortest wait. An
    /// engine that already has the same request, for another copy of the task, comes last.
    pub(super) fn choose(&self, request: &str, tried: &BTreeSet<usize>, now: Instant) -> Choice {
        let able = |ix: &usize| !tried.contains(ix) && self.engines[*ix].is_able();
        let able: Vec<usize> = (0..self.engines.len()).filter(able).collect();
        let resting = |ix: usize| self.engines[ix].rest.filter(|rest| rest.until > now);
        let best = able.iter().filter(|ix| resting(**ix).is_none());
        let best = best.min_by_key(|ix| {
            let engine = &self.engines[**ix];
            let twin = engine.ours.iter().any(|ours| ours == request);
            (twin, engine.jobs_before(), **ix)
        });
        if let Some(best) = best {
            return Choice::Engine(*best);
        }
        let rests = || able.iter().filter_map(|ix| resting(*ix));
        let until = rests().map(|rest| rest.until).min();
        match until {
            Some(until) if rests().any(|rest| rest.full) => Choice::AtCapacity(until),
            until => Choice::Unavailable { until },
        }
    }

    /// Whether every engine has been polled.
    pub(super) fn all_polled(&self) -> bool {
        self.engines
            .iter()
            .all(|engine| engine.state != EngineState::Unknown)
    }

    /// Whether an engine answers and accepts jobs, but does not have the circuit.
    pub(super) fn lacks(&self, ix: usize) -> bool {
        let state = &self.engines[ix].state;
        matches!(state, EngineState::Answered(snapshot) if snapshot.tier.is_none() && !snapshot.draining)
    }

    /// The reason why an engine cannot be chosen, for messages.
    pub(super) fn why_not(&self, ix: usize) -> &str {
        match &self.engines[ix].state {
            EngineState::Unknown => "it has not answered yet",
            EngineState::Unreachable(why) => why,
            EngineState::Answered(EngineSnapshot { draining: true, .. }) => "it is shutting down",
            EngineState::Answered(EngineSnapshot { tier: None, .. }) => "it has no such circuit",
            EngineState::Answered(_) => "it takes no jobs now",
        }
    }

    /// Records an engine's answer.
    pub(super) fn answered(&mut self, ix: usize, snapshot: EngineSnapshot) {
        let engine = &mut self.engines[ix];
        engine.state = EngineState::Answered(snapshot);
        engine.others = snapshot.jobs.saturating_sub(engine.distinct());
    }

    /// Records that an engine did not answer.
    pub(super) fn unreachable(&mut self, ix: usize, why: String) {
        self.engines[ix].state = EngineState::Unreachable(why);
    }

    /// Records that a task's request is sent to an engine.
    pub(super) fn began(&mut self, ix: usize, request: &str) {
        self.engines[ix].ours.push(request.to_owned());
    }

    /// Records that a task no longer has a request at an engine.
    pub(super) fn ended(&mut self, ix: usize, request: &str) {
        let ours = &mut self.engines[ix].ours;
        if let Some(at) = ours.iter().position(|known| known == request) {
            ours.swap_remove(at);
        }
    }

    /// Records that an engine has finished a job.
    pub(super) fn ended_a_job(&mut self, ix: usize) {
        self.engines[ix].refusals = 0;
        self.engines[ix].rest = None;
    }

    /// Records that an engine has no capacity.
    pub(super) fn full(&mut self, ix: usize, retry_after: Duration, now: Instant) {
        let until = now + retry_after.clamp(Duration::from_millis(1), REST_MAX);
        self.engines[ix].rest = Some(Rest { until, full: true });
    }

    /// Records that an engine did not answer about a job, or refuses it at present.
    pub(super) fn refused(&mut self, ix: usize, now: Instant) {
        let engine = &mut self.engines[ix];
        engine.refusals = engine.refusals.saturating_add(1);
        let until = now + BACKOFF.delay(engine.refusals, 0);
        engine.rest = Some(Rest { until, full: false });
    }
}

// === impl EngineEntry ===

impl EngineEntry {
    /// Whether the engine answers, accepts jobs and has the circuit.
    fn is_able(&self) -> bool {
        matches!(self.state, EngineState::Answered(snapshot) if snapshot.tier.is_some() && !snapshot.draining)
    }

    /// Number of our jobs: tasks with the same request share one.
    fn distinct(&self) -> u64 {
        self.ours.iter().collect::<BTreeSet<_>>().len() as u64
    }

    /// Number of jobs ahead of a new one, with the time to load the key counted as jobs.
    fn jobs_before(&self) -> u64 {
        let loading = match self.state {
            EngineState::Answered(EngineSnapshot {
                tier: Some(tier), ..
            }) => tier.as_jobs(),
            _ => 0,
        };
        loading + self.others + self.distinct()
    }
}

// === impl Tier ===

impl Tier {
    /// Number of jobs that take about as long as loading the key; also stated in docs/workflow.md.
    const fn as_jobs(self) -> u64 {
        match self {
            Self::Cold => 4,
            Self::Warm => 2,
            Self::Hot => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(tier: Tier, jobs: u64) -> EngineSnapshot {
        EngineSnapshot {
            tier: Some(tier),
            jobs,
            draining: false,
        }
    }

    fn routing(snapshots: &[EngineSnapshot]) -> Routing {
        let mut routing = Routing::new(snapshots.len());
        for (ix, snapshot) in snapshots.iter().enumerate() {
            routing.answered(ix, *snapshot);
        }
        routing
    }

    fn choose(routing: &Routing) -> Choice {
        routing.choose("r", &BTreeSet::new(), Instant::now())
    }

    #[test]
    fn a_hot_key_goes_first_unless_many_wait_for_it() {
        for (jobs, chosen) in [(0, 1), (3, 1), (4, 0), (9, 0)] {
            let routing = routing(&[snapshot(Tier::Cold, 0), snapshot(Tier::Hot, jobs)]);
            assert_eq!(choose(&routing), Choice::Engine(chosen), "{jobs} jobs");
        }
        let routing = routing(&[
            snapshot(Tier::Cold, 0),
            snapshot(Tier::Warm, 0),
            snapshot(Tier::Warm, 1),
        ]);
        assert_eq!(choose(&routing), Choice::Engine(1));
    }

    #[test]
    fn our_own_jobs_count_at_once_and_once() {
        let mut routing = routing(&[snapshot(Tier::Hot, 0), snapshot(Tier::Hot, 0)]);
        routing.began(0, "a");
        assert_eq!(choose(&routing), Choice::Engine(1));
        routing.began(1, "b");
        // Both are in the second engine's own count, and not counted again.
        routing.began(1, "c");
        routing.answered(1, snapshot(Tier::Hot, 2));
        assert_eq!(choose(&routing), Choice::Engine(0));
        routing.ended(1, "b");
        routing.ended(1, "c");
        assert_eq!(choose(&routing), Choice::Engine(1));
    }

    #[test]
    fn copies_of_a_task_go_to_different_engines_while_there_are() {
        let mut routing = routing(&[snapshot(Tier::Hot, 0), snapshot(Tier::Cold, 9)]);
        routing.began(0, "r");
        assert_eq!(choose(&routing), Choice::Engine(1));
        routing.began(1, "r");
        assert_eq!(choose(&routing), Choice::Engine(0));
    }

    #[test]
    fn an_engine_that_lacks_the_circuit_or_is_unreachable_or_drains_gets_nothing() {
        let lacks = EngineSnapshot {
            tier: None,
            ..snapshot(Tier::Hot, 0)
        };
        let drains = EngineSnapshot {
            draining: true,
            ..snapshot(Tier::Hot, 0)
        };
        let mut routing = routing(&[lacks, drains, snapshot(Tier::Cold, 100)]);
        assert_eq!(choose(&routing), Choice::Engine(2));
        routing.unreachable(2, "gone".to_owned());
        assert_eq!(choose(&routing), Choice::Unavailable { until: None });
        assert!(routing.all_polled());
        assert_eq!([0, 1, 2].map(|ix| routing.lacks(ix)), [true, false, false]);
        assert_eq!(
            [0, 1, 2].map(|ix| routing.why_not(ix)),
            ["it has no such circuit", "it is shutting down", "gone"]
        );
    }

    #[test]
    fn who_has_no_room_is_left_alone_for_as_long_as_it_says() {
        let mut routing = routing(&[snapshot(Tier::Hot, 0), snapshot(Tier::Cold, 0)]);
        let (now, tried) = (Instant::now(), BTreeSet::new());
        let wait = Duration::from_secs(5);
        routing.full(0, wait, now);
        assert_eq!(routing.choose("r", &tried, now), Choice::Engine(1));
        routing.full(1, 2 * wait, now);
        assert_eq!(
            routing.choose("r", &tried, now),
            Choice::AtCapacity(now + wait)
        );
        assert_eq!(routing.choose("r", &tried, now + wait), Choice::Engine(0));
    }

    #[test]
    fn who_refuses_is_left_alone_for_longer_and_longer_until_it_ends_a_job() {
        let mut routing = routing(&[snapshot(Tier::Hot, 0)]);
        let (now, tried) = (Instant::now(), BTreeSet::new());
        let rest = |routing: &Routing| match routing.choose("r", &tried, now) {
            Choice::Unavailable { until: Some(until) } => until - now,
            other => panic!("{other:?}"),
        };
        let mut rests = Vec::new();
        for _ in 0..8 {
            routing.refused(0, now);
            rests.push(rest(&routing).as_millis());
        }
        assert_eq!(rests, [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
        routing.ended_a_job(0);
        routing.refused(0, now);
        assert_eq!(rest(&routing).as_millis(), 250);
    }

    #[test]
    fn who_was_tried_is_not_tried_again() {
        let routing = routing(&[snapshot(Tier::Hot, 0), snapshot(Tier::Cold, 0)]);
        let choice = |tried: &[usize]| {
            let tried = tried.iter().copied().collect();
            routing.choose("r", &tried, Instant::now())
        };
        assert_eq!(choice(&[0]), Choice::Engine(1));
        assert_eq!(choice(&[0, 1]), Choice::Unavailable { until: None });
    }
}
