//! The only source of randomness in a simulated history.

use proofmill_mutation::SplitMix64;

pub(crate) struct Rng(SplitMix64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed ^ 0x5851_f42d_4c95_7f2d))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_number()
    }

    /// Uniform in `low..=high`.
    pub(crate) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound)
    }

    /// True with probability `chance` / 1000.
    pub(crate) fn per_mille(&mut self, chance: u64) -> bool {
        self.next() % 1000 < chance
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.per_mille(500)
    }
}
