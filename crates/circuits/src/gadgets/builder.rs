//! The bridge to arkworks' constraint system: allocation, constraints, and packed linear equations.

use ark_ff::PrimeField;
use ark_relations::gr1cs::{ConstraintSystemRef, LinearCombination, SynthesisError, Variable};

use super::Bit;

/// Bits of a digit in a packed linear equation: every difference a [`Builder`] defers is smaller
/// than 2³⁶ in absolute value.
pub(super) const DIGIT_BITS: usize = 36;

/// Digits in one packed equation: 7 · 36 = 252 bits, below the 254 that [`Builder::new`] demands.
const DIGITS: usize = 7;

/// A linear combination under construction: a constant and weighted variables.
#[derive(Clone, Debug)]
pub struct Lc<F: PrimeField> {
    constant: F,
    terms: Vec<(F, Variable)>,
}

impl<F: PrimeField> Default for Lc<F> {
    fn default() -> Self {
        Self {
            constant: F::zero(),
            terms: Vec::new(),
        }
    }
}

// === impl Lc ===

impl<F: PrimeField> Lc<F> {
    /// The constant `value`.
    pub fn constant(value: F) -> Self {
        Self {
            constant: value,
            terms: Vec::new(),
        }
    }

    /// Adds `weight · variable`.
    pub fn variable(mut self, weight: F, variable: Variable) -> Self {
        self.terms.push((weight, variable));
        self
    }

    /// Adds `weight · bit`.
    pub fn bit(mut self, weight: F, bit: &Bit) -> Self {
        self.add_bit(weight, bit);
        self
    }

    /// Adds `weight · bit` in place.
    pub fn add_bit(&mut self, weight: F, bit: &Bit) {
        match bit.source() {
            None => {
                if bit.value() {
                    self.constant += weight;
                }
            }
            Some((variable, false)) => self.terms.push((weight, variable)),
            Some((variable, true)) => {
                self.constant += weight;
                self.terms.push((-weight, variable));
            }
        }
    }

    /// Adds the unsigned number whose bits are `bits`, least significant first, times `weight`.
    pub fn add_number<'a>(&mut self, mut weight: F, bits: impl IntoIterator<Item = &'a Bit>) {
        for bit in bits {
            self.add_bit(weight, bit);
            weight.double_in_place();
        }
    }

    /// Adds `weight · other`.
    pub fn add(mut self, weight: F, other: &Lc<F>) -> Self {
        self.constant += weight * other.constant;
        self.terms
            .extend(other.terms.iter().map(|(w, v)| (weight * w, *v)));
        self
    }

    fn finish(mut self) -> LinearCombination<F> {
        if !self.constant.is_zero() {
            self.terms.push((self.constant, Variable::One));
        }
        LinearCombination(self.terms)
    }
}

impl<F: PrimeField> From<Lc<F>> for LinearCombination<F> {
    fn from(lc: Lc<F>) -> Self {
        lc.finish()
    }
}

/// Allocates variables and enforces constraints in one constraint system.
///
/// In prove mode without matrices no linear combination is ever built: every constraint is a
/// closure that is not called, so synthesis costs little more than the native computation.
#[derive(Debug)]
#[must_use = "call finish(), or the last equations are not enforced"]
pub struct Builder<F: PrimeField> {
    cs: ConstraintSystemRef<F>,
    matrices: bool,
    pending: Lc<F>,
    pending_digits: usize,
}

// === impl Builder ===

impl<F: PrimeField> Builder<F> {
    /// A builder that adds to `cs`. Call [`finish`](Self::finish) when done.
    ///
    /// # Errors
    ///
    /// [`SynthesisError::Unsatisfiable`] if the field has fewer than 254 bits: packed equations
    /// would wrap around.
    pub fn new(cs: ConstraintSystemRef<F>) -> Result<Self, SynthesisError> {
        if F::MODULUS_BIT_SIZE < 254 {
            return Err(SynthesisError::Unsatisfiable);
        }
        let matrices = cs.should_construct_matrices();
        Ok(Self {
            cs,
            matrices,
            pending: Lc::default(),
            pending_digits: 0,
        })
    }

    /// A public input with this value.
    pub fn input(&mut self, value: F) -> Result<Variable, SynthesisError> {
        self.cs.new_input_variable(|| Ok(value))
    }

    /// A private variable with this value, otherwise unconstrained.
    pub fn witness(&mut self, value: F) -> Result<Variable, SynthesisError> {
        self.cs.new_witness_variable(|| Ok(value))
    }

    /// A private variable that the caller's next constraint forces to be `value`, a bit, whenever
    /// its inputs are bits.
    pub(super) fn derived_bit(&mut self, value: bool) -> Result<Bit, SynthesisError> {
        let variable = self.witness(if value { F::one() } else { F::zero() })?;
        Ok(Bit::variable(variable, value))
    }

    /// A private bit: one variable, one constraint.
    pub fn bit(&mut self, value: bool) -> Result<Bit, SynthesisError> {
        let bit = self.derived_bit(value)?;
        self.enforce(
            || Lc::default().bit(F::one(), &bit),
            || Lc::constant(-F::one()).bit(F::one(), &bit),
            Lc::default,
        )?;
        Ok(bit)
    }

    /// Enforces `a · b = c`.
    ///
    /// Variables in `b` cost a point of the second group in Groth16's keys: callers put the side
    /// with the fewer fresh variables there.
    pub fn enforce(
        &mut self,
        a: impl FnOnce() -> Lc<F>,
        b: impl FnOnce() -> Lc<F>,
        c: impl FnOnce() -> Lc<F>,
    ) -> Result<(), SynthesisError> {
        if !self.matrices {
            return Ok(());
        }
        self.cs
            .enforce_r1cs_constraint(|| a().finish(), || b().finish(), || c().finish())
    }

    /// Enforces `lc = 0`, as `0 · 0 = lc`: a prover evaluates only the first two matrices.
    pub fn enforce_zero(&mut self, lc: impl FnOnce() -> Lc<F>) -> Result<(), SynthesisError> {
        self.enforce(Lc::default, Lc::default, lc)
    }

    /// Enforces `lc = 0` for a combination whose value, as an integer, is below 2³⁶ in absolute
    /// value whatever its variables are (they are bits).
    ///
    /// Seven such equations share one constraint: `Σ 2³⁶ʲ·dⱼ = 0` with every `|dⱼ| < 2³⁶` forces
    /// each `dⱼ` to be 0, since the lowest non-zero one would have to be divisible by 2³⁶; and the
    /// sum, below 2²⁵², cannot wrap around the modulus.
    pub(super) fn defer_zero(&mut self, lc: impl FnOnce() -> Lc<F>) -> Result<(), SynthesisError> {
        if !self.matrices {
            return Ok(());
        }
        let shift = F::from(2u64).pow([(DIGIT_BITS * self.pending_digits) as u64]);
        self.pending = std::mem::take(&mut self.pending).add(shift, &lc());
        self.pending_digits += 1;
        if self.pending_digits == DIGITS {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), SynthesisError> {
        if self.pending_digits == 0 {
            return Ok(());
        }
        self.pending_digits = 0;
        let pending = std::mem::take(&mut self.pending);
        self.enforce_zero(|| pending)
    }

    /// Enforces the remaining deferred equations. A circuit that does not call this is under-constrained.
    pub fn finish(mut self) -> Result<(), SynthesisError> {
        self.flush()
    }
}
