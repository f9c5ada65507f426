//! Transforms by arkworks.

use ark_ff::FftField;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};

/// Coefficients to evaluations on `domain`, natural order on both sides.
pub(crate) fn forward<F: FftField>(domain: &Radix2EvaluationDomain<F>, values: &mut [F]) {
    let mut copy = values.to_vec();
    domain.fft_in_place(&mut copy);
    values.copy_from_slice(&copy);
}

/// Evaluations on `domain` to coefficients, natural order on both sides.
pub(crate) fn inverse<F: FftField>(domain: &Radix2EvaluationDomain<F>, values: &mut [F]) {
    let mut copy = values.to_vec();
    domain.ifft_in_place(&mut copy);
    values.copy_from_slice(&copy);
}
