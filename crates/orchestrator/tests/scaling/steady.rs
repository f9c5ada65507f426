//! A steady load: the wanted number settles, and stays within ±1.

use std::collections::BTreeMap;

use crate::rng::Rng;
use crate::world::{Machines, World};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;

/// Seeds that are run without `SEEDS`.
const SEEDS: u64 = 40;

/// Time in which the number settles, and time for which it is watched then.
const SETTLE: u64 = 40 * MINUTE;
const WATCH: u64 = 80 * MINUTE;

/// Blocks that are split, proven in parts, gathered and wrapped, or that are proven whole.
fn workflow(rng: &mut Rng, slot_s: u64, parts: u64, hold: &str) -> String {
    let deadline = match rng.per_mille(800) {
        true => format!("[deadline]\nslot = \"{slot_s}s\"\n"),
        false => String::new(),
    };
    let stages = match parts {
        1 => "[[dispatcher]]\nname = \"prove\"\ninput = \"blocks\"\noutput = \"done\"\n\
             executor = { kind = \"native\", prover = \"p\" }\n"
            .to_owned(),
        _ => format!(
            r#"
[[dispatcher]]
name = "split"
input = "blocks"
output = "parts"
fan_out = true
executor = {{ kind = "native", prover = "p" }}
[[dispatcher]]
name = "prove"
input = "parts"
output = "proofs"
executor = {{ kind = "native", prover = "p" }}
[[collector]]
name = "gather"
inputs = ["proofs"]
output = "groups"
strategy = {{ kind = "match", k = {parts}, group_by = "/block" }}
[[dispatcher]]
name = "wrap"
input = "groups"
output = "done"
executor = {{ kind = "native", prover = "p" }}
"#
        ),
    };
    let groups: &[&str] = match parts {
        1 => &["prove"],
        _ => &["prove", "split", "wrap"],
    };
    let pools = groups
        .iter()
        .map(|group| format!("[[scaling]]\ngroup = \"{group}\"\nhold = \"{hold}\"\n"));
    let stages = stages + &pools.collect::<String>();
    format!(
        "name = \"steady\"\n{deadline}[[source]]\nname = \"chain\"\nkind = \"submit\"\n\
         output = \"blocks\"\n{stages}\n[sequencer]\ninput = \"done\"\n"
    )
}

/// One history. Returns the lowest and the highest wanted number of each pool once it had settled, and the number of
/// blocks that were late then.
fn history(seed: u64, hold: &str) -> (Vec<(u64, u64)>, u64) {
    let mut rng = Rng::new(seed);
    let every = rng.within(4, 30) * SECOND;
    let run = rng.within(2, 60) * SECOND;
    let parts = match rng.flip() {
        true => 1,
        false => rng.within(2, 6),
    };
    let total = if parts == 1 { run } else { run + 6 * SECOND };
    // From hardly more than the runs take to ten times as much.
    let slot_s = (total / SECOND * rng.within(20, 100)).div_ceil(10) + 20;
    let text = workflow(&mut rng, slot_s, parts, hold);
    let deviation = rng.within(0, 15);
    let runs = BTreeMap::from([
        ("prove", (run, deviation)),
        ("split", (2 * SECOND, deviation)),
        ("wrap", (4 * SECOND, deviation)),
    ]);
    let pools = if parts == 1 { 1 } else { 3 };
    let delay = (rng.within(5, 30) * SECOND, rng.within(31, 120) * SECOND);
    let machines = (0..pools).map(|_| Machines::plenty(delay)).collect();
    let mut world = World::new(&text, machines, runs, rng.next());
    world = world.split_into(usize::try_from(parts).expect("few"));
    for block in 0..(SETTLE + WATCH) / every {
        world.blocks_at(block * every, block..block + 1);
    }
    world.run_until(SETTLE);
    let missed = world.status().blocks_missed;
    world.run_until(SETTLE + WATCH);
    let late = world.status().blocks_missed - missed;
    let settled = (0..pools).map(|pool| {
        let wanted = world.wanted_from(pool, SETTLE);
        let (low, high) = (wanted.iter().min(), wanted.iter().max());
        (low.copied().unwrap_or(0), high.copied().unwrap_or(0))
    });
    (settled.collect(), late)
}

fn seeds(otherwise: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SEEDS").unwrap_or(otherwise),
    }
}

#[test]
fn on_a_steady_load_the_wanted_number_stays_within_one() {
    let mut wrong = Vec::new();
    for seed in seeds(SEEDS) {
        let (pools, late) = history(seed, "5m");
        if late > 0 {
            wrong.push(format!("SEED={seed}: {late} blocks were late"));
        }
        for (pool, (low, high)) in pools.into_iter().enumerate() {
            if high - low > 2 || low == 0 {
                wrong.push(format!("SEED={seed}, pool {pool}: {low} to {high}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The property above tells a damped number from one that is not: it does not hold for one that is let go at once.
#[test]
fn without_damping_the_wanted_number_does_not_stay() {
    let moves = |seed: &u64| {
        history(*seed, "2s")
            .0
            .iter()
            .any(|(low, high)| high - low > 2)
    };
    let moving = (0..10).filter(moves).count();
    assert!(moving >= 3, "{moving} of 10 histories");
}
