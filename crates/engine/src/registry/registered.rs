//! A circuit that is known.

use std::path::PathBuf;

use proofmill_groth16::{Curve, QueryPoints, with_curve};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::inspect::in_memory;
use crate::interface::{CircuitId, CircuitSource};
use crate::key::{Footprint, Sizes, checking_bytes};
use crate::options::KeyForm;

/// What hashes to a circuit's id; another version of it has another.
const DOMAIN: &[u8] = b"proofmill/engine/circuit/1";

/// The proof system of every circuit for now.
const PROOF_SYSTEM: &str = "groth16";

/// A circuit and its key, by what their files said. It is kept in the log, and believed after a
/// restart: whenever a key is loaded, its digest is compared with the one here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Registered {
    pub(crate) id: CircuitId,
    pub(crate) name: String,
    pub(crate) source: CircuitSource,
    #[serde(with = "curve_by_name")]
    pub(crate) curve: Curve,
    pub(crate) variables: u64,
    /// Without the leading one.
    pub(crate) public: u64,
    pub(crate) domain: u64,
    /// The constraints' digest; zeros where the key has them.
    pub(crate) constraints: [u8; 32],
    /// BLAKE3 of a `.zkey`, or the checksum in a key file of ours.
    pub(crate) key_digest: [u8; 32],
    /// The precompiled constraints; none where the key has them.
    pub(crate) precompiled: Option<PathBuf>,
    /// The bytes of the files that are mapped or read.
    pub(crate) file_bytes: u64,
    /// The bytes that loading takes beside prepared points, if no point is tested for the subgroup.
    pub(crate) load_bytes: u64,
    /// What was counted in the key; without it, the most that there can be is assumed. Not in the log:
    /// [`Figures`](crate::residency::Figures) remembers it.
    #[serde(skip)]
    pub(crate) points: Option<KeyPoints>,
}

/// What a hot key consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPoints {
    /// The points of its queries.
    pub(crate) queries: QueryPoints,
    /// The bytes of the circuit's matrices in memory, about.
    pub(crate) matrices: u64,
}

// === impl Registered ===

impl Registered {
    /// The id that follows from the rest.
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

    /// The most bytes that the key takes while so many threads load it. Points that were `checked` before
    /// are not tested again; while some are, nothing else is under way that takes memory for a while.
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

    /// About the bytes of the hot key, before it was ever measured.
    pub(crate) fn hot(&self, form: KeyForm) -> u64 {
        let points = self.points();
        let instance = self.public + 1;
        let plain = with_curve!(self.curve, E => {
            points.queries.plain_bytes::<E>(self.domain, instance)
        });
        points.matrices
            + match form {
                KeyForm::Plain | KeyForm::Shared => plain,
                // The indices stay beside what is prepared.
                KeyForm::Prepared { .. } => self.prepared(form) + plain / 8,
            }
    }

    /// What was counted in the key, or the most that there can be.
    fn points(&self) -> KeyPoints {
        let (variables, instance) = (self.variables, self.public + 1);
        let most = QueryPoints {
            // Keys of ours have points for the instance in this query, too.
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

    /// The limit for prepared points.
    pub(crate) fn prepared(&self, form: KeyForm) -> u64 {
        match form {
            KeyForm::Plain | KeyForm::Shared => 0,
            // One copy is kept whatever the limit: in the widest layout it takes three halves of what
            // a file does.
            KeyForm::Prepared { percent } => self.file_bytes * u64::from(percent.max(150)) / 100,
        }
    }

    /// What a partition takes beside the key.
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
