//! A proof as JSON:
//!
//! ```json
//! {"leaf": {"present": {"version": 3, "value": "…"}}, "bitmap": "…", "siblings": ["…", "…"]}
//! ```
//!
//! `leaf` is `"absent"`, `{"present": {"version", "value"}}` or `{"occupied": {"key", "version", "value"}}`. Digests
//! have 64 lower-case hexadecimal digits, the bitmap has 32, the most significant first.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::proof::{InclusionProof, ProvedLeaf};
use crate::{Digest, Entry, KeyDigest, Record, ValueDigest};

/// The most bytes of a proof as JSON: 128 siblings, with blanks between them.
pub const JSON_BYTES_MAX: usize = 16 << 10;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProofFields {
    leaf: LeafFields,
    bitmap: String,
    siblings: Vec<Digest>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum LeafFields {
    Absent,
    Present {
        version: u64,
        value: Digest,
    },
    Occupied {
        key: Digest,
        version: u64,
        value: Digest,
    },
}

// === impl InclusionProof ===

impl InclusionProof {
    /// The proof as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("digests and numbers are JSON")
    }

    /// Decodes an untrusted proof from JSON.
    ///
    /// # Errors
    ///
    /// [`serde_json::Error`] for text of more than [`JSON_BYTES_MAX`] bytes or that is no proof.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        if text.len() > JSON_BYTES_MAX {
            let found = text.len();
            return Err(serde_json::Error::custom(format!(
                "a proof of {found} bytes: {JSON_BYTES_MAX} at most"
            )));
        }
        serde_json::from_str(text)
    }
}

impl Serialize for InclusionProof {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let leaf = match self.leaf() {
            ProvedLeaf::Absent => LeafFields::Absent,
            ProvedLeaf::Present(record) => LeafFields::Present {
                version: record.version,
                value: record.value.0,
            },
            ProvedLeaf::Occupied(Entry { key, record }) => LeafFields::Occupied {
                key: key.0,
                version: record.version,
                value: record.value.0,
            },
        };
        let fields = ProofFields {
            leaf,
            bitmap: hex::encode(self.bitmap().to_be_bytes()),
            siblings: self.siblings().to_vec(),
        };
        fields.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for InclusionProof {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = ProofFields::deserialize(deserializer)?;
        let record = |version, value| Record {
            version,
            value: ValueDigest(value),
        };
        let leaf = match fields.leaf {
            LeafFields::Absent => ProvedLeaf::Absent,
            LeafFields::Present { version, value } => ProvedLeaf::Present(record(version, value)),
            LeafFields::Occupied {
                key,
                version,
                value,
            } => ProvedLeaf::Occupied(Entry {
                key: KeyDigest(key),
                record: record(version, value),
            }),
        };
        let bitmap = bitmap(&fields.bitmap).ok_or_else(|| {
            D::Error::custom("field \"bitmap\": it has 32 lower-case hexadecimal digits")
        })?;
        Self::from_parts(leaf, bitmap, fields.siblings).map_err(D::Error::custom)
    }
}

fn bitmap(text: &str) -> Option<u128> {
    let mut bytes = [0; 16];
    let lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    let decoded = hex::decode_to_slice(text, &mut bytes);
    (lower && decoded.is_ok()).then_some(u128::from_be_bytes(bytes))
}
