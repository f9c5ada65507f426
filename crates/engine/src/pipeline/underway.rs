//! The number of partitions under way, and those of them that still make products.

use std::collections::HashMap;

use crate::interface::CircuitId;

/// The partitions that have their memory and have not given it back.
#[derive(Default)]
pub(super) struct ActiveCount {
    count: usize,
    /// Partitions that still make products, by circuit.
    multiplying: HashMap<CircuitId, usize>,
}

// === impl ActiveCount ===

impl ActiveCount {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Records a partition that got its memory and will make products.
    pub(super) fn begin(&mut self, circuit: CircuitId) {
        self.count += 1;
        *self.multiplying.entry(circuit).or_default() += 1;
    }

    /// Records that a partition makes no more products. Returns whether it was the last of its circuit that
    /// did.
    pub(super) fn multiplied(&mut self, circuit: CircuitId) -> bool {
        let Some(count) = self.multiplying.get_mut(&circuit) else {
            return false;
        };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            self.multiplying.remove(&circuit);
        }
        is_last
    }

    /// Records that a partition, which makes no more products, has given its memory back.
    pub(super) fn end(&mut self) {
        self.count -= 1;
    }

    /// Panics if more partitions make products than are under way.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let multiplying: usize = self.multiplying.values().sum();
        assert!(multiplying <= self.count);
        assert!(self.multiplying.values().all(|count| *count > 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_partition_of_a_circuit_that_makes_products_is_known() {
        let (one, other) = (CircuitId([1; 32]), CircuitId([2; 32]));
        let mut active = ActiveCount::default();
        for circuit in [one, one, other] {
            active.begin(circuit);
        }
        assert!(!active.multiplied(one));
        assert!(active.multiplied(other));
        active.end();
        active.check();
        assert!(active.multiplied(one));
        assert!(!active.multiplied(one));
        assert_eq!(active.count(), 2);
    }
}
