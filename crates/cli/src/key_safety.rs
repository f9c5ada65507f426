//! Degenerate keys, under which proofs prove nothing: refused unless `--allow-insecure-key` is given.

use std::path::Path;

use proofmill_groth16::snarkjs::ZkeyFile;
use proofmill_groth16::{InsecureKey, PointCheck, SnarkCurve, VerifyingKey, with_curve};
use proofmill_telemetry::console_line;

use crate::args::circuits::KeySafety;
use crate::failure::Failure;
use crate::output;

impl KeySafety {
    /// Fails if the key from the file at `path` is degenerate. With `--allow-insecure-key` it prints a warning instead.
    pub(crate) fn check<E: SnarkCurve>(
        self,
        path: &Path,
        key: &VerifyingKey<E>,
    ) -> Result<(), Failure> {
        match key.require_secure() {
            Ok(()) => Ok(()),
            Err(insecure) if self.allow_insecure_key => {
                warn(path, &insecure);
                Ok(())
            }
            Err(insecure) => Err(refused(path, &insecure)),
        }
    }

    /// As [`Self::check`] for a `.zkey`; reads only its verifying key.
    pub(crate) fn check_zkey(self, path: &Path, key: &ZkeyFile<'_>) -> Result<(), Failure> {
        with_curve!(key.curve(), E => {
            let vk = key
                .verifying_key::<E>(PointCheck::Full)
                .map_err(|error| error.in_file(path))?;
            self.check(path, &vk)
        })
    }
}

/// Prints a warning that a key is insecure.
pub(crate) fn warn(path: &Path, insecure: &InsecureKey) {
    console_line(output::plain(&format!(
        "warning: {}: {insecure}",
        path.display()
    )));
}

fn refused(path: &Path, insecure: &InsecureKey) -> Failure {
    Failure::new(format!("{}: {insecure}", path.display())).help(
        "take a key that others contributed to (`snarkjs zkey contribute`); for tests \
         --allow-insecure-key uses this key anyway",
    )
}
