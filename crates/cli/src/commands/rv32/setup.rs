//! `proofmill rv32 setup`

use std::path::Path;

use proofmill_rv32::Program;
use proofmill_rv32_circuit::{Demand, Shape};
use proofmill_telemetry::console_line;

use super::read_input;
use crate::args::partition::SetupArgs;
use crate::args::rv32::{Rv32Setup, SizeArgs};
use crate::circuit_folder::{CircuitSizes, Rv32Sizes, read_program, read_program_bytes};
use crate::commands::engine::bytes;
use crate::commands::partition::{NewCircuit, make_and_report};
use crate::failure::Failure;
use crate::output;

pub(super) fn run(args: &Rv32Setup) -> Result<(), Failure> {
    let program = read_program(&args.program)?;
    let input = read_input(args.stdin.as_deref())?;
    make(&args.program, &program, &input, &args.sizes, &args.setup)
}

/// Makes the folder of keys for a program, with the sizes given or those of its execution on an input.
pub(super) fn make(
    path: &Path,
    program: &Program,
    input: &[u8],
    sizes: &SizeArgs,
    setup: &SetupArgs,
) -> Result<(), Failure> {
    let demand = demand(program, input, sizes)?;
    // A short execution has one part with its steps.
    let per_part = u64::from(sizes.steps_per_part).min(demand.steps.next_power_of_two());
    let mut shape = Shape::fitting(program, &demand, per_part as usize)?;
    shape.input_is_public = sizes.public_input;
    console_line(output::plain(&format!(
        "{}: keys for {} steps, {} of data, {} of input, {} of output",
        path.display(),
        shape.num_steps(),
        bytes(4 * shape.num_zero_words()),
        bytes(shape.input_bytes_max()),
        bytes(shape.output_bytes_max()),
    )));
    let circuit = NewCircuit {
        sizes: CircuitSizes::Rv32(Rv32Sizes::new(program, &shape)),
        program: Some(read_program_bytes(path)?),
    };
    make_and_report(circuit, setup)
}

fn demand(program: &Program, input: &[u8], sizes: &SizeArgs) -> Result<Demand, Failure> {
    let given = (
        sizes.steps,
        sizes.data_size,
        sizes.input_size,
        sizes.output_size,
    );
    // With all sizes given the program need not run: its input may not be at hand.
    let (Some(steps), Some(data), Some(input_bytes), Some(output_bytes)) = given else {
        let of = Demand::of(program, input).map_err(|error| {
            Failure::new(error.to_string()).help(
                "sizes are those of the program's execution on the input of --stdin, unless --steps, --data-size, \
                 --input-size and --output-size are all given",
            )
        })?;
        let of = of.with_room();
        return Ok(Demand {
            steps: sizes.steps.unwrap_or(of.steps),
            words: sizes.data_size.map_or(of.words, words),
            input_bytes: sizes.input_size.unwrap_or(of.input_bytes),
            output_bytes: sizes.output_size.unwrap_or(of.output_bytes),
        });
    };
    Ok(Demand {
        steps,
        words: words(data),
        input_bytes,
        output_bytes,
    })
}

const fn words(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}
