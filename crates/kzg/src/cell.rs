//! Cells: the polynomials that have their values.

use ark_ff::{FftField, Field};
use proofmill_kernels::Domain;

use crate::blob::reversed;
use crate::{CELL_ELEMENTS, CELLS, Scalar};

/// Interpolates cells.
pub(crate) struct Interpolator {
    domain: Domain<Scalar>,
    cosets: Vec<Coset>,
}

/// The points of a cell's values: h times the roots of unity of order 64.
struct Coset {
    /// 1/h.
    inverse_shift: Scalar,
    /// h⁶⁴.
    shift_power: Scalar,
}

// === impl Interpolator ===

impl Interpolator {
    pub(crate) fn new() -> Self {
        let root = Scalar::get_root_of_unity((CELLS * CELL_ELEMENTS) as u64)
            .expect("the field has roots of unity of order 2³²");
        let coset = |index| {
            let shift = root.pow([reversed(index, CELLS.ilog2()) as u64]);
            Coset {
                inverse_shift: shift.inverse().expect("a root of unity is not zero"),
                shift_power: shift.pow([CELL_ELEMENTS as u64]),
            }
        };
        Self {
            domain: Domain::new(CELL_ELEMENTS).expect("the field has roots of unity of order 64"),
            cosets: (0..CELLS).map(coset).collect(),
        }
    }

    /// The coefficients of the polynomial that has these values, in bit-reversed order, on the coset of
    /// cell `index` (`coset_for_cell`); and h⁶⁴. Nothing, if there is no such cell.
    pub(crate) fn interpolate(
        &self,
        index: u64,
        values: &[Scalar],
    ) -> Option<(Vec<Scalar>, Scalar)> {
        assert_eq!(values.len(), CELL_ELEMENTS, "a cell's values");
        let coset = self.cosets.get(usize::try_from(index).ok()?)?;
        let mut coefficients: Vec<_> = (0..CELL_ELEMENTS)
            .map(|i| values[reversed(i, CELL_ELEMENTS.ilog2())])
            .collect();
        self.domain.inverse(&mut coefficients);
        let mut power = Scalar::ONE;
        for coefficient in &mut coefficients {
            *coefficient *= power;
            power *= coset.inverse_shift;
        }
        Some((coefficients, coset.shift_power))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{UniformRand, Zero};

    /// The specification's coset: the 8192 roots of unity in bit-reversed order, cut in 128.
    #[test]
    fn polynomials_have_the_values() {
        let rng = &mut ark_std::test_rng();
        let interpolator = Interpolator::new();
        let root = Scalar::get_root_of_unity(8192).unwrap();
        let values: Vec<_> = (0..64).map(|_| Scalar::rand(rng)).collect();
        for index in [0, 1, 2, 63, 64, 100, 127] {
            let (coefficients, power) = interpolator.interpolate(index, &values).unwrap();
            for (i, value) in values.iter().enumerate() {
                let x = root.pow([reversed(64 * index as usize + i, 13) as u64]);
                let step = |value, coefficient: &Scalar| value * x + coefficient;
                let found = coefficients.iter().rev().fold(Scalar::zero(), step);
                assert_eq!(found, *value, "cell {index}, {i}");
                assert_eq!(x.pow([64u64]), power);
            }
        }
        for index in [128, 1 << 20, u64::MAX] {
            assert_eq!(interpolator.interpolate(index, &values), None);
        }
    }
}
