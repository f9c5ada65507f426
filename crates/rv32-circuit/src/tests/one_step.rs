//! A constraint system with one step, whose instance has everything that the step shares with others.

use std::cell::RefCell;

use ark_bn254::Fr;
use ark_ff::{One, Zero};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, SynthesisError,
};
use proofmill_partition::Wire;
use proofmill_r1cs::{Assignment, R1cs};

use crate::builder::Builder;
use crate::row::Row;
use crate::step::{self, Advice, InputLength, State, StepOutcome, StepWitness};
use crate::sum::Sum;

/// A step with its surroundings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneStep {
    pub(crate) pc: i128,
    pub(crate) read: i128,
    pub(crate) written: i128,
    pub(crate) input_length: i128,
    pub(crate) time: i128,
    pub(crate) witness: StepWitness,
}

/// Instance variables: the leading one; pc, positions, time, whole words and tail of the input; entries and the state
/// after.
pub(crate) const INSTANCE: usize = 1 + 6 + 9 + 3;

struct Circuit<'a, A> {
    step: &'a OneStep,
    advise: A,
    outcome: &'a RefCell<Option<StepOutcome>>,
}

impl<A: FnOnce(Advice) -> Advice> ConstraintSynthesizer<Fr> for Circuit<'_, A> {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let mut b = Builder::new(cs.clone())?;
        let step = self.step;
        let values = [
            step.pc,
            step.read,
            step.written,
            step.time,
            step.input_length & !3,
            step.input_length & 3,
        ];
        let mut inputs = Vec::new();
        for value in values {
            let variable = cs.new_input_variable(|| Ok(Fr::from(value)))?;
            let wire = Wire {
                variable,
                value: Fr::from(value),
            };
            inputs.push(b.wire(wire, value));
        }
        let [pc, read, written, time, whole, tail]: [Sum; 6] = inputs.try_into().unwrap();
        let state = State { pc, read, written };
        let input = InputLength { whole, tail };
        let outcome =
            step::synthesize_advised(&mut b, &state, &time, &input, &step.witness, self.advise)?;
        let after = &outcome.state;
        let mut shared: Vec<(Fr, LinearCombination<Fr>)> = Vec::new();
        for entry in outcome.takes.iter().chain(&outcome.puts) {
            shared.push((entry.value(), entry.combination()));
        }
        for sum in [&after.pc, &after.read, &after.written] {
            shared.push((Fr::from(sum.value()), sum.combination(Fr::from(1))));
        }
        for (value, sum) in shared {
            let variable = cs.new_input_variable(|| Ok(value))?;
            let zero = LinearCombination::zero;
            cs.enforce_r1cs_constraint(zero, zero, || sum.clone() - variable)?;
        }
        *self.outcome.borrow_mut() = Some(outcome);
        Ok(())
    }
}

// === impl OneStep ===

impl OneStep {
    /// Some step, for the constraints.
    pub(crate) const fn any() -> Self {
        Self {
            pc: 0x1000,
            read: 0,
            written: 0,
            input_length: 0,
            time: 4,
            witness: StepWitness {
                row: Row::halted(),
                left: 0,
                right: 0,
                word: 0,
                destination: 0,
                times: [0; 4],
            },
        }
    }

    /// The constraints, which are the same for all steps.
    pub(crate) fn system() -> System {
        let outcome = RefCell::new(None);
        let circuit = Circuit {
            step: &Self::any(),
            advise: |advice| advice,
            outcome: &outcome,
        };
        System::new(R1cs::from_circuit(circuit).unwrap())
    }

    /// All values, and what the step leaves.
    pub(crate) fn assign(&self) -> (Vec<Fr>, StepOutcome) {
        self.assign_advised(|advice| advice)
    }

    /// Like [`assign`](Self::assign), with other words in the multiplier.
    pub(crate) fn assign_advised(
        &self,
        advise: impl FnOnce(Advice) -> Advice,
    ) -> (Vec<Fr>, StepOutcome) {
        let outcome = RefCell::new(None);
        let circuit = Circuit {
            step: self,
            advise,
            outcome: &outcome,
        };
        let assignment = Assignment::from_circuit(circuit).unwrap();
        assert_eq!(assignment.instance().len(), INSTANCE);
        (assignment.z().to_vec(), outcome.into_inner().unwrap())
    }
}

/// The constraints of a step.
pub(crate) struct System {
    pub(crate) r1cs: R1cs<Fr>,
    /// The three sums of each row: columns and weights.
    rows: Vec<[Vec<(usize, Fr)>; 3]>,
}

// === impl System ===

impl System {
    fn new(r1cs: R1cs<Fr>) -> Self {
        let row = |row| {
            r1cs.matrices().map(|matrix| {
                let entries = matrix.row(row);
                let valued = entries.map(|(column, index)| (column, r1cs.coefficients()[index]));
                valued.collect()
            })
        };
        let rows = (0..r1cs.num_constraints()).map(row).collect();
        Self { rows, r1cs }
    }

    /// Whether all constraints hold.
    pub(crate) fn is_satisfied(&self, z: &[Fr]) -> bool {
        (0..self.rows.len()).all(|row| self.holds(z, row))
    }

    /// Whether a constraint holds. Most values are bits, which need no multiplication.
    pub(crate) fn holds(&self, z: &[Fr], row: usize) -> bool {
        let [a, b, c] = self.rows[row].each_ref().map(|terms| {
            let mut sum = Fr::zero();
            for (column, weight) in terms {
                let value = z[*column];
                if value.is_one() {
                    sum += weight;
                } else if !value.is_zero() {
                    sum += value * weight;
                }
            }
            sum
        });
        a * b == c
    }

    /// The rows in which each variable occurs.
    pub(crate) fn rows_of_columns(&self, columns: usize) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); columns];
        for (row, sums) in self.rows.iter().enumerate() {
            for (column, _) in sums.iter().flatten() {
                if rows[*column].last() != Some(&row) {
                    rows[*column].push(row);
                }
            }
        }
        rows
    }
}
