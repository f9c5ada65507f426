//! Hostile inputs for tests: random mutations of valid inputs. They find less than a coverage-guided
//! fuzzer, but need no nightly compiler and no instrumented build, so they run with every test run. The
//! same targets are in the `fuzz` folders of their crates.
//!
//! The environment variable `INPUTS=n` sets the number of inputs for each target.
//!
//! [`SplitMix64`] is the random generator, also for simulated histories in other crates' tests.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// The most growth of resident memory, in KiB, after the first tenth of the inputs. A leak of 100 bytes for each
/// input exceeds it after a million inputs.
const GROWTH_MAX_KIB: u64 = 100_000;

/// Boundary values to insert: bytes, varints, separators.
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

/// Generates mutated inputs for a target.
#[derive(Debug)]
pub struct Mutator<'a> {
    seeds: &'a [Vec<u8>],
    words: &'a [&'a [u8]],
    inputs: u64,
}

/// A pseudorandom generator whose numbers for a seed are the same on every machine and with every version of every
/// library: SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

// === impl Mutator ===

impl<'a> Mutator<'a> {
    /// Mutates these valid inputs, at least one.
    ///
    /// # Panics
    ///
    /// If `seeds` is empty.
    pub fn of(seeds: &'a [Vec<u8>]) -> Self {
        assert!(!seeds.is_empty(), "nothing to change");
        Self {
            seeds,
            words: &[],
            inputs: 20_000,
        }
    }

    /// Also inserts these words, which have a meaning for the target.
    #[must_use]
    pub fn with_words(self, words: &'a [&'a [u8]]) -> Self {
        Self { words, ..self }
    }

    /// Sets the number of mutated inputs; the default is 20,000. The environment variable `INPUTS` overrides it.
    #[must_use]
    pub fn inputs(self, inputs: u64) -> Self {
        Self { inputs, ..self }
    }

    /// Runs the target on the valid inputs, then on the mutated ones, and prints the time and memory used.
    ///
    /// # Panics
    ///
    /// If the target panics: the input is printed. If the resident memory of this process grows by 100 MB or more
    /// after the first tenth of the inputs. If `INPUTS` is not a number.
    pub fn run(&self, name: &str, mut target: impl FnMut(&[u8])) {
        let wanted = std::env::var("INPUTS").ok();
        let inputs = wanted.map_or(self.inputs, |text| {
            text.parse().expect("INPUTS is a number")
        });
        self.seeds.iter().for_each(|seed| target(seed));
        let (mut numbers, began, mut early) = (SplitMix64::new(7), Instant::now(), None);
        for number in 0..inputs {
            if number == inputs / 10 {
                early = resident_kib();
            }
            let input = self.input(&mut numbers);
            let caught = catch_unwind(AssertUnwindSafe(|| target(&input)));
            assert!(caught.is_ok(), "{name}, input {number}: {input:02x?}");
        }
        let (took, late) = (began.elapsed().as_secs_f64(), resident_kib());
        println!(
            "{name}: {inputs} inputs in {took:.1} s, {early:?} KiB after a tenth of them, {late:?} KiB \
             at the end"
        );
        if let (Some(early), Some(late)) = (early, late) {
            assert!(
                late < early + GROWTH_MAX_KIB,
                "{name}: grown from {early} to {late} KiB"
            );
        }
    }

    /// A seed with some of its bytes changed, removed, repeated or inserted.
    fn input(&self, numbers: &mut SplitMix64) -> Vec<u8> {
        let mut bytes = numbers.one_of(self.seeds).clone();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(bytes.len());
            let end = (at + 1 + numbers.below(8)).min(bytes.len());
            match numbers.below(9) {
                0 => bytes.truncate(at),
                1 => drop(bytes.drain(at..end)),
                2 => {
                    let edge = numbers.one_of(&EDGES);
                    bytes.splice(at..end, edge.iter().copied());
                }
                3 => {
                    let edge = numbers.one_of(&EDGES);
                    bytes.splice(at..at, edge.iter().copied());
                }
                4 => {
                    let other = numbers.one_of(self.seeds);
                    let from = numbers.below(other.len());
                    let to = (from + numbers.below(40)).min(other.len());
                    bytes.splice(at..at, other[from..to].iter().copied());
                }
                5 => {
                    let again = bytes[at..end].to_vec();
                    bytes.splice(at..at, again);
                }
                6 if !self.words.is_empty() => {
                    let word = numbers.one_of(self.words);
                    bytes.splice(at..at, word.iter().copied());
                }
                _ if bytes.is_empty() => {}
                7 => bytes[at] ^= 1 << numbers.below(8),
                _ => bytes[at] = numbers.next_number() as u8,
            }
        }
        bytes
    }
}

// === impl SplitMix64 ===

impl SplitMix64 {
    /// The generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, uniform in all of `u64`.
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next_number() % bound.max(1) as u64) as usize
    }

    /// True with a probability of 1 in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A random element of `of`, which must not be empty.
    pub fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// Resident memory of this process in KiB; `None` where `/proc` does not report it.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
