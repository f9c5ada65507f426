//! A constraint system.

use ark_ff::{BigInteger, PrimeField};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, OptimizationGoal, R1CS_PREDICATE_LABEL,
    SynthesisError, SynthesisMode,
};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::{Coefficients, Matrix, MatrixBuilder};

/// The most variables and constraints: what 32 bits count.
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
    coefficients: Coefficients<F>,
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
    /// An entry lies beyond the rows.
    #[error("an entry in row {row} of {rows}")]
    Row {
        /// The row.
        row: usize,
        /// The number of rows.
        rows: usize,
    },
    /// There is no leading one, or too many variables or rows.
    #[error("{found} {what}: there must be {least} to {MAX_SIZE}")]
    Size {
        /// The things counted, such as variables or rows.
        what: &'static str,
        /// Their number in the system.
        found: usize,
        /// The fewest allowed; the most is [`MAX_SIZE`].
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

    /// A system of the rows of A, B and C, each a list of (coefficient, variable). `instance` counts the
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
        let variables = check_sizes(instance, witness)?;
        let mut table = Coefficients::new();
        let mut build = |rows: Vec<Vec<(F, usize)>>| {
            let mut builder = MatrixBuilder::new();
            for (row, entries) in rows.into_iter().enumerate() {
                for (value, column) in entries {
                    if column >= variables {
                        return Err(R1csError::Column {
                            row,
                            column,
                            variables,
                        });
                    }
                    // Below the variables, of which there are no more than 32 bits count.
                    builder.push(column as u32, value);
                }
                builder.end_row(&mut table);
            }
            Ok(builder.finish())
        };
        let [a, b, c] = rows;
        let matrices = [build(a)?, build(b)?, build(c)?];
        Self::from_matrices(instance, witness, matrices, table)
    }

    /// A system of matrices made with one table of coefficients, in the order A, B, C. `instance` counts
    /// the leading one.
    ///
    /// # Errors
    ///
    /// [`R1csError`] for sizes or columns that do not fit.
    pub fn from_matrices(
        instance: usize,
        witness: usize,
        matrices: [Matrix; 3],
        mut coefficients: Coefficients<F>,
    ) -> Result<Self, R1csError> {
        let variables = check_sizes(instance, witness)?;
        let [a, b, c] = matrices;
        let counts = [a.rows(), b.rows(), c.rows()];
        if counts[0] != counts[1] || counts[0] != counts[2] {
            return Err(R1csError::Rows(counts));
        }
        check_size("constraints", 0, counts[0])?;
        for matrix in [&a, &b, &c] {
            if matrix.width() > variables {
                let column = matrix.width() - 1;
                let named = |row: &usize| matrix.row(*row).any(|(found, _)| found == column);
                return Err(R1csError::Column {
                    row: (0..matrix.rows()).find(named).unwrap_or_default(),
                    column,
                    variables,
                });
            }
        }
        coefficients.shrink();
        Ok(Self {
            instance,
            witness,
            a,
            b,
            c,
            coefficients,
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
        self.coefficients.values()
    }

    /// The memory the matrices take, in bytes.
    pub fn memory(&self) -> usize {
        let matrices: usize = self.matrices().into_iter().map(Matrix::memory).sum();
        matrices + size_of_val(self.coefficients())
    }

    /// Writes A·z, B·z or C·z to the front of `out`; the rest of `out` is unchanged.
    ///
    /// # Errors
    ///
    /// [`R1csError::Length`] unless `z` has one value for each variable.
    ///
    /// # Panics
    ///
    /// If `out` is shorter than the number of constraints.
    pub fn multiply(&self, matrix: &Matrix, z: &[F], out: &mut [F]) -> Result<(), R1csError> {
        self.check_length(z)?;
        matrix.multiply(self.coefficients(), z, out);
        Ok(())
    }

    /// Whether `z` satisfies every constraint.
    ///
    /// # Errors
    ///
    /// [`Unsatisfied`] with the first row that does not hold; row 0 if `z` is empty or too short, or does not
    /// start with one.
    pub fn is_satisfied(&self, z: &[F]) -> Result<(), Unsatisfied> {
        if self.check_length(z).is_err() || !z[0].is_one() {
            return Err(Unsatisfied { row: 0 });
        }
        let holds = |row: usize| {
            let dot = |matrix: &Matrix| matrix.dot(row, self.coefficients(), z);
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

    /// Like [`is_satisfied`](Self::is_satisfied) where A·z and B·z are known already.
    ///
    /// # Errors
    ///
    /// [`Unsatisfied`] as above.
    ///
    /// # Panics
    ///
    /// If `az` or `bz` is shorter than the number of constraints, or `z` than that of variables.
    pub fn is_satisfied_given(&self, z: &[F], az: &[F], bz: &[F]) -> Result<(), Unsatisfied> {
        let holds = |row: usize| az[row] * bz[row] == self.c.dot(row, self.coefficients(), z);
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
    /// coefficient indices (4 bytes each; row starts of 8 bytes if there are more than 2³² − 1
    /// entries).
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
            self.coefficients().len(),
        ] {
            hasher.update((size as u64).to_le_bytes());
        }
        for coefficient in self.coefficients() {
            hasher.update(coefficient.into_bigint().to_bytes_le());
        }
        let mut buffer = Vec::with_capacity(1 << 16);
        for matrix in self.matrices() {
            hasher.update((matrix.entries() as u64).to_le_bytes());
            let width = if matrix.entries() > u32::MAX as usize {
                8
            } else {
                4
            };
            let columns = || matrix.columns.iter().map(|column| u64::from(*column));
            hash_numbers(&mut hasher, &mut buffer, width, matrix.row_starts.iter());
            hash_numbers(&mut hasher, &mut buffer, 4, columns());
            hash_numbers(&mut hasher, &mut buffer, 4, matrix.coefficients.iter());
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

fn check_size(what: &'static str, least: usize, found: usize) -> Result<(), R1csError> {
    if (least..=MAX_SIZE).contains(&found) {
        Ok(())
    } else {
        Err(R1csError::Size { what, found, least })
    }
}

/// The number of variables, if it is possible.
fn check_sizes(instance: usize, witness: usize) -> Result<usize, R1csError> {
    let variables = instance.saturating_add(witness);
    check_size("instance variables", 1, instance)?;
    check_size("variables", 1, variables)?;
    Ok(variables)
}

fn hash_numbers(
    hasher: &mut Sha256,
    buffer: &mut Vec<u8>,
    width: usize,
    numbers: impl Iterator<Item = u64>,
) {
    for number in numbers {
        buffer.extend_from_slice(&number.to_le_bytes()[..width]);
        if buffer.len() >= 1 << 16 {
            hasher.update(&buffer);
            buffer.clear();
        }
    }
    hasher.update(&buffer);
    buffer.clear();
}
