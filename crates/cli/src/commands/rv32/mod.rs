//! `proofmill rv32`

mod execute;
mod prove;
mod setup;
mod verify;

use std::path::Path;

use zeroize::Zeroizing;

use crate::args::rv32::Rv32;
use crate::failure::Failure;
use crate::files::read;

/// Longest input of a program, in bytes.
const INPUT_BYTES_MAX: usize = 1 << 26;

pub(crate) async fn run(command: Rv32) -> Result<(), Failure> {
    match command {
        Rv32::Run(args) => execute::run(&args),
        Rv32::Setup(args) => setup::run(&args),
        Rv32::Prove(args) => prove::run(&args).await,
        Rv32::Verify(args) => verify::run(&args),
    }
}

/// The program's input: that of the file, or none.
fn read_input(path: Option<&Path>) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let Some(path) = path else {
        return Ok(Zeroizing::default());
    };
    let read = read(path, INPUT_BYTES_MAX);
    let bytes = read.map_err(|why| Failure::new(format!("{}: {why}", path.display())))?;
    Ok(Zeroizing::new(bytes))
}
