//! A seeded simulator: the core in a world of virtual time with every kind of failure.
//!
//! Each seed is one history: a workflow, its producers, workers, sink and operators, a log whose crash loses
//! the records that are not durable, and faults at random moments. After a while the faults stop, and all
//! accepted work must end. The invariants are those of the design, lettered in the messages: (a) nothing
//! accepted is lost, (b) one result for each task, (c) no overtaking, (d) barriers fire once, (e) emission in
//! order, (f) replay gives the same state, (g) bounds, (h) retries, (i) determinism, (j) indices, (k) several
//! workers with one task, (l) deadlines, (m) emissions follow the chain that was current last, over
//! reorganisations, (n) no record refers to a blob that was swept, (o) a liar harms no other process's work,
//! (p) messages that are passed on arrive and are counted, however late, (q) the history and the counters are
//! the same after a crash, and bounded, (r) what an operator has paused rests until it is resumed, over crashes.
//!
//! `SEED=n cargo test --test simulation` prints one history; `SEEDS=n` runs more of them. `digest` pins the
//! core's behaviour in the first of them. `protocol` is another world, of several processes: their messages
//! to each other, and the election of a leader.

mod actors;
mod blobs;
mod byzantine;
mod chain;
mod checks;
mod digest;
mod forgery;
mod given;
mod hosts;
mod late;
mod lies;
mod log;
mod outside;
mod pauses;
mod plans;
mod protocol;
mod replay;
mod rng;
mod several;
mod valid;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use world::World;

/// Seeds that are run without `SEEDS`; `make simulations` runs 10,000.
const SEEDS: u64 = 1_000;

/// Counts and digests of a history.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Lived {
    digest: u64,
    /// SHA-256 over the core's actions.
    actions: [u8; 32],
    hedged: u64,
    several: u64,
    cancelled: u64,
    missed: u64,
    given_up: u64,
    gathered: u64,
    reorganised: u64,
    swept: u64,
    late: u64,
    /// Requests of the operator who pauses.
    pauses: u64,
    /// Of the liar's calls: those that could be decoded, those admitted, and those refused or not decodable;
    /// and the events passed to the core.
    heard: u64,
    admitted: u64,
    refused: u64,
    lies: u64,
}

/// Prints the seed of a history that panics.
struct Of(u64);

impl Drop for Of {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in SEED={}", self.0);
        }
    }
}

fn run_history(seed: u64, print: bool) -> Lived {
    let _of = Of(seed);
    let mut world = World::new(seed, print);
    let outcome = (|| {
        let turmoil = world.rng.within(4_000, 20_000);
        world.run(turmoil)?;
        world.end_faults()?;
        for _ in 0..40 {
            world.run(world.now_ms + 10_000)?;
            if world.check_end().is_ok() {
                break;
            }
        }
        world.check_end()
    })();
    if let Err(why) = outcome {
        let scene = world.scene.name;
        panic!("{}\nSEED={seed} ({scene}): {why}", world.trace_tail());
    }
    let liar = world
        .liar
        .as_ref()
        .map(|liar| liar.count)
        .unwrap_or_default();
    Lived {
        heard: liar.heard,
        admitted: liar.admitted,
        refused: liar.refused,
        lies: liar.told,
        digest: world.digest,
        actions: world.actions.finish(),
        hedged: world.monitor.hedged,
        several: world.monitor.several,
        cancelled: world.monitor.cancelled,
        missed: world.monitor.missed,
        given_up: world.monitor.given_up,
        gathered: world.gathered,
        reorganised: world.chain.reorganised,
        swept: world.blobs.swept,
        late: world.monitor.late,
        pauses: world.pauser.map_or(0, |pauser| pauser.asked),
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn histories_keep_the_invariants() {
    if let Some(seed) = number("SEED") {
        run_history(seed, true);
        return;
    }
    let count = number("SEEDS").unwrap_or(SEEDS);
    let threads = std::thread::available_parallelism()
        .map_or(1, |n| n.get() as u64)
        .min(count);
    // One seed at a time for each thread, since histories with a liar take longer.
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let next = &next;
        let run = || {
            move || {
                let mut sum = Lived::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        break;
                    }
                    let lived = run_history(seed, false);
                    sum.hedged += lived.hedged;
                    sum.several += lived.several;
                    sum.cancelled += lived.cancelled;
                    sum.missed += lived.missed;
                    sum.given_up += lived.given_up;
                    sum.gathered += lived.gathered;
                    sum.reorganised += lived.reorganised;
                    sum.swept += lived.swept;
                    sum.late += lived.late;
                    sum.pauses += lived.pauses;
                    sum.heard += lived.heard;
                    sum.admitted += lived.admitted;
                    sum.refused += lived.refused;
                    sum.lies += lived.lies;
                }
                sum
            }
        };
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(run())).collect();
        let mut seen = [0; 14];
        for handle in handles {
            let sum = handle
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let of = [
                sum.hedged,
                sum.several,
                sum.cancelled,
                sum.missed,
                sum.given_up,
                sum.gathered,
                sum.reorganised,
                sum.swept,
                sum.late,
                sum.pauses,
                sum.heard,
                sum.admitted,
                sum.refused,
                sum.lies,
            ];
            seen.iter_mut().zip(of).for_each(|(seen, of)| *seen += of);
        }
        let enough = count < 1_000 || seen.iter().all(|seen| *seen > 0);
        assert!(enough, "the histories show too little: {seen:?}");
        println!("of {count} histories: {seen:?}");
    });
}

#[test]
fn a_seed_gives_the_same_history_again() {
    for seed in 0..60 {
        assert_eq!(
            run_history(seed, false),
            run_history(seed, false),
            "(i) SEED={seed} went two ways"
        );
    }
}
