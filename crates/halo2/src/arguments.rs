//! The evaluations of one circuit's columns that a proof contains, and the constraints between them.

use ark_ff::{AdditiveGroup, FftField, Field, One, Zero, batch_inversion};

use crate::expression::{Evaluations, Expression};
use crate::key::{Lookup, VerifyingKey};
use crate::transcript::Transcript;
use crate::{Invalid, Scalar};

/// The challenges that constraints depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Challenges {
    /// θ, which combines the expressions of a lookup.
    pub(crate) theta: Scalar,
    /// β and γ of the permutation and lookup arguments.
    pub(crate) beta: Scalar,
    pub(crate) gamma: Scalar,
    /// y, which combines the constraints.
    pub(crate) y: Scalar,
    /// x, the point at which columns are evaluated.
    pub(crate) x: Scalar,
}

/// At x: the polynomials that are one in certain rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// The first row.
    pub(crate) first: Scalar,
    /// The last row that is not blind.
    pub(crate) last: Scalar,
    /// All rows but the last and the blind ones.
    pub(crate) active: Scalar,
}

/// Evaluations of one product of the permutation argument.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) here: Scalar,
    pub(crate) next: Scalar,
    /// At the last row; not of the last product.
    pub(crate) last: Option<Scalar>,
}

/// Evaluations of a lookup argument.
#[derive(Clone, Debug)]
pub(crate) struct LookupEvaluations {
    pub(crate) product: Scalar,
    pub(crate) product_next: Scalar,
    pub(crate) input: Scalar,
    pub(crate) input_before: Scalar,
    pub(crate) table: Scalar,
}

/// All evaluations of one circuit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Circuit {
    pub(crate) instance: Vec<Scalar>,
    pub(crate) advice: Vec<Scalar>,
    pub(crate) products: Vec<Product>,
    pub(crate) lookups: Vec<LookupEvaluations>,
}

/// Evaluations that circuits share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) fixed: Vec<Scalar>,
    /// Evaluations of the permutation's columns.
    pub(crate) permutation: Vec<Scalar>,
}

// === impl Product ===

impl Product {
    /// Reads the evaluations of a permutation's products.
    pub(crate) fn read_all(
        count: usize,
        transcript: &mut Transcript<'_>,
    ) -> Result<Vec<Self>, Invalid> {
        (1..=count)
            .map(|number| {
                Ok(Self {
                    here: transcript.scalar()?,
                    next: transcript.scalar()?,
                    last: match number < count {
                        true => Some(transcript.scalar()?),
                        false => None,
                    },
                })
            })
            .collect()
    }
}

// === impl LookupEvaluations ===

impl LookupEvaluations {
    pub(crate) fn read(transcript: &mut Transcript<'_>) -> Result<Self, Invalid> {
        Ok(Self {
            product: transcript.scalar()?,
            product_next: transcript.scalar()?,
            input: transcript.scalar()?,
            input_before: transcript.scalar()?,
            table: transcript.scalar()?,
        })
    }
}

// === impl Rows ===

impl Rows {
    /// At x, of which the 2^k-th power is given. Nothing, if x is one of the rows.
    pub(crate) fn at(key: &VerifyingKey, x: Scalar, power: Scalar) -> Option<Self> {
        let common = (power - Scalar::one()) * Scalar::from(1u64 << key.k).inverse()?;
        let inverse_root = key.omega.inverse()?;
        let roots = std::iter::successors(Some(Scalar::one()), |root| Some(*root * inverse_root));
        let roots: Vec<Scalar> = roots.take(key.blinding_factors + 2).collect();
        // Row −i has ω^(−i)·(x^n − 1) / (n·(x − ω^(−i))).
        let mut rows: Vec<Scalar> = roots.iter().map(|root| x - root).collect();
        if rows.iter().any(Scalar::is_zero) {
            return None;
        }
        batch_inversion(&mut rows);
        for (row, root) in rows.iter_mut().zip(&roots) {
            *row *= *root * common;
        }
        let blind: Scalar = rows[1..=key.blinding_factors].iter().sum();
        let last = rows[key.blinding_factors + 1];
        Some(Self {
            first: rows[0],
            last,
            active: Scalar::one() - (last + blind),
        })
    }
}

// === impl Circuit ===

impl Circuit {
    /// Joins this circuit's constraints to a sum: `sum·y + constraint` for each.
    pub(crate) fn join_constraints(
        &self,
        sum: &mut Scalar,
        key: &VerifyingKey,
        shared: &Shared,
        rows: Rows,
        challenges: &Challenges,
    ) {
        let mut join = |constraint: Scalar| *sum = *sum * challenges.y + constraint;
        let evaluations = Evaluations {
            fixed: &shared.fixed,
            advice: &self.advice,
            instance: &self.instance,
        };
        for gate in &key.gates {
            join(gate.evaluate(evaluations));
        }
        if let [first, ..] = &self.products[..] {
            join(rows.first * (Scalar::one() - first.here));
        }
        if let [.., last] = &self.products[..] {
            join((last.here.square() - last.here) * rows.last);
        }
        for pair in self.products.windows(2) {
            let before = pair[0].last.unwrap_or(Scalar::ZERO);
            join((pair[1].here - before) * rows.first);
        }
        let chunk = key.permutation_chunk();
        for (number, product) in self.products.iter().enumerate() {
            let from = number * chunk;
            let difference = permuted(product, key, from, shared, evaluations, challenges);
            join(difference * rows.active);
        }
        for (lookup, argument) in self.lookups.iter().zip(&key.lookups) {
            lookup.constraints(argument, evaluations, rows, challenges, &mut join);
        }
    }
}

/// `z(ωx)·∏(v + β·s + γ) − z(x)·∏(v + δⁱ·β·x + γ)` over the columns of one product, from number `from`.
fn permuted(
    product: &Product,
    key: &VerifyingKey,
    from: usize,
    shared: &Shared,
    evaluations: Evaluations<'_>,
    challenges: &Challenges,
) -> Scalar {
    let Challenges { beta, gamma, x, .. } = *challenges;
    // δ generates the cosets that represent columns.
    let delta = Scalar::GENERATOR.pow([1u64 << Scalar::TWO_ADICITY]);
    let mut name = beta * x * delta.pow([from as u64]);
    let (mut left, mut right) = (product.next, product.here);
    let columns = key.permutation.iter().zip(&shared.permutation);
    for (column, permuted) in columns.skip(from).take(key.permutation_chunk()) {
        let value = evaluations.of(*column);
        left *= value + beta * permuted + gamma;
        right *= value + name + gamma;
        name *= delta;
    }
    left - right
}

impl LookupEvaluations {
    fn constraints(
        &self,
        argument: &Lookup,
        evaluations: Evaluations<'_>,
        rows: Rows,
        challenges: &Challenges,
        join: &mut impl FnMut(Scalar),
    ) {
        let Challenges {
            theta, beta, gamma, ..
        } = *challenges;
        let joined = |expressions: &[Expression]| {
            let step = |sum: Scalar, expression: &Expression| {
                sum * theta + expression.evaluate(evaluations)
            };
            expressions.iter().fold(Scalar::ZERO, step)
        };
        let left = self.product_next * (self.input + beta) * (self.table + gamma);
        let right =
            self.product * (joined(&argument.inputs) + beta) * (joined(&argument.table) + gamma);
        let difference = self.input - self.table;
        join(rows.first * (Scalar::one() - self.product));
        join(rows.last * (self.product.square() - self.product));
        join((left - right) * rows.active);
        join(rows.first * difference);
        join(difference * (self.input - self.input_before) * rows.active);
    }
}
