//! The circuit of an RV32IM program's executions: its sizes in the description, and the program in the folder.

use std::path::{Path, PathBuf};

use proofmill_rv32::{Program, elf};
use proofmill_rv32_circuit::{Rv32Circuit, Shape};
use serde::{Deserialize, Serialize};

use super::Folder;
use crate::failure::Failure;
use crate::files::read;

/// Largest executable file, in bytes.
const ELF_BYTES_MAX: usize = 1 << 28;

/// The program and the sizes that keys are for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rv32Sizes {
    /// Digest of the program, hexadecimal.
    pub(crate) program: String,
    steps: usize,
    step_parts: usize,
    program_rows: usize,
    data_words: usize,
    zero_words: usize,
    zero_parts: usize,
    input_words: usize,
    input_parts: usize,
    output_words: usize,
    output_parts: usize,
    input_is_public: bool,
}

// === impl Rv32Sizes ===

impl Rv32Sizes {
    pub(crate) fn new(program: &Program, shape: &Shape) -> Self {
        Self {
            program: hex::encode(program.digest()),
            steps: shape.steps,
            step_parts: shape.step_parts,
            program_rows: shape.program_rows,
            data_words: shape.data_words,
            zero_words: shape.zero_words,
            zero_parts: shape.zero_parts,
            input_words: shape.input_words,
            input_parts: shape.input_parts,
            output_words: shape.output_words,
            output_parts: shape.output_parts,
            input_is_public: shape.input_is_public,
        }
    }

    /// The shape, with every number within its limits.
    pub(crate) fn shape(&self) -> Result<Shape, Failure> {
        let shape = Shape {
            steps: self.steps,
            step_parts: self.step_parts,
            program_rows: self.program_rows,
            data_words: self.data_words,
            zero_words: self.zero_words,
            zero_parts: self.zero_parts,
            input_words: self.input_words,
            input_parts: self.input_parts,
            output_words: self.output_words,
            output_parts: self.output_parts,
            input_is_public: self.input_is_public,
        };
        shape.check()?;
        Ok(shape)
    }

    /// The most bytes of an input.
    pub(super) fn input_bytes_max(&self) -> Result<usize, Failure> {
        Ok(usize::try_from(self.shape()?.input_bytes_max())?)
    }

    pub(super) fn blank(&self, folder: &Folder) -> Result<Rv32Circuit, Failure> {
        Ok(Rv32Circuit::blank(
            &self.program_in(folder)?,
            self.shape()?,
        )?)
    }

    pub(super) fn with_input(&self, folder: &Folder, input: &[u8]) -> Result<Rv32Circuit, Failure> {
        let program = self.program_in(folder)?;
        Rv32Circuit::new(&program, input, self.shape()?).map_err(|error| {
            Failure::new(error.to_string())
                .help("`proofmill rv32 setup` makes keys for longer executions and inputs")
        })
    }

    /// The folder's program.
    pub(crate) fn program_in(&self, folder: &Folder) -> Result<Program, Failure> {
        let path = program_path(folder);
        let program = read_program(&path)?;
        match hex::encode(program.digest()) == self.program {
            true => Ok(program),
            false => Err(Failure::new(format!(
                "{}: it is not the program that the keys are for",
                path.display()
            ))
            .help("copy the folder of keys again, or make the keys again")),
        }
    }
}

/// Name of the program's file in a folder.
pub(crate) const PROGRAM: &str = "program.elf";

/// Path of the program in a folder of keys.
pub(crate) fn program_path(folder: &Folder) -> PathBuf {
    folder.path().join(PROGRAM)
}

/// Reads an executable.
pub(crate) fn read_program(path: &Path) -> Result<Program, Failure> {
    elf::load(&read_program_bytes(path)?).map_err(|error| {
        Failure::new(format!("{}: {error}", path.display()))
            .help("docs/rv32.md says how programs are compiled")
    })
}

/// The bytes of an executable's file.
pub(crate) fn read_program_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    read(path, ELF_BYTES_MAX).map_err(|why| Failure::new(format!("{}: {why}", path.display())))
}
