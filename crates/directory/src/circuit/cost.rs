//! The constraints that an update takes.

use proofmill_kernels::Poseidon2Field;
use proofmill_partition::{Check, Partition, PartitionError};

use super::{BatchShape, UpdateBatch};

/// The constraints of one update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchCost {
    /// The constraints of all parts of an update, those of the memory check included.
    pub constraints_per_update: usize,
    /// The classes, in the order of an update's parts.
    pub classes: Vec<ClassCost>,
}

/// The constraints of a part of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCost {
    /// The class's name.
    pub name: String,
    /// The parts of the class in an update.
    pub parts_per_update: usize,
    /// The constraints of a part.
    pub constraints: usize,
    /// The constraints of a part without the memory check.
    pub own_constraints: usize,
}

// === impl UpdateBatch ===

impl UpdateBatch {
    /// The constraints of an update of the partition of a batch of this shape.
    ///
    /// # Errors
    ///
    /// [`PartitionError::NoPart`] if the partition has fewer parts than an update.
    pub fn cost<F: Poseidon2Field>(
        shape: BatchShape,
        partition: &Partition<F>,
    ) -> Result<BatchCost, PartitionError> {
        let mut classes: Vec<ClassCost> = Vec::new();
        for part in 0..shape.parts_per_update() {
            let class = &partition.classes()[partition.class_of(part)?];
            match classes.iter_mut().find(|known| known.name == class.name()) {
                Some(known) => known.parts_per_update += 1,
                None => classes.push(ClassCost {
                    name: class.name().to_owned(),
                    parts_per_update: 1,
                    constraints: class.layout().constraints,
                    own_constraints: class.constraints_of(Check::Circuit),
                }),
            }
        }
        let of_class = |class: &ClassCost| class.parts_per_update * class.constraints;
        Ok(BatchCost {
            constraints_per_update: classes.iter().map(of_class).sum(),
            classes,
        })
    }
}
