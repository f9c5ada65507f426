//! The trait that a circuit's author implements.

use ark_ff::PrimeField;

use crate::{Part, PartitionError};

/// A circuit in parts that share wires.
///
/// [`synthesize`](Self::synthesize) is the one description of the circuit: it is run to trace the
/// shared wires, for the constraints of a part, for its assignment, and for the monolithic circuit
/// ([`Monolithic`](crate::Monolithic)). Whatever it does must depend on the circuit's shape and the
/// part's number only, never on values: the same accesses in the same order, the same constraints.
///
/// A circuit without a witness describes the shape, to make keys of; it may hold zeros, since no
/// value is looked at then. Several threads run its parts at once.
pub trait PartitionedCircuit<F: PrimeField>: Sync {
    /// The number of parts, at least 1. Wires flow from parts to later ones.
    fn num_parts(&self) -> usize;

    /// The class of a part, counted from 0: parts of the same class have the same constraints, and
    /// share a key. What differs between them are names of shared wires and
    /// [constants](Part::constant).
    fn class(&self, part: usize) -> &'static str;

    /// The number of public inputs.
    fn num_public_inputs(&self) -> usize {
        0
    }

    /// The public inputs; not called on a circuit without a witness.
    fn public_inputs(&self) -> Vec<F> {
        Vec::new()
    }

    /// Allocates and constrains a part, counted from 0.
    ///
    /// # Errors
    ///
    /// [`PartitionError`], which the methods of [`Part`] return; errors of the constraint system
    /// become one.
    fn synthesize(&self, part: usize, wires: &mut Part<'_, F>) -> Result<(), PartitionError>;
}

/// A circuit whose parts are proved in other processes.
///
/// The values of shared wires come to a part with its share of the traces; only what a part's code takes from the
/// circuit itself must be sent beside them.
pub trait DistributedCircuit<F: PrimeField>: PartitionedCircuit<F> + Sized {
    /// The private values that the code of one part takes from the circuit, as bytes; empty if there are none.
    fn part_witness(&self, part: usize) -> Vec<u8>;

    /// The circuit for the code of one part, made of a circuit without a witness and untrusted bytes of
    /// [`part_witness`](Self::part_witness).
    ///
    /// # Errors
    ///
    /// A description of the fault, for bytes that no witness of this part has.
    fn with_part_witness(&self, part: usize, bytes: &[u8]) -> Result<Self, String>;
}
