//! `proofmill rv32 run`

use proofmill_rv32::{Exit, Machine};
use proofmill_telemetry::console_line;
use serde_json::json;

use super::read_input;
use crate::args::rv32::Rv32Run;
use crate::circuit_folder::read_program;
use crate::failure::Failure;
use crate::output;

pub(super) fn run(args: &Rv32Run) -> Result<(), Failure> {
    let program = read_program(&args.program)?;
    let input = read_input(args.stdin.as_deref())?;
    let mut machine = Machine::new(&program, &input)?;
    let exit = machine.run(args.steps, |_| {});
    let cycles = machine.cycle();
    let shown = args.program.display();
    let code = match exit {
        Exit::Halted { code } => code,
        Exit::Trapped(trap) => return Err(Failure::new(format!("{shown}: {trap}"))),
        Exit::LimitReached => {
            return Err(
                Failure::new(format!("{shown}: not halted after {cycles} steps"))
                    .help("allow more with --steps"),
            );
        }
    };
    if args.json {
        let answer = json!({
            "program": hex::encode(program.digest()),
            "steps": cycles,
            "exit_code": code,
            "output": hex::encode(machine.output()),
        });
        return output::line(answer.to_string());
    }
    output::raw(machine.output())?;
    console_line(output::plain(&format!(
        "{shown}: halted after {cycles} steps with exit code {code}"
    )));
    Ok(())
}
