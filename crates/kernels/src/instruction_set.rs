//! The choice of the back end, by the processor's instructions or by an environment variable.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// Name of the environment variable that forces a back end: `portable` or `avx512ifma`.
pub const INSTRUCTION_SET_VARIABLE: &str = "PROOFMILL_KERNELS";

/// A back end, by the instructions it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstructionSet {
    /// Scalar arithmetic, on every machine. It is that of arkworks, except for pairings: blst's on BLS12-381, this
    /// crate's on BLS12-377 and BN254. These two use MULX and ADX where the processor has them.
    Portable,
    /// AVX-512 with IFMA and VBMI2, eight lanes of 52-bit limbs: x86-64 servers since Ice Lake
    /// and Zen 4.
    Avx512Ifma,
}

/// A name that is no back end's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown instruction set {0:?}: it is \"portable\" or \"avx512ifma\"")]
pub struct UnknownInstructionSet(String);

// === impl InstructionSet ===

impl InstructionSet {
    /// Every back end, the slowest first.
    pub const ALL: [Self; 2] = [Self::Portable, Self::Avx512Ifma];

    /// Whether this machine has the instructions.
    pub fn is_available(self) -> bool {
        self.missing().is_empty()
    }

    /// The required processor features that this machine lacks; empty if the back end can run.
    pub fn missing(self) -> Vec<&'static str> {
        match self {
            Self::Portable => Vec::new(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Ifma => {
                // What `x86_64_avx512ifma` enables, feature by feature.
                let features = [
                    ("avx512f", is_x86_feature_detected!("avx512f")),
                    ("avx512dq", is_x86_feature_detected!("avx512dq")),
                    ("avx512vl", is_x86_feature_detected!("avx512vl")),
                    ("avx512ifma", is_x86_feature_detected!("avx512ifma")),
                    ("avx512vbmi2", is_x86_feature_detected!("avx512vbmi2")),
                ];
                features
                    .into_iter()
                    .filter_map(|(name, is_there)| (!is_there).then_some(name))
                    .collect()
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512Ifma => vec!["x86-64"],
        }
    }

    /// The back end that [`INSTRUCTION_SET_VARIABLE`] names; without it, the fastest available one.
    ///
    /// # Errors
    ///
    /// A message for the user: the variable names no back end, or one that this machine cannot run.
    pub fn from_environment() -> Result<Self, String> {
        let told = |why: &dyn fmt::Display| format!("{INSTRUCTION_SET_VARIABLE}: {why}");
        match std::env::var(INSTRUCTION_SET_VARIABLE) {
            Ok(name) if !name.is_empty() => {
                let set = name.parse::<Self>().map_err(|error| told(&error))?;
                if !set.is_available() {
                    return Err(told(&format_args!("this machine has no {set}")));
                }
                Ok(set)
            }
            _ => Ok(Self::best()),
        }
    }

    /// The back end of this process, [from the environment](Self::from_environment), decided at the first call.
    ///
    /// # Panics
    ///
    /// If the variable names no back end, or one that this machine cannot run: a forced choice must not
    /// be ignored silently.
    pub fn current() -> Self {
        static CURRENT: OnceLock<InstructionSet> = OnceLock::new();
        *CURRENT.get_or_init(|| Self::from_environment().unwrap_or_else(|error| panic!("{error}")))
    }

    /// The fastest back end that this machine can run.
    pub fn best() -> Self {
        *Self::ALL
            .iter()
            .rfind(|set| set.is_available())
            .expect("the portable one is")
    }
}

/// A back end that may run here.
///
/// # Panics
///
/// If this machine has not its instructions.
pub(crate) fn checked(set: InstructionSet) -> InstructionSet {
    assert!(set.is_available(), "this machine has no {set}");
    set
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Portable => "portable",
            Self::Avx512Ifma => "avx512ifma",
        })
    }
}

impl FromStr for InstructionSet {
    type Err = UnknownInstructionSet;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|set| set.to_string() == name)
            .ok_or_else(|| UnknownInstructionSet(name.to_owned()))
    }
}
