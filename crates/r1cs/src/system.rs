//! A constraint system.

use ark_ff::{BigInteger, PrimeField};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, OptimizationGoal, R1CS_PREDICATE_LABEL,
    SynthesisError, SynthesisMode,
};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::Matrix;
use crate::matrix::Table;

/// The most variables, constraints and entries of a matrix: what 32 bits count.
pub const MAX_SIZE: usize = u32::MAX as usize;

/// Version of what [`R1cs::digest`] hashes.
const DIGEST_DOMAIN: &[u8] = b"proofmill/r1cs/1";

/// A rank-1 constraint system over the variables z: a leading one and the public inputs (the
/// instance), then the witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct R1cs<F: PrimeField> {
    instance: usize,
    witness: usize,
    a: Matrix,
    b: Matrix,
    c: Matrix,
    coefficients: Vec<F>,
}

/// A circuit that is no rank-1 constraint system, or too large a one.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum R1csError {
    /// The circuit's code failed.
    #[error("the circuit could not be synthesised: {0}")]
    Synthesis(#[from] SynthesisError),
    /// The circuit kept its constraint system.
    #[error("the circuit keeps a reference to its constraint system after it returned")]
    StillReferenced,
    /// The circuit uses constraints of another kind.
    #[error("the circuit has constraints of kind {label:?}, only rank-1 constraints are supported")]
    OtherPredicate {
        /// The kind's label.
        label: String,
    },
    /// The matrices differ in their number of rows.
    #[error("matrices of {0:?} rows: all three must have one for each constraint")]
    Rows([usize; 3]),
    /// An entry lies beyond the variables.
    #[error("row {row} names variable {column} of {variables}")]
    Column {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// The number of variables.
        variables: usize,
    },
    /// There is no leading one, or too many variables, rows or entries.
    #[error("{found} {what}: there must be {least} to {MAX_SIZE}")]
    Size {
        /// What there is too much or too little of.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// The fewest.
        least: usize,
    },
    /// An assignment is not for this system.
    #[error("an assignment of {found} values for {expected} variables")]
    Length {
        /// The variables.
        expected: usize,
        /// The values.
        found: usize,
    },
}

/// The first constraint that an assignment does not satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("constraint {row} is not satisfied")]
pub struct Unsatisfied {
    /// The constraint's index, from 0.
    pub row: usize,
}

// === impl R1cs ===

impl<F: PrimeField> R1cs<F> {
    /// Runs a circuit for its constraints; it needs no witness.
    ///
    /// # Errors
    ///
    /// [`R1csError`] if the circuit fails or has other constraints than rank-1.
    pub fn from_circuit(circuit: impl ConstraintSynthesizer<F>) -> Result<Self, R1csError> {
        let cs = ConstraintSystem::new_ref();
        cs.set_optimization_goal(OptimizationGoal::Constraints);
        cs.set_mode(SynthesisMode::Setup);
        circuit.generate_constraints(cs.clone())?;
        cs.finalize();
        for (label, count) in cs.get_all_predicates_num_constraints() {
            if label != R1CS_PREDICATE_LABEL && count > 0 {
                return Err(R1csError::OtherPredicate { label });
            }
        }
        let mut matrices = cs.to_matrices()?;
        let matrices = matrices.remove(R1CS_PREDICATE_LABEL).unwrap_or_default();
        let rows: [_; 3] = matrices.try_into().unwrap_or_default();
        Self::from_rows(
            cs.num_instance_variables(),
            cs.num_witness_variables(),
            rows,
        )
    }

    /// From the rows of A, B and C, each a list of (coefficient, variable). `instance` counts the
    /// leading one.
    ///
    /// # Errors
    ///
    /// [`R1csError`] for sizes or columns that do not fit.
    pub fn from_rows(
        instance: usize,
        witness: usize,
        rows: [Vec<Vec<(F, usize)>>; 3],
    ) -> Result<Self, R1csError> {
        let size = |what, least, found: usize| {
            if (least..=MAX_SIZE).contains(&found) {
                Ok(())
            } else {
                Err(R1csError::Size { what, found, least })
            }
        };
        let variables = instance.saturating_add(witness);
        size("instance variables", 1, instance)?;
        size("variables", 1, variables)?;
        let counts = [rows[0].len(), rows[1].len(), rows[2].len()];
        if counts[0] != counts[1] || counts[0] != counts[2] {
            return Err(R1csError::Rows(counts));
        }
        size("constraints", 0, counts[0])?;
        for matrix in &rows {
            size("entries", 0, matrix.iter().map(Vec::len).sum())?;
            for (row, entries) in matrix.iter().enumerate() {
                if let Some((_, column)) = entries.iter().find(|(_, c)| *c >= variables) {
                    return Err(R1csError::Column {
                        row,
                        column: *column,
                        variables,
                    });
                }
            }
        }
        let mut table = Table::new();
        let [a, b, c] = rows.map(|rows| Matrix::new(rows, &mut table));
        Ok(Self {
            instance,
            witness,
            a,
            b,
            c,
            coefficients: table.values,
        })
    }

    /// The number of instance variables, the leading one included.
    pub const fn num_instance(&self) -> usize {
        self.instance
    }

    /// The number of witness variables.
    pub const fn num_witness(&self) -> usize {
        self.witness
    }

    /// The number of all variables: the length of z.
    pub const fn num_variables(&self) -> usize {
        self.instance + self.witness
    }

    /// The number of constraints.
    pub fn num_constraints(&self) -> usize {
        self.a.rows()
    }

    /// The matrices A, B and C.
    pub const fn matrices(&self) -> [&Matrix; 3] {
        [&self.a, &self.b, &self.c]
    }

    /// The table the matrices' entries index.
    pub fn coefficients(&self) -> &[F] {
        &self.coefficients
    }

    /// A·z, B·z or C·z, into the front of `out`, whose rest is left as it is.
    ///
    /// # Errors
    ///
    /// [`R1csError::Length`] if `z` has not one value for each variable.
    ///
    /// # Panics
    ///
    /// If `out` is shorter than the number of constraints.
    pub fn multiply(&self, matrix: &Matrix, z: &[F], out: &mut [F]) -> Result<(), R1csError> {
        self.check_length(z)?;
        matrix.multiply(&self.coefficients, z, out);
        Ok(())
    }

    /// Whether `z` satisfies every constraint.
    ///
    /// # Errors
    ///
    /// [`Unsatisfied`] with the first row that does not hold; row 0 for an empty or short `z`,
    /// whose missing values cannot hold, and for a `z` that does not start with one.
    pub fn is_satisfied(&self, z: &[F]) -> Result<(), Unsatisfied> {
        if self.check_length(z).is_err() || !z[0].is_one() {
            return Err(Unsatisfied { row: 0 });
        }
        let holds = |row: usize| {
            let dot = |matrix: &Matrix| matrix.dot(row, &self.coefficients, z);
            dot(&self.a) * dot(&self.b) == dot(&self.c)
        };
        match (0..self.num_constraints())
            .into_par_iter()
            .find_first(|row| !holds(*row))
        {
            None => Ok(()),
            Some(row) => Err(Unsatisfied { row }),
        }
    }

    /// As [`is_satisfied`](Self::is_satisfied) where A·z and B·z are known already.
    ///
    /// # Errors
    ///
    /// [`Unsatisfied`] as above.
    ///
    /// # Panics
    ///
    /// If `az` or `bz` is shorter than the number of constraints, or `z` than that of variables.
    pub fn is_satisfied_given(&self, z: &[F], az: &[F], bz: &[F]) -> Result<(), Unsatisfied> {
        let holds = |row: usize| az[row] * bz[row] == self.c.dot(row, &self.coefficients, z);
        match (0..self.num_constraints())
            .into_par_iter()
            .find_first(|row| !holds(*row))
        {
            None => Ok(()),
            Some(row) => Err(Unsatisfied { row }),
        }
    }

    /// SHA-256 over a canonical encoding of field, sizes and matrices: equal systems, and only
    /// those, have equal digests.
    ///
    /// The encoding is of little-endian numbers: the field's modulus (its length first), the
    /// numbers of instance and witness variables, constraints and coefficients (8 bytes each), the
    /// coefficients, and for each matrix its number of entries (8 bytes), row starts, columns and
    /// coefficient indices (4 bytes each).
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(DIGEST_DOMAIN);
        let modulus = F::MODULUS.to_bytes_le();
        hasher.update((modulus.len() as u64).to_le_bytes());
        hasher.update(modulus);
        for size in [
            self.instance,
            self.witness,
            self.num_constraints(),
            self.coefficients.len(),
        ] {
            hasher.update((size as u64).to_le_bytes());
        }
        for coefficient in &self.coefficients {
            hasher.update(coefficient.into_bigint().to_bytes_le());
        }
        let mut buffer = Vec::with_capacity(1 << 16);
        for matrix in self.matrices() {
            hasher.update((matrix.entries() as u64).to_le_bytes());
            for numbers in [&matrix.starts, &matrix.columns, &matrix.coefficients] {
                for chunk in numbers.chunks(1 << 14) {
                    buffer.clear();
                    buffer.extend(chunk.iter().flat_map(|number| number.to_le_bytes()));
                    hasher.update(&buffer);
                }
            }
        }
        hasher.finalize().into()
    }

    fn check_length(&self, z: &[F]) -> Result<(), R1csError> {
        if z.len() == self.num_variables() {
            Ok(())
        } else {
            Err(R1csError::Length {
                expected: self.num_variables(),
                found: z.len(),
            })
        }
    }
}
