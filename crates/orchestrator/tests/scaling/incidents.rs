//! Incidents: what a cluster must survive without losing its deadlines for long.

use std::collections::BTreeMap;

use crate::world::{Machines, World};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;

/// A block each 10 s, a run of 20 s, ten minutes for each block.
const PROVE: &str = r#"
name = "prove"
[deadline]
slot = "10m"
[[source]]
name = "chain"
kind = "submit"
output = "blocks"
[[dispatcher]]
name = "prove"
input = "blocks"
output = "proofs"
executor = { kind = "native", prover = "p" }
[sequencer]
input = "proofs"
[[scaling]]
group = "prove"
estimate = "20s"
max = 400
"#;

fn runs(mean_s: u64) -> BTreeMap<&'static str, (u64, u64)> {
    BTreeMap::from([("prove", (mean_s * SECOND, 20))])
}

/// Six thousand blocks come at once, after an outage of the chain's node. Three hundred machines are started at once,
/// and join within the same second.
#[test]
fn three_hundred_workers_at_once() {
    let delay = (90 * SECOND, 91 * SECOND);
    let mut world = World::new(PROVE, vec![Machines::plenty(delay)], runs(20), 1);
    world.blocks_at(MINUTE, 0..6_000);
    world.run_until(30 * MINUTE);
    let status = world.status();
    assert_eq!((status.live, status.dead), (0, 0));
    assert_eq!(status.blocks_missed, 0, "all are done within the deadline");
    assert_eq!(status.blocks_met, 6_000);
    let slowest = world.longest(0..6_000);
    assert!(slowest < 9 * MINUTE, "{slowest} ms: the reserve is used up");
    let wanted = world.wanted_from(0, 0);
    let most = wanted.iter().copied().max().unwrap_or(0);
    // 6,000 runs of up to 24 s in three quarters of ten minutes; with what the start of the machines costs.
    assert!((300..=400).contains(&most), "{most} wanted");
    // They are let go again, once and for good: the number never rises after its peak.
    let peak = wanted.iter().rposition(|it| *it == most).unwrap_or(0);
    assert!(wanted[peak..].is_sorted_by(|a, b| a >= b), "{wanted:?}");
    assert_eq!(wanted.last(), Some(&0));
    assert_eq!(world.joined(0), 0);
}

/// Runs are lost with the machines that are taken away.
const POOLS: &str = r#"
name = "pools"
defaults = { r_max = 100 }
[deadline]
slot = "10m"
[[source]]
name = "chain"
kind = "submit"
output = "blocks"
[[dispatcher]]
name = "prove"
group = "gpus"
input = "blocks"
output = "proofs"
executor = { kind = "native", prover = "p" }
[sequencer]
input = "proofs"
[[scaling]]
name = "spot"
group = "gpus"
labels = ["spot"]
fallback = "on-demand"
fallback_after = "2m"
[[scaling]]
name = "on-demand"
group = "gpus"
"#;

const OUTAGE: (u64, u64) = (60 * MINUTE, 180 * MINUTE);

/// Blocks that come every ten seconds for four hours, while the first pool's machines are taken away for two, but for
/// moments: enough to put off a fallback that waits for a time without them.
fn outage(text: &str) -> World {
    let spot = Machines {
        start_ms: (SECOND, 5 * SECOND),
        available: Box::new(|at| {
            let is_out = (OUTAGE.0..OUTAGE.1).contains(&at);
            // Every two minutes there are machines for half a minute.
            let is_moment = at % (2 * MINUTE) < 30 * SECOND;
            if is_out && !is_moment { 0 } else { u64::MAX }
        }),
    };
    let machines = vec![spot, Machines::plenty((30 * SECOND, 60 * SECOND))];
    let mut world = World::new(text, machines, runs(40), 2);
    let every = 10 * SECOND;
    for block in 0..240 * MINUTE / every {
        world.blocks_at(block * every, block..block + 1);
    }
    world
}

#[test]
fn a_fallback_pool_that_starves() {
    let (begin, end) = OUTAGE;
    let mut world = outage(POOLS);
    world.run_until(begin);
    assert_eq!(world.joined(1), 0, "the fallback pool is not needed");
    assert!(world.joined(0) >= 4);
    world.run_until(end);
    // Four or more are busy all the time; the fallback pool has them.
    assert!(world.joined(1) >= 4, "{} stand in", world.joined(1));
    let asked = world.wanted_from(1, begin + 15 * MINUTE);
    assert!(
        asked.iter().all(|asked| *asked >= 4),
        "sent home: {asked:?}"
    );
    // The first is back, and the other goes.
    world.run_until(end + 20 * MINUTE);
    assert!(world.joined(0) >= 4);
    assert_eq!(world.joined(1), 0, "the fallback pool went back");
    world.run_until(300 * MINUTE);
    let status = world.status();
    assert_eq!((status.live, status.dead), (0, 0));
    assert_eq!(status.blocks_missed, 0, "capacity was restored in time");
}

/// The incident is one: without the fallback pool, blocks are late.
#[test]
fn without_its_fallback_the_pool_is_late() {
    let mut world = outage(&POOLS.replace("fallback = \"on-demand\"\n", ""));
    world.run_until(240 * MINUTE);
    assert_eq!(world.joined(1), 0);
    let late = world.status().blocks_missed;
    assert!(late > 100, "{late} blocks were late");
}

/// Blocks that come every ten seconds for three hours, of which five hang at their first worker, an hour after the
/// beginning: the runs never end, and heartbeats keep the leases. Returns the world at that time, and the number of
/// workers wanted before.
fn hanging(text: &str) -> (World, u64) {
    let machines = vec![Machines::plenty((30 * SECOND, 60 * SECOND))];
    let mut world = World::new(text, machines, runs(40), 3);
    let every = 10 * SECOND;
    for block in 0..180 * MINUTE / every {
        world.blocks_at(block * every, block..block + 1);
    }
    world.run_until(60 * MINUTE - SECOND);
    let before = world.status().scaling[0].wanted;
    let first = 60 * MINUTE / every;
    world.hangs = (first..first + 5).collect();
    world.run_until(62 * MINUTE);
    (world, before)
}

/// Nothing ends the runs that hang. Their blocks are lost to their deadline, and no other is: as many workers as are
/// blocked are started in their place.
#[test]
fn leases_that_are_never_released() {
    let unordered = PROVE
        .replace("output = \"proofs\"", "")
        .replace("[sequencer]\ninput = \"proofs\"", "");
    let (mut world, before) = hanging(&unordered);
    // Four usual runs, and the start of a machine.
    world.run_until(66 * MINUTE);
    let pool = world.status().scaling.remove(0);
    assert_eq!(pool.blocked, 5, "{}", pool.why);
    assert!(
        pool.wanted >= before + 4,
        "{} after {before}: {}",
        pool.wanted,
        pool.why
    );
    assert!(world.joined(0) as u64 >= before + 4);
    world.run_until(200 * MINUTE);
    let status = world.status();
    assert_eq!(
        (status.live, status.blocks_missed),
        (5, 5),
        "capacity was restored in time"
    );
}
