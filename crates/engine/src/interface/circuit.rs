//! Circuits and what is known of them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::CircuitId;

/// The longest name of a circuit, in bytes.
pub const MAX_NAME_BYTES: usize = 128;

/// How a circuit is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CircuitRef {
    /// By the name it was registered under.
    Name(String),
    /// By its digest.
    Id(CircuitId),
}

/// A name that no circuit can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no name of a circuit: 1 to {MAX_NAME_BYTES} of the characters a-z, A-Z, 0-9, - and _"
)]
pub struct InvalidName(pub String);

/// A circuit that is to be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The name: 1 to [`MAX_NAME_BYTES`] of `a-z A-Z 0-9 - _`. A name that is taken is refused unless
    /// it is the same circuit.
    pub name: String,
    /// Where it is.
    pub source: CircuitSource,
}

/// Where a circuit and its key are. The files stay where they are, and must not be changed in place:
/// they are read again whenever the key is loaded, and refused if their digests are others by then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CircuitSource {
    /// A key of snarkjs's, which has the constraints in it.
    Zkey(PathBuf),
    /// Constraints, as a `.r1cs` file or precompiled, and a key of ours for them.
    System {
        /// The constraints; which of the two formats it has, its first bytes say.
        constraints: PathBuf,
        /// The key file.
        key: PathBuf,
    },
}

/// Where a loaded circuit's matrices came from.
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

/// How near a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// On disk.
    Cold,
    /// Mapped into memory and checked: its pages count against the budget.
    Warm,
    /// In the kernels' layout, ready to prove.
    Hot,
}

/// A circuit as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CircuitView {
    /// Its name.
    pub name: String,
    /// Its digest.
    pub id: CircuitId,
    /// The curve's name.
    pub curve: &'static str,
    /// The number of variables, the leading one included.
    pub variables: u64,
    /// The number of public inputs, the leading one not included.
    pub public: u64,
    /// The size of the domain.
    pub domain: u64,
    /// Where it is.
    pub source: CircuitSource,
    /// Where its matrices come from when it is loaded.
    pub from: ConstraintsFrom,
    /// Where its key is now.
    pub tier: Tier,
    /// Whether its key is being loaded.
    pub loading: bool,
    /// Whether its key is never evicted.
    pub pinned: bool,
    /// The bytes it holds of the budget now.
    pub bytes: u64,
    /// The bytes of its key when hot: measured if it ever was, before a restart too, and otherwise
    /// estimated from its points.
    pub hot_bytes: u64,
    /// Whether `hot_bytes` was measured.
    pub measured: bool,
    /// The bytes a partition needs beside the key.
    pub work_bytes: u64,
    /// The bytes to make a proof while the key is not there: the most that loading it takes, or, if that is
    /// more, the key and a partition. A smaller budget takes no proofs of it.
    pub needed_bytes: u64,
    /// Partitions that hold the key now.
    pub users: u64,
    /// How often its key was loaded.
    pub loads: u64,
    /// How long the last load took, in milliseconds.
    pub load_ms: Option<u64>,
    /// How often its key was evicted.
    pub evictions: u64,
    /// Proofs delivered.
    pub proofs: u64,
}

/// Checks a name.
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

    /// 64 lower-case hexadecimal digits are a digest, anything else a name.
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
    /// What messages call it.
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
