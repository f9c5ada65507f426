//! The reporter against a simulated site, over simulated days: outages, wrong and slow answers, lost answers, the
//! site's limiter, restarts and floods. A seed gives a run; a run is the same each time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proofmill_ethproofs::{
    Answer, Call, DropReason, Event, Kept, Now, Output, Proof, Record, Reporter, ReporterOptions,
    Score, Step,
};

/// Beginning of the simulation, milliseconds since 1970-01-01 UTC.
const EPOCH_MS: u64 = 1_800_000_000_000;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const SLOT: u64 = 12 * SECOND;

/// A generator of numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Behaviour of the site at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    /// It works.
    Fine,
    /// No connection.
    Down,
    /// 500 and 503 for every call.
    Broken,
    /// Answers take long or never come, and the call may have been carried out.
    Slow,
    /// The key is not known.
    Locked,
    /// A third of the calls fails in some way.
    Mixed,
}

/// A site with the rules of the real one.
struct Site {
    blocks: BTreeMap<u64, Step>,
    /// Times of the calls in the limiter's window.
    window: VecDeque<u64>,
    per_minute: usize,
    limited: usize,
    /// Blocks that the site refuses, whatever else.
    refuses: fn(u64) -> bool,
}

impl Site {
    fn new() -> Self {
        Self {
            blocks: BTreeMap::new(),
            window: VecDeque::new(),
            per_minute: 60,
            limited: 0,
            refuses: |_| false,
        }
    }

    /// Carries a call out. `now_ms` is its arrival.
    fn carry_out(&mut self, now_ms: u64, call: &Call) -> Answer {
        while self.window.front().is_some_and(|at| at + MINUTE <= now_ms) {
            self.window.pop_front();
        }
        if self.window.len() >= self.per_minute {
            self.limited += 1;
            let seconds = (self.window[0] + MINUTE - now_ms).div_ceil(SECOND);
            return status(429, &format!(r#"{{"retryAfter":{seconds}}}"#));
        }
        self.window.push_back(now_ms);
        if (self.refuses)(call.block) {
            return status(400, "Invalid request");
        }
        if self.blocks.get(&call.block) == Some(&Step::Proved) {
            return status(409, "Proof already proved");
        }
        self.blocks.insert(call.block, call.step);
        status(200, r#"{"proof_id":1}"#)
    }

    fn proved(&self) -> usize {
        let steps = self.blocks.values();
        steps.filter(|step| **step == Step::Proved).count()
    }
}

fn status(status: u16, body: &str) -> Answer {
    let body = body.as_bytes().to_vec();
    Answer::Status { status, body }
}

/// A reporter, what is on its disk, a mill and a site.
struct World {
    random: Random,
    options: ReporterOptions,
    reporter: Reporter,
    begun_ms: u64,
    now_ms: u64,
    /// On disk: records of the score and proofs.
    records: Vec<Record>,
    kept: BTreeMap<u64, Kept>,
    site: Site,
    weather: fn(u64) -> Weather,
    /// Answers under way, by arrival.
    answers: BTreeMap<(u64, u64), (Call, Answer)>,
    /// Events of the mill to come.
    mill: BTreeMap<(u64, u64, u8), ()>,
    made_ms: VecDeque<u64>,
    dropped: BTreeMap<(Step, DropReason), usize>,
    calls: usize,
    /// Every call and its time: runs are compared by it.
    trace: Vec<(u64, u64, Step)>,
}

impl World {
    fn new(seed: u64, options: ReporterOptions, weather: fn(u64) -> Weather) -> Self {
        Self {
            random: Random(seed),
            reporter: Reporter::new(options.clone()),
            options,
            begun_ms: 0,
            now_ms: 0,
            records: Vec::new(),
            kept: BTreeMap::new(),
            site: Site::new(),
            weather,
            answers: BTreeMap::new(),
            mill: BTreeMap::new(),
            made_ms: VecDeque::new(),
            dropped: BTreeMap::new(),
            calls: 0,
            trace: Vec::new(),
        }
    }

    /// Lets the mill prove a block for each slot between two times.
    fn prove_blocks(&mut self, from_ms: u64, to_ms: u64) {
        for block in from_ms / SLOT..to_ms / SLOT {
            let accepted = block * SLOT + self.random.below(SECOND);
            let begun = accepted + self.random.below(2 * SECOND);
            let emitted = begun + 4 * SECOND + self.random.below(10 * SECOND);
            for (at, kind) in [(accepted, 0), (begun, 1), (emitted, 2)] {
                self.mill.insert((at, block, kind), ());
            }
        }
    }

    fn now(&self) -> Now {
        Now {
            // The clock of a process begins with the process.
            mono_ms: self.now_ms - self.begun_ms,
            wall_ms: EPOCH_MS + self.now_ms,
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.now();
        let outputs = self.reporter.handle(now, event);
        for output in outputs {
            match output {
                Output::Call(call) => self.call(call),
                Output::Forget { block } => {
                    assert!(self.kept.remove(&block).is_some(), "{block} is not kept");
                }
                Output::Record(record) => self.records.push(record),
                Output::Dropped { step, reason, .. } => {
                    *self.dropped.entry((step, reason)).or_default() += 1;
                }
                Output::Ended { .. } => {}
            }
        }
        self.check();
    }

    fn check(&mut self) {
        let pending: usize = self.reporter.pending().iter().sum();
        // Calls in flight cannot be given up.
        assert!(pending <= self.options.blocks_max + 4, "{pending}");
        let bytes: u64 = self.kept.values().map(|kept| kept.proof.bytes).sum();
        assert_eq!(bytes, self.reporter.pending_bytes());
        assert!(bytes <= self.options.bytes_max + 4_000);
        assert!(self.reporter.in_flight() <= 4);
    }

    fn call(&mut self, call: Call) {
        self.calls += 1;
        self.trace.push((self.now_ms, call.block, call.step));
        self.made_ms.push_back(self.now_ms);
        while self
            .made_ms
            .front()
            .is_some_and(|at| at + MINUTE <= self.now_ms)
        {
            self.made_ms.pop_front();
        }
        let most = self.options.calls_per_minute as usize;
        assert!(self.made_ms.len() <= most, "calls of a minute");
        let of_block = self
            .answers
            .values()
            .filter(|(other, _)| other.block == call.block);
        assert_eq!(of_block.count(), 0, "two calls of block {}", call.block);
        assert_eq!(call.step == Step::Proved, call.proof.is_some());
        assert!(call.step != Step::Proved || self.kept.contains_key(&call.block));
        let (delay_ms, answer) = self.exchange(&call);
        let place = (self.now_ms + delay_ms, call.id);
        self.answers.insert(place, (call, answer));
    }

    fn exchange(&mut self, call: &Call) -> (u64, Answer) {
        let quick = 20 + self.random.below(300);
        let lost = || Answer::Nothing("no answer within 35 s".into());
        let refused = Answer::Nothing("no connection".into());
        match (self.weather)(self.now_ms) {
            Weather::Fine => (quick, self.site.carry_out(self.now_ms, call)),
            Weather::Down => (quick, refused),
            Weather::Broken => (quick, status(503, "")),
            Weather::Locked => (quick, status(401, "Invalid API key")),
            Weather::Slow => {
                let carried = self.random.chance(50);
                let answer = carried.then(|| self.site.carry_out(self.now_ms, call));
                match answer.filter(|_| self.random.chance(50)) {
                    Some(answer) => (10 * SECOND + self.random.below(20 * SECOND), answer),
                    None => (35 * SECOND, lost()),
                }
            }
            Weather::Mixed => match self.random.below(9) {
                0 => (quick, status(500, "Internal server error")),
                1 => {
                    self.site.carry_out(self.now_ms, call);
                    (35 * SECOND, lost())
                }
                2 => (quick, refused),
                _ => (quick, self.site.carry_out(self.now_ms, call)),
            },
        }
    }

    /// Ends the process and starts another one: what is in memory is lost, and so are the answers under way.
    fn restart(&mut self) {
        self.answers.clear();
        self.begun_ms = self.now_ms;
        // The site's limiter does not know of restarts; nor does a new process know of calls before.
        self.made_ms.clear();
        let mut score = Score::new(self.options.every);
        self.records.iter().for_each(|record| score.note(*record));
        let kept = self.kept.values().copied().collect();
        self.reporter = Reporter::restored(self.options.clone(), score, kept);
        // The mill tells of blocks under way anew.
        let to_come: BTreeSet<(u64, u8)> = self.mill.keys().map(|it| (it.1, it.2)).collect();
        let under_way = to_come.iter().filter(|it| it.1 == 2).map(|it| it.0);
        for block in under_way {
            let at_ms = EPOCH_MS + block * SLOT;
            if !to_come.contains(&(block, 1)) {
                self.handle(Event::Begun { block, at_ms });
            }
            if !to_come.contains(&(block, 0)) {
                self.handle(Event::Accepted { block, at_ms });
            }
        }
        self.handle(Event::Tick);
    }

    /// Runs until a time; restarts after these times.
    fn run_until(&mut self, end_ms: u64, restarts: &[u64]) {
        let mut restarts: VecDeque<u64> = restarts.iter().copied().collect();
        loop {
            let mill = self.mill.first_key_value().map(|(key, ())| key.0);
            let answer = self.answers.first_key_value().map(|(key, _)| key.0);
            let due = self.reporter.due_ms().map(|due| due + self.begun_ms);
            let restart = restarts.front().copied();
            let next = [mill, answer, due, restart].into_iter().flatten().min();
            let next = next.unwrap_or(u64::MAX).max(self.now_ms);
            if next > end_ms {
                self.now_ms = end_ms;
                self.handle(Event::Tick);
                return;
            }
            self.now_ms = next;
            let is_due = |at: Option<u64>| at.is_some_and(|at| at <= next);
            if is_due(restart) {
                restarts.pop_front();
                self.restart();
            } else if is_due(mill) {
                let ((at, block, kind), ()) = self.mill.pop_first().expect("seen");
                self.mill_event(at, block, kind);
            } else if is_due(answer) {
                let (_, (call, answer)) = self.answers.pop_first().expect("seen");
                self.handle(Event::Answered {
                    call: call.id,
                    answer,
                });
            } else {
                self.handle(Event::Tick);
            }
        }
    }

    fn mill_event(&mut self, at: u64, block: u64, kind: u8) {
        let at_ms = EPOCH_MS + at;
        match kind {
            0 => self.handle(Event::Accepted { block, at_ms }),
            1 => self.handle(Event::Begun { block, at_ms }),
            _ => match self.reporter.emitted(block, at_ms) {
                Ok(None) => {}
                Ok(Some(proving_ms)) => {
                    let proof = Proof {
                        proving_ms,
                        cycles: None,
                        bytes: 1_000,
                    };
                    let kept = Kept {
                        block,
                        proof,
                        proved_ms: at_ms,
                    };
                    self.kept.insert(block, kept);
                    self.handle(Event::Kept(kept));
                }
                Err(reason) => self.handle(Event::Unkept { block, reason }),
            },
        }
    }

    fn dropped(&self, step: Step) -> usize {
        let of_step = self.dropped.iter().filter(|((of, _), _)| *of == step);
        of_step.map(|(_, count)| count).sum()
    }
}

fn options() -> ReporterOptions {
    ReporterOptions::default()
}

#[test]
fn while_the_site_works_every_step_is_told_at_once() {
    let mut world = World::new(1, options(), |_| Weather::Fine);
    world.prove_blocks(0, 6 * HOUR);
    world.run_until(6 * HOUR + 5 * MINUTE, &[]);
    let blocks = (6 * HOUR / SLOT) as usize;
    assert_eq!(world.calls, 3 * blocks);
    assert_eq!((world.site.proved(), world.site.limited), (blocks, 0));
    assert!(world.dropped.is_empty() && world.kept.is_empty());
    let scores = world.reporter.scores(EPOCH_MS + world.now_ms);
    assert_eq!((scores.blocks, scores.paralyzed), (blocks, 0));
    assert_eq!(scores.liveness(), Some(1.0));
    // Proofs take 4 to 14 s.
    let performance = scores.performance().expect("blocks");
    assert!((0.5..0.7).contains(&performance), "{performance}");
    // Each block's steps come in order.
    for block in 0..blocks as u64 {
        let steps: Vec<Step> = world
            .trace
            .iter()
            .filter(|it| it.1 == block)
            .map(|it| it.2)
            .collect();
        assert_eq!(steps, Step::ALL, "{block}");
    }
}

#[test]
fn an_outage_of_ten_hours_costs_no_proof() {
    for weather in [
        (|now| {
            if (HOUR..11 * HOUR).contains(&now) {
                Weather::Down
            } else {
                Weather::Fine
            }
        }) as fn(u64) -> Weather,
        |now| {
            if (HOUR..11 * HOUR).contains(&now) {
                Weather::Broken
            } else {
                Weather::Fine
            }
        },
        |now| {
            if (HOUR..11 * HOUR).contains(&now) {
                Weather::Slow
            } else {
                Weather::Fine
            }
        },
        |now| {
            if (HOUR..11 * HOUR).contains(&now) {
                Weather::Locked
            } else {
                Weather::Fine
            }
        },
    ] {
        let mut world = World::new(2, options(), weather);
        world.prove_blocks(0, 14 * HOUR);
        world.run_until(11 * HOUR, &[]);
        let before = world.calls;
        // A call a minute at most, beside those of the first hour.
        assert!(before < 3 * 300 + 10 * 60 * 2, "{before}");
        world.run_until(14 * HOUR + 5 * MINUTE, &[]);
        assert_eq!(world.site.proved() as u64, 14 * HOUR / SLOT);
        assert_eq!(world.dropped(Step::Proved), 0);
        assert_eq!(world.site.limited, 0);
        assert!(world.kept.is_empty());
        // A block that came after the outage was told of while old proofs waited.
        let after = (11 * HOUR + 10 * MINUTE) / SLOT;
        let told = world
            .trace
            .iter()
            .find(|it| it.1 == after && it.2 == Step::Proved);
        let (at, ..) = told.expect("told");
        assert!(*at < after * SLOT + MINUTE, "{at}");
    }
}

#[test]
fn restarts_at_any_time_lose_nothing() {
    for seed in 0..20 {
        let mut world = World::new(seed, options(), |now| match now / (30 * MINUTE) % 4 {
            0 => Weather::Mixed,
            1 => Weather::Slow,
            2 => Weather::Fine,
            _ => Weather::Down,
        });
        let mut restarts: Vec<u64> = (0..40).map(|_| world.random.below(6 * HOUR)).collect();
        restarts.sort_unstable();
        restarts.dedup();
        world.prove_blocks(0, 6 * HOUR);
        world.run_until(9 * HOUR, &restarts);
        let blocks = 6 * HOUR / SLOT;
        assert_eq!(world.site.proved() as u64, blocks, "seed {seed}");
        assert_eq!(world.dropped(Step::Proved), 0, "seed {seed}");
        assert!(world.kept.is_empty());
        let scores = world.reporter.scores(EPOCH_MS + world.now_ms);
        assert_eq!(scores.fast + scores.slow, blocks as usize, "seed {seed}");
    }
}

#[test]
fn a_backlog_beyond_the_bounds_loses_the_least_valuable_first() {
    let bounded = ReporterOptions {
        blocks_max: 100,
        bytes_max: 80 * 1_000,
        ..options()
    };
    let mut world = World::new(3, bounded, |now| {
        if now < 3 * HOUR {
            Weather::Down
        } else {
            Weather::Fine
        }
    });
    world.prove_blocks(0, 3 * HOUR);
    world.run_until(6 * HOUR, &[]);
    let blocks = (3 * HOUR / SLOT) as usize;
    // The newest 80 proofs have come through.
    let proved: Vec<u64> = world.site.blocks.keys().copied().collect();
    let oldest = *proved.first().expect("some");
    assert!(
        world.site.proved() >= 80 && world.site.proved() <= 84,
        "{}",
        world.site.proved()
    );
    assert!(oldest as usize >= blocks - 84, "{oldest}");
    assert_eq!(world.dropped(Step::Proved), blocks - world.site.proved());
    let scores = world.reporter.scores(EPOCH_MS + world.now_ms);
    assert_eq!(scores.unreported, blocks - world.site.proved());
    assert_eq!(scores.paralyzed, scores.unreported);
}

#[test]
fn steps_without_a_proof_go_before_any_proof() {
    let bounded = ReporterOptions {
        blocks_max: 10,
        ..options()
    };
    let mut world = World::new(4, bounded, |_| Weather::Down);
    for block in 0..8 {
        world.mill_event(10, block, 0);
        world.mill_event(20, block, 1);
        world.mill_event(9_000, block, 2);
    }
    for block in 100..200 {
        world.mill_event(10_000, block, 0);
    }
    for block in 200..300 {
        world.mill_event(10_000, block, 1);
    }
    assert_eq!(world.dropped(Step::Proved), 0);
    assert_eq!(world.reporter.pending()[2], 8);
    assert!(world.dropped(Step::Queued) >= 99 && world.dropped(Step::Proving) >= 97);
}

#[test]
fn a_flood_takes_bounded_memory_and_the_site_s_limit_is_kept() {
    // `check` and `call` hold the bounds.
    let mut world = World::new(5, options(), |_| Weather::Fine);
    for block in 0..200_000_u64 {
        world.now_ms = block / 100;
        let at = world.now_ms;
        world.mill_event(at, block, 0);
        if block.is_multiple_of(3) {
            world.mill_event(at, block, 1);
        }
    }
    assert!(world.calls <= 55);
    world.run_until(10 * HOUR, &[]);
    let told = world.calls;
    assert!(told > 8_000 && told < 8_400, "{told}");
    assert_eq!(world.reporter.pending(), [0, 0, 0]);
}

#[test]
fn a_report_that_is_refused_holds_nothing_up() {
    let mut world = World::new(6, options(), |_| Weather::Fine);
    world.site.refuses = |block| block.is_multiple_of(5);
    world.prove_blocks(0, HOUR);
    world.run_until(HOUR + 5 * MINUTE, &[]);
    let blocks = HOUR / SLOT;
    assert_eq!(world.site.proved() as u64, blocks - blocks / 5);
    let refused = world.dropped[&(Step::Proved, DropReason::Refused)];
    assert_eq!(refused as u64, blocks / 5);
    assert!(world.kept.is_empty());
}

#[test]
fn a_site_that_is_stricter_than_told_is_obeyed() {
    let mut world = World::new(7, options(), |_| Weather::Fine);
    world.site.per_minute = 10;
    world.prove_blocks(0, 2 * HOUR);
    world.run_until(8 * HOUR, &[]);
    assert_eq!(world.site.proved() as u64, 2 * HOUR / SLOT);
    // After the first refusal the reporter waits as long as it is asked to: few calls are in vain.
    let vain = world.site.limited as f64 / world.calls as f64;
    assert!(vain < 0.3, "{vain}");
}

#[test]
fn proofs_older_than_the_window_are_given_up() {
    let mut world = World::new(8, options(), |_| Weather::Down);
    world.prove_blocks(0, HOUR);
    world.run_until(8 * 24 * HOUR, &[]);
    let blocks = (HOUR / SLOT) as usize;
    assert_eq!(world.dropped[&(Step::Proved, DropReason::Old)], blocks);
    assert!(world.kept.is_empty());
    assert_eq!(world.reporter.scores(EPOCH_MS + world.now_ms).blocks, 0);
}

#[test]
fn a_run_is_the_same_each_time() {
    let run = || {
        let mut world = World::new(9, options(), |_| Weather::Mixed);
        world.prove_blocks(0, 2 * HOUR);
        world.run_until(3 * HOUR, &[HOUR]);
        world.trace
    };
    assert_eq!(run(), run());
}
