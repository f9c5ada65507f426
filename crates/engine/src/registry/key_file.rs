//! Key files of this project's format: plain ones, and those of Mirage.

use std::path::Path;

use proofmill_groth16::{Curve, KeyError, ProvingKey, ProvingKeyInfo, mirage, with_curve};

use crate::interface::Error;
use crate::key::KeyPolicy;

/// The head of a key file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyFileInfo {
    /// The head of the plain key, which the file of a Mirage key contains.
    pub(super) plain: ProvingKeyInfo,
    /// Checksum of the whole file.
    pub(crate) checksum: [u8; 32],
    /// Bytes that the points of the commitment key take in memory; zero for a plain key.
    pub(super) committed_bytes: u64,
    /// Whether it is a key of Mirage.
    pub(crate) is_mirage: bool,
}

// === impl KeyFileInfo ===

impl KeyFileInfo {
    /// Reads the head of a key over `curve`, or of a plain key over any curve.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no such file, or it is no proving key.
    pub(crate) fn of(path: &Path, curve: Curve) -> Result<Self, KeyError> {
        match ProvingKeyInfo::of(path) {
            Ok(plain) => Ok(Self {
                plain,
                checksum: plain.checksum,
                committed_bytes: 0,
                is_mirage: false,
            }),
            Err(KeyError::Kind { found, .. }) if found == mirage::ProvingKeyInfo::KIND => {
                with_curve!(curve, E => {
                    let info = mirage::ProvingKeyInfo::of::<E>(path)?;
                    let point = size_of::<<E as ark_ec::pairing::Pairing>::G1Affine>();
                    Ok(Self {
                        plain: info.plain,
                        checksum: info.checksum,
                        committed_bytes: (info.committed * point) as u64,
                        is_mirage: true,
                    })
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Reads the verifying key, and checks that `policy` accepts it.
    ///
    /// # Errors
    ///
    /// [`Error::Circuit`].
    pub(super) fn check_key(&self, path: &Path, policy: KeyPolicy) -> Result<(), Error> {
        let malformed = |error| Error::Circuit(format!("{}: {error}", path.display()));
        let secure = with_curve!(self.plain.curve, E => match self.is_mirage {
            true => mirage::ProvingKey::<E>::load_verifying_key(path)
                .map_err(malformed)?
                .require_secure(),
            false => ProvingKey::<E>::load_verifying_key(path)
                .map_err(malformed)?
                .require_secure(),
        });
        policy.check(path, secure).map_err(Error::Circuit)
    }
}
