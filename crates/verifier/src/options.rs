//! Settings of a verifier.

use crate::keys::KeyLimits;
use crate::kinds::Kinds;
use crate::schedule::Limits;

/// Settings of a verifier. The default takes no kinds; [`Options::of`] takes those given.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kinds of proofs that are taken.
    pub kinds: Kinds,
    /// Threads of each lane's pool; 0 is one for each processor.
    pub threads: usize,
    /// Limits of the requests under way.
    pub limits: Limits,
    /// Limits of a client's keys.
    pub keys: KeyLimits,
    /// Bytes of a request's proof and statement together, at most.
    pub request_bytes: usize,
    /// Bytes of a key, at most.
    pub key_bytes: usize,
}

// === impl Options ===

impl Options {
    /// The defaults for these kinds.
    pub fn of(kinds: Kinds) -> Self {
        Self {
            kinds,
            ..Self::default()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kinds: Kinds::none(),
            threads: 0,
            limits: Limits {
                batch: 64,
                requests: 1024,
                bytes: 64 << 20,
                total_bytes: 512 << 20,
                sources: 4096,
            },
            keys: KeyLimits {
                keys: 256,
                bytes: 64 << 20,
            },
            request_bytes: 4 << 20,
            key_bytes: 16 << 20,
        }
    }
}
