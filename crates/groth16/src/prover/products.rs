//! The matrices A and B of a circuit whose C is unknown, as from a `.zkey`.

use ark_ff::PrimeField;
use proofmill_r1cs::{Coefficients, Matrix, R1csError};

use crate::snarkjs::{Coefficient, CoefficientMatrix};

/// A and B of a `.zkey`, whose entries of A include the rows for the instance.
#[derive(Clone, Debug)]
pub(crate) struct ProductMatrices<F: PrimeField> {
    a: Matrix,
    b: Matrix,
    table: Coefficients<F>,
}

// === impl ProductMatrices ===

impl<F: PrimeField> ProductMatrices<F> {
    /// The matrices of these entries, given in any order, for a domain of `rows` points and `variables` variables.
    pub(crate) fn new(
        entries: &[Coefficient<F>],
        rows: usize,
        variables: usize,
    ) -> Result<Self, R1csError> {
        let mut table = Coefficients::new();
        let mut build = |which| {
            let entries = entries.iter().filter(move |entry| entry.matrix == which);
            // A matrix ends with its last row that has entries: the rest of the domain is zero.
            let last = entries.clone().map(|entry| entry.row as usize + 1).max();
            Matrix::from_entries(
                last.unwrap_or(0).min(rows),
                variables,
                entries.map(|entry| (entry.row, entry.variable, entry.value)),
                &mut table,
            )
        };
        let a = build(CoefficientMatrix::A)?;
        let b = build(CoefficientMatrix::B)?;
        table.shrink();
        Ok(Self { a, b, table })
    }

    /// A·z and B·z, into the front of `a` and `b`.
    pub(crate) fn multiply(&self, z: &[F], a: &mut [F], b: &mut [F]) {
        self.a.multiply(self.table.values(), z, a);
        self.b.multiply(self.table.values(), z, b);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.a.memory() + self.b.memory() + size_of_val(self.table.values())
    }
}
