//! Number-theoretic transforms over a radix-2 domain and one coset of it.

use ark_ff::FftField;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};

/// The subgroup of order 2ᵏ, and its coset by the field's multiplicative generator.
#[derive(Clone, Copy, Debug)]
pub struct Domain<F: FftField> {
    subgroup: Radix2EvaluationDomain<F>,
    coset: Radix2EvaluationDomain<F>,
}

/// The field has no subgroup of the size asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a domain of {points} points exceeds the field's largest, 2^{two_adicity}")]
pub struct DomainTooLarge {
    /// The points asked for.
    pub points: usize,
    /// The field's two-adicity.
    pub two_adicity: u32,
}

// === impl Domain ===

impl<F: FftField> Domain<F> {
    /// The smallest domain of at least `points` points.
    ///
    /// # Errors
    ///
    /// [`DomainTooLarge`] if the field has none.
    pub fn new(points: usize) -> Result<Self, DomainTooLarge> {
        let make = || {
            let subgroup = Radix2EvaluationDomain::new(points)?;
            Some(Self {
                subgroup,
                coset: subgroup.get_coset(F::GENERATOR)?,
            })
        };
        make().ok_or(DomainTooLarge {
            points,
            two_adicity: F::TWO_ADICITY,
        })
    }

    /// The number of points, a power of two.
    pub fn size(&self) -> usize {
        self.subgroup.size()
    }

    /// Coefficients to evaluations on the subgroup, in place and in natural order.
    ///
    /// # Panics
    ///
    /// Here and below, if `values` has not exactly [`size`](Self::size) elements.
    pub fn forward(&self, values: &mut Vec<F>) {
        self.check(values);
        self.subgroup.fft_in_place(values);
    }

    /// Evaluations on the subgroup to coefficients.
    pub fn inverse(&self, values: &mut Vec<F>) {
        self.check(values);
        self.subgroup.ifft_in_place(values);
    }

    /// Coefficients to evaluations on the coset.
    pub fn coset_forward(&self, values: &mut Vec<F>) {
        self.check(values);
        self.coset.fft_in_place(values);
    }

    /// Evaluations on the coset to coefficients.
    pub fn coset_inverse(&self, values: &mut Vec<F>) {
        self.check(values);
        self.coset.ifft_in_place(values);
    }

    /// The value of the subgroup's vanishing polynomial at `point`.
    pub fn vanishing_at(&self, point: F) -> F {
        self.subgroup.evaluate_vanishing_polynomial(point)
    }

    /// The one value that the subgroup's vanishing polynomial takes all over the coset.
    pub fn vanishing_on_coset(&self) -> F {
        self.vanishing_at(F::GENERATOR)
    }

    /// The subgroup's Lagrange polynomials at `point`.
    pub fn lagrange_at(&self, point: F) -> Vec<F> {
        self.subgroup.evaluate_all_lagrange_coefficients(point)
    }

    /// The coset's Lagrange polynomials at `point`.
    pub fn coset_lagrange_at(&self, point: F) -> Vec<F> {
        self.coset.evaluate_all_lagrange_coefficients(point)
    }

    fn check(&self, values: &[F]) {
        assert_eq!(
            values.len(),
            self.size(),
            "a transform of the domain's size"
        );
    }
}
