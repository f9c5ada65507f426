//! The head of a proving key's file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use proofmill_files::open_regular;

use super::prefix::{CURVE_AT, CURVE_BYTES, padded};
use super::{CHECKSUM_BYTES, HEAD_BYTES, Head, KeyError, Kind};
use crate::keys::key::QueryPoints;
use crate::{Curve, SnarkCurve, with_curve};

/// The head of a proving key's file, which is read without reading any point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvingKeyInfo {
    /// The curve.
    pub curve: Curve,
    /// The digest of the key's circuit.
    pub circuit: [u8; 32],
    /// The file's SHA-256 checksum, which loading the key compares with the content.
    pub checksum: [u8; 32],
    /// The number of variables, the leading one included.
    pub variables: usize,
    /// The number of instance variables, the leading one included.
    pub instance: usize,
    /// The size of the domain.
    pub domain: usize,
    /// The number of points in each query.
    pub points: QueryPoints,
}

// === impl ProvingKeyInfo ===

impl ProvingKeyInfo {
    /// Reads the head and the checksum of a key file.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no such file, it is not a proving key, or its size does not follow from its
    /// head.
    pub fn of(path: &Path) -> Result<Self, KeyError> {
        let io = |source| KeyError::Io {
            path: path.to_owned(),
            source,
        };
        let mut file = open_regular(path).map_err(io)?;
        let total = file.metadata().map_err(io)?.len();
        let bytes = read_head(&mut file).map_err(io)?;
        let name = bytes.get(CURVE_AT..CURVE_AT + CURVE_BYTES);
        let curve = Curve::ALL
            .into_iter()
            .find(|curve| Some(&padded(curve.name())[..]) == name)
            // If the file names another curve or is no key, `Head::read` returns the error.
            .unwrap_or(Curve::Bls12_381);
        let head = with_curve!(curve, E => Head::read::<E>(&bytes, Kind::Proving, total)?);
        let mut checksum = [0; CHECKSUM_BYTES];
        file.seek(SeekFrom::End(-(CHECKSUM_BYTES as i64)))
            .and_then(|_| file.read_exact(&mut checksum))
            .map_err(io)?;
        Ok(Self::of_head(curve, &head, checksum))
    }

    /// Reads the head and the checksum in the content of a key file.
    pub(crate) fn of_bytes<E: SnarkCurve>(bytes: &[u8]) -> Result<Self, KeyError> {
        let head = Head::read::<E>(bytes, Kind::Proving, bytes.len() as u64)?;
        // A shorter file is refused by the head's lengths.
        let checksum = bytes.last_chunk().copied().unwrap_or_default();
        Ok(Self::of_head(E::CURVE, &head, checksum))
    }

    const fn of_head(curve: Curve, head: &Head, checksum: [u8; CHECKSUM_BYTES]) -> Self {
        Self {
            curve,
            circuit: head.circuit,
            checksum,
            variables: head.variables,
            instance: head.instance,
            domain: head.h,
            points: QueryPoints {
                a: head.a as u64,
                b_g1: head.b as u64,
                b_g2: head.b as u64,
                l: head.l as u64,
            },
        }
    }
}

fn read_head(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES);
    file.take(HEAD_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
