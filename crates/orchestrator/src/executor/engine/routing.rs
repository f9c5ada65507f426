//! The choice of an engine for each job. Free of input and output; time is passed in.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::endpoint::{Look, Tier};
use crate::plan::Backoff;

/// Pauses after an engine refuses jobs without a time to retry.
pub(super) const BACKOFF: Backoff = Backoff {
    initial: Duration::from_millis(250),
    max: Duration::from_secs(15),
    factor: 2.0,
    jitter: 0.0,
};

/// Longest time for which an engine without capacity is not asked, whatever time it states.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Known state of each engine, in the order of the workflow file.
#[derive(Debug)]
pub(super) struct Routing {
    places: Vec<Place>,
}

/// Known state of an engine.
#[derive(Debug)]
struct Place {
    seen: Seen,
    /// Unfinished jobs at the engine that are not ours.
    others: u64,
    /// Requests of this router at the engine, one for each task that waits for it.
    ours: Vec<String>,
    rest: Option<Rest>,
    /// Number of jobs refused, or lost with the engine, since it last finished one.
    refusals: u32,
}

/// Result of the last look at an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    /// None yet.
    Never,
    /// The engine's answer.
    As(Look),
    /// It did not answer, for this reason.
    Silent(String),
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
    At(usize),
    /// Every engine that could do the job is out of capacity: wait until this time, or for news.
    Full(Instant),
    /// No engine that answers could do the job.
    None {
        /// Time at which an engine that refused a job may be asked again.
        until: Option<Instant>,
    },
}

// === impl Routing ===

impl Routing {
    pub(super) fn new(count: usize) -> Self {
        let place = || Place {
            seen: Seen::Never,
            others: 0,
            ours: Vec::new(),
            rest: None,
            refusals: 0,
        };
        Self {
            places: std::iter::repeat_with(place).take(count).collect(),
        }
    }

    /// Chooses an engine for a job, other than those in `tried`: the one with the shortest wait. An
    /// engine that already has the same request, for another copy of the task, comes last.
    pub(super) fn choose(&self, request: &str, tried: &BTreeSet<usize>, now: Instant) -> Choice {
        let able = |ix: &usize| !tried.contains(ix) && self.places[*ix].is_able();
        let able: Vec<usize> = (0..self.places.len()).filter(able).collect();
        let resting = |ix: usize| self.places[ix].rest.filter(|rest| rest.until > now);
        let best = able.iter().filter(|ix| resting(**ix).is_none());
        let best = best.min_by_key(|ix| {
            let place = &self.places[**ix];
            let twin = place.ours.iter().any(|ours| ours == request);
            (twin, place.jobs_before(), **ix)
        });
        if let Some(best) = best {
            return Choice::At(*best);
        }
        let rests = || able.iter().filter_map(|ix| resting(*ix));
        let until = rests().map(|rest| rest.until).min();
        match until {
            Some(until) if rests().any(|rest| rest.full) => Choice::Full(until),
            until => Choice::None { until },
        }
    }

    /// Whether every engine has been looked at.
    pub(super) fn all_looked_at(&self) -> bool {
        self.places.iter().all(|place| place.seen != Seen::Never)
    }

    /// Whether an engine answers and accepts jobs, but does not have the circuit.
    pub(super) fn lacks(&self, ix: usize) -> bool {
        let seen = &self.places[ix].seen;
        matches!(seen, Seen::As(look) if look.tier.is_none() && !look.draining)
    }

    /// The reason why an engine cannot be chosen, for messages.
    pub(super) fn why_not(&self, ix: usize) -> &str {
        match &self.places[ix].seen {
            Seen::Never => "it has not answered yet",
            Seen::Silent(why) => why,
            Seen::As(Look { draining: true, .. }) => "it is shutting down",
            Seen::As(Look { tier: None, .. }) => "it has no such circuit",
            Seen::As(_) => "it takes no jobs now",
        }
    }

    /// Records an engine's answer.
    pub(super) fn looked(&mut self, ix: usize, look: Look) {
        let place = &mut self.places[ix];
        place.seen = Seen::As(look);
        place.others = look.jobs.saturating_sub(place.distinct());
    }

    /// Records that an engine did not answer.
    pub(super) fn silent(&mut self, ix: usize, why: String) {
        self.places[ix].seen = Seen::Silent(why);
    }

    /// Records that a task's request is sent to an engine.
    pub(super) fn began(&mut self, ix: usize, request: &str) {
        self.places[ix].ours.push(request.to_owned());
    }

    /// Records that a task no longer has a request at an engine.
    pub(super) fn ended(&mut self, ix: usize, request: &str) {
        let ours = &mut self.places[ix].ours;
        if let Some(at) = ours.iter().position(|known| known == request) {
            ours.swap_remove(at);
        }
    }

    /// Records that an engine has finished a job.
    pub(super) fn ended_a_job(&mut self, ix: usize) {
        self.places[ix].refusals = 0;
        self.places[ix].rest = None;
    }

    /// Records that an engine has no capacity.
    pub(super) fn full(&mut self, ix: usize, retry_after: Duration, now: Instant) {
        let until = now + retry_after.clamp(Duration::from_millis(1), LONGEST_REST);
        self.places[ix].rest = Some(Rest { until, full: true });
    }

    /// Records that an engine did not answer about a job, or refuses it at present.
    pub(super) fn refused(&mut self, ix: usize, now: Instant) {
        let place = &mut self.places[ix];
        place.refusals = place.refusals.saturating_add(1);
        let until = now + BACKOFF.delay(place.refusals, 0);
        place.rest = Some(Rest { until, full: false });
    }
}

// === impl Place ===

impl Place {
    /// Whether the engine answers, accepts jobs and has the circuit.
    fn is_able(&self) -> bool {
        matches!(self.seen, Seen::As(look) if look.tier.is_some() && !look.draining)
    }

    /// Number of our jobs: tasks with the same request share one.
    fn distinct(&self) -> u64 {
        self.ours.iter().collect::<BTreeSet<_>>().len() as u64
    }

    /// Number of jobs ahead of a new one, with the time to load the key counted as jobs.
    fn jobs_before(&self) -> u64 {
        let loading = match self.seen {
            Seen::As(Look {
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

    fn look(tier: Tier, jobs: u64) -> Look {
        Look {
            tier: Some(tier),
            jobs,
            draining: false,
        }
    }

    fn routing(looks: &[Look]) -> Routing {
        let mut routing = Routing::new(looks.len());
        for (ix, look) in looks.iter().enumerate() {
            routing.looked(ix, *look);
        }
        routing
    }

    fn choose(routing: &Routing) -> Choice {
        routing.choose("r", &BTreeSet::new(), Instant::now())
    }

    #[test]
    fn a_hot_key_goes_first_unless_many_wait_for_it() {
        for (jobs, chosen) in [(0, 1), (3, 1), (4, 0), (9, 0)] {
            let routing = routing(&[look(Tier::Cold, 0), look(Tier::Hot, jobs)]);
            assert_eq!(choose(&routing), Choice::At(chosen), "{jobs} jobs");
        }
        let routing = routing(&[
            look(Tier::Cold, 0),
            look(Tier::Warm, 0),
            look(Tier::Warm, 1),
        ]);
        assert_eq!(choose(&routing), Choice::At(1));
    }

    #[test]
    fn our_own_jobs_count_at_once_and_once() {
        let mut routing = routing(&[look(Tier::Hot, 0), look(Tier::Hot, 0)]);
        routing.began(0, "a");
        assert_eq!(choose(&routing), Choice::At(1));
        routing.began(1, "b");
        // Both are in the second engine's own count, and not counted again.
        routing.began(1, "c");
        routing.looked(1, look(Tier::Hot, 2));
        assert_eq!(choose(&routing), Choice::At(0));
        routing.ended(1, "b");
        routing.ended(1, "c");
        assert_eq!(choose(&routing), Choice::At(1));
    }

    #[test]
    fn copies_of_a_task_go_to_different_engines_while_there_are() {
        let mut routing = routing(&[look(Tier::Hot, 0), look(Tier::Cold, 9)]);
        routing.began(0, "r");
        assert_eq!(choose(&routing), Choice::At(1));
        routing.began(1, "r");
        assert_eq!(choose(&routing), Choice::At(0));
    }

    #[test]
    fn who_lacks_the_circuit_is_silent_or_drains_gets_nothing() {
        let lacks = Look {
            tier: None,
            ..look(Tier::Hot, 0)
        };
        let drains = Look {
            draining: true,
            ..look(Tier::Hot, 0)
        };
        let mut routing = routing(&[lacks, drains, look(Tier::Cold, 100)]);
        assert_eq!(choose(&routing), Choice::At(2));
        routing.silent(2, "gone".to_owned());
        assert_eq!(choose(&routing), Choice::None { until: None });
        assert!(routing.all_looked_at());
        assert_eq!([0, 1, 2].map(|ix| routing.lacks(ix)), [true, false, false]);
        assert_eq!(
            [0, 1, 2].map(|ix| routing.why_not(ix)),
            ["it has no such circuit", "it is shutting down", "gone"]
        );
    }

    #[test]
    fn who_has_no_room_is_left_alone_for_as_long_as_it_says() {
        let mut routing = routing(&[look(Tier::Hot, 0), look(Tier::Cold, 0)]);
        let (now, tried) = (Instant::now(), BTreeSet::new());
        let wait = Duration::from_secs(5);
        routing.full(0, wait, now);
        assert_eq!(routing.choose("r", &tried, now), Choice::At(1));
        routing.full(1, 2 * wait, now);
        assert_eq!(routing.choose("r", &tried, now), Choice::Full(now + wait));
        assert_eq!(routing.choose("r", &tried, now + wait), Choice::At(0));
    }

    #[test]
    fn who_refuses_is_left_alone_for_longer_and_longer_until_it_ends_a_job() {
        let mut routing = routing(&[look(Tier::Hot, 0)]);
        let (now, tried) = (Instant::now(), BTreeSet::new());
        let rest = |routing: &Routing| match routing.choose("r", &tried, now) {
            Choice::None { until: Some(until) } => until - now,
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
        let routing = routing(&[look(Tier::Hot, 0), look(Tier::Cold, 0)]);
        let choice = |tried: &[usize]| {
            let tried = tried.iter().copied().collect();
            routing.choose("r", &tried, Instant::now())
        };
        assert_eq!(choice(&[0]), Choice::At(1));
        assert_eq!(choice(&[0, 1]), Choice::None { until: None });
    }
}
