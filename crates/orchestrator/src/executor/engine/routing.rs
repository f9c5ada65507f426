//! Which engine gets the next job. No input or output, and the time comes from outside.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::endpoint::{Look, Tier};
use crate::plan::Backoff;

/// Waits while an engine refuses jobs without saying for how long.
pub(super) const BACKOFF: Backoff = Backoff {
    initial: Duration::from_millis(250),
    max: Duration::from_secs(15),
    factor: 2.0,
    jitter: 0.0,
};

/// The longest time that an engine without room is left alone: it may say so by mistake.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// What is known of each engine, by its place in the workflow file.
#[derive(Debug)]
pub(super) struct Routing {
    places: Vec<Place>,
}

/// What is known of an engine.
#[derive(Debug)]
struct Place {
    seen: Seen,
    /// Jobs there that are not ours.
    others: u64,
    /// The requests that we have there, one for each task that waits for it.
    ours: Vec<String>,
    rest: Option<Rest>,
    /// How often it refused a job, or was lost with one, since it last brought one to its end.
    refusals: u32,
}

/// When it was last looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    /// It was not.
    Never,
    /// It answered.
    As(Look),
    /// It did not: why.
    Silent(String),
}

/// It is left alone.
#[derive(Clone, Copy, Debug)]
struct Rest {
    until: Instant,
    /// It said itself that it has no room.
    full: bool,
}

/// Who gets a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// This one.
    At(usize),
    /// All that could do it have no room: until then, or until something is heard.
    Full(Instant),
    /// None that answers could do it.
    None {
        /// When one that was left alone may be asked again.
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

    /// The engine for a job, which is none of `tried`: the one where it is least to wait for. Where
    /// the same request is under way for another copy of the task is the last choice.
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

    /// Whether every engine was looked at.
    pub(super) fn all_looked_at(&self) -> bool {
        self.places.iter().all(|place| place.seen != Seen::Never)
    }

    /// Whether an engine answers, takes jobs, and does not have the circuit.
    pub(super) fn lacks(&self, ix: usize) -> bool {
        let seen = &self.places[ix].seen;
        matches!(seen, Seen::As(look) if look.tier.is_none() && !look.draining)
    }

    /// Why an engine cannot be chosen, in words.
    pub(super) fn why_not(&self, ix: usize) -> &str {
        match &self.places[ix].seen {
            Seen::Never => "it has not answered yet",
            Seen::Silent(why) => why,
            Seen::As(Look { draining: true, .. }) => "it is shutting down",
            Seen::As(Look { tier: None, .. }) => "it has no such circuit",
            Seen::As(_) => "it takes no jobs now",
        }
    }

    /// An engine has answered.
    pub(super) fn looked(&mut self, ix: usize, look: Look) {
        let place = &mut self.places[ix];
        place.seen = Seen::As(look);
        place.others = look.jobs.saturating_sub(place.distinct());
    }

    /// An engine has not.
    pub(super) fn silent(&mut self, ix: usize, why: String) {
        self.places[ix].seen = Seen::Silent(why);
    }

    /// A task's request goes to an engine.
    pub(super) fn began(&mut self, ix: usize, request: &str) {
        self.places[ix].ours.push(request.to_owned());
    }

    /// A task has no request there any more.
    pub(super) fn ended(&mut self, ix: usize, request: &str) {
        let ours = &mut self.places[ix].ours;
        if let Some(at) = ours.iter().position(|known| known == request) {
            ours.swap_remove(at);
        }
    }

    /// An engine has brought a job to its end.
    pub(super) fn ended_a_job(&mut self, ix: usize) {
        self.places[ix].refusals = 0;
        self.places[ix].rest = None;
    }

    /// An engine has no room.
    pub(super) fn full(&mut self, ix: usize, retry_after: Duration, now: Instant) {
        let until = now + retry_after.clamp(Duration::from_millis(1), LONGEST_REST);
        self.places[ix].rest = Some(Rest { until, full: true });
    }

    /// An engine did not answer about a job, or does not take it and may later.
    pub(super) fn refused(&mut self, ix: usize, now: Instant) {
        let place = &mut self.places[ix];
        place.refusals = place.refusals.saturating_add(1);
        let until = now + BACKOFF.delay(place.refusals, 0);
        place.rest = Some(Rest { until, full: false });
    }
}

// === impl Place ===

impl Place {
    /// Whether it answers, takes jobs and has the circuit.
    fn is_able(&self) -> bool {
        matches!(self.seen, Seen::As(look) if look.tier.is_some() && !look.draining)
    }

    /// Our jobs: tasks with the same request wait for one.
    fn distinct(&self) -> u64 {
        self.ours.iter().collect::<BTreeSet<_>>().len() as u64
    }

    /// The jobs that one more would wait for, with the key's loading reckoned as some.
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
    /// So many jobs take as long as making the key hot, roughly: docs/workflow.md says so too.
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
        // Both are in what the second says it has, and not counted again.
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
