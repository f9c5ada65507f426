//! A sparse matrix in compressed-row form whose coefficients are indices into a table.

use ark_ff::PrimeField;
use rayon::prelude::*;

use crate::coefficients::{MINUS_ONE, ONE};
use crate::packed::Packed;
use crate::{Coefficients, R1csError};

/// Rows one task multiplies.
const CHUNK: usize = 1 << 11;

/// A sparse matrix. An entry is a column, 4 bytes, and an index into a table of
/// [`Coefficients`], 1, 2 or 4 bytes as its largest index needs; a row is 4 bytes, or 8 where there
/// are more than 2³² entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// The start of each row in the two vectors below, and the end of the last row.
    pub(crate) row_starts: Packed,
    pub(crate) columns: Vec<u32>,
    pub(crate) coefficients: Packed,
    /// One more than the last column with an entry.
    width: usize,
}

/// Makes a matrix row after row.
#[derive(Clone, Debug)]
pub struct MatrixBuilder<F> {
    row_starts: Packed,
    columns: Vec<u32>,
    coefficients: Packed,
    /// The row that is being made.
    row: Vec<(u32, F)>,
}

// === impl MatrixBuilder ===

impl<F: PrimeField> MatrixBuilder<F> {
    /// A matrix without rows.
    pub fn new() -> Self {
        let mut row_starts = Packed::new();
        row_starts.push(0);
        Self {
            row_starts,
            columns: Vec::new(),
            coefficients: Packed::new(),
            row: Vec::new(),
        }
    }

    /// An entry of the row that is being made.
    pub fn push(&mut self, column: u32, value: F) {
        self.row.push((column, value));
    }

    /// Ends the row: repeated columns are added up, zeros dropped, and columns sorted, so that equal
    /// matrices are equal.
    pub fn end_row(&mut self, table: &mut Coefficients<F>) {
        if !self.row.is_sorted_by_key(|(column, _)| *column) {
            self.row.sort_unstable_by_key(|(column, _)| *column);
        }
        let mut entries = self.row.drain(..).peekable();
        while let Some((column, mut value)) = entries.next() {
            while let Some((_, more)) = entries.next_if(|(next, _)| *next == column) {
                value += more;
            }
            if !value.is_zero() {
                if self.columns.len() == self.columns.capacity() {
                    self.columns
                        .reserve_exact((self.columns.len() / 4).max(256));
                }
                self.columns.push(column);
                self.coefficients.push(u64::from(table.index(value)));
            }
        }
        self.row_starts.push(self.columns.len() as u64);
    }

    /// The matrix of all rows ended.
    pub fn finish(mut self) -> Matrix {
        self.columns.shrink_to_fit();
        self.row_starts.shrink();
        self.coefficients.shrink();
        Matrix::from_parts(self.row_starts, self.columns, self.coefficients)
    }
}

impl<F: PrimeField> Default for MatrixBuilder<F> {
    fn default() -> Self {
        Self::new()
    }
}

// === impl Matrix ===

impl Matrix {
    pub(crate) fn from_parts(row_starts: Packed, columns: Vec<u32>, coefficients: Packed) -> Self {
        let width = columns.iter().max().map_or(0, |last| *last as usize + 1);
        Self {
            row_starts,
            columns,
            coefficients,
            width,
        }
    }

    /// A matrix of `rows` rows and at most `columns` columns, from entries (row, column, value) in
    /// any order. Values of one place are added up; zeros are dropped. The entries are iterated twice and
    /// sorted by counting, without a vector for each row.
    ///
    /// The caller bounds `rows`, for which 12 bytes each are allocated.
    ///
    /// # Errors
    ///
    /// [`R1csError::Row`] or [`R1csError::Column`] for an entry beyond the matrix.
    pub fn from_entries<F: PrimeField>(
        rows: usize,
        columns: usize,
        entries: impl Iterator<Item = (u32, u32, F)> + Clone,
        table: &mut Coefficients<F>,
    ) -> Result<Self, R1csError> {
        // The place of the next entry of each row; at first, counts.
        let mut next = vec![0u64; rows];
        for (row, column, _) in entries.clone() {
            let (row, column) = (row as usize, column as usize);
            if column >= columns {
                let variables = columns;
                return Err(R1csError::Column {
                    row,
                    column,
                    variables,
                });
            }
            *next.get_mut(row).ok_or(R1csError::Row { row, rows })? += 1;
        }
        let mut total = 0u64;
        for count in &mut next {
            total += std::mem::replace(count, total);
        }
        let mut places = vec![(0u32, 0u32); total as usize];
        for (row, column, value) in entries {
            // An iterator whose clone yields other entries is the caller's mistake, and panics here.
            let place = &mut next[row as usize];
            places[*place as usize] = (column, table.index(value));
            *place += 1;
        }
        // Each row's end is now where the next one starts.
        let mut builder = MatrixBuilder::new();
        builder.columns.reserve_exact(places.len());
        let mut start = 0;
        for end in next {
            let row = &places[start..end as usize];
            let plain = row.is_sorted_by(|left, right| left.0 < right.0)
                && row
                    .iter()
                    .all(|(_, index)| !table.values()[*index as usize].is_zero());
            if plain {
                for (column, index) in row {
                    builder.columns.push(*column);
                    builder.coefficients.push(u64::from(*index));
                }
                builder.row_starts.push(builder.columns.len() as u64);
            } else {
                for (column, index) in row {
                    builder.push(*column, table.values()[*index as usize]);
                }
                builder.end_row(table);
            }
            start = end as usize;
        }
        Ok(builder.finish())
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.row_starts.len() - 1
    }

    /// One more than the last column with an entry.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// The number of entries that are not zero.
    pub fn entries(&self) -> usize {
        self.columns.len()
    }

    /// The memory its entries and rows take, in bytes.
    pub fn memory(&self) -> usize {
        self.row_starts.bytes() + 4 * self.columns.len() + self.coefficients.bytes()
    }

    /// The entries of a row: column and index into the table.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, usize)> {
        self.range(row).map(|entry| {
            (
                self.columns[entry] as usize,
                self.coefficients.get(entry) as usize,
            )
        })
    }

    fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.row_starts.get(row) as usize..self.row_starts.get(row + 1) as usize
    }

    /// A row times a vector. Most of a witness is 0 or 1 and most coefficients are ±1, so few
    /// multiplications are needed.
    pub(crate) fn dot<F: PrimeField>(&self, row: usize, table: &[F], z: &[F]) -> F {
        let mut sum = F::zero();
        for entry in self.range(row) {
            let value = &z[self.columns[entry] as usize];
            match self.coefficients.get(entry) as u32 {
                ONE => sum += value,
                MINUS_ONE => sum -= value,
                _ if value.is_zero() => {}
                index if value.is_one() => sum += &table[index as usize],
                index => sum += table[index as usize] * value,
            }
        }
        sum
    }

    /// The matrix times a vector, into the front of `out`; `table` is that of
    /// [`Coefficients::values`].
    ///
    /// # Panics
    ///
    /// If `z` is shorter than the [`width`](Self::width), `out` than the number of rows, or `table`
    /// is not the one the matrix was made with.
    pub fn multiply<F: PrimeField>(&self, table: &[F], z: &[F], out: &mut [F]) {
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
