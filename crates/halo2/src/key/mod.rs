//! Verifying keys: the description of a circuit, and the commitments to its fixed columns.
//!
//! [`text`] parses them; this module validates them and derives further values from them.

mod text;

use std::collections::{BTreeSet, HashMap};

use ark_ff::FftField;

use crate::expression::{Expression, Query};
use crate::field::{BYTES, wide};
use crate::{Point, Scalar};

pub use text::KeyError;

/// Binary logarithm of the most rows of a circuit.
pub const MAX_K: u32 = 20;
/// Bytes of a key's text.
pub const MAX_KEY_BYTES: usize = 8 << 20;
/// The most distinct rotations of a circuit's queries; Orchard's have three.
const MAX_ROTATIONS: usize = 64;

/// The verifying key of a halo2 circuit, read from its pinned text.
///
/// halo2_proofs has no encoding of keys, but its `VerifyingKey::pinned` prints a text that determines one.
/// Each transcript begins with the text's hash, so a release that printed it differently would refuse all
/// earlier proofs. Keys are read here from that text: `format!("{:?}", key.pinned())`.
#[derive(Clone, Debug)]
pub struct VerifyingKey {
    pub(crate) k: u32,
    /// ω, which generates the 2^k roots of unity.
    pub(crate) omega: Scalar,
    pub(crate) instance_columns: usize,
    pub(crate) advice_columns: usize,
    pub(crate) gates: Vec<Expression>,
    pub(crate) instance_queries: Vec<ColumnQuery>,
    pub(crate) advice_queries: Vec<ColumnQuery>,
    pub(crate) fixed_queries: Vec<ColumnQuery>,
    /// The columns of the permutation, each by its query without a rotation.
    pub(crate) permutation: Vec<Query>,
    pub(crate) lookups: Vec<Lookup>,
    /// The largest degree of a constraint.
    pub(crate) degree: usize,
    /// Steps in which the constraints of one circuit are evaluated.
    pub(crate) operations: usize,
    /// Rows at the end that hide the others.
    pub(crate) blinding_factors: usize,
    /// Commitments to the fixed columns, and to the permutation's.
    pub(crate) fixed_commitments: Vec<Point>,
    pub(crate) permutation_commitments: Vec<Point>,
    /// The hash that transcripts begin with.
    pub(crate) digest: Scalar,
}

/// A column, and by how many rows it is turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ColumnQuery {
    pub(crate) column: usize,
    pub(crate) rotation: i32,
}

/// A lookup: each row of the input expressions must be a row of the table expressions.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    pub(crate) inputs: Vec<Expression>,
    pub(crate) table: Vec<Expression>,
}

// === impl VerifyingKey ===

impl VerifyingKey {
    /// Reads an untrusted key: the text of `format!("{:?}", key.pinned())`.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the text is not of this form, or the circuit is impossible.
    pub fn from_pinned(text: &str) -> Result<Self, KeyError> {
        let mut key = text::read(text)?;
        key.check()?;
        key.degree = key.largest_degree();
        key.blinding_factors = key.count_blinding_factors();
        key.operations = key.expressions().map(Expression::len).sum();
        key.digest = digest(text);
        if key.degree > MAX_DEGREE {
            return Err(KeyError::Circuit("a constraint of too high a degree"));
        }
        if key.usable_rows().is_none() {
            return Err(KeyError::Circuit("fewer rows than hide the columns"));
        }
        Ok(key)
    }

    /// Binary logarithm of the number of rows.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// Columns of public inputs.
    pub fn instance_columns(&self) -> usize {
        self.instance_columns
    }

    /// The hash of the key's text, which every transcript begins with, in 32 little-endian bytes.
    pub fn digest(&self) -> [u8; 32] {
        crate::field::bytes(&self.digest)
    }

    /// The most public inputs of a column: the rows that are not reserved for blinding, less one.
    pub(crate) fn usable_rows(&self) -> Option<usize> {
        (1usize << self.k).checked_sub(self.blinding_factors + 1)
    }

    /// Columns of one product of the permutation argument.
    pub(crate) fn permutation_chunk(&self) -> usize {
        self.degree - 2
    }

    /// Products of the permutation argument.
    pub(crate) fn permutation_products(&self) -> usize {
        self.permutation.len().div_ceil(self.permutation_chunk())
    }

    /// Pieces of the quotient polynomial.
    pub(crate) fn quotient_pieces(&self) -> usize {
        self.degree - 1
    }

    /// A lower bound on the bytes of a proof of `circuits` circuits: it leaves out one number for each set of points.
    pub(crate) fn proof_bytes_min(&self, circuits: usize) -> usize {
        let (lookups, products) = (self.lookups.len(), self.permutation_products());
        let queries = self.instance_queries.len() + self.advice_queries.len();
        let commitments = self.advice_columns + 3 * lookups + products;
        let evaluations = queries + (3 * products).saturating_sub(1) + 5 * lookups;
        // The hiding polynomial and its value, the quotient's pieces, the columns that circuits share;
        // the opening's two points, its rounds, and two numbers.
        let shared = 2 + self.quotient_pieces() + self.fixed_queries.len() + self.permutation.len();
        let opening = 4 + 2 * self.k as usize;
        BYTES * (circuits * (commitments + evaluations) + shared + opening)
    }

    /// The gates, and both sides of the lookups.
    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let lookups = self.lookups.iter();
        let lookups = lookups.flat_map(|lookup| lookup.inputs.iter().chain(&lookup.table));
        self.gates.iter().chain(lookups)
    }

    fn largest_degree(&self) -> usize {
        let largest = |expressions: &[Expression]| {
            let degrees = expressions.iter().map(Expression::degree);
            degrees.max().unwrap_or(0).max(1)
        };
        let of_lookup = |lookup: &Lookup| {
            let sum = largest(&lookup.inputs).saturating_add(largest(&lookup.table));
            sum.saturating_add(2).max(4)
        };
        let lookups = self.lookups.iter().map(of_lookup).max().unwrap_or(1);
        // The permutation argument's is three; `degree` holds the circuit's own minimum.
        largest(&self.gates).max(lookups).max(3).max(self.degree)
    }

    /// The number of blinding rows: the most queries of an advice column, or three for the permutation if that is
    /// more; one for the multi-opening, and one more.
    fn count_blinding_factors(&self) -> usize {
        let mut counts: HashMap<usize, usize> = HashMap::new();
        for query in &self.advice_queries {
            *counts.entry(query.column).or_default() += 1;
        }
        counts.into_values().max().unwrap_or(1).max(3) + 2
    }

    /// Checks what later code relies on.
    fn check(&self) -> Result<(), KeyError> {
        // Public inputs are committed to by points that belong to this root.
        if self.k == 0 || Scalar::get_root_of_unity(1 << self.k) != Some(self.omega) {
            return Err(KeyError::Circuit("ω is no root of unity of order 2^k"));
        }
        let queries = [
            &self.advice_queries,
            &self.fixed_queries,
            &self.instance_queries,
        ];
        let rotations: BTreeSet<i32> = queries.into_iter().flatten().map(|q| q.rotation).collect();
        if rotations.len() > MAX_ROTATIONS {
            return Err(KeyError::Circuit("queries at more than 64 rotations"));
        }
        for query in self.expressions().flat_map(Expression::queries) {
            let (index, count) = match query {
                Query::Fixed(index) => (index, self.fixed_queries.len()),
                Query::Advice(index) => (index, self.advice_queries.len()),
                Query::Instance(index) => (index, self.instance_queries.len()),
            };
            if index >= count {
                return Err(KeyError::Circuit(
                    "an expression of a query that is not there",
                ));
            }
        }
        if self.permutation.len() != self.permutation_commitments.len() {
            return Err(KeyError::Circuit(
                "not one commitment for each column of the permutation",
            ));
        }
        Ok(())
    }
}

/// Largest degree of a constraint; Orchard's is 9.
const MAX_DEGREE: usize = 64;

/// The scalar that represents a key in transcripts (`VerifyingKey::from_parts` of halo2_proofs).
fn digest(text: &str) -> Scalar {
    let mut state = blake2b_simd::Params::new()
        .hash_length(64)
        .personal(b"Halo2-Verify-Key")
        .to_state();
    state.update(&(text.len() as u64).to_le_bytes());
    state.update(text.as_bytes());
    wide(state.finalize().as_array())
}
