//! Allocation of variables and constraints on [sums](Sum).

use ark_ff::PrimeField;
use ark_relations::gr1cs::{ConstraintSystemRef, LinearCombination, SynthesisError, Variable};
use proofmill_partition::Wire;

use crate::sum::{Sum, number};

/// Adds variables and constraints to one constraint system.
///
/// Without matrices no combination is ever built, so that a prover's run costs little more than the computation.
#[derive(Debug)]
pub(crate) struct Builder<F: PrimeField> {
    cs: ConstraintSystemRef<F>,
    matrices: bool,
}

// === impl Builder ===

impl<F: PrimeField> Builder<F> {
    /// A builder that adds to `cs`. Packed values need a field of at least 254 bits.
    pub(crate) fn new(cs: ConstraintSystemRef<F>) -> Result<Self, SynthesisError> {
        if F::MODULUS_BIT_SIZE < 254 {
            return Err(SynthesisError::Unsatisfiable);
        }
        let matrices = cs.should_construct_matrices();
        Ok(Self { cs, matrices })
    }

    /// The sum that is one wire. Its value is given as an integer.
    pub(crate) fn wire(&self, wire: Wire<F>, value: i128) -> Sum {
        self.known(wire.variable, value)
    }

    fn known(&self, variable: Variable, value: i128) -> Sum {
        match self.matrices {
            true => Sum::variable(variable, value),
            false => Sum::value_only(value),
        }
    }

    /// A private variable, otherwise unconstrained.
    pub(crate) fn witness(&mut self, value: i128) -> Result<Sum, SynthesisError> {
        let variable = self.cs.new_witness_variable(|| Ok(F::from(value)))?;
        Ok(self.known(variable, value))
    }

    /// A private bit: one variable, one constraint.
    pub(crate) fn bit(&mut self, value: bool) -> Result<Sum, SynthesisError> {
        let bit = self.witness(i128::from(value))?;
        self.enforce(&bit, &Sum::of(-1, [(1, &bit)]), &Sum::default())?;
        Ok(bit)
    }

    /// Private bits of a number, the least significant first; higher ones are dropped.
    pub(crate) fn bits(&mut self, value: i128, count: usize) -> Result<Vec<Sum>, SynthesisError> {
        (0..count).map(|i| self.bit(value >> i & 1 == 1)).collect()
    }

    /// A private number below 2^`bits`.
    pub(crate) fn ranged(&mut self, value: i128, bits: usize) -> Result<Sum, SynthesisError> {
        Ok(number(&self.bits(value, bits)?))
    }

    /// Enforces `0 ≤ sum < 2^bits`: one constraint for each bit, and one more.
    pub(crate) fn enforce_range(&mut self, sum: &Sum, bits: usize) -> Result<(), SynthesisError> {
        let ranged = self.ranged(sum.value(), bits)?;
        self.enforce_zero(&ranged.plus(-1, sum))
    }

    /// `x · y`, as a variable of its own.
    pub(crate) fn product(&mut self, x: &Sum, y: &Sum) -> Result<Sum, SynthesisError> {
        let product = self.witness(x.value().wrapping_mul(y.value()))?;
        self.enforce(x, y, &product)?;
        Ok(product)
    }

    /// Whether a sum is zero: two constraints. The inverse is arbitrary if it is.
    pub(crate) fn is_zero(&mut self, sum: &Sum) -> Result<Sum, SynthesisError> {
        let inverse = F::from(sum.value()).inverse().unwrap_or_default();
        let inverse = self.cs.new_witness_variable(|| Ok(inverse))?;
        let is_zero = self.witness(i128::from(sum.value() == 0))?;
        if self.matrices {
            self.cs.enforce_r1cs_constraint(
                || sum.combination(F::one()),
                || LinearCombination(vec![(F::one(), inverse)]),
                || is_zero.not().combination(F::one()),
            )?;
        }
        self.enforce(sum, &is_zero, &Sum::default())?;
        Ok(is_zero)
    }

    /// Enforces `x · y = z`.
    pub(crate) fn enforce(&mut self, x: &Sum, y: &Sum, z: &Sum) -> Result<(), SynthesisError> {
        if !self.matrices {
            return Ok(());
        }
        let one = F::one();
        self.cs.enforce_r1cs_constraint(
            || x.combination(one),
            || y.combination(one),
            || z.combination(one),
        )
    }

    /// Enforces `sum = 0`.
    pub(crate) fn enforce_zero(&mut self, sum: &Sum) -> Result<(), SynthesisError> {
        self.enforce(&Sum::default(), &Sum::default(), sum)
    }
}
