//! A bit, and the Boolean functions of SHA-256, at one constraint each.

use ark_ff::PrimeField;
use ark_relations::gr1cs::{SynthesisError, Variable};

use super::{Builder, Lc};

/// A bit: a constant, a variable, or the negation of a variable.
///
/// Constants and negations fold: an operation on a constant, or a negation, costs no constraint.
#[derive(Clone, Copy, Debug)]
pub struct Bit {
    /// The variable and whether it is negated; `None` for a constant.
    source: Option<(Variable, bool)>,
    value: bool,
}

// === impl Bit ===

impl Bit {
    /// A constant bit.
    pub const fn constant(value: bool) -> Self {
        Self {
            source: None,
            value,
        }
    }

    pub(super) const fn variable(variable: Variable, value: bool) -> Self {
        Self {
            source: Some((variable, false)),
            value,
        }
    }

    /// The bit's value; meaningless while keys are set up, when there is no witness.
    pub const fn value(&self) -> bool {
        self.value
    }

    /// Whether the bit is a constant of the circuit.
    pub const fn is_constant(&self) -> bool {
        self.source.is_none()
    }

    pub(super) const fn source(&self) -> Option<(Variable, bool)> {
        self.source
    }

    /// The same variable with a claimed value: later values are computed from the claim, and contradict the
    /// variable's own assignment unless the two agree. A constant is returned unchanged.
    pub fn claiming(self, value: bool) -> Self {
        match self.source {
            None => self,
            Some(_) => Self { value, ..self },
        }
    }

    /// ¬self, free of constraints.
    pub const fn not(self) -> Self {
        let source = match self.source {
            None => None,
            Some((variable, negated)) => Some((variable, !negated)),
        };
        Self {
            source,
            value: !self.value,
        }
    }

    fn is_negated(&self) -> bool {
        matches!(self.source, Some((_, true)))
    }

    /// `self` if `flip` is false, else its negation.
    const fn not_if(self, flip: bool) -> Self {
        if flip { self.not() } else { self }
    }

    /// a ∧ b.
    pub fn and<F: PrimeField>(b: &mut Builder<F>, x: Bit, y: Bit) -> Result<Bit, SynthesisError> {
        match (x.is_constant(), y.is_constant()) {
            (true, _) => return Ok(if x.value { y } else { x }),
            (_, true) => return Ok(if y.value { x } else { y }),
            _ => {}
        }
        let out = b.derived_bit(x.value & y.value)?;
        b.enforce(|| lc(&[(1, x)]), || lc(&[(1, y)]), || lc(&[(1, out)]))?;
        Ok(out)
    }

    /// a ∨ b.
    pub fn or<F: PrimeField>(b: &mut Builder<F>, x: Bit, y: Bit) -> Result<Bit, SynthesisError> {
        Ok(Self::and(b, x.not(), y.not())?.not())
    }

    /// a ⊕ b: `2x · y = x + y − out`.
    pub fn xor<F: PrimeField>(b: &mut Builder<F>, x: Bit, y: Bit) -> Result<Bit, SynthesisError> {
        match (x.is_constant(), y.is_constant()) {
            (true, _) => return Ok(y.not_if(x.value)),
            (_, true) => return Ok(x.not_if(y.value)),
            _ => {}
        }
        let flip = x.is_negated() ^ y.is_negated();
        let (x, y) = (x.not_if(x.is_negated()), y.not_if(y.is_negated()));
        let out = b.derived_bit(x.value ^ y.value)?;
        b.enforce(
            || lc(&[(2, x)]),
            || lc(&[(1, y)]),
            || lc(&[(1, x), (1, y), (-1, out)]),
        )?;
        Ok(out.not_if(flip))
    }

    /// a ⊕ b ⊕ c in one constraint.
    ///
    /// With `s = a + b + c ∈ {0, 1, 2, 3}` the result is the rational function
    /// `s(s − 2) / (2s − 3)`, whose denominator has no root there; so
    /// `(s − 2 − 2·out) · s = −3·out` has exactly one solution for each `s`, the exclusive or.
    pub fn xor3<F: PrimeField>(
        b: &mut Builder<F>,
        x: Bit,
        y: Bit,
        z: Bit,
    ) -> Result<Bit, SynthesisError> {
        if x.is_constant() {
            return Ok(Self::xor(b, y, z)?.not_if(x.value));
        }
        if y.is_constant() {
            return Ok(Self::xor(b, x, z)?.not_if(y.value));
        }
        if z.is_constant() {
            return Ok(Self::xor(b, x, y)?.not_if(z.value));
        }
        let flip = x.is_negated() ^ y.is_negated() ^ z.is_negated();
        let [x, y, z] = [x, y, z].map(|bit| bit.not_if(bit.is_negated()));
        let out = b.derived_bit(x.value ^ y.value ^ z.value)?;
        b.enforce(
            || lc_from(-2, &[(1, x), (1, y), (1, z), (-2, out)]),
            || lc(&[(1, x), (1, y), (1, z)]),
            || lc(&[(-3, out)]),
        )?;
        Ok(out.not_if(flip))
    }

    /// The majority of a, b, c in one constraint.
    ///
    /// As in [`xor3`](Self::xor3), the result is `s(s − 1) / (4s − 6)`, so
    /// `(s − 1 − 4·out) · s = −6·out`.
    pub fn majority<F: PrimeField>(
        b: &mut Builder<F>,
        x: Bit,
        y: Bit,
        z: Bit,
    ) -> Result<Bit, SynthesisError> {
        for (constant, p, q) in [(x, y, z), (y, x, z), (z, x, y)] {
            if constant.is_constant() {
                return if constant.value {
                    Self::or(b, p, q)
                } else {
                    Self::and(b, p, q)
                };
            }
        }
        let value = (x.value & y.value) | (x.value & z.value) | (y.value & z.value);
        let out = b.derived_bit(value)?;
        b.enforce(
            || lc_from(-1, &[(1, x), (1, y), (1, z), (-4, out)]),
            || lc(&[(1, x), (1, y), (1, z)]),
            || lc(&[(-6, out)]),
        )?;
        Ok(out)
    }

    /// `if_set` where `self` is 1, else `if_clear`: `(if_set − if_clear) · self = out − if_clear`.
    pub fn choose<F: PrimeField>(
        self,
        b: &mut Builder<F>,
        if_set: Bit,
        if_clear: Bit,
    ) -> Result<Bit, SynthesisError> {
        if self.is_constant() {
            return Ok(if self.value { if_set } else { if_clear });
        }
        match (if_set.is_constant(), if_clear.is_constant()) {
            (true, true) if if_set.value == if_clear.value => return Ok(if_set),
            (true, true) => return Ok(self.not_if(if_clear.value)),
            (true, false) if if_set.value => return Self::or(b, self, if_clear),
            (true, false) => return Self::and(b, self.not(), if_clear),
            (false, true) if if_clear.value => return Self::or(b, self.not(), if_set),
            (false, true) => return Self::and(b, self, if_set),
            (false, false) => {}
        }
        let out = b.derived_bit(if self.value {
            if_set.value
        } else {
            if_clear.value
        })?;
        b.enforce(
            || lc(&[(1, if_set), (-1, if_clear)]),
            || lc(&[(1, self)]),
            || lc(&[(1, out), (-1, if_clear)]),
        )?;
        Ok(out)
    }
}

fn lc<F: PrimeField>(bits: &[(i64, Bit)]) -> Lc<F> {
    lc_from(0, bits)
}

fn lc_from<F: PrimeField>(constant: i64, bits: &[(i64, Bit)]) -> Lc<F> {
    bits.iter()
        .fold(Lc::constant(F::from(constant)), |lc, (weight, bit)| {
            lc.bit(F::from(*weight), bit)
        })
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_relations::gr1cs::ConstraintSystem;

    use super::*;

    type Op = fn(&mut Builder<Fr>, [Bit; 3]) -> Result<Bit, SynthesisError>;
    type Native = fn([bool; 3]) -> bool;

    /// Every operation, over every mix of constants, variables and negations: the right value, a
    /// satisfied system, and no other output satisfies it.
    #[test]
    fn operations_are_complete_and_sound() {
        let ops: [(Op, Native); 6] = [
            (|b, [x, y, _]| Bit::and(b, x, y), |[x, y, _]| x & y),
            (|b, [x, y, _]| Bit::or(b, x, y), |[x, y, _]| x | y),
            (|b, [x, y, _]| Bit::xor(b, x, y), |[x, y, _]| x ^ y),
            (|b, [x, y, z]| Bit::xor3(b, x, y, z), |[x, y, z]| x ^ y ^ z),
            (
                |b, [x, y, z]| Bit::majority(b, x, y, z),
                |[x, y, z]| usize::from(x) + usize::from(y) + usize::from(z) >= 2,
            ),
            (
                |b, [x, y, z]| x.choose(b, y, z),
                |[x, y, z]| if x { y } else { z },
            ),
        ];
        for (index, (op, native)) in ops.into_iter().enumerate() {
            for mix in 0..27usize {
                for values in 0..8usize {
                    let kinds = [mix % 3, mix / 3 % 3, mix / 9];
                    let values = [values & 1 == 1, values & 2 == 2, values & 4 == 4];
                    check(index, op, native, kinds, values);
                }
            }
        }
    }

    fn check(index: usize, op: Op, native: Native, kinds: [usize; 3], values: [bool; 3]) {
        let cs = ConstraintSystem::<Fr>::new_ref();
        let mut b = Builder::new(cs.clone()).unwrap();
        let inputs: Vec<Bit> = (0..3)
            .map(|i| match kinds[i] {
                0 => Bit::constant(values[i]),
                1 => b.bit(values[i]).unwrap(),
                _ => b.bit(!values[i]).unwrap().not(),
            })
            .collect();
        let before = cs.num_witness_variables();
        let constraints = cs.num_constraints();
        let out = op(&mut b, [inputs[0], inputs[1], inputs[2]]).unwrap();
        b.finish().unwrap();
        let context = format!("operation {index}, kinds {kinds:?}, values {values:?}");
        assert_eq!(out.value(), native(values), "{context}");
        assert!(cs.num_constraints() - constraints <= 1, "{context}");
        assert!(cs.is_satisfied().unwrap(), "{context}");
        if cs.num_witness_variables() > before {
            let mut inner = cs.borrow_mut().unwrap();
            let good = inner.assignments.witness_assignment[before];
            let wrong = [0u64, 1, 2, 3]
                .map(Fr::from)
                .into_iter()
                .chain([-Fr::from(1u64)]);
            for wrong in wrong.filter(|wrong| *wrong != good) {
                inner.assignments.witness_assignment[before] = wrong;
                let (a, bb, c) = row_values(&inner, constraints);
                assert_ne!(a * bb, c, "{context}: {wrong} accepted");
            }
        }
    }

    fn row_values(cs: &ark_relations::gr1cs::ConstraintSystem<Fr>, row: usize) -> (Fr, Fr, Fr) {
        let matrices = cs.to_matrices().unwrap();
        let matrices = &matrices[ark_relations::gr1cs::R1CS_PREDICATE_LABEL];
        let z: Vec<Fr> = cs
            .assignments
            .instance_assignment
            .iter()
            .chain(&cs.assignments.witness_assignment)
            .copied()
            .collect();
        let eval = |m: usize| matrices[m][row].iter().map(|(c, i)| *c * z[*i]).sum::<Fr>();
        (eval(0), eval(1), eval(2))
    }
}
