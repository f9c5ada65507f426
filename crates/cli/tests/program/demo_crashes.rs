//! `proofmill demo`, killed at random moments and run again, emits the same set of chunks, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::{Running, emitted, files, finish, folder, headers, proofmill, raw};

const BLOCKS: u64 = 6;
const KILLS: usize = 20;
/// Kills in one state directory. Each may cost the same task an attempt, and after four it is a dead letter.
const KILLS_OF_A_STATE: usize = 3;

fn demo(folder: &Path) -> std::process::Command {
    let mut command = proofmill(folder);
    command.args([
        "demo",
        "--headers",
        "headers.bin",
        "--chunk",
        "1",
        "--state",
        "state",
        "--json",
    ]);
    command
}

/// The block of a line such as `proving blocks 3 to 3` or `recorded prove/3/0`.
fn block(line: &str, before: &str) -> Option<u64> {
    let rest = &line[line.find(before)? + before.len()..];
    let digits = rest
        .split(|character: char| !character.is_ascii_digit())
        .next()?;
    digits.parse().ok()
}

/// Progress reported by earlier processes, which later ones must not contradict.
#[derive(Default)]
struct Known {
    recorded: BTreeSet<u64>,
    files: BTreeMap<String, Vec<u8>>,
}

impl Known {
    #[track_caller]
    fn check(&mut self, lines: &[String], folder: &Path) {
        let proving: Vec<u64> = lines
            .iter()
            .filter_map(|line| block(line, "proving blocks "))
            .collect();
        for block in &proving {
            assert!(
                !self.recorded.contains(block),
                "block {block} is proven again: {lines:#?}"
            );
        }
        self.recorded.extend(
            lines
                .iter()
                .filter_map(|line| block(line, "recorded prove/")),
        );
        let found: BTreeMap<String, Vec<u8>> =
            files(&folder.join("state/proofs")).into_iter().collect();
        for (index, name) in found.keys().enumerate() {
            assert_eq!(
                *name,
                emitted(index as u64, index as u64),
                "a gap, or out of order"
            );
        }
        for (name, bytes) in &self.files {
            assert_eq!(found.get(name), Some(bytes), "{name} has changed");
        }
        self.files = found;
    }
}

#[test]
fn killed_at_random_moments_it_loses_nothing_and_proves_nothing_twice() {
    let seed = match std::env::var("SEED") {
        Ok(seed) => seed.parse().expect("SEED is a number"),
        Err(_) => rand::random(),
    };
    println!("SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    // Make the keys before the first kill; otherwise each run would spend all its time on them.
    let warm = folder();
    std::fs::write(warm.path().join("headers.bin"), raw(&headers(0, 0))).expect("written");
    finish(&mut demo(warm.path())).succeeded();

    let mut kills = 0;
    let mut rounds = 0;
    while kills < KILLS || rounds == 0 {
        rounds += 1;
        let folder = folder();
        let here = folder.path();
        std::fs::write(
            here.join("headers.bin"),
            raw(&headers(0, BLOCKS as usize - 1)),
        )
        .expect("written");
        let mut known = Known::default();
        for _ in 0..KILLS_OF_A_STATE.min(KILLS - kills) {
            let running = Running::start(&mut demo(here));
            if random.random_bool(0.5) {
                // Kill at a random moment near a step of the work.
                let step = ["proving", "proved", "recorded", "verified", "emitted"];
                let step = step[random.random_range(0..step.len())];
                let count = random.random_range(1..=2);
                if running.try_lines(step, count).is_some() {
                    std::thread::sleep(Duration::from_micros(random.random_range(0..15_000)));
                }
            } else {
                std::thread::sleep(Duration::from_millis(random.random_range(0..2500)));
            }
            let lines = running.kill();
            kills += 1;
            known.check(&lines, here);
            if known.files.len() as u64 == BLOCKS {
                break;
            }
        }
        let last = finish(&mut demo(here)).succeeded();
        let lines: Vec<String> = last.stderr.lines().map(str::to_owned).collect();
        known.check(&lines, here);
        let report = last.json();
        assert_eq!(known.files.len() as u64, BLOCKS, "{report}");
        for (field, value) in [
            ("blocks", BLOCKS),
            ("blocks_emitted", BLOCKS),
            ("proofs_verified", BLOCKS),
            ("out_of_order", 0),
            ("lost", 0),
            ("dead", 0),
        ] {
            assert_eq!(report[field], value, "{field}: {report}");
        }
    }
    println!("{kills} kills in {rounds} rounds");
}
