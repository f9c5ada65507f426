//! Cycles of the core: the model of `hardware/zkpu/scripts/bench_core.py`.

use crate::nvme::zkpu::{SCALAR_BITS, Shape};

/// Cycle model of a core. For tables with a level for each digit and uniform scalars it is within 0.1 % of the circuit
/// from 2^14 points on with two adders; it is an estimate for fewer points, one adder, or several passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleModel {
    /// Adders: 1 or 2.
    pub adders: u8,
}

/// Clocks of a read of a bucket, a conversion, an addition, and the memory.
const READ: f64 = 2.0;
const CONVERT: f64 = 17.0;
const ADD: f64 = 36.0;
const MEMORY: f64 = 40.0;
/// Clocks of an addition with its conversion, and of a doubling.
const FULL: f64 = READ + CONVERT + ADD + 1.0;
const DOUBLE: f64 = READ + ADD + 1.0;
/// Chains of the weighted sum that run side by side.
const CHAINS: u64 = 64;
/// Points that the precompute unit takes at a time, its instructions, and its clocks to write an entry.
const BATCH: u64 = 32;
const INVERSION_INSTRUCTIONS: u64 = 570;
const DOUBLING_INSTRUCTIONS: u64 = 12;
const LEVEL_INSTRUCTIONS: u64 = 9;
const ENTRY_CLOCKS: u64 = 18;
/// The top 128 of the 252 bits of (r − 1) / 2: its first digit is the top digit's largest magnitude.
const HALF_ORDER: u128 = 0x955b_2af4_d165_2ab3_05a2_68f2_e1bd_800a;

// === impl CycleModel ===

impl CycleModel {
    /// Cycles of a job of `count` points with a table of this shape.
    pub fn cycles(self, count: u64, shape: Shape) -> u64 {
        let adders = f64::from(self.adders);
        let (length, chains) = self.sum_shape(shape.window);
        let passes = f64::from(shape.passes());
        let operations = count as f64 * f64::from(shape.digits()) / passes;
        // The busier of two banks has on average sqrt(N / 2 pi) operations more than half. Once that passes half of what
        // a bank's FIFOs hold, full FIFOs hold the stream up instead.
        let mut imbalance = (operations / (2.0 * std::f64::consts::PI)).sqrt();
        if imbalance > 256.0 {
            imbalance = 256.0 + operations / adders / 1024.0;
        }
        let stream = operations / adders + if self.adders == 2 { imbalance } else { 0.0 };
        let rounds = 2_f64.powi(length as i32);
        let chains_f = chains as f64;
        let run = (rounds - 1.0) * (2.0 * chains_f).max(FULL) + chains_f;
        let chains_log = chains.next_power_of_two().trailing_zeros();
        let tree: f64 = (0..chains_log)
            .map(|level| ((chains >> (level + 1)) as f64 * f64::from(2 + level)).max(FULL))
            .sum();
        let merge = if self.adders == 2 { 2.0 * FULL } else { 0.0 };
        let doublings =
            f64::from(chains_log + length) - 1.0 + if self.adders == 2 { 1.0 } else { 0.0 };
        let tail = tree + merge + doublings * (DOUBLE + 1.0) + 3.0 * FULL;
        let pass = stream + run + tail + MEMORY + READ + ADD + 40.0;
        let joins = (passes - 1.0) * f64::from(shape.window) * (DOUBLE + 1.0);
        (passes * pass + joins).round() as u64
    }

    /// Rounds of the weighted sum, as a base-two logarithm, and its chains.
    fn sum_shape(self, window: u8) -> (u32, u64) {
        let window = u32::from(window);
        let buckets = if SCALAR_BITS.is_multiple_of(window) {
            (HALF_ORDER >> (128 - window)) as u64 + 1
        } else {
            1 << (window - 1)
        };
        let addresses = buckets.div_ceil(self.adders.max(1).into());
        let mut length = 0;
        while (addresses - 1) >> length >= CHAINS {
            length += 1;
        }
        (length, ((addresses - 1) >> length) + 1)
    }
}

/// Cycles of a precompute, within 2 % of the circuit's: the unit takes 32 points at a time, and an instruction 32 clocks for
/// all of them.
pub(super) fn precompute_cycles(count: u32, shape: Shape) -> u64 {
    let (count, levels) = (u64::from(count), u64::from(shape.levels));
    let doublings = u64::from(shape.doublings());
    let instructions = INVERSION_INSTRUCTIONS
        + levels.saturating_sub(1) * doublings * DOUBLING_INSTRUCTIONS
        + levels * LEVEL_INSTRUCTIONS;
    count.div_ceil(BATCH) * instructions * BATCH + count * levels * ENTRY_CLOCKS
}

/// The window with the fewest cycles for `count` points, with a level for each digit as far as `levels_max` and
/// `table_bytes_max` allow; at least one level.
pub fn best_window(
    model: CycleModel,
    count: u32,
    windows: std::ops::RangeInclusive<u8>,
    levels_max: u8,
    table_bytes_max: u64,
) -> Option<Shape> {
    let one = Shape {
        window: 1,
        levels: 1,
    }
    .table_bytes(count)
    .max(1);
    let affordable = u8::try_from(table_bytes_max / one)
        .unwrap_or(u8::MAX)
        .clamp(1, levels_max.max(1));
    let shapes = windows.filter(|window| *window > 0).map(|window| {
        let digits = Shape { window, levels: 1 }.digits();
        let levels = affordable.min(u8::try_from(digits).unwrap_or(u8::MAX));
        // Fewer levels for the same passes take less memory.
        let passes = Shape { window, levels }.passes();
        let levels = u8::try_from(digits.div_ceil(passes)).unwrap_or(levels);
        Shape { window, levels }
    });
    shapes.min_by_key(|shape| model.cycles(count.into(), *shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cycles a point of the simulated circuit with two adders, from `hardware/zkpu/README.md`.
    #[test]
    fn the_model_agrees_with_the_circuit() {
        let model = CycleModel { adders: 2 };
        for (log, window, measured) in [
            (14, 15, 9.592),
            (16, 16, 8.531),
            (18, 18, 7.614),
            (20, 18, 7.159),
        ] {
            let levels = 252_u32.div_ceil(window.into()) as u8;
            let cycles =
                model.cycles(1 << log, Shape { window, levels }) as f64 / f64::from(1 << log);
            let error = (cycles - measured).abs() / measured;
            assert!(error < 0.001_2, "2^{log}: {cycles} for {measured}");
        }
    }

    /// Clocks of the simulated circuit, from `hardware/zkpu/README.md`.
    #[test]
    fn precomputes_take_the_circuits_time() {
        for (count, window, levels, measured) in [
            (37, 8, 4, 188_357.0),
            (5, 10, 26, 123_768.0),
            (33, 13, 1, 37_095.0),
        ] {
            let cycles = precompute_cycles(count, Shape { window, levels }) as f64;
            let error = (cycles - measured).abs() / measured;
            assert!(error < 0.02, "{count} points: {cycles} for {measured}");
        }
    }

    #[test]
    fn the_best_windows_are_those_of_the_hardware() {
        let model = CycleModel { adders: 2 };
        let best = |log: u32| best_window(model, 1 << log, 4..=18, 31, u64::MAX).unwrap();
        assert_eq!(
            best(14),
            Shape {
                window: 15,
                levels: 17
            }
        );
        assert_eq!(
            best(20),
            Shape {
                window: 18,
                levels: 14
            }
        );
        let poor = best_window(model, 1 << 14, 4..=18, 31, 0).unwrap();
        assert_eq!(poor.levels, 1);
    }
}
