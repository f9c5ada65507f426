//! The average number of assignments under way over a time.

use std::collections::VecDeque;
use std::time::Duration;

use crate::core::event::Time;

/// Number of spans that the time is divided into; their sums are kept.
const SPANS: u64 = 32;

/// Sums of samples, by span.
#[derive(Default)]
pub(super) struct Average {
    /// Number of the span, sum of its samples, and their number.
    spans: VecDeque<(u64, u64, u64)>,
}

// === impl Average ===

impl Average {
    /// Takes a sample, and returns the average of all within `window`, rounded up.
    pub(super) fn update(&mut self, now: Time, sample: u64, window: Duration) -> u64 {
        let window = u64::try_from(window.as_micros()).unwrap_or(u64::MAX);
        let span = now.0 / (window / SPANS).max(1);
        while self.spans.front().is_some_and(|(at, ..)| at + SPANS < span) {
            self.spans.pop_front();
        }
        match self.spans.back_mut() {
            Some((at, sum, count)) if *at == span => {
                *sum += sample;
                *count += 1;
            }
            _ => self.spans.push_back((span, sample, 1)),
        }
        let sum: u64 = self.spans.iter().map(|(_, sum, _)| sum).sum();
        let count: u64 = self.spans.iter().map(|(_, _, count)| count).sum();
        sum.div_ceil(count.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_count_for_the_window_and_no_longer() {
        let mut average = Average::default();
        let window = Duration::from_secs(64);
        let mut at = |second: u64, sample| average.update(Time(second * 1_000_000), sample, window);
        for second in 0..32 {
            assert_eq!(at(second, 10), 10);
        }
        for second in 32..64 {
            at(second, 0);
        }
        assert_eq!(at(64, 0), 5);
        for second in 65..98 {
            at(second, 0);
        }
        assert_eq!(at(98, 0), 0);
        assert!(average.spans.len() <= SPANS as usize + 1);
    }
}
