//! Bytes that somebody else has chosen, by chance from valid ones: the fuzz targets of `fuzz/`, without
//! an instrumented build. `INPUTS=n cargo test --test hostile` runs more of them.

#[path = "../../fuzz/src/seeds.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets are of another crate")]
mod seeds;
#[path = "../../fuzz/src/targets.rs"]
#[expect(unreachable_pub, reason = "as above")]
mod targets;

use std::time::Instant;

/// Inputs of each target.
const INPUTS: u64 = 20_000;

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Bytes and numbers at which something may end.
const EDGES: [&[u8]; 8] = [
    &[0],
    &[0x7f],
    &[0xff, 0x01],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    b".",
    b"\xc3\xa9",
    &[2, 0, 1, 0, 2, 0, 1, 0],
];

fn mutated(rng: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[rng.below(seeds.len())].clone();
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len());
        let end = (at + 1 + rng.below(8)).min(bytes.len());
        match rng.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let edge = EDGES[rng.below(EDGES.len())];
                bytes.splice(at..end, edge.iter().copied());
            }
            3 => {
                let edge = EDGES[rng.below(EDGES.len())];
                bytes.splice(at..at, edge.iter().copied());
            }
            4 => {
                let other = &seeds[rng.below(seeds.len())];
                let from = rng.below(other.len());
                let to = (from + rng.below(40)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            5 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            _ if bytes.is_empty() => {}
            6 => bytes[at] ^= 1 << rng.below(8),
            _ => bytes[at] = rng.next() as u8,
        }
    }
    bytes
}

/// Resident memory of this process, KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

fn run(name: &str, seeds: &[Vec<u8>], target: fn(&[u8])) {
    let wanted = std::env::var("INPUTS").ok();
    let inputs = wanted.and_then(|n| n.parse().ok()).unwrap_or(INPUTS);
    seeds.iter().for_each(|seed| target(seed));
    let (mut rng, begun) = (Rng(7), Instant::now());
    let mut early = 0;
    for number in 0..inputs {
        if number == inputs / 10 {
            early = resident();
        }
        let bytes = mutated(&mut rng, seeds);
        let caught = std::panic::catch_unwind(|| target(&bytes));
        assert!(
            caught.is_ok(),
            "{name}, input {number}: {}",
            hex::encode(bytes)
        );
    }
    println!(
        "{name}: {inputs} inputs in {:.1} s, {early} KiB after a tenth of them, {} KiB at the end",
        begun.elapsed().as_secs_f64(),
        resident()
    );
}

#[test]
fn no_message_of_its_stream_ends_a_log() {
    run("frames", &seeds::frames(), targets::frames);
}

#[test]
fn no_piece_of_a_blob_ends_its_reader() {
    run("blob_pieces", &seeds::blob_pieces(), targets::blob_pieces);
}
