//! The number of partitions under way, and those of them that make products.

use std::collections::HashMap;

use crate::interface::CircuitId;

/// The partitions that have their memory and have not given it back, wherever they are.
#[derive(Default)]
pub(super) struct Underway {
    count: usize,
    /// Those of them that make products yet, by circuit.
    multiplying: HashMap<CircuitId, usize>,
}

// === impl Underway ===

impl Underway {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// A partition has its memory, and will make products.
    pub(super) fn begin(&mut self, circuit: CircuitId) {
        self.count += 1;
        *self.multiplying.entry(circuit).or_default() += 1;
    }

    /// A partition makes no more products. Whether it was the last one of its circuit that did.
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

    /// A partition that makes no more products has given its memory back.
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
    fn the_last_of_a_circuit_that_makes_products_is_known() {
        let (one, other) = (CircuitId([1; 32]), CircuitId([2; 32]));
        let mut underway = Underway::default();
        for circuit in [one, one, other] {
            underway.begin(circuit);
        }
        assert!(!underway.multiplied(one));
        assert!(underway.multiplied(other));
        underway.end();
        underway.check();
        assert!(underway.multiplied(one));
        assert!(!underway.multiplied(one));
        assert_eq!(underway.count(), 2);
    }
}
