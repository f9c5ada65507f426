//! Rates of counts that grow, over the last minute.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Time over which a rate is measured.
const WINDOW: Duration = Duration::from_secs(60);

/// Least time between two looks that are kept, so that their number is bounded.
const STEP: Duration = Duration::from_secs(1);

/// Counts at the looks of the last minute.
#[derive(Debug, Default)]
pub(super) struct Rates {
    looks: VecDeque<(Instant, Vec<u64>)>,
    last: Option<(Instant, Vec<u64>)>,
}

// === impl Rates ===

impl Rates {
    /// Notes the counts of a look; each look has them in the same order.
    pub(super) fn note(&mut self, counts: impl Iterator<Item = u64>) {
        self.note_at(Instant::now(), counts.collect());
    }

    fn note_at(&mut self, now: Instant, counts: Vec<u64>) {
        let is_old = |(at, _): &(Instant, Vec<u64>)| now.duration_since(*at) >= WINDOW;
        if self.looks.back().is_some_and(is_old) {
            // Nobody answered for a while: an average over that time would not be of the last minute.
            self.looks.clear();
        }
        let is_due = |(at, _): &(Instant, Vec<u64>)| now.duration_since(*at) >= STEP;
        if self.looks.back().is_none_or(is_due) {
            self.looks.push_back((now, counts.clone()));
        }
        self.last = Some((now, counts));
        // The first look is as old as the window, or older.
        while let Some((second, _)) = self.looks.get(1)
            && now.duration_since(*second) >= WINDOW
        {
            self.looks.pop_front();
        }
    }

    /// Growth of the count at this place, a minute; `None` before there are two looks.
    pub(super) fn of(&self, place: usize) -> Option<f64> {
        let ((since, before), (now, counts)) = (self.looks.front()?, self.last.as_ref()?);
        let seconds = now.duration_since(*since).as_secs_f64();
        let growth = counts.get(place)?.saturating_sub(*before.get(place)?);
        (seconds > 0.0).then(|| (600.0 * growth as f64 / seconds).round() / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_the_last_minute_and_few_looks_are_kept() {
        let (mut rates, began) = (Rates::default(), Instant::now());
        let half_seconds = |count: u64| began + Duration::from_millis(500) * count as u32;
        rates.note_at(began, vec![5, 0]);
        assert_eq!((rates.of(0), rates.of(2)), (None, None));
        rates.note_at(half_seconds(1), vec![6, 0]);
        assert_eq!(
            (rates.of(0), rates.of(1), rates.of(2)),
            (Some(120.0), Some(0.0), None)
        );
        // Two a second, then none for a minute.
        for count in 2..=240 {
            rates.note_at(half_seconds(count), vec![5 + count, 0]);
        }
        assert_eq!(rates.of(0), Some(120.0));
        assert!(rates.looks.len() <= 62, "{}", rates.looks.len());
        for count in 241..=480 {
            rates.note_at(half_seconds(count), vec![245, 0]);
        }
        assert_eq!(rates.of(0), Some(0.0));
    }

    #[test]
    fn a_time_without_looks_is_not_averaged() {
        let (mut rates, began) = (Rates::default(), Instant::now());
        let after = |seconds| began + Duration::from_secs(seconds);
        rates.note_at(began, vec![0]);
        rates.note_at(after(1), vec![1]);
        rates.note_at(after(600), vec![2]);
        assert_eq!(rates.of(0), None);
        rates.note_at(after(601), vec![4]);
        assert_eq!(rates.of(0), Some(120.0));
    }
}
