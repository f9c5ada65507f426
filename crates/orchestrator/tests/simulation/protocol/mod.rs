//! The production protocol between processes, in a world of virtual time.
//!
//! Each seed is one history. Coordinators compete for the lead of a workflow, each with the production core,
//! outbox and [`ServerSession`](proofmill_orchestrator::remote::session::ServerSession). Dispatchers, hosts
//! of collectors, sources, sequencers and an operator run behind a production
//! [`ClientSession`](proofmill_orchestrator::remote::session::ClientSession) each. All coordinators share a
//! log that refuses a writer that does not know its last record. Leases end, clocks differ and run at
//! different rates, and the network loses, repeats, delays, reorders and splits, one way or both. Processes
//! are killed, stopped and started. After a while the faults stop, and all accepted work must end.
//!
//! Guarantees besides the invariants of the log (the letters on the crate's first page):
//!
//! * (1) answers are given for durable records only;
//! * (2) a coordinator receives an event or a request of a session at most once, and every answered one once;
//! * (3) a coordinator that answers a caller that knows of a later term has just checked its lease;
//! * (4) a role accepts nothing from a coordinator of an earlier term than it knows of;
//! * (5) a role receives each command once, in order;
//! * (6) the sink of an earlier term is handed nothing.
//!
//! `SEED=n cargo test --test simulation protocol` prints one history; `SEEDS=n` runs more of them.

mod acts;
mod checks;
mod clock;
mod leader;
mod network;
mod nodes;
mod processes;
mod roles;
mod shared_log;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Of, number};
use world::Protocol;

/// Seeds that are run without `SEEDS`; `make simulations` runs 10,000.
const SEEDS: u64 = 1_000;

fn run_history(seed: u64, print: bool) -> world::Lived {
    let _of = Of(seed);
    let mut world = Protocol::new(seed, print);
    match world.run_history() {
        Ok(lived) => lived,
        Err(why) => panic!(
            "{}\nSEED={seed} ({}): {why}",
            world.trace_tail(),
            world.scene_name()
        ),
    }
}

#[test]
fn the_protocol_keeps_the_invariants() {
    if let Some(seed) = number("SEED") {
        run_history(seed, true);
        return;
    }
    let count = number("SEEDS").unwrap_or(SEEDS);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let next = AtomicU64::new(0);
    let sums: Vec<world::Lived> = std::thread::scope(|scope| {
        let run = || {
            let mut sum = world::Lived::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= count {
                    return sum;
                }
                sum.add(&run_history(seed, false));
            }
        };
        let running: Vec<_> = (0..threads.min(count)).map(|_| scope.spawn(run)).collect();
        running
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    let mut lived = world::Lived::default();
    sums.iter().for_each(|sum| lived.add(sum));
    println!("{lived:?}");
    if count >= 1_000 {
        lived.check_coverage();
    }
}

/// The same seed gives the same history.
#[test]
fn the_protocol_is_deterministic() {
    for seed in 0..20 {
        assert_eq!(
            run_history(seed, false),
            run_history(seed, false),
            "seed {seed}"
        );
    }
}
