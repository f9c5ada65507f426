//! Sums of variables with small integer weights, and their values.

use ark_ff::PrimeField;
use ark_relations::gr1cs::{LinearCombination, Variable};

/// A sum of weighted variables and a constant, with its value as an integer.
///
/// Values and weights fit 128 bits. Terms are kept only where constraints are made: a prover that computes its
/// assignment has values alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    value: i128,
    constant: i128,
    terms: Vec<(i128, Variable)>,
}

// === impl Sum ===

impl Sum {
    /// A constant of the circuit.
    pub(crate) const fn constant(value: i128) -> Self {
        Self {
            value,
            constant: value,
            terms: Vec::new(),
        }
    }

    /// A variable with its value.
    pub(crate) fn variable(variable: Variable, value: i128) -> Self {
        Self {
            value,
            constant: 0,
            terms: vec![(1, variable)],
        }
    }

    /// A value without terms, for a prover that makes no constraints.
    pub(crate) const fn value_only(value: i128) -> Self {
        Self {
            value,
            constant: 0,
            terms: Vec::new(),
        }
    }

    /// `constant + Σ weight · sum`.
    pub(crate) fn of<'a>(
        constant: i128,
        weighted: impl IntoIterator<Item = (i128, &'a Self)>,
    ) -> Self {
        let mut sum = Self::constant(constant);
        for (weight, other) in weighted {
            sum.add(weight, other);
        }
        sum
    }

    /// Adds `weight · other`.
    pub(crate) fn add(&mut self, weight: i128, other: &Self) {
        self.value = self.value.wrapping_add(weight.wrapping_mul(other.value));
        self.constant = (self.constant).wrapping_add(weight.wrapping_mul(other.constant));
        let terms = other.terms.iter();
        (self.terms).extend(terms.map(|(w, variable)| (weight.wrapping_mul(*w), *variable)));
    }

    /// `self + weight · other`.
    pub(crate) fn plus(mut self, weight: i128, other: &Self) -> Self {
        self.add(weight, other);
        self
    }

    /// `1 − self`.
    pub(crate) fn not(&self) -> Self {
        Self::of(1, [(-1, self)])
    }

    /// The value; meaningless where there is no witness.
    pub(crate) const fn value(&self) -> i128 {
        self.value
    }

    /// The sum as arkworks has it, times a weight.
    pub(crate) fn combination<F: PrimeField>(&self, weight: F) -> LinearCombination<F> {
        let mut out = LinearCombination::zero();
        self.add_to(&mut out, weight);
        out
    }

    /// Adds the sum times a weight to a combination.
    pub(crate) fn add_to<F: PrimeField>(&self, out: &mut LinearCombination<F>, weight: F) {
        let terms = self.terms.iter();
        (out.0).extend(terms.map(|(w, variable)| (weight * F::from(*w), *variable)));
        if self.constant != 0 {
            (out.0).push((weight * F::from(self.constant), Variable::One));
        }
    }
}

/// The unsigned number whose bits are `bits`, the least significant first.
pub(crate) fn number(bits: &[Sum]) -> Sum {
    Sum::of(0, bits.iter().enumerate().map(|(i, bit)| (1 << i, bit)))
}
