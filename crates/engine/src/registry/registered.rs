//! A registered circuit.

use std::path::PathBuf;

use proofmill_groth16::{Curve, QueryPoints, with_curve};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::inspect::in_memory;
use crate::interface::{CircuitId, CircuitSource};
use crate::key::{Footprint, Sizes, checking_bytes};
use crate::options::KeyForm;

/// Domain separator in the hash of a circuit's id. It has a version number, so that another version gives
/// other ids.
const DOMAIN: &[u8] = b"proofmill/engine/circuit/1";

/// The proof system of every circuit at present.
const PROOF_SYSTEM: &str = "groth16";

/// A circuit and its key, as read from their files at registration. It is stored in the log and trusted
/// after a restart; whenever the key is loaded, its digest is compared with the one here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Registered {
    pub(crate) id: CircuitId,
    pub(crate) name: String,
    pub(crate) source: CircuitSource,
    #[serde(with = "curve_by_name")]
    pub(crate) curve: Curve,
    pub(crate) variables: u64,
    /// Public inputs, without the leading one.
    pub(crate) public: u64,
    pub(crate) domain: u64,
    /// Digest of the constraints; zeros if the key file contains them.
    pub(crate) constraints: [u8; 32],
    /// BLAKE3 of a `.zkey`, or the checksum in a key file of this project's format.
    pub(crate) key_digest: [u8; 32],
    /// Path of the precompiled constraints; none if the key file contains them.
    pub(crate) precompiled: Option<PathBuf>,
    /// Bytes of the files that are mapped or read.
    pub(crate) file_bytes: u64,
    /// Bytes that loading takes beside prepared points, if no point is tested for subgroup membership.
    pub(crate) load_bytes: u64,
    /// Sizes counted in the key; if none, upper bounds are used instead. Not in the log:
    /// [`KeySizes`](crate::residency::KeySizes) stores it.
    #[serde(skip)]
    pub(crate) points: Option<KeyPoints>,
}

/// The sizes of a hot key's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPoints {
    /// Numbers of points of its queries.
    pub(crate) queries: QueryPoints,
    /// Approximate bytes of the circuit's matrices in memory, and of a commitment key's points.
    pub(crate) matrices: u64,
}

// === impl Registered ===

impl Registered {
    /// The id of the circuit with these properties.
    pub(crate) fn id_of(curve: Curve, constraints: &[u8; 32], key_digest: &[u8; 32]) -> CircuitId {
        let mut hasher = Sha256::new();
        hasher.update(DOMAIN);
        for part in [PROOF_SYSTEM, curve.name()] {
            hasher.update([part.len() as u8]);
            hasher.update(part);
        }
        hasher.update(constraints);
        hasher.update(key_digest);
        CircuitId(hasher.finalize().into())
    }

    /// Most bytes that the key takes while `threads` threads load it. If its points were `checked` before,
    /// they are not tested again. The test does not overlap with other steps that need temporary memory.
    pub(crate) fn loading(&self, form: KeyForm, threads: usize, checked: bool) -> u64 {
        let testing = match checked {
            true => 0,
            false => {
                let points = self.variables.max(self.domain);
                in_memory(self.file_bytes) + checking_bytes(self.curve, points, threads)
            }
        };
        self.load_bytes.max(testing) + self.prepared(form)
    }

    /// Estimated bytes of the hot key, if it was never measured.
    pub(crate) fn hot(&self, form: KeyForm) -> u64 {
        let points = self.points();
        let instance = self.public + 1;
        let plain = with_curve!(self.curve, E => {
            points.queries.plain_bytes::<E>(self.domain, instance)
        });
        points.matrices
            + match form {
                KeyForm::Plain | KeyForm::Shared => plain,
                // The points' indices are kept beside the prepared points.
                KeyForm::Prepared { .. } => self.prepared(form) + plain / 8,
            }
    }

    /// The sizes counted in the key, or upper bounds of them.
    fn points(&self) -> KeyPoints {
        let (variables, instance) = (self.variables, self.public + 1);
        let most = QueryPoints {
            // Keys of this project's format also have points for the instance in this query.
            l: variables,
            ..QueryPoints::at_most(variables, instance)
        };
        let possible = |points: &KeyPoints| {
            let QueryPoints { a, b_g1, b_g2, l } = points.queries;
            a.max(b_g1).max(b_g2).max(l) <= variables
        };
        self.points.filter(possible).unwrap_or(KeyPoints {
            queries: most,
            matrices: self.file_bytes,
        })
    }

    /// Memory limit for prepared points, in bytes.
    pub(crate) fn prepared(&self, form: KeyForm) -> u64 {
        match form {
            KeyForm::Plain | KeyForm::Shared => 0,
            // One copy is kept whatever the limit: in the widest layout it takes 1.5 times the size of the
            // file.
            KeyForm::Prepared { percent } => self.file_bytes * u64::from(percent.max(150)) / 100,
        }
    }

    /// The memory that a partition uses beside the key.
    pub(crate) fn footprint(&self, form: KeyForm) -> Footprint {
        let QueryPoints { a, b_g1, b_g2, l } = self.points().queries;
        Footprint::of(&Sizes {
            curve: self.curve,
            variables: self.variables,
            domain: self.domain,
            g1_points: self.domain.max(a).max(b_g1).max(l),
            g2_points: b_g2,
            zkey: matches!(self.source, CircuitSource::Zkey(_)),
            form,
        })
    }
}

mod curve_by_name {
    use proofmill_groth16::Curve;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(
        curve: &Curve,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(curve.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Curve, D::Error> {
        let name = String::deserialize(deserializer)?;
        Curve::ALL
            .into_iter()
            .find(|curve| curve.name() == name)
            .ok_or_else(|| de::Error::custom("not a curve"))
    }
}
