//! Circuits: references, registrations and their current state.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::CircuitId;

/// Longest name of a circuit, in bytes.
pub const MAX_NAME_BYTES: usize = 128;

/// A reference to a registered circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CircuitRef {
    /// The name under which the circuit was registered.
    Name(String),
    /// The digest of the circuit.
    Id(CircuitId),
}

/// A name that no circuit can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no name of a circuit: 1 to {MAX_NAME_BYTES} of the characters a-z, A-Z, 0-9, - and _"
)]
pub struct InvalidName(pub String);

/// A circuit to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The name: 1 to [`MAX_NAME_BYTES`] of `a-z A-Z 0-9 - _`. The name of another circuit is refused.
    pub name: String,
    /// The files of the circuit and its key.
    pub source: CircuitSource,
}

/// The files of a circuit and its key. They stay where they are and must not be changed in place: they are
/// read again whenever the key is loaded, and refused if their digests have changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CircuitSource {
    /// A snarkjs key (`.zkey`), which contains the constraints.
    Zkey(PathBuf),
    /// Constraints, as a `.r1cs` file or precompiled, and a key of this project's own format for them.
    System {
        /// The constraints. The first bytes of the file tell its format.
        constraints: PathBuf,
        /// The key file: of plain Groth16, or of Mirage, whose proofs are [completed](proofmill_groth16::mirage::complete)
        /// by whoever knows the commitment's randomness.
        key: PathBuf,
    },
}

/// Source of a loaded circuit's matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConstraintsFrom {
    /// The `.zkey`.
    Zkey,
    /// A precompiled file, mapped.
    Precompiled,
    /// The `.r1cs` file, read term by term.
    R1cs,
}

/// Residency of a key, from far to near.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// The key is on disk only.
    Cold,
    /// The key file is mapped into memory and checked. Its pages count against the budget.
    Warm,
    /// The key is in the kernels' layout, ready to prove.
    Hot,
}

/// The current state of a circuit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CircuitView {
    /// The name of the circuit.
    pub name: String,
    /// The digest of the circuit.
    pub id: CircuitId,
    /// The name of the curve.
    pub curve: &'static str,
    /// The number of variables, including the leading one.
    pub variables: u64,
    /// The number of public inputs, without the leading one.
    pub public: u64,
    /// The number of points of the domain.
    pub domain: u64,
    /// The files of the circuit and its key.
    pub source: CircuitSource,
    /// Source of its matrices, at the last load or the next one.
    pub from: ConstraintsFrom,
    /// The current tier of its key.
    pub tier: Tier,
    /// Whether its key is being loaded now.
    pub loading: bool,
    /// Whether its key is never evicted.
    pub pinned: bool,
    /// Bytes of the budget that its key holds now.
    pub bytes: u64,
    /// Bytes of its key when hot: measured if the key was ever loaded, before a restart too, otherwise
    /// estimated from its points.
    pub hot_bytes: u64,
    /// Whether `hot_bytes` was measured.
    pub measured: bool,
    /// Bytes that a partition reserves beside the key.
    pub work_bytes: u64,
    /// Bytes needed to make a proof while the key is not loaded: the most that loading takes, or key and
    /// partition together if that is more. With a smaller budget no proof of the circuit can be made.
    pub needed_bytes: u64,
    /// Partitions that hold the key now.
    pub users: u64,
    /// The number of times that its key was loaded.
    pub loads: u64,
    /// Duration of the last load, in milliseconds; none before the first.
    pub load_ms: Option<u64>,
    /// The number of times that its key was evicted.
    pub evictions: u64,
    /// Verified proofs made, since the service began.
    pub proofs: u64,
}

/// Checks the form of a circuit's name.
///
/// # Errors
///
/// [`InvalidName`] unless it is 1 to [`MAX_NAME_BYTES`] of `a-z A-Z 0-9 - _`.
pub fn check_name(name: &str) -> Result<(), InvalidName> {
    let proper = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(proper) {
        Ok(())
    } else {
        Err(InvalidName(name.chars().take(MAX_NAME_BYTES).collect()))
    }
}

// === impl CircuitRef ===

impl FromStr for CircuitRef {
    type Err = InvalidName;

    /// Parses 64 lower-case hexadecimal digits as a digest, anything else as a name.
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        check_name(text)?;
        Ok(Self::Name(text.to_owned()))
    }
}

impl fmt::Display for CircuitRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Id(id) => id.fmt(f),
        }
    }
}

// === impl Tier ===

impl Tier {
    /// The name in messages, files and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Hot => "hot",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
