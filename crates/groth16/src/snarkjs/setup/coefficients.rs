//! The coefficients of a key, from an `.r1cs` file.

use ark_ff::PrimeField;
use proofmill_r1cs::iden3::{FormatError, R1csFile, Reason, canonical_from_le};

use super::super::zkey::{Coefficient, CoefficientMatrix};

/// The terms of A and B in the file's own order, and after them a row of A for each instance
/// variable, with that variable alone. These rows make the instance's polynomials linearly independent:
/// otherwise a proof for one public input could hold for another.
pub(super) fn coefficients<F: PrimeField>(
    circuit: &R1csFile<'_>,
) -> Result<Vec<Coefficient<F>>, FormatError> {
    let mut coefficients = Vec::new();
    circuit.for_each(|matrix, row, terms| {
        let matrix = match matrix {
            0 => CoefficientMatrix::A,
            1 => CoefficientMatrix::B,
            _ => return Ok(()),
        };
        for (i, (variable, bytes)) in terms.enumerate() {
            coefficients.push(Coefficient {
                matrix,
                row,
                variable,
                value: canonical_from_le(bytes).ok_or((i, Reason::NotCanonical))?,
            });
        }
        Ok(())
    })?;
    let header = circuit.header();
    coefficients.extend((0..header.instance() as u32).map(|variable| Coefficient {
        matrix: CoefficientMatrix::A,
        row: header.n_constraints + variable,
        variable,
        value: F::ONE,
    }));
    Ok(coefficients)
}
