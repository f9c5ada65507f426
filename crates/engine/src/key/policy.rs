//! Keys that are not taken.

use std::path::Path;

use proofmill_groth16::{Engine, VerifyingKey};

/// Whether keys are taken under which proofs prove nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPolicy {
    /// For tests: they are, with a warning.
    pub(crate) allow_insecure: bool,
}

// === impl KeyPolicy ===

impl KeyPolicy {
    /// That the key from the file at `path` may be used.
    ///
    /// # Errors
    ///
    /// A message with the path of the key and what is wrong with it.
    pub(crate) fn check<E: Engine>(self, path: &Path, key: &VerifyingKey<E>) -> Result<(), String> {
        let Err(insecure) = key.require_secure() else {
            return Ok(());
        };
        let why = format!("{}: {insecure}", path.display());
        if !self.allow_insecure {
            return Err(why);
        }
        tracing::warn!(why, "a key is used all the same");
        Ok(())
    }
}
