//! The same circuit in parts, each of which climbs some levels.

use ark_bn254::Fr;
use ark_ff::{BigInteger, PrimeField};
use proofmill_partition::{DistributedCircuit, Part, PartitionError, PartitionedCircuit};

use crate::circuit::{Membership, Step, climb, enforce_equal};

/// Bytes of a step: the sibling, and 1 for a right child.
const STEP_BYTES: usize = 33;

/// The circuit in parts of equal numbers of levels. Without a witness the steps are absent.
#[derive(Clone, Debug)]
pub(crate) struct MembershipInParts {
    parts: usize,
    levels: usize,
    leaf: Fr,
    root: Fr,
    steps: Vec<Step>,
}

// === impl MembershipInParts ===

impl MembershipInParts {
    /// The shape alone, to make keys of: `parts` parts, `levels` levels in each.
    pub(crate) fn blank(parts: usize, levels: usize) -> Self {
        Self {
            parts,
            levels,
            leaf: Fr::from(0),
            root: Fr::from(0),
            steps: Vec::new(),
        }
    }

    /// The circuit for a leaf whose steps are as many as this shape has levels.
    pub(crate) fn with_witness(&self, membership: Membership) -> Self {
        assert_eq!(membership.steps.len(), self.parts * self.levels);
        Self {
            leaf: membership.leaf,
            root: membership.root,
            steps: membership.steps,
            ..*self
        }
    }

    /// The step from a level; any step if there is no witness.
    fn step(&self, level: usize) -> Step {
        self.steps.get(level).copied().unwrap_or_default()
    }
}

impl PartitionedCircuit<Fr> for MembershipInParts {
    fn num_parts(&self) -> usize {
        self.parts
    }

    fn class(&self, _part: usize) -> &'static str {
        "levels"
    }

    fn num_public_inputs(&self) -> usize {
        2
    }

    fn public_inputs(&self) -> Vec<Fr> {
        vec![self.leaf, self.root]
    }

    fn synthesize(&self, part: usize, wires: &mut Part<'_, Fr>) -> Result<(), PartitionError> {
        let cs = wires.cs();
        let mut node = match part {
            0 => wires.public_input(0)?,
            _ => wires.get(("node", part - 1))?,
        };
        for i in 0..self.levels {
            let level = part * self.levels + i;
            let constant = wires.constant(Fr::from(level as u64))?;
            node = climb(&cs, &constant.into(), node, self.step(level))?;
        }
        if part + 1 < self.parts {
            return wires.set(("node", part), node);
        }
        // The same constraint that set makes, so that the last part is of the same class.
        let root = wires.public_input(1)?;
        Ok(enforce_equal(&cs, node, root)?)
    }
}

impl DistributedCircuit<Fr> for MembershipInParts {
    fn part_witness(&self, part: usize) -> Vec<u8> {
        let levels = part * self.levels..(part + 1) * self.levels;
        let steps = levels.map(|level| self.step(level));
        let bytes = steps.flat_map(|step| {
            let mut bytes = step.sibling.into_bigint().to_bytes_le();
            bytes.push(step.is_right.into());
            bytes
        });
        bytes.collect()
    }

    fn with_part_witness(&self, part: usize, bytes: &[u8]) -> Result<Self, String> {
        let (steps, rest) = bytes.as_chunks::<STEP_BYTES>();
        if steps.len() != self.levels || !rest.is_empty() {
            let found = bytes.len();
            return Err(format!("{found} bytes for {} steps", self.levels));
        }
        let steps = steps.iter().map(|[sibling @ .., is_right]| Step {
            sibling: Fr::from_le_bytes_mod_order(sibling),
            is_right: *is_right != 0,
        });
        let mut circuit = self.clone();
        // Only this part's steps are looked at.
        circuit.steps = vec![Step::default(); part * self.levels];
        circuit.steps.extend(steps);
        Ok(circuit)
    }
}
