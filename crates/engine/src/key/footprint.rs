//! The memory that a partition uses beside its key, by stage.

use proofmill_groth16::{Curve, SUBGROUP_CHUNK_POINTS};
use proofmill_r1cs::iden3::SCALAR_BYTES;

use crate::interface::PipelineStage;
use crate::options::KeyForm;

/// Bytes of a scalar.
const SCALAR: u64 = SCALAR_BYTES as u64;

/// The sizes that a footprint is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) curve: Curve,
    /// Variables, including the leading one.
    pub(crate) variables: u64,
    /// Points of the domain.
    pub(crate) domain: u64,
    /// Points of the longest query in the first group, including the query over the domain.
    pub(crate) g1_points: u64,
    /// Points of the query in the second group.
    pub(crate) g2_points: u64,
    /// Whether the key is a `.zkey`, whose quotient needs a third vector.
    pub(crate) zkey: bool,
    /// The form in which the key's points are held.
    pub(crate) form: KeyForm,
}

/// Most bytes that a partition holds in each stage, beside its key. The crate's documentation has the
/// formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footprint {
    stages: [u64; 5],
    /// Bytes that a product takes in the first group and in the second. The kernels keep them for the next
    /// product.
    kept: [u64; 2],
}

// === impl Footprint ===

impl Footprint {
    pub(crate) fn of(sizes: &Sizes) -> Self {
        let (z, vector) = (sizes.variables * SCALAR, sizes.domain * SCALAR);
        let (g1, g2) = product_bytes(sizes.curve, sizes.form);
        let vectors = if sizes.zkey { 3 } else { 2 };
        let prove = match sizes.form {
            KeyForm::Plain | KeyForm::Prepared { .. } => z + vector,
            // The scalars of four queries, and the vectors twice: on their way to the device, and on their
            // way back.
            KeyForm::Shared => 5 * z + 2 * vectors * vector,
        };
        Self {
            stages: [
                2 * z,
                z + vectors * vector,
                prove,
                z,
                // The public inputs are a part of z.
                z,
            ],
            kept: [g1 * sizes.g1_points, g2 * sizes.g2_points],
        }
    }

    /// Most bytes from `stage` on: the bytes kept reserved when the stage begins.
    pub(crate) fn from(&self, stage: PipelineStage) -> u64 {
        let most = self.stages[stage as usize..].iter().copied().max();
        let kept: u64 = if stage <= PipelineStage::Finish {
            self.kept.iter().sum()
        } else {
            0
        };
        most.unwrap_or(0) + kept
    }

    /// Most bytes at any time: the bytes reserved before the first stage.
    pub(crate) fn peak(&self) -> u64 {
        self.from(PipelineStage::Witness)
    }

    /// Most bytes that a partition uses if no other is under way: the kernels then keep nothing before its
    /// own first product.
    fn alone(&self) -> u64 {
        let [g1, g2] = self.kept;
        let kept = |stage| match stage {
            PipelineStage::Witness | PipelineStage::Evaluate | PipelineStage::Verify => 0,
            PipelineStage::Prove => g1,
            PipelineStage::Finish => g1 + g2,
        };
        let bytes = PipelineStage::ALL.map(|stage| self.stages[stage as usize] + kept(stage));
        bytes.into_iter().max().unwrap_or(0)
    }

    /// Most bytes that `partitions` partitions use together, with `workers` workers in each stage: the
    /// costliest stages are full, and the other partitions wait with their values only.
    pub(crate) fn peak_bytes_together(&self, partitions: usize, workers: [usize; 5]) -> u64 {
        if partitions == 1 {
            return self.alone();
        }
        let at_once = |stage: PipelineStage| workers[stage as usize].min(partitions);
        let devices = at_once(PipelineStage::Prove);
        let before_devices = self.stages[PipelineStage::Prove as usize];
        let mut places: Vec<u64> = self
            .stages
            .iter()
            .zip(workers)
            .flat_map(|(bytes, workers)| vec![*bytes; workers.min(partitions)])
            .chain(vec![before_devices; devices])
            .collect();
        places.sort_unstable_by(|left, right| right.cmp(left));
        let values = self.stages[PipelineStage::Verify as usize];
        places.resize(partitions.max(places.len()), values);
        let [g1, g2] = self.kept;
        let kept = devices as u64 * g1 + at_once(PipelineStage::Finish) as u64 * g2;
        kept + places[..partitions].iter().sum::<u64>()
    }
}

/// Bytes used to test a key's points for membership in the subgroup: each thread multiplies one batch of
/// plain points.
pub(crate) fn checking_bytes(curve: Curve, points: u64, threads: usize) -> u64 {
    let (_, g2) = product_bytes(curve, KeyForm::Plain);
    g2 * points.min(SUBGROUP_CHUNK_POINTS as u64 * threads as u64)
}

/// Bytes that a product takes for each point of its query, in the first and the second group. Measured: see
/// [`proofmill_groth16::stages`].
const fn product_bytes(curve: Curve, form: KeyForm) -> (u64, u64) {
    match (curve, form) {
        (Curve::Bn254, KeyForm::Plain | KeyForm::Shared) => (160, 320),
        (Curve::Bn254, KeyForm::Prepared { .. }) => (32, 68),
        (Curve::Bls12_381 | Curve::Bls12_377, KeyForm::Plain | KeyForm::Shared) => (320, 640),
        (Curve::Bls12_381 | Curve::Bls12_377, KeyForm::Prepared { .. }) => (68, 136),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_never_grows_from_stage_to_stage() {
        for curve in Curve::ALL {
            for form in [
                KeyForm::Plain,
                KeyForm::Prepared { percent: 300 },
                KeyForm::Shared,
            ] {
                for (variables, domain) in [(1, 1), (1 << 20, 1 << 16), (1 << 10, 1 << 20)] {
                    let footprint = Footprint::of(&Sizes {
                        curve,
                        variables,
                        domain,
                        g1_points: variables.max(domain),
                        g2_points: variables / 2,
                        zkey: true,
                        form,
                    });
                    let bytes = PipelineStage::ALL.map(|stage| footprint.from(stage));
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
            g1_points: 1024,
            g2_points: 700,
            zkey: true,
            form: KeyForm::Plain,
        });
        assert_eq!(footprint.stages[1], 32 * 1000 + 96 * 1024);
        assert_eq!(footprint.stages[2], 32 * 1000 + 32 * 1024);
        let evaluate = 32 * 1000 + 96 * 1024;
        let prove = 32 * 1000 + 32 * 1024;
        let witness = 64 * 1000;
        let kept = 160 * 1024 + 320 * 700;
        assert_eq!(footprint.peak(), kept + evaluate);
        let workers = [1; 5];
        assert_eq!(footprint.peak_bytes_together(1, workers), 32 * 1000 + kept);
        assert_eq!(
            footprint.peak_bytes_together(2, workers),
            kept + evaluate + prove
        );
        assert_eq!(
            footprint.peak_bytes_together(4, workers),
            kept + evaluate + 2 * prove + witness
        );
        // Partitions beyond those that stages can work on hold only their values, or nothing yet.
        assert_eq!(
            footprint.peak_bytes_together(9, workers) - footprint.peak_bytes_together(6, workers),
            3 * 32 * 1000
        );
    }
}
