//! Systems with a committed part of the witness.

use ark_ff::PrimeField;
use proofmill_r1cs::R1cs;

/// A system whose first witness variables are committed to, with a commitment that binds them.
#[derive(Clone, Copy, Debug)]
pub struct CommittedR1cs<'c, F: PrimeField> {
    r1cs: &'c R1cs<F>,
    committed: usize,
}

/// The reason why a system's first witness variables cannot be committed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommittedR1csError {
    /// The circuit has fewer witness variables than are to be committed to.
    #[error("{committed} committed variables: the circuit has {witness} witness variables")]
    TooMany {
        /// The variables to be committed to.
        committed: usize,
        /// The variables there are.
        witness: usize,
    },
    /// A commitment might be opened to two values of some variables.
    #[error(
        "{count} committed variables, the first of them witness variable {first}, may not be bound by \
         their commitment: add the constraint v·0 = 0 for each such variable v \
         (`unbound_variables` lists them)"
    )]
    Unbound {
        /// The first such variable, counted from the first of the witness.
        first: usize,
        /// The number of such variables.
        count: usize,
    },
}

/// The committed columns that were not yet removed, for the test in [`unbound_variables`].
struct RemainingColumns {
    /// For each row of the three matrices, the number of its remaining committed columns and the exclusive or of
    /// their indices: the index itself if one column remains.
    row_columns: Vec<(u32, u32)>,
    /// The rows of the first column, then of the second, and so on.
    column_rows: Vec<usize>,
    /// The end of each column's rows in `column_rows`.
    row_ends: Vec<usize>,
}

// === impl CommittedR1cs ===

impl<'c, F: PrimeField> CommittedR1cs<'c, F> {
    /// A system whose first `committed` witness variables are committed to; the number may be zero.
    ///
    /// # Errors
    ///
    /// [`CommittedR1csError`] if there are fewer, or a commitment to them might be opened to two values:
    /// see [`unbound_variables`].
    pub fn new(r1cs: &'c R1cs<F>, committed: usize) -> Result<Self, CommittedR1csError> {
        let witness = r1cs.num_witness();
        if committed > witness {
            return Err(CommittedR1csError::TooMany { committed, witness });
        }
        match unbound_variables(r1cs, committed)[..] {
            [] => Ok(Self { r1cs, committed }),
            [first, ref others @ ..] => Err(CommittedR1csError::Unbound {
                first,
                count: 1 + others.len(),
            }),
        }
    }

    /// The system.
    pub const fn r1cs(&self) -> &'c R1cs<F> {
        self.r1cs
    }

    /// The number of committed variables.
    pub const fn committed(&self) -> usize {
        self.committed
    }
}

/// Indices, among the first `committed` witness variables, of those that a commitment may not bind, ascending
/// and counted from the first witness variable.
///
/// A commitment is Σ wⱼ·\[pⱼ(s)/η\] + κ·\[δ\]. It binds the wⱼ if no combination of the polynomials pⱼ
/// vanishes, that is, if the columns of A, B and C above each other are linearly independent. A column is
/// independent of the others if some row has an entry in it and in no other committed column; it can then be
/// removed, and the test repeated on the rest. The columns that this does not remove are listed. They may still
/// be independent: deciding that would take an elimination of the matrices, whereas one more constraint
/// v·0 = 0 for each such variable v makes it certain.
///
/// The soundness of a single proof does not depend on this: any other values that a commitment can be opened to
/// satisfy the same constraints. A protocol that draws challenges from a commitment depends on it, and so does
/// any use of committed values outside the circuit.
pub fn unbound_variables<F: PrimeField>(r1cs: &R1cs<F>, committed: usize) -> Vec<usize> {
    let mut remaining = RemainingColumns::new(r1cs, committed);
    let mut is_bound = vec![false; committed];
    let mut single_column_rows: Vec<usize> = (0..remaining.row_columns.len())
        .filter(|row| remaining.row_columns[*row].0 == 1)
        .collect();
    while let Some(row) = single_column_rows.pop() {
        // The column may have been removed meanwhile by another of its rows.
        let (1, column) = remaining.row_columns[row] else {
            continue;
        };
        is_bound[column as usize] = true;
        remaining.remove(column, &mut single_column_rows);
    }
    (0..committed).filter(|column| !is_bound[*column]).collect()
}

// === impl RemainingColumns ===

impl RemainingColumns {
    fn new<F: PrimeField>(r1cs: &R1cs<F>, committed: usize) -> Self {
        let first = r1cs.num_instance();
        let rows = r1cs.num_constraints();
        let matrices = r1cs.matrices();
        // The entries of a row are in different columns, and none is zero.
        let entries = || {
            (0..3 * rows).flat_map(move |row| {
                let columns = matrices[row / rows].row(row % rows);
                let numbers = columns.filter_map(move |(column, _)| column.checked_sub(first));
                let committed = numbers.filter(move |number| *number < committed);
                committed.map(move |number| (row, number))
            })
        };
        let mut row_columns = vec![(0, 0); 3 * rows];
        // Counting sort: this holds the number of each column's rows, then the start of their range in
        // `column_rows`, and after the last pass its end.
        let mut row_ends = vec![0; committed];
        for (row, number) in entries() {
            row_columns[row].0 += 1;
            row_columns[row].1 ^= number as u32;
            row_ends[number] += 1;
        }
        let mut total = 0;
        for end in &mut row_ends {
            total += std::mem::replace(end, total);
        }
        let mut column_rows = vec![0; total];
        for (row, number) in entries() {
            column_rows[row_ends[number]] = row;
            row_ends[number] += 1;
        }
        Self {
            row_columns,
            column_rows,
            row_ends,
        }
    }

    /// Removes a column, and appends to `single_column_rows` each of its rows that has one column left.
    fn remove(&mut self, column: u32, single_column_rows: &mut Vec<usize>) {
        let number = column as usize;
        let before = number.checked_sub(1);
        let start = before.map_or(0, |before| self.row_ends[before]);
        for row in self.column_rows[start..self.row_ends[number]]
            .iter()
            .copied()
        {
            let (count, columns) = &mut self.row_columns[row];
            *count -= 1;
            *columns ^= column;
            if *count == 1 {
                single_column_rows.push(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ark_bn254::Fr;
    use ark_ff::{Field, Zero};
    use proptest::prelude::*;

    use super::*;

    type Row = Vec<(usize, i64)>;

    /// A system with three variables in the instance and as many constraints as A has rows.
    fn system(witness: usize, rows: [&[Row]; 3]) -> R1cs<Fr> {
        let rows = rows.map(|rows| {
            let to_field = |row: &Row| row.iter().map(|(c, v)| (Fr::from(*v), *c)).collect();
            rows.iter().map(to_field).collect()
        });
        R1cs::from_rows(3, witness, rows).unwrap()
    }

    /// The rank of the committed columns, by elimination.
    fn rank(r1cs: &R1cs<Fr>, committed: usize) -> usize {
        let first = r1cs.num_instance();
        let mut rows: Vec<Vec<Fr>> = Vec::new();
        for matrix in r1cs.matrices() {
            for row in 0..matrix.rows() {
                let mut dense = vec![Fr::zero(); committed];
                for (column, value) in matrix.row(row) {
                    if (first..first + committed).contains(&column) {
                        dense[column - first] += r1cs.coefficients()[value];
                    }
                }
                rows.push(dense);
            }
        }
        let mut rank = 0;
        for column in 0..committed {
            let Some(pivot) = (rank..rows.len()).find(|row| !rows[*row][column].is_zero()) else {
                continue;
            };
            rows.swap(rank, pivot);
            let pivot = rows[rank].clone();
            let inverse = pivot[column].inverse().unwrap();
            for row in &mut rows[rank + 1..] {
                let factor = row[column] * inverse;
                for (entry, of_pivot) in row.iter_mut().zip(&pivot) {
                    *entry -= factor * of_pivot;
                }
            }
            rank += 1;
        }
        rank
    }

    #[test]
    fn variables_are_bound_one_after_the_other() {
        // Witness 0 is alone in a row of C, 1 shares a row of A with 0, and 2 a row of B with both. 3 and 4 occur
        // only together, 5 in no row.
        let a = [vec![(3, 1), (4, 2)], vec![(6, 1), (7, 1)]];
        let b = [vec![(4, 1), (3, 5), (5, 1)], vec![]];
        let c = [vec![(3, 1)], vec![(1, 1)]];
        let system = system(6, [&a, &b, &c]);
        assert!(unbound_variables(&system, 3).is_empty());
        assert_eq!(unbound_variables(&system, 6), [3, 4, 5]);
        // Variables that are not committed to do not matter.
        assert!(unbound_variables(&system, 4).is_empty());
        assert!(CommittedR1cs::new(&system, 4).is_ok());
        let error = CommittedR1cs::new(&system, 6).unwrap_err();
        assert_eq!(error, CommittedR1csError::Unbound { first: 3, count: 3 });
        let error = CommittedR1cs::new(&system, 7).unwrap_err();
        assert!(matches!(error, CommittedR1csError::TooMany { .. }));
    }

    /// Entries of a row that cancel count as no entry.
    #[test]
    fn entries_that_cancel_bind_nothing() {
        let a = [vec![(3, 1), (3, -1)]];
        let system = system(1, [&a, &[vec![]], &[vec![]]]);
        assert_eq!(unbound_variables(&system, 1), [0]);
    }

    proptest! {
        /// Columns that are not listed as unbound are independent; with v·0 = 0 for the listed ones, all are.
        #[test]
        fn columns_not_listed_are_independent(
            rows in proptest::collection::vec(
                proptest::collection::vec((0usize..9, -2i64..3), 0..4),
                3..30,
            ),
            committed in 0usize..=6,
        ) {
            let third = rows.len() / 3;
            let [mut a, mut b, mut c] = [0, 1, 2].map(|i| rows[i * third..(i + 1) * third].to_vec());
            let before = system(6, [&a, &b, &c]);
            let unbound = unbound_variables(&before, committed);
            prop_assert!(committed - unbound.len() <= rank(&before, committed));
            if unbound.is_empty() {
                prop_assert_eq!(rank(&before, committed), committed);
            }
            for variable in unbound {
                a.push(vec![(3 + variable, 1)]);
                b.push(vec![]);
                c.push(vec![]);
            }
            let after = system(6, [&a, &b, &c]);
            prop_assert_eq!(unbound_variables(&after, committed), Vec::<usize>::new());
            prop_assert_eq!(rank(&after, committed), committed);
        }
    }
}
