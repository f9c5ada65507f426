//! Allocation of device memory.

use std::collections::BTreeMap;

/// Areas of device memory that are free. Areas begin and end at pages.
#[derive(Debug)]
pub(super) struct Memory {
    /// First byte and length; no two touch.
    free: BTreeMap<u64, u64>,
}

/// An area that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) first: u64,
    pub(super) length: u64,
}

const PAGE: u64 = 4096;

impl Memory {
    pub(super) fn new(bytes: u64) -> Self {
        let whole = bytes / PAGE * PAGE;
        Self {
            free: [(0, whole)]
                .into_iter()
                .filter(|(_, length)| *length > 0)
                .collect(),
        }
    }

    /// The first free area that holds `bytes`.
    pub(super) fn take(&mut self, bytes: u64) -> Option<Area> {
        let length = bytes.max(1).checked_next_multiple_of(PAGE)?;
        let (first, found) = self
            .free
            .iter()
            .find(|(_, found)| **found >= length)
            .map(|(f, l)| (*f, *l))?;
        self.free.remove(&first);
        if found > length {
            self.free.insert(first + length, found - length);
        }
        Some(Area { first, length })
    }

    /// Gives an area back.
    pub(super) fn give(&mut self, area: Area) {
        let (mut first, mut length) = (area.first, area.length);
        if let Some(after) = self.free.remove(&(first + length)) {
            length += after;
        }
        let before = self.free.range(..first).next_back().map(|(f, l)| (*f, *l));
        if let Some((before, before_length)) = before.filter(|(f, l)| f + l == first) {
            first = before;
            length += before_length;
        }
        self.free.insert(first, length);
    }

    /// Bytes of the largest free area.
    pub(super) fn largest(&self) -> u64 {
        self.free.values().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};

    #[test]
    fn areas_never_overlap_and_all_comes_back() {
        let mut rng = StdRng::seed_from_u64(9);
        let mut memory = Memory::new((1 << 20) + 100);
        let mut taken: Vec<Area> = Vec::new();
        for _ in 0..10_000 {
            if rng.r#gen::<bool>() {
                if let Some(area) = memory.take(rng.gen_range(0..50_000)) {
                    assert!(area.first + area.length <= 1 << 20);
                    let overlaps = |other: &Area| {
                        area.first < other.first + other.length
                            && other.first < area.first + area.length
                    };
                    assert!(!taken.iter().any(overlaps));
                    taken.push(area);
                }
            } else if !taken.is_empty() {
                let at = rng.gen_range(0..taken.len());
                memory.give(taken.swap_remove(at));
            }
        }
        taken.into_iter().for_each(|area| memory.give(area));
        assert_eq!(memory.largest(), 1 << 20);
        assert_eq!(memory.take((1 << 20) + 1), None);
        assert!(memory.take(1 << 20).is_some());
        assert_eq!(memory.take(0), None);
    }
}
