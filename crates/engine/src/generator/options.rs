//! Settings of witness generators.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::interface::Secret;

/// A witness generator that is a function in this process.
pub trait WitnessGenerator: Send + Sync {
    /// The witness of `inputs`, as a `.wtns` file's content or as a vector (see
    /// [`Input`](crate::Input)).
    ///
    /// # Errors
    ///
    /// The reason that these inputs have no witness. It is kept with the job and shown, so it must not
    /// contain the inputs.
    fn generate(&self, inputs: &[u8]) -> Result<Secret, String>;
}

/// A witness generator.
#[derive(Clone)]
pub enum Generator {
    /// A function in this process.
    Native(Arc<dyn WitnessGenerator>),
    /// A program, run once for each witness.
    Program(GeneratorProgram),
}

/// A program that generates witnesses. It is started in a private, empty directory, with the inputs in a
/// file. In its arguments `{input}` stands for that file and `{output}` for the file it must write, as in
/// `["generate_witness.js", "circuit.wasm", "{input}", "{output}"]` for circom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratorProgram {
    /// The path of the program.
    pub program: PathBuf,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// Names of environment variables that the program inherits from this process, beside those that every
    /// program gets ([`proofmill_sandbox::Environment`]).
    pub inherit_env: Vec<String>,
    /// Longest run; then the program is killed, and the attempt has failed.
    pub time_limit: Duration,
    /// Bytes reserved in the budget while the program runs.
    pub memory: u64,
    /// Whether a failed run's error message includes the beginning of the program's standard error.
    /// Programs quote their inputs there, and error messages are stored with the job, on disk too, and
    /// shown to everyone who may see the job: enable it for circuits without secrets, or to find a fault.
    /// Otherwise only the exit status is kept.
    pub keep_stderr: bool,
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native(_) => f.write_str("Native"),
            Self::Program(program) => program.fmt(f),
        }
    }
}
