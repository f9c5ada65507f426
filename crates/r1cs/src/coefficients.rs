//! The distinct coefficients of a system's matrices.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use ark_ff::PrimeField;

/// Index of the coefficient 1 in every table.
pub(crate) const ONE: u32 = 0;
/// Index of the coefficient −1 in every table.
pub(crate) const MINUS_ONE: u32 = 1;

/// The slots a table starts with; a power of two.
const FIRST_SLOTS: usize = 64;
/// A slot without an index: there are never that many coefficients.
const EMPTY: u32 = u32::MAX;

/// The distinct coefficients of a system, in order of first use after 1 and −1, which are always
/// the first two: a circuit has millions of entries but few distinct coefficients, so matrices hold
/// indices into this table.
///
/// It is filled from files of unknown origin: the hash is keyed at random, so that no file can make
/// the search slow, and it takes 50 bytes for each coefficient of 32 while it grows.
#[derive(Clone)]
pub struct Coefficients<F: PrimeField> {
    values: Vec<F>,
    /// Indices into the values, by hash, with linear probing; at most 3/4 are in use.
    slots: Vec<u32>,
    hasher: RandomState,
    minus_one: F,
}

// === impl Coefficients ===

impl<F: PrimeField> Coefficients<F> {
    /// The table with 1 and −1.
    pub fn new() -> Self {
        let mut table = Self {
            values: Vec::new(),
            slots: vec![EMPTY; FIRST_SLOTS],
            hasher: RandomState::new(),
            minus_one: -F::one(),
        };
        for value in [F::one(), -F::one()] {
            table.find_or_insert(value);
        }
        table
    }

    /// The table with these values, in this order; `None` unless they begin with 1 and −1 and are
    /// distinct.
    pub(crate) fn from_values(values: &[F]) -> Option<Self> {
        let mut table = Self::new();
        let begins = values.len() >= table.values.len() && values.starts_with(&table.values);
        let distinct = begins
            && (0..)
                .zip(values)
                .all(|(index, value)| table.index(*value) == index);
        distinct.then(|| {
            table.shrink();
            table
        })
    }

    /// The values, by index.
    pub fn values(&self) -> &[F] {
        &self.values
    }

    /// The index of a value, which is entered if it is new.
    ///
    /// # Panics
    ///
    /// If it would be the 2³² − 1st: callers bound the number of entries.
    pub fn index(&mut self, value: F) -> u32 {
        if value.is_one() {
            ONE
        } else if value == self.minus_one {
            MINUS_ONE
        } else {
            self.find_or_insert(value)
        }
    }

    /// Frees capacity that was allocated in advance.
    pub fn shrink(&mut self) {
        self.values.shrink_to_fit();
    }

    fn find_or_insert(&mut self, value: F) -> u32 {
        let slot = self.slot(&value);
        if self.slots[slot] != EMPTY {
            return self.slots[slot];
        }
        let index = self.values.len() as u32;
        assert!(index < EMPTY, "fewer coefficients than 2³² − 1");
        if self.values.len() == self.values.capacity() {
            // Doubling would take as much again as the file the coefficients come from.
            self.values
                .reserve_exact((self.values.len() / 4).max(FIRST_SLOTS));
        }
        self.values.push(value);
        self.slots[slot] = index;
        if self.values.len() * 4 > self.slots.len() * 3 {
            self.grow();
        }
        index
    }

    /// The slot that holds the value, or the empty one where it belongs.
    fn slot(&self, value: &F) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.hasher.hash_one(value) as usize & mask;
        while self.slots[slot] != EMPTY && self.values[self.slots[slot] as usize] != *value {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        let slots = self.slots.len() * 2;
        // The old slots can all be found again: they are given back before the new ones are taken.
        self.slots = Vec::new();
        self.slots = vec![EMPTY; slots];
        let mask = slots - 1;
        for (index, value) in self.values.iter().enumerate() {
            let mut slot = self.hasher.hash_one(value) as usize & mask;
            while self.slots[slot] != EMPTY {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = index as u32;
        }
    }
}

impl<F: PrimeField> Default for Coefficients<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: PrimeField> PartialEq for Coefficients<F> {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl<F: PrimeField> Eq for Coefficients<F> {}

impl<F: PrimeField> fmt::Debug for Coefficients<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.values).finish()
    }
}
