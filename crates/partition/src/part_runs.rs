//! Runs of parts' code for their constraints, each compared with its class. They need no order, so threads share them.

use std::collections::{BTreeMap, BTreeSet};

use proofmill_kernels::Poseidon2Field;
use rayon::prelude::*;

use crate::accesses::{Access, Run};
use crate::class::Class;
use crate::error::Difference;
use crate::memory_check::Shape;
use crate::multiset::MAX_TRANSFER_VALUES;
use crate::synthesis;
use crate::{PartitionError, PartitionedCircuit};

/// A run of a part's code, of which the constraints were compared with those of its class.
pub(crate) struct PartRun<F> {
    /// Number of the class.
    pub(crate) class: usize,
    pub(crate) run: Run<F>,
    /// The accesses, in order.
    pub(crate) log: Vec<Access>,
    /// The first difference from the class.
    pub(crate) difference: Option<Difference>,
}

/// The classes of a circuit, in the order of their first parts.
pub(crate) struct Classes<F: Poseidon2Field> {
    pub(crate) classes: Vec<Class<F>>,
    /// The runs of the first parts, by their number.
    pub(crate) firsts: BTreeMap<usize, PartRun<F>>,
}

// === impl Classes ===

impl<F: Poseidon2Field> Classes<F> {
    /// Runs the first part of each class.
    pub(crate) fn of(
        circuit: &impl PartitionedCircuit<F>,
        depth: usize,
    ) -> Result<Self, PartitionError> {
        let mut names = BTreeSet::new();
        let parts = 0..circuit.num_parts();
        let numbers: Vec<usize> = parts
            .filter(|part| names.insert(circuit.class(*part)))
            .collect();
        let made: Vec<_> = numbers
            .par_iter()
            .enumerate()
            .map(|(class, part)| first_part(circuit, *part, depth, class))
            .collect();
        let (mut classes, mut firsts) = (Vec::new(), BTreeMap::new());
        for (part, made) in numbers.into_iter().zip(made) {
            let (class, run) = made?;
            classes.push(class);
            firsts.insert(part, run);
        }
        Ok(Self { classes, firsts })
    }
}

/// The class of a part that is the first of its class, and the part's run.
fn first_part<F: Poseidon2Field>(
    circuit: &impl PartitionedCircuit<F>,
    part: usize,
    depth: usize,
    class: usize,
) -> Result<(Class<F>, PartRun<F>), PartitionError> {
    let counted = synthesis::count(circuit, part)?;
    check_transfers(counted.transferred.len())?;
    let shape = Shape::new(counted.accesses, counted.transfers.into(), depth);
    let mut log = Vec::new();
    let (system, run, sections) = synthesis::constraints(circuit, part, &shape, &mut log)?;
    if run.accesses != shape.accesses || run.transfers[..] != shape.transfers[..] {
        return Err(PartitionError::AccessesChanged { part });
    }
    let name = circuit.class(part);
    let made = Class::new(name, part, shape, (system, run.clone(), sections));
    let run = PartRun {
        class,
        run,
        log,
        difference: None,
    };
    Ok((made, run))
}

/// Runs a part that is not the first of its class.
pub(crate) fn later_part<F: Poseidon2Field>(
    circuit: &impl PartitionedCircuit<F>,
    part: usize,
    classes: &[Class<F>],
) -> Result<PartRun<F>, PartitionError> {
    let name = circuit.class(part);
    let class = classes.iter().position(|class| class.name() == name);
    // A circuit whose classes change between two calls.
    let class = class.ok_or(PartitionError::AccessesChanged { part })?;
    let mut log = Vec::new();
    let (system, run, _) = synthesis::constraints(circuit, part, classes[class].shape(), &mut log)?;
    Ok(PartRun {
        class,
        difference: classes[class].difference(&system, &run),
        run,
        log,
    })
}

/// Checks the number of values that parts transfer.
pub(crate) fn check_transfers(found: usize) -> Result<(), PartitionError> {
    if found <= MAX_TRANSFER_VALUES {
        return Ok(());
    }
    Err(PartitionError::Size {
        what: "values put into the multiset and taken",
        found,
        least: 0,
        most: MAX_TRANSFER_VALUES,
    })
}
