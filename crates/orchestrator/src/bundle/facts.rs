//! The facts about a bundle: its maker, and the stages whose letters it holds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Facts about a bundle, as its first section holds them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Version of the program that made the bundle.
    pub program_version: String,
    /// Operating system of the machine where the bundle was made, as Rust names it.
    pub os: String,
    /// Architecture of that machine, as Rust names it.
    pub arch: String,
    /// Time at which the bundle was made, milliseconds since 1970-01-01 UTC.
    pub made_at_ms: u64,
    /// Name of the workflow.
    pub workflow: String,
    /// The stages of the letters, by name.
    pub stages: BTreeMap<String, Stage>,
}

/// The settings of a stage that decide how a task runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Whether a result is an array of which each element becomes a message.
    pub fan_out: bool,
    /// Time limit of an attempt, milliseconds; `None` for no limit.
    pub time_limit_ms: Option<u64>,
    /// The program, prover or engines that run a task.
    pub work: Work,
}

/// The program, prover or engines of a stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Work {
    /// A program, run for each task.
    Program {
        /// The program as the workflow file names it: a bare name, or a path that was absolute where the bundle was
        /// made.
        program: String,
        /// The program's file where the bundle was made; `None` if it could not be read there.
        file: Option<BundledFile>,
        /// Arguments before the input flag.
        args: Vec<String>,
        /// Names of the variables that the workflow file sets. Their values are not in the bundle.
        variables: Vec<String>,
        /// Names of the variables that the program inherits.
        inherit_env: Vec<String>,
        /// The `pids_limit` of a strict sandbox; `None` for a basic one.
        strict_pids_limit: Option<u32>,
        /// Flag before the path of the input.
        input_flag: String,
        /// Flag before the path of the output.
        output_flag: String,
        /// Limit on the program's memory, bytes; `None` for no limit.
        memory_limit: Option<u64>,
    },
    /// A prover in the dispatcher's process.
    Native {
        /// The prover's name.
        prover: String,
        /// The prover's parameters.
        params: Value,
    },
    /// Proving engines.
    Engine {
        /// The circuit.
        circuit: String,
        /// The witness generator of the engines, if there is one.
        generator: Option<String>,
        /// The verifying key with which proofs are checked, if they are.
        verifying_key: Option<BundledFile>,
        /// Longest wait for an engine, milliseconds.
        patience_ms: u64,
    },
    /// None: the stage gathers or emits messages. Its kind, `collector` or `sequencer`.
    Gathers(String),
}

/// A file of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledFile {
    /// SHA-256 of the content.
    #[serde(with = "hexadecimal")]
    pub digest: [u8; 32],
    /// Length, bytes.
    pub bytes: u64,
    /// Whether the bundle holds the content.
    pub included: bool,
}

// === impl Work ===

impl Work {
    /// The file of the stage, if it has one.
    pub fn file(&self) -> Option<&BundledFile> {
        match self {
            Self::Program { file, .. } => file.as_ref(),
            Self::Engine { verifying_key, .. } => verifying_key.as_ref(),
            Self::Native { .. } | Self::Gathers(_) => None,
        }
    }
}

/// Digests as hexadecimal digits.
mod hexadecimal {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(digest: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex::encode(digest))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 32], D::Error> {
        let mut digest = [0; 32];
        let text = String::deserialize(from)?;
        hex::decode_to_slice(text, &mut digest).map_err(D::Error::custom)?;
        Ok(digest)
    }
}
