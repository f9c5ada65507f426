//! Damping: the wanted number follows the needed one up at once and down slowly, and noise not at all.
//!
//! The needed number falls with every task that ends and jumps with every block, so that it is nowhere near steady
//! even where the load is. Wanted is therefore the highest needed number of the time `hold`, as far as it lies outside
//! a band around the number that is wanted already.

use std::collections::VecDeque;
use std::time::Duration;

use crate::core::event::Time;

/// Number of spans that `hold` is divided into; one peak is kept for each.
const SPANS: u64 = 32;

/// The wanted number, and the peaks of the needed number.
#[derive(Default)]
pub(super) struct Damping {
    wanted: u64,
    /// Number of the span and highest needed number in it, for each span with no higher number after it: the first is
    /// the highest.
    peaks: VecDeque<(u64, u64)>,
}

// === impl Damping ===

impl Damping {
    /// Takes the number needed now, and returns the wanted one.
    pub(super) fn update(&mut self, now: Time, needed: u64, hold: Duration) -> u64 {
        let peak = self.note_peak(now, needed, hold);
        let wanted = self.wanted;
        if needed > wanted + wanted / 16 {
            self.wanted = needed;
        } else if peak == 0 || peak + (wanted / 8).max(1) < wanted {
            self.wanted = peak;
        }
        self.wanted
    }

    /// Highest number needed within `hold`, this one included.
    fn note_peak(&mut self, now: Time, needed: u64, hold: Duration) -> u64 {
        let hold = u64::try_from(hold.as_micros()).unwrap_or(u64::MAX);
        let span = now.0 / (hold / SPANS).max(1);
        while self.peaks.front().is_some_and(|(at, _)| at + SPANS < span) {
            self.peaks.pop_front();
        }
        while self.peaks.back().is_some_and(|(_, peak)| *peak <= needed) {
            self.peaks.pop_back();
        }
        if self.peaks.back().is_none_or(|(at, _)| *at < span) {
            self.peaks.push_back((span, needed));
        }
        self.peaks.front().map_or(needed, |(_, peak)| *peak)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Duration = Duration::from_secs(320);

    fn at(damping: &mut Damping, second: u64, needed: u64) -> u64 {
        damping.update(Time(second * 1_000_000), needed, HOLD)
    }

    #[test]
    fn up_at_once_and_down_only_when_fewer_have_sufficed_for_the_whole_hold() {
        let mut damping = Damping::default();
        assert_eq!(at(&mut damping, 0, 3), 3);
        assert_eq!(at(&mut damping, 2, 40), 40);
        for second in 3..=322 {
            assert_eq!(at(&mut damping, second, 5), 40, "{second}");
        }
        for second in 323..=340 {
            at(&mut damping, second, 5);
        }
        assert_eq!(at(&mut damping, 341, 5), 5);
        assert!(damping.peaks.len() <= SPANS as usize + 2);
    }

    #[test]
    fn numbers_within_the_band_change_nothing() {
        let mut damping = Damping::default();
        assert_eq!(at(&mut damping, 0, 100), 100);
        let mut second = 0;
        for needed in [94, 106, 90, 103, 88, 101].into_iter().cycle().take(6_000) {
            second += 1;
            assert_eq!(at(&mut damping, second, needed), 100, "{second}");
        }
        assert_eq!(at(&mut damping, second + 1, 107), 107);
    }

    #[test]
    fn without_work_nobody_is_wanted_in_the_end() {
        let mut damping = Damping::default();
        assert_eq!(at(&mut damping, 0, 1), 1);
        assert_eq!(at(&mut damping, 1, 0), 1);
        assert_eq!(at(&mut damping, 400, 0), 0);
    }

    /// The peaks of few spans against the plain maximum over all numbers seen.
    #[test]
    fn the_peak_is_that_of_at_least_the_hold_and_at_most_a_span_more() {
        let mut damping = Damping::default();
        let mut seen: Vec<(u64, u64)> = Vec::new();
        let mut state = 7_u64;
        for second in 0..3_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let needed = (state >> 33) % 50;
            seen.push((second, needed));
            let peak = damping.note_peak(Time(second * 1_000_000), needed, HOLD);
            let highest = |from: u64| {
                let within = seen.iter().filter(|(at, _)| *at >= from);
                within.map(|(_, needed)| *needed).max().unwrap_or(0)
            };
            let (least, most) = (second.saturating_sub(320), second.saturating_sub(331));
            assert!(highest(least) <= peak && peak <= highest(most), "{second}");
        }
    }
}
