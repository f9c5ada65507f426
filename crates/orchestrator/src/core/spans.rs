//! Values by the span of blocks that they are about.
//!
//! A span that touches a range of blocks is found without a look at the spans elsewhere: spans are sorted by
//! class, the number of binary digits of their length, so that a span of a class begins at most that class's
//! longest length before the range.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Values by span of blocks.
pub(super) struct Spans<T> {
    /// By class, first block and last block.
    values: BTreeMap<(u32, u64, u64), T>,
    /// Number of spans of each class that has any.
    classes: BTreeMap<u32, usize>,
}

/// Number of items of a span, and the time of the latest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Number of items.
    pub count: usize,
    /// Those of them that are tasks of a worker.
    pub leased: usize,
    /// Latest time of an item that was added since the span had none, milliseconds since 1970-01-01 UTC.
    pub latest_ms: u64,
}

// === impl Spans ===

impl<T> Default for Spans<T> {
    fn default() -> Self {
        Self {
            values: BTreeMap::new(),
            classes: BTreeMap::new(),
        }
    }
}

impl<T: Default> Spans<T> {
    /// Changes the value of a span, which is the default before. The span is kept if `change` returns true.
    pub(super) fn update(&mut self, first: u64, last: u64, change: impl FnOnce(&mut T) -> bool) {
        let class = class(first, last);
        let key = (class, first, last);
        let mut is_new = false;
        let value = self.values.entry(key).or_insert_with(|| {
            is_new = true;
            T::default()
        });
        let is_kept = change(value);
        if is_new && is_kept {
            *self.classes.entry(class).or_default() += 1;
        }
        if is_kept {
            return;
        }
        self.values.remove(&key);
        if !is_new && let Some(count) = self.classes.get_mut(&class) {
            *count -= 1;
            if *count == 0 {
                self.classes.remove(&class);
            }
        }
    }
}

impl<T> Spans<T> {
    /// The spans that share a block with `blocks`: first block, last block and value, in no order.
    pub(super) fn touching(
        &self,
        blocks: &RangeInclusive<u64>,
    ) -> impl Iterator<Item = (u64, u64, &T)> {
        let (from, to) = (*blocks.start(), *blocks.end());
        let classes = self.classes.keys().filter(move |_| from <= to);
        classes.flat_map(move |class| {
            let lowest = from.saturating_sub(length_max(*class));
            let near = self
                .values
                .range((*class, lowest, 0)..=(*class, to, u64::MAX));
            let near = near.filter(move |((_, _, last), _)| *last >= from);
            near.map(|((_, first, last), value)| (*first, *last, value))
        })
    }

    /// First blocks of the spans that share a block with `blocks`, in order.
    pub(super) fn beginnings(&self, blocks: &RangeInclusive<u64>) -> Vec<u64> {
        let mut firsts: Vec<u64> = self.touching(blocks).map(|(first, _, _)| first).collect();
        firsts.sort_unstable();
        firsts.dedup();
        firsts
    }

    /// All spans, in no order.
    #[cfg(debug_assertions)]
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, u64, &T)> {
        let values = self.values.iter();
        values.map(|((_, first, last), value)| (*first, *last, value))
    }
}

impl Spans<Tally> {
    /// Counts one item more.
    pub(super) fn add(&mut self, first: u64, last: u64, at_ms: u64) {
        self.update(first, last, |tally| {
            tally.count += 1;
            tally.latest_ms = tally.latest_ms.max(at_ms);
            true
        });
    }

    /// Counts one item less.
    pub(super) fn remove(&mut self, first: u64, last: u64) {
        self.update(first, last, |tally| {
            tally.count = tally.count.saturating_sub(1);
            tally.count > 0
        });
    }

    /// Counts a task that a worker has been given, or that no worker has any more.
    pub(super) fn count_leased(&mut self, first: u64, last: u64, comes: bool) {
        self.update(first, last, |tally| {
            tally.leased = match comes {
                true => tally.leased + 1,
                false => tally.leased.saturating_sub(1),
            };
            tally.count > 0
        });
    }

    /// Number of items about any of these blocks.
    pub(super) fn count(&self, blocks: &RangeInclusive<u64>) -> usize {
        self.touching(blocks).map(|(_, _, tally)| tally.count).sum()
    }
}

/// Number of binary digits of a span's length, which is its last block less its first.
fn class(first: u64, last: u64) -> u32 {
    u64::BITS - last.saturating_sub(first).leading_zeros()
}

/// The greatest length of a class.
fn length_max(class: u32) -> u64 {
    match u64::BITS - class {
        u64::BITS => 0,
        zeros => u64::MAX >> zeros,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_class_holds_lengths_up_to_its_greatest() {
        for length in [0, 1, 2, 3, 4, 7, 8, 1 << 40, u64::MAX] {
            let class = class(0, length);
            assert!(length <= length_max(class), "{length}");
            assert!(class == 0 || length > length_max(class - 1), "{length}");
        }
    }

    #[test]
    fn spans_without_items_are_forgotten() {
        let mut spans = Spans::<Tally>::default();
        spans.add(3, 9, 5);
        spans.add(3, 9, 4);
        spans.count_leased(3, 9, true);
        spans.remove(3, 9);
        let seen: Vec<_> = spans.touching(&(9..=9)).collect();
        let tally = Tally {
            count: 1,
            leased: 1,
            latest_ms: 5,
        };
        assert_eq!(seen, [(3, 9, &tally)]);
        spans.remove(3, 9);
        // Nothing is left to remove.
        spans.remove(3, 9);
        assert!(spans.values.is_empty() && spans.classes.is_empty());
        assert_eq!(spans.count(&(0..=u64::MAX)), 0);
    }

    proptest! {
        #[test]
        fn what_touches_a_range_is_what_a_look_at_all_finds(
            spans in prop::collection::vec((0u64..200, 0u64..70), 0..60),
            from in 0u64..220,
            length in 0u64..40,
        ) {
            let mut index = Spans::<Tally>::default();
            for (first, length) in &spans {
                index.add(*first, first + length, 0);
            }
            let blocks = from..=from + length;
            let about = |(first, length): &&(u64, u64)| {
                *first <= *blocks.end() && first + length >= *blocks.start()
            };
            prop_assert_eq!(index.count(&blocks), spans.iter().filter(about).count());
            let mut firsts: Vec<u64> = spans.iter().filter(about).map(|(first, _)| *first).collect();
            firsts.sort_unstable();
            firsts.dedup();
            prop_assert_eq!(index.beginnings(&blocks), firsts);
        }
    }
}
