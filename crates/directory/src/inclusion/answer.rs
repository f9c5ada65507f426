//! The answer of a directory's server to the question for a key, as JSON:
//!
//! ```json
//! {"epoch": 3, "root": "…", "state": {"version": 1, "value": "…"}, "proof": {…}}
//! ```
//!
//! `state` is `null` for an absent key. A value that is no text stands in `value_hex`, in hexadecimal digits.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{InclusionError, InclusionProof, JSON_BYTES_MAX};
use crate::store::KeyDirectory;
use crate::{Digest, KeyDigest, VALUE_BYTES_MAX, ValueDigest};

/// The most bytes of an answer as JSON: a character of a value takes 6 bytes as an escape, `\u0000`.
pub const ANSWER_BYTES_MAX: usize = JSON_BYTES_MAX + 6 * VALUE_BYTES_MAX + 1024;

/// The state of a key after a directory's last epoch, and its proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyAnswer {
    /// The last epoch.
    pub epoch: u64,
    /// The root after it.
    pub root: Digest,
    /// The state of the key; `None` if it is absent.
    pub state: Option<KeyState>,
    /// The proof of the state under the root.
    pub proof: InclusionProof,
}

/// The version and the value of a present key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyState {
    /// The number of updates since the key was inserted.
    pub version: u64,
    /// The value.
    pub value: Vec<u8>,
}

/// An answer that does not show a key's state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The proof is not valid for this key and this root.
    #[error(transparent)]
    Proof(#[from] InclusionError),
    /// The proof is valid, but of another state than the answer says.
    #[error("the proof is of another state of the key than the answer says: {0}")]
    State(&'static str),
}

/// The fields of a state.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateFields {
    version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value_hex: Option<String>,
}

// === impl KeyAnswer ===

impl KeyAnswer {
    /// The answer of a directory.
    pub fn new(directory: &KeyDirectory, key: &[u8]) -> Self {
        let state = directory.find(key).map(|found| KeyState {
            version: found.version,
            value: found.value.to_vec(),
        });
        Self {
            epoch: directory.epoch(),
            root: directory.root(),
            state,
            proof: directory.prove(key),
        }
    }

    /// The answer as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("digests, numbers and text are JSON")
    }

    /// Checks an untrusted answer for a key under a root that the client knows, in a tree of `depth` levels; both must be
    /// the client's own.
    ///
    /// # Errors
    ///
    /// [`AnswerError`] unless the proof shows the state that the answer says.
    pub fn verify_at_depth(
        &self,
        depth: u32,
        root: &Digest,
        key: &KeyDigest,
    ) -> Result<Option<&KeyState>, AnswerError> {
        let proved = self.proof.verify_at_depth(depth, root, key)?;
        let why = match (proved, &self.state) {
            (None, None) => return Ok(None),
            (Some(proved), Some(state)) => {
                let is_same_value = ValueDigest::of(&state.value) == proved.value;
                match proved.version == state.version {
                    true if is_same_value => return Ok(Some(state)),
                    true => "another value",
                    false => "another version",
                }
            }
            (None, Some(_)) => "the key is absent",
            (Some(_), None) => "the key is present",
        };
        Err(AnswerError::State(why))
    }
}

// === impl KeyState ===

impl Serialize for KeyState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = std::str::from_utf8(&self.value).ok();
        let fields = StateFields {
            version: self.version,
            value: text.map(str::to_owned),
            value_hex: text.is_none().then(|| hex::encode(&self.value)),
        };
        fields.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for KeyState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = StateFields::deserialize(deserializer)?;
        let value = match (fields.value, fields.value_hex) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(digits)) => hex::decode(digits).map_err(D::Error::custom)?,
            _ => {
                let why = "there must be one of the fields \"value\" and \"value_hex\"";
                return Err(D::Error::custom(why));
            }
        };
        Ok(Self {
            version: fields.version,
            value,
        })
    }
}
