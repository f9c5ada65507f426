//! A sparse matrix in compressed-row form whose coefficients are indices into a table.

use std::collections::HashMap;

use ark_ff::PrimeField;
use rayon::prelude::*;

/// Index of the coefficient 1 in every table.
const ONE: u32 = 0;
/// Index of the coefficient −1 in every table.
const MINUS_ONE: u32 = 1;

/// Rows one task multiplies.
const CHUNK: usize = 1 << 11;

/// A sparse matrix. A circuit has millions of entries but few distinct coefficients, so an entry
/// is 8 bytes: a column and an index into the system's table of coefficients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Where each row starts in the two vectors below; one more than there are rows.
    pub(crate) starts: Vec<u32>,
    pub(crate) columns: Vec<u32>,
    pub(crate) coefficients: Vec<u32>,
}

/// The distinct coefficients of a system, in order of first use after 1 and −1.
#[derive(Debug)]
pub(crate) struct Table<F: PrimeField> {
    pub(crate) values: Vec<F>,
    indices: HashMap<F, u32>,
}

// === impl Table ===

impl<F: PrimeField> Table<F> {
    pub(crate) fn new() -> Self {
        let values = vec![F::one(), -F::one()];
        let indices = [(F::one(), ONE), (-F::one(), MINUS_ONE)].into();
        Self { values, indices }
    }

    fn index(&mut self, value: F) -> u32 {
        *self.indices.entry(value).or_insert_with(|| {
            self.values.push(value);
            self.values.len() as u32 - 1
        })
    }
}

// === impl Matrix ===

impl Matrix {
    /// From rows of (coefficient, column). Repeated columns are added up, zeros dropped, and
    /// columns sorted, so that equal matrices are equal. Sizes are checked by the caller.
    pub(crate) fn new<F: PrimeField>(
        rows: impl IntoIterator<Item = Vec<(F, usize)>>,
        table: &mut Table<F>,
    ) -> Self {
        let mut matrix = Self {
            starts: vec![0],
            columns: Vec::new(),
            coefficients: Vec::new(),
        };
        for mut row in rows {
            row.sort_unstable_by_key(|(_, column)| *column);
            let mut entries = row.into_iter().peekable();
            while let Some((mut coefficient, column)) = entries.next() {
                while let Some((more, _)) = entries.next_if(|(_, next)| *next == column) {
                    coefficient += more;
                }
                if !coefficient.is_zero() {
                    matrix.columns.push(column as u32);
                    matrix.coefficients.push(table.index(coefficient));
                }
            }
            matrix.starts.push(matrix.columns.len() as u32);
        }
        matrix
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of entries that are not zero.
    pub fn entries(&self) -> usize {
        self.columns.len()
    }

    /// The entries of a row: column and index into the table.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, usize)> {
        let range = self.starts[row] as usize..self.starts[row + 1] as usize;
        self.columns[range.clone()]
            .iter()
            .zip(&self.coefficients[range])
            .map(|(column, coefficient)| (*column as usize, *coefficient as usize))
    }

    /// A row times a vector. Most of a witness is 0 or 1, most coefficients are ±1: few
    /// multiplications are left.
    pub(crate) fn dot<F: PrimeField>(&self, row: usize, table: &[F], z: &[F]) -> F {
        let range = self.starts[row] as usize..self.starts[row + 1] as usize;
        let mut sum = F::zero();
        for (column, coefficient) in self.columns[range.clone()]
            .iter()
            .zip(&self.coefficients[range])
        {
            let value = &z[*column as usize];
            match *coefficient {
                ONE => sum += value,
                MINUS_ONE => sum -= value,
                _ if value.is_zero() => {}
                index if value.is_one() => sum += &table[index as usize],
                index => sum += table[index as usize] * value,
            }
        }
        sum
    }

    /// The matrix times a vector, into the front of `out`.
    pub(crate) fn multiply<F: PrimeField>(&self, table: &[F], z: &[F], out: &mut [F]) {
        out[..self.rows()]
            .par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(chunk, out)| {
                for (i, out) in out.iter_mut().enumerate() {
                    *out = self.dot(chunk * CHUNK + i, table, z);
                }
            });
    }
}
