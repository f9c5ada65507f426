//! What makes a witness of a circuit's inputs.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::interface::Secret;

/// A function of this program.
pub trait WitnessGenerator: Send + Sync {
    /// The witness of `inputs`, as a `.wtns` file's content or as a vector (see
    /// [`Input`](crate::Input)).
    ///
    /// # Errors
    ///
    /// Why these inputs have none; it must not contain them.
    fn generate(&self, inputs: &[u8]) -> Result<Secret, String>;
}

/// What makes a witness of a circuit's inputs.
#[derive(Clone)]
pub enum Generator {
    /// A function of this program.
    Native(Arc<dyn WitnessGenerator>),
    /// Another program.
    Program(GeneratorProgram),
}

/// A program that makes witnesses. It is started in a private, empty directory, with the inputs in a
/// file; in its arguments `{input}` stands for that file and `{output}` for the one it is to write,
/// such as `["generate_witness.js", "circuit.wasm", "{input}", "{output}"]` for circom's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratorProgram {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Names of variables of this process that it gets, beside those that every program gets
    /// ([`proofmill_sandbox::Environment`]).
    pub inherit_env: Vec<String>,
    /// When it is killed, and the attempt has failed.
    pub time_limit: Duration,
    /// Bytes of memory that are reserved while it runs.
    pub memory: u64,
    /// Whether the beginning of what it writes on standard error becomes a part of the error when it
    /// fails. Programs quote their inputs there, and errors are kept with the job, on disk too, and shown
    /// to whoever may see it: for circuits without secrets, or to find a fault. Otherwise only the exit
    /// status is kept.
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
