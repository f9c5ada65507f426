//! Sorting pairs by key: see `sort.cuh`.

use super::arguments::{AddTotals, CountDigits, MovePairs, ScanTiles};
use super::machine::{Buffer, Machine};
use super::modules::Module;
use crate::error::Error;

/// Pairs of a tile of the sort, and bits of a digit.
const TILE_PAIRS: usize = 2048;
const DIGIT_BITS: u32 = 6;
/// Values of a tile of the scan.
const SCAN_TILE: usize = 2048;

/// Keys and values, and as much room again.
pub(crate) struct Pairs<B> {
    pub(crate) keys: B,
    pub(crate) values: B,
    other_keys: B,
    other_values: B,
    /// The digits of each tile, and for each level of the scan its tiles' sums.
    counts: Vec<B>,
}

impl<B: Buffer> Pairs<B> {
    /// Allocates room for `pairs` pairs.
    pub(crate) fn allocate<M: Machine<Buffer = B>>(
        machine: &mut M,
        pairs: usize,
    ) -> Result<Self, Error> {
        let mut counts = vec![machine.allocate(count_words(pairs))?];
        let mut level = count_words(pairs);
        while level > 1 {
            level = level.div_ceil(SCAN_TILE);
            counts.push(machine.allocate(level)?);
        }
        Ok(Self {
            keys: machine.allocate(pairs)?,
            values: machine.allocate(pairs)?,
            other_keys: machine.allocate(pairs)?,
            other_values: machine.allocate(pairs)?,
            counts,
        })
    }

    /// Sorts the first `pairs` by the lower `key_bits` of their keys; those of one key keep their
    /// order.
    pub(crate) fn sort<M: Machine<Buffer = B>>(
        &mut self,
        machine: &mut M,
        pairs: usize,
        key_bits: u32,
    ) -> Result<(), Error> {
        let tiles = pairs.div_ceil(TILE_PAIRS) as u32;
        for shift in (0..key_bits).step_by(DIGIT_BITS as usize) {
            let count = CountDigits {
                keys: self.keys.address(),
                counts: self.counts[0].address(),
                pairs: pairs as u32,
                tiles,
                shift,
            };
            machine.launch(Module::Sort, &count, tiles, TILE_THREADS)?;
            self.scan(machine, count_words(pairs))?;
            let movement = MovePairs {
                keys: self.keys.address(),
                values: self.values.address(),
                sorted_keys: self.other_keys.address(),
                sorted_values: self.other_values.address(),
                begins: self.counts[0].address(),
                pairs: pairs as u32,
                tiles,
                shift,
            };
            machine.launch(Module::Sort, &movement, tiles, TILE_THREADS)?;
            std::mem::swap(&mut self.keys, &mut self.other_keys);
            std::mem::swap(&mut self.values, &mut self.other_values);
        }
        Ok(())
    }

    /// Wipes the data that depends on scalars.
    pub(crate) fn wipe<M: Machine<Buffer = B>>(&mut self, machine: &mut M) -> Result<(), Error> {
        for buffer in [
            &mut self.keys,
            &mut self.values,
            &mut self.other_keys,
            &mut self.other_values,
        ] {
            machine.wipe(buffer)?;
        }
        Ok(())
    }

    /// Replaces the counts by the sums of what precedes each: within tiles, then the tiles' sums in
    /// the same way, then down again.
    fn scan<M: Machine<Buffer = B>>(&self, machine: &mut M, words: usize) -> Result<(), Error> {
        let mut levels = vec![words];
        for level in 0.. {
            let count = levels[level];
            let tiles = count.div_ceil(SCAN_TILE);
            let arguments = ScanTiles {
                values: self.counts[level].address(),
                totals: self.counts[level + 1].address(),
                count: count as u32,
            };
            machine.launch(Module::Sort, &arguments, tiles as u32, TILE_THREADS)?;
            if tiles == 1 {
                break;
            }
            levels.push(tiles);
        }
        for (level, &count) in levels.iter().enumerate().rev().skip(1) {
            let arguments = AddTotals {
                values: self.counts[level].address(),
                totals: self.counts[level + 1].address(),
                count: count as u32,
            };
            let tiles = count.div_ceil(SCAN_TILE) as u32;
            machine.launch(Module::Sort, &arguments, tiles, TILE_THREADS)?;
        }
        Ok(())
    }
}

/// Threads of a block of each of these kernels: they need them all.
const TILE_THREADS: u32 = 256;

/// Counts of the digits of all tiles.
fn count_words(pairs: usize) -> usize {
    pairs.div_ceil(TILE_PAIRS) << DIGIT_BITS
}
