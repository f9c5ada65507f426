//! Which back end runs.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// The variable that forces a back end: `portable` or `avx512ifma`.
pub const INSTRUCTION_SET_VARIABLE: &str = "PROOFMILL_KERNELS";

/// A back end, by the instructions it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstructionSet {
    /// arkworks' scalar arithmetic: every machine.
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
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Ifma => {
                // What `x86_64_avx512ifma` enables, feature by feature.
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512ifma")
                    && is_x86_feature_detected!("avx512vbmi2")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512Ifma => false,
        }
    }

    /// What this process uses: the one that [`INSTRUCTION_SET_VARIABLE`] names, else the fastest
    /// that is available. Decided at the first call.
    ///
    /// # Panics
    ///
    /// If the variable names no back end, or one this machine has not: a forced choice that
    /// cannot be met must not pass in silence.
    pub fn current() -> Self {
        static CURRENT: OnceLock<InstructionSet> = OnceLock::new();
        *CURRENT.get_or_init(|| match std::env::var(INSTRUCTION_SET_VARIABLE) {
            Ok(name) if !name.is_empty() => {
                let set: Self = name
                    .parse()
                    .unwrap_or_else(|error| panic!("{INSTRUCTION_SET_VARIABLE}: {error}"));
                assert!(
                    set.is_available(),
                    "{INSTRUCTION_SET_VARIABLE}: this machine has no {set}"
                );
                set
            }
            _ => Self::best(),
        })
    }

    /// The fastest that this machine has.
    pub fn best() -> Self {
        *Self::ALL
            .iter()
            .rfind(|set| set.is_available())
            .expect("the portable one is")
    }
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
