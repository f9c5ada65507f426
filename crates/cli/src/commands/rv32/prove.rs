//! `proofmill rv32 prove`

use std::path::{Path, PathBuf};

use proofmill_rv32::{Exit, Machine, Program};
use proofmill_rv32_circuit::STEPS_MAX;
use proofmill_telemetry::console_line;

use super::{read_input, setup};
use crate::args::partition::SetupArgs;
use crate::args::rv32::{Rv32Prove, SizeArgs};
use crate::circuit_folder::{CircuitSizes, Folder, read_program};
use crate::commands::partition::{check_files, prove_in};
use crate::failure::Failure;
use crate::output;
use crate::progress::counted;

pub(super) async fn run(args: &Rv32Prove) -> Result<(), Failure> {
    check_files(args.stdin.as_deref(), &args.proof)?;
    let program = read_program(&args.program)?;
    let input = read_input(args.stdin.as_deref())?;
    say_what_happens(&args.program, &program, &input)?;
    let keys = args.keys.clone().unwrap_or_else(|| keys_of(&args.program));
    if keys.symlink_metadata().is_err() {
        let sizes = SizeArgs::default_for(args.public_input);
        let to_make = SetupArgs::before_proving(keys.clone(), args.proof.threads);
        setup::make(&args.program, &program, &input, &sizes, &to_make)?;
    }
    let folder = Folder::at(&keys);
    require_keys_of(&folder, &program, args)?;
    prove_in(&folder, args.stdin.as_deref(), &input, &args.proof).await
}

/// Runs the program: what does not halt is refused before keys are made or read.
fn say_what_happens(path: &Path, program: &Program, input: &[u8]) -> Result<(), Failure> {
    let shown = path.display();
    let mut machine = Machine::new(program, input)?;
    match machine.run(STEPS_MAX, |_| {}) {
        Exit::Halted { code } => console_line(output::plain(&format!(
            "{shown}: halts after {} with exit code {code} and {} of output",
            counted(machine.cycle() as usize, "step"),
            counted(machine.output().len(), "byte"),
        ))),
        Exit::Trapped(trap) => return Err(Failure::new(format!("{shown}: {trap}"))),
        Exit::LimitReached => {
            let why = format!("{shown}: not halted after {STEPS_MAX} steps, the most of a proof");
            return Err(Failure::new(why));
        }
    }
    Ok(())
}

fn keys_of(program: &Path) -> PathBuf {
    let mut path = program.as_os_str().to_owned();
    path.push(".keys");
    path.into()
}

/// Fails if the keys are of another program, or for another kind of input.
fn require_keys_of(folder: &Folder, program: &Program, args: &Rv32Prove) -> Result<(), Failure> {
    let shown = folder.path().display();
    let another = "name another folder with --keys";
    let CircuitSizes::Rv32(sizes) = folder.description()?.circuit else {
        let why = format!("{shown}: these are keys of another circuit than an execution");
        return Err(Failure::new(why).help(another));
    };
    if sizes.program != hex::encode(program.digest()) {
        let path = args.program.display();
        let why = format!("{shown}: these are keys of another program than {path}");
        return Err(Failure::new(why).help(another));
    }
    if sizes.shape()?.input_is_public != args.public_input {
        let (are, ask) = match args.public_input {
            true => ("secret", "leave out --public-input"),
            false => ("public", "give --public-input"),
        };
        let why = format!("{shown}: these keys are for {are} inputs");
        return Err(Failure::usage(why).help(format!("{ask}, or {another}")));
    }
    Ok(())
}
