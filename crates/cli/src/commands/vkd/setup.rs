//! `proofmill vkd setup`

use proofmill_directory::circuit::BatchShape;

use crate::args::vkd::Setup;
use crate::circuit_folder::CircuitSizes;
use crate::commands::partition::{NewCircuit, make_and_report};
use crate::failure::Failure;

pub(super) fn run(args: &Setup) -> Result<(), Failure> {
    let (depth, updates, levels) = (args.depth.depth, args.updates, args.levels);
    // An impossible number is an error of the command line, found before anything is made.
    BatchShape::with_depth(depth, updates as usize, levels)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let sizes = CircuitSizes::KeyDirectory {
        depth,
        updates,
        levels,
    };
    let circuit = NewCircuit {
        sizes,
        program: None,
    };
    make_and_report(circuit, &args.setup)
}
