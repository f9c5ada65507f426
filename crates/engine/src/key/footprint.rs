//! The bytes that a partition takes beside its key, by stage.

use proofmill_groth16::Curve;
use serde::{Deserialize, Serialize};

use crate::interface::Stage;
use crate::options::KeyForm;

/// Bytes of a scalar.
const SCALAR: u64 = 32;

/// What a footprint depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) curve: Curve,
    /// Variables, the leading one included.
    pub(crate) variables: u64,
    /// Points of the domain.
    pub(crate) domain: u64,
    /// Whether the key is a `.zkey`, whose quotient takes a third vector.
    pub(crate) zkey: bool,
    /// How the key's points are held.
    pub(crate) form: KeyForm,
}

/// The most bytes that a partition holds in each stage, beside its key. See the crate's documentation
/// for the formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Footprint {
    stages: [u64; 5],
}

// === impl Footprint ===

impl Footprint {
    pub(crate) fn of(sizes: &Sizes) -> Self {
        let (z, vector) = (sizes.variables * SCALAR, sizes.domain * SCALAR);
        let (g1, g2) = product_bytes(sizes.curve, sizes.form);
        let vectors = if sizes.zkey { 3 } else { 2 };
        // No query has more points than there are variables, and the H query one for each point of
        // the domain.
        let largest = g1 * sizes.domain.max(sizes.variables);
        let first_group = (vector + g1 * sizes.domain).max(g1 * sizes.variables);
        Self {
            stages: [
                2 * z,
                z + vectors * vector,
                z + first_group,
                // The kernels keep what the largest product took for the next one.
                z + g2 * sizes.variables + largest,
                // The public inputs are a part of z.
                z,
            ],
        }
    }

    /// The most bytes from `stage` on: what is kept reserved when it begins.
    pub(crate) fn from(&self, stage: Stage) -> u64 {
        self.stages[stage as usize..]
            .iter()
            .copied()
            .max()
            .unwrap_or(0)
    }

    /// The most bytes at any time: what is reserved before the first stage.
    pub(crate) fn peak(&self) -> u64 {
        self.from(Stage::Witness)
    }
}

/// The bytes that a product takes for each point of its query, in the first and the second group:
/// measured, see [`proofmill_groth16::stages`].
const fn product_bytes(curve: Curve, form: KeyForm) -> (u64, u64) {
    match (curve, form) {
        (Curve::Bn254, KeyForm::Plain) => (160, 320),
        (Curve::Bn254, KeyForm::Prepared { .. }) => (32, 68),
        (Curve::Bls12_381, KeyForm::Plain) => (320, 640),
        (Curve::Bls12_381, KeyForm::Prepared { .. }) => (68, 136),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_never_grows_from_stage_to_stage() {
        for curve in Curve::ALL {
            for form in [KeyForm::Plain, KeyForm::Prepared { percent: 300 }] {
                for (variables, domain) in [(1, 1), (1 << 20, 1 << 16), (1 << 10, 1 << 20)] {
                    let footprint = Footprint::of(&Sizes {
                        curve,
                        variables,
                        domain,
                        zkey: true,
                        form,
                    });
                    let bytes = Stage::ALL.map(|stage| footprint.from(stage));
                    assert!(bytes.is_sorted_by(|left, right| left >= right), "{bytes:?}");
                    assert_eq!(bytes[0], footprint.peak());
                }
            }
        }
    }

    #[test]
    fn the_formula_is_the_documented_one() {
        let footprint = Footprint::of(&Sizes {
            curve: Curve::Bn254,
            variables: 1000,
            domain: 1024,
            zkey: true,
            form: KeyForm::Plain,
        });
        assert_eq!(footprint.stages[1], 32 * 1000 + 96 * 1024);
        assert_eq!(footprint.stages[2], 32 * 1000 + 32 * 1024 + 160 * 1024);
        assert_eq!(footprint.peak(), 32 * 1000 + 320 * 1000 + 160 * 1024);
    }
}
