//! The network: delivery, delay and loss of messages.

use std::collections::BTreeSet;

use crate::rng::Rng;

/// An end of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    Node(usize),
    Process(usize),
    /// The log and the leases.
    Store,
}

/// Cut connections, each in one direction.
#[derive(Default)]
pub(crate) struct Network {
    cut: BTreeSet<(End, End)>,
}

impl Network {
    pub(crate) fn cut(&mut self, from: End, to: End) {
        self.cut.insert((from, to));
    }

    pub(crate) fn heal(&mut self) {
        self.cut.clear();
    }

    pub(crate) fn is_cut(&self, from: End, to: End) -> bool {
        self.cut.contains(&(from, to))
    }

    /// Delays of the copies of a message; empty if it is lost.
    pub(crate) fn delays(&self, rng: &mut Rng, from: End, to: End, calm: bool) -> Vec<u64> {
        if self.is_cut(from, to) {
            return Vec::new();
        }
        if calm {
            return vec![rng.within(0, 5)];
        }
        let copies = match rng.within(0, 99) {
            0..4 => 0,
            4..8 => 2,
            _ => 1,
        };
        let slow = |rng: &mut Rng| match rng.within(0, 999) {
            // Longer than any timeout.
            0..3 => 30_000,
            3..30 => 3_000,
            _ => 12,
        };
        (0..copies)
            .map(|_| {
                let slow = slow(rng);
                rng.within(0, slow)
            })
            .collect()
    }

    /// Delay of an answer of the store; `None` if the connection is cut.
    pub(crate) fn store_delay(&self, rng: &mut Rng, node: End, calm: bool) -> Option<u64> {
        if self.is_cut(node, End::Store) || self.is_cut(End::Store, node) {
            return None;
        }
        let slow = if !calm && rng.per_mille(10) { 1_500 } else { 6 };
        Some(rng.within(0, slow))
    }
}
