//! Transforms by arkworks.

use ark_ff::FftField;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};

use crate::ntt::Transforms;

/// The transforms of one domain.
pub(crate) struct Plan<F: FftField> {
    subgroup: Radix2EvaluationDomain<F>,
    coset: Radix2EvaluationDomain<F>,
}

impl<F: FftField> Plan<F> {
    pub(crate) fn new(
        subgroup: Radix2EvaluationDomain<F>,
        coset: Radix2EvaluationDomain<F>,
    ) -> Self {
        Self { subgroup, coset }
    }
}

impl<F: FftField> Transforms<F> for Plan<F> {
    fn forward(&self, values: &mut [F]) {
        in_vec(values, |values| self.subgroup.fft_in_place(values));
    }

    fn inverse(&self, values: &mut [F]) {
        in_vec(values, |values| self.subgroup.ifft_in_place(values));
    }

    fn coset_forward(&self, values: &mut [F]) {
        in_vec(values, |values| self.coset.fft_in_place(values));
    }

    fn coset_inverse(&self, values: &mut [F]) {
        in_vec(values, |values| self.coset.ifft_in_place(values));
    }

    fn coset_extend(&self, values: &mut [F]) {
        in_vec(values, |values| {
            self.subgroup.ifft_in_place(values);
            self.coset.fft_in_place(values);
        });
    }
}

/// arkworks transforms vectors, not slices.
fn in_vec<F: Copy>(values: &mut [F], transform: impl FnOnce(&mut Vec<F>)) {
    let mut copy = values.to_vec();
    transform(&mut copy);
    values.copy_from_slice(&copy);
}
