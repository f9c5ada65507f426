//! Refusal of insecure keys.

use std::path::Path;

use proofmill_groth16::InsecureKey;

/// Whether to accept insecure keys, under which a proof proves nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPolicy {
    /// Accepts them with a warning, for tests. Otherwise they are refused.
    pub(crate) allow_insecure: bool,
}

// === impl KeyPolicy ===

impl KeyPolicy {
    /// Checks that the key from the file at `path` may be used; `found` is what its `require_secure` returned.
    ///
    /// # Errors
    ///
    /// A message with the path of the key and what is wrong with it.
    pub(crate) fn check(self, path: &Path, found: Result<(), InsecureKey>) -> Result<(), String> {
        let Err(insecure) = found else {
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
