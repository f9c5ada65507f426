//! Classes of parts: their constraints, and how parts that should have the same differ.

use std::ops::Range;
use std::sync::Arc;

use ark_ff::PrimeField;
use proofmill_groth16::mirage::{CommittedR1cs, CommittedR1csError};
use proofmill_r1cs::R1cs;

use crate::accesses::Run;
use crate::error::Difference;
use crate::memory_check::{Check, Sections, Shape};
use crate::multiset::Transfer;

/// Terms of a row that an error shows.
const SHOWN_TERMS: usize = 6;

/// Parts that have the same constraints.
///
/// Their system's instance is, after the leading one: the root of the tree of states, α and β, which
/// all parts of a partition share; then the preprocessed inputs of the part. Its witness begins with
/// the committed variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class<F: PrimeField> {
    pub(crate) name: Box<str>,
    pub(crate) first_part: usize,
    pub(crate) system: Arc<R1cs<F>>,
    /// The digest of `system`.
    pub(crate) digest: [u8; 32],
    pub(crate) shape: Shape,
    pub(crate) constants: usize,
    pub(crate) sections: Sections,
}

/// Sizes of a class's constraint system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Instance variables that all parts have the same values of: the leading one, the root, α, β.
    pub shared: usize,
    /// Number of instance variables, after the shared ones, whose values the partition fixes for each part, addresses
    /// up to the factor β.
    pub preprocessed: usize,
    /// Witness variables that are committed to before α and β are drawn: the first of the witness.
    pub committed: usize,
    /// All witness variables.
    pub witness: usize,
    /// Constraints.
    pub constraints: usize,
}

// === impl Class ===

impl<F: PrimeField> Class<F> {
    pub(crate) fn new(
        name: &str,
        first_part: usize,
        shape: Shape,
        (system, run, sections): (R1cs<F>, Run<F>, Sections),
    ) -> Self {
        Self {
            name: name.into(),
            first_part,
            digest: system.digest(),
            system: Arc::new(system),
            shape,
            constants: run.constants.len(),
            sections,
        }
    }

    /// The name that the circuit gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The constraints of each part of the class.
    pub const fn system(&self) -> &Arc<R1cs<F>> {
        &self.system
    }

    /// The same system with its committed variables, for a Mirage key.
    ///
    /// # Errors
    ///
    /// None in practice: every committed variable has a row of its own, in a running sum. The result is still
    /// checked, as keys are made from it.
    pub fn committed_system(&self) -> Result<CommittedR1cs<'_, F>, CommittedR1csError> {
        CommittedR1cs::new(&self.system, self.shape.committed())
    }

    /// The digest of [`system`](Self::system).
    pub const fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The number of accesses to shared wires that each part makes.
    pub const fn accesses(&self) -> usize {
        self.shape.accesses
    }

    /// The puts and takes that each part makes, in order.
    pub fn transfers(&self) -> &[Transfer] {
        &self.shape.transfers
    }

    /// The sizes of the constraint system.
    pub fn layout(&self) -> Layout {
        let shared = 1 + Shape::SHARED;
        Layout {
            shared,
            preprocessed: self.system.num_instance() - shared,
            committed: self.shape.committed(),
            witness: self.system.num_witness(),
            constraints: self.system.num_constraints(),
        }
    }

    /// The purpose of a constraint; nothing beyond the last.
    pub fn check_of(&self, constraint: usize) -> Option<Check> {
        let section = |(_, rows): &&(Check, Range<usize>)| rows.contains(&constraint);
        self.sections.iter().find(section).map(|(check, _)| *check)
    }

    /// The number of constraints of a purpose.
    pub fn constraints_of(&self, check: Check) -> usize {
        let sections = self.sections.iter().filter(|(found, _)| *found == check);
        sections.map(|(_, rows)| rows.len()).sum()
    }

    pub(crate) const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The preprocessed inputs that are addresses, which the instance has times β.
    pub(crate) const fn addresses(&self) -> Range<usize> {
        self.shape.addresses()
    }

    pub(crate) const fn first_part(&self) -> usize {
        self.first_part
    }

    /// The first difference between the system of another part and that of the class; `None` if they are equal.
    pub(crate) fn difference(&self, system: &R1cs<F>, run: &Run<F>) -> Option<Difference> {
        let count = |what, first: usize, other: usize| {
            (first != other).then_some(Difference::Count { what, first, other })
        };
        let accesses = count(
            "accesses to shared wires",
            self.shape.accesses,
            run.accesses,
        );
        let constants = || count("constants", self.constants, run.constants.len());
        let transfers = || {
            let [first, other] = [&*self.shape.transfers, &run.transfers];
            let pairs = first.iter().zip(other).enumerate();
            let mut differing = pairs.filter(|(_, (first, other))| first != other);
            let kind = differing.next().map(|(transfer, (first, other))| {
                let (first, other) = (*first, *other);
                Difference::Transfer {
                    transfer,
                    first,
                    other,
                }
            });
            kind.or_else(|| count("transfers", first.len(), other.len()))
        };
        if let Some(difference) = accesses.or_else(transfers).or_else(constants) {
            return Some(difference);
        }
        if system.digest() == self.digest {
            return None;
        }
        let witness = || {
            let [first, other] = [&*self.system, system].map(R1cs::num_witness);
            count("witness variables", first, other)
        };
        let constraints = || {
            let [first, other] = [&*self.system, system].map(R1cs::num_constraints);
            count("constraints", first, other)
        };
        let last = || Difference::Count {
            what: "different encodings of the same rows",
            first: 1,
            other: 1,
        };
        let row = self.row_difference(system);
        Some(
            row.or_else(witness)
                .or_else(constraints)
                .unwrap_or_else(last),
        )
    }

    fn row_difference(&self, system: &R1cs<F>) -> Option<Difference> {
        let rows = self.system.num_constraints().min(system.num_constraints());
        (0..rows).find_map(|constraint| {
            let names = ['A', 'B', 'C'].into_iter().enumerate();
            names.into_iter().find_map(|(index, matrix)| {
                let [first, other] = [&*self.system, system].map(|of| row(of, index, constraint));
                (first != other).then(|| Difference::Row {
                    constraint,
                    check: self.check_of(constraint).unwrap_or(Check::Circuit),
                    matrix,
                    first: print(&self.system, &first),
                    other: print(system, &other),
                })
            })
        })
    }
}

fn row<F: PrimeField>(system: &R1cs<F>, matrix: usize, constraint: usize) -> Vec<(F, usize)> {
    let entries = system.matrices()[matrix].row(constraint);
    let valued = entries.map(|(column, index)| (system.coefficients()[index], column));
    valued.collect()
}

/// A row as a sum: `x` and `w` are instance and witness variables, each counted from 0.
fn print<F: PrimeField>(system: &R1cs<F>, row: &[(F, usize)]) -> String {
    let term = |(weight, column): &(F, usize)| {
        let variable = match column.checked_sub(system.num_instance()) {
            None => format!("x{column}"),
            Some(witness) => format!("w{witness}"),
        };
        if weight.is_one() {
            variable
        } else if (-*weight).is_one() {
            format!("-{variable}")
        } else {
            format!("{weight}·{variable}")
        }
    };
    let mut terms: Vec<String> = row.iter().take(SHOWN_TERMS).map(term).collect();
    if row.len() > SHOWN_TERMS {
        terms.push(format!("{} terms more", row.len() - SHOWN_TERMS));
    }
    match terms.is_empty() {
        true => "0".to_owned(),
        false => terms.join(" + "),
    }
}
