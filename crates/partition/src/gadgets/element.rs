//! Sums of variables, and constraints between them.

use std::ops::{Add, Sub};

use ark_ff::PrimeField;
use ark_relations::gr1cs::{ConstraintSystemRef, LinearCombination, SynthesisError, Variable};

/// A sum of variables, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Element<F> {
    value: F,
    /// Coefficients by variable, each variable once; `None` when no constraints are made.
    terms: Option<Vec<(F, Variable)>>,
}

/// Allocates variables and makes constraints.
pub(crate) struct Synthesizer<F: PrimeField> {
    cs: ConstraintSystemRef<F>,
    matrices: bool,
}

// === impl Element ===

impl<F: PrimeField> Element<F> {
    /// A constant.
    pub(crate) fn constant(value: F) -> Self {
        Self {
            value,
            terms: Some(vec![(value, Variable::One)]),
        }
    }

    /// The value.
    pub(crate) const fn value(&self) -> F {
        self.value
    }

    /// The element times a constant.
    pub(crate) fn scaled(&self, factor: F) -> Self {
        let scale = |terms: &Vec<(F, Variable)>| {
            let scaled = terms
                .iter()
                .map(|(weight, variable)| (factor * weight, *variable));
            scaled.collect()
        };
        Self {
            value: factor * self.value,
            terms: self.terms.as_ref().map(scale),
        }
    }

    /// The element plus a constant.
    pub(crate) fn plus(&self, constant: F) -> Self {
        self + &Self::constant(constant)
    }

    fn merged(&self, other: &Self, sign: F) -> Option<Vec<(F, Variable)>> {
        let (left, right) = (self.terms.as_ref()?, other.terms.as_ref()?);
        let mut merged = Vec::with_capacity(left.len() + right.len());
        let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
        while let (Some((a, x)), Some((b, y))) = (left.peek(), right.peek()) {
            if x == y {
                merged.push((sign * b + a, *x));
                left.next();
                right.next();
            } else if x < y {
                merged.push((*a, *x));
                left.next();
            } else {
                merged.push((sign * b, *y));
                right.next();
            }
        }
        merged.extend(left);
        merged.extend(right.map(|(b, y)| (sign * b, *y)));
        Some(merged)
    }

    fn combination(&self) -> LinearCombination<F> {
        LinearCombination(self.terms.clone().unwrap_or_default())
    }
}

impl<F: PrimeField> Add for &Element<F> {
    type Output = Element<F>;

    fn add(self, other: Self) -> Element<F> {
        Element {
            value: self.value + other.value,
            terms: self.merged(other, F::one()),
        }
    }
}

impl<F: PrimeField> Sub for &Element<F> {
    type Output = Element<F>;

    fn sub(self, other: Self) -> Element<F> {
        Element {
            value: self.value - other.value,
            terms: self.merged(other, -F::one()),
        }
    }
}

// === impl Synthesizer ===

impl<F: PrimeField> Synthesizer<F> {
    pub(crate) fn new(cs: ConstraintSystemRef<F>) -> Self {
        let matrices = cs.should_construct_matrices();
        Self { cs, matrices }
    }

    /// The number of constraints so far; 0 where none are made.
    pub(crate) fn constraints(&self) -> usize {
        if self.matrices {
            self.cs.num_constraints()
        } else {
            0
        }
    }

    /// The next instance variable.
    pub(crate) fn instance(&self, value: F) -> Result<Element<F>, SynthesisError> {
        let variable = self.cs.new_input_variable(|| Ok(value))?;
        Ok(self.element(variable, value))
    }

    /// A private variable, otherwise unconstrained.
    pub(crate) fn witness(&self, value: F) -> Result<Element<F>, SynthesisError> {
        let variable = self.cs.new_witness_variable(|| Ok(value))?;
        Ok(self.element(variable, value))
    }

    /// A variable, and its value.
    pub(crate) fn element(&self, variable: Variable, value: F) -> Element<F> {
        let terms = self.matrices.then(|| vec![(F::one(), variable)]);
        Element { value, terms }
    }

    /// a · b, at one constraint. Variables of `b` cost a point of the second group in Groth16's keys:
    /// callers put the side with fewer of them there.
    pub(crate) fn product(
        &self,
        a: &Element<F>,
        b: &Element<F>,
    ) -> Result<Element<F>, SynthesisError> {
        let product = self.witness(a.value * b.value)?;
        self.enforce(a, b, &product)?;
        Ok(product)
    }

    /// a · b = c.
    pub(crate) fn enforce(
        &self,
        a: &Element<F>,
        b: &Element<F>,
        c: &Element<F>,
    ) -> Result<(), SynthesisError> {
        if !self.matrices {
            return Ok(());
        }
        self.cs
            .enforce_r1cs_constraint(|| a.combination(), || b.combination(), || c.combination())
    }

    /// a = b, as 0 · 0 = a − b.
    pub(crate) fn enforce_equal(
        &self,
        a: &Element<F>,
        b: &Element<F>,
    ) -> Result<(), SynthesisError> {
        if !self.matrices {
            return Ok(());
        }
        let zero = LinearCombination::zero;
        self.cs
            .enforce_r1cs_constraint(zero, zero, || (a - b).combination())
    }
}
