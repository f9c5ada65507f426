//! The messages in frames, version 1: MessagePack maps with the fields' names.

use std::time::Duration;

use ::bytes::Bytes;
use proofmill_verifier::{Course, KeyInfo, NoDigest, Status, Verdict};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::order::{Order, ProofOrder};

/// The version of these messages. Each message names it: those of another version are refused.
pub const VERSION: u32 = 1;

/// A request with its number, which the client chooses; answers come in any order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask<'a> {
    /// [`VERSION`].
    pub version: u32,
    /// Names the request in its answer.
    pub request_id: u64,
    /// The request.
    #[serde(borrow)]
    pub body: AskBody<'a>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AskBody<'a> {
    /// Verify a proof; the answer is a result.
    Verify {
        /// The kind's name.
        kind: &'a str,
        /// The digest of its verifying key in hexadecimal digits, or nothing.
        #[serde(default, borrow)]
        key: Option<&'a str>,
        /// The statement, as the kind encodes it.
        #[serde(default, with = "bytes", borrow)]
        statement: &'a [u8],
        /// The proof.
        #[serde(with = "bytes", borrow)]
        proof: &'a [u8],
        /// The proof's source, such as a peer; empty for the client itself.
        #[serde(default, borrow)]
        source: &'a str,
        /// Greater ones go first.
        #[serde(default)]
        priority: u8,
        /// Milliseconds after which a verdict is of no more use.
        #[serde(default)]
        deadline_ms: Option<u64>,
    },
    /// Take back the request of that number: it is answered as unavailable. The answer is a count.
    Cancel {
        /// The number.
        request: u64,
    },
    /// Take back all requests of a source. The answer is a count.
    CancelSource {
        /// The source.
        source: &'a str,
    },
    /// Add a verifying key; the answer is a key.
    AddKey {
        /// The kind's name.
        kind: &'a str,
        /// The key.
        #[serde(with = "bytes", borrow)]
        key: &'a [u8],
    },
    /// Remove a verifying key; the answer is a count.
    RemoveKey {
        /// Its digest.
        key: &'a str,
    },
    /// List one's verifying keys; the answer is keys.
    ListKeys,
    /// List the kinds of proofs that are taken; the answer is kinds.
    ListKinds,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// [`VERSION`].
    pub version: u32,
    /// The request's number; 0 where a message was not understood so far.
    pub request_id: u64,
    /// The answer.
    pub body: AnswerBody,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerBody {
    /// A verdict.
    Result(VerificationResult),
    /// A key's digest.
    Key {
        /// In hexadecimal digits.
        digest: String,
    },
    /// Keys.
    Keys(Vec<KeyEntry>),
    /// Names of kinds.
    Kinds(Vec<String>),
    /// So many things were found, and done.
    Count(u64),
    /// The request is refused, and why.
    Refused {
        /// For a person.
        error_message: String,
    },
}

/// A verdict, with the fields of Aztec's service (`VerifyResult` of its `ChonkBatchVerifier`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerificationResult {
    /// The request's number.
    pub request_id: u64,
    /// [`ResultStatus`] as a number.
    pub status: u8,
    /// The reason of `invalid` or `unavailable`; empty for a valid proof.
    pub error_message: String,
    /// Milliseconds before work on it began.
    pub time_in_queue_ms: f64,
    /// Milliseconds of work on it, the wait for its batch included.
    pub time_in_verify_ms: f64,
    /// Proofs of its batch that were not valid.
    pub batch_failure_count: u32,
    /// Proofs of its batch.
    pub batch_size: u32,
}

/// The status of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ResultStatus {
    /// The proof is valid.
    Valid = 0,
    /// It proves nothing.
    Invalid = 1,
    /// Nothing is known of it.
    Unavailable = 2,
}

/// A key in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyEntry {
    /// Its digest in hexadecimal digits.
    pub digest: String,
    /// The kind of proofs that it is for.
    pub kind: String,
    /// Its bytes as they were sent.
    pub bytes: u64,
}

/// A message that is not understood.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// It is no request.
    #[error("no request: {0}")]
    Malformed(#[from] rmp_serde::decode::Error),
    /// Something follows it.
    #[error("no request: something follows it in its frame")]
    Trailing,
    /// It is of another version.
    #[error("a request of version {0}: this verifier takes version {VERSION}")]
    Version(u32),
}

/// Decodes a request from anyone.
///
/// # Errors
///
/// [`MessageError`], with the request's number if that much is understood.
pub fn decode_ask(frame: &[u8]) -> Result<Ask<'_>, (u64, MessageError)> {
    // What all versions have.
    #[derive(Deserialize)]
    struct Head {
        version: u32,
        #[serde(default)]
        request_id: u64,
    }
    let request_id = match rmp_serde::from_slice::<Head>(frame) {
        Ok(Head {
            version,
            request_id,
        }) if version != VERSION => return Err((request_id, MessageError::Version(version))),
        Ok(head) => head.request_id,
        Err(error) => return Err((0, error.into())),
    };
    let mut reader = rmp_serde::Deserializer::from_read_ref(frame);
    let ask = Ask::deserialize(&mut reader).map_err(|error| (request_id, error.into()))?;
    match IgnoredAny::deserialize(&mut reader) {
        // Not even the first byte of another value is there.
        Err(rmp_serde::decode::Error::InvalidMarkerRead(_)) => Ok(ask),
        _ => Err((request_id, MessageError::Trailing)),
    }
}

// === impl AskBody ===

impl AskBody<'_> {
    /// The same, owned; `frame` is what it was decoded from.
    pub(super) fn order(self, frame: &Bytes) -> Result<Order, NoDigest> {
        Ok(match self {
            Self::Verify {
                kind,
                key,
                statement,
                proof,
                source,
                priority,
                deadline_ms,
            } => Order::Verify(ProofOrder {
                kind: kind.to_owned(),
                key: key.map(str::parse).transpose()?,
                statement: frame.slice_ref(statement),
                proof: frame.slice_ref(proof),
                source: source.to_owned(),
                priority,
                deadline: deadline_ms.map(Duration::from_millis),
            }),
            Self::Cancel { request } => Order::Cancel(request),
            Self::CancelSource { source } => Order::CancelSource(source.to_owned()),
            Self::AddKey { kind, key } => Order::AddKey {
                kind: kind.to_owned(),
                key: frame.slice_ref(key),
            },
            Self::RemoveKey { key } => Order::RemoveKey(key.parse()?),
            Self::ListKeys => Order::ListKeys,
            Self::ListKinds => Order::ListKinds,
        })
    }
}

// === impl KeyEntry ===

impl From<KeyInfo> for KeyEntry {
    fn from(key: KeyInfo) -> Self {
        Self {
            digest: key.digest.to_string(),
            kind: key.kind,
            bytes: key.bytes as u64,
        }
    }
}

// === impl Answer ===

impl Answer {
    /// An answer of this version.
    pub fn new(request_id: u64, body: AnswerBody) -> Self {
        Self {
            version: VERSION,
            request_id,
            body,
        }
    }

    /// A refusal.
    pub fn refused(request_id: u64, reason: impl ToString) -> Self {
        let error_message = reason.to_string();
        Self::new(request_id, AnswerBody::Refused { error_message })
    }

    /// A verdict.
    pub fn verdict(request_id: u64, verdict: &Verdict) -> Self {
        Self::new(
            request_id,
            AnswerBody::Result(VerificationResult::of(request_id, verdict)),
        )
    }

    /// As it is sent.
    pub fn encode(&self) -> Vec<u8> {
        rmp_serde::to_vec_named(self).expect("numbers and texts are written to memory")
    }
}

// === impl VerificationResult ===

impl VerificationResult {
    /// The status, if its number is one of this version's.
    pub fn status(&self) -> Option<ResultStatus> {
        [
            ResultStatus::Valid,
            ResultStatus::Invalid,
            ResultStatus::Unavailable,
        ]
        .into_iter()
        .find(|status| *status as u8 == self.status)
    }

    fn of(request_id: u64, verdict: &Verdict) -> Self {
        let status = match verdict.status {
            Status::Valid => ResultStatus::Valid,
            Status::Invalid(_) => ResultStatus::Invalid,
            Status::Unavailable(_) => ResultStatus::Unavailable,
        };
        let Course {
            queue_us,
            verify_us,
            batch,
            batch_failures,
        } = verdict.course;
        Self {
            request_id,
            status: status as u8,
            error_message: verdict.status.reason().unwrap_or_default(),
            time_in_queue_ms: queue_us as f64 / 1e3,
            time_in_verify_ms: verify_us as f64 / 1e3,
            batch_failure_count: batch_failures,
            batch_size: batch,
        }
    }
}

// === impl ResultStatus ===

impl ResultStatus {
    /// One word: `valid`, `invalid` or `unavailable`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Bytes as MessagePack's binary, not as a list of numbers; borrowed from the frame.
mod bytes {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<&'de [u8], D::Error> {
        <&[u8]>::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> Ask<'static> {
        Ask {
            version: VERSION,
            request_id: 7,
            body: AskBody::Verify {
                kind: "groth16-bn254",
                key: Some("00"),
                statement: b"[]",
                proof: &[0, 255, 3],
                source: "peer",
                priority: 1,
                deadline_ms: None,
            },
        }
    }

    #[test]
    fn requests_are_read_as_they_are_written() {
        let bytes = rmp_serde::to_vec_named(&ask()).unwrap();
        assert_eq!(decode_ask(&bytes).unwrap(), ask());
        for body in [AskBody::ListKeys, AskBody::Cancel { request: 3 }] {
            let ask = Ask { body, ..ask() };
            let bytes = rmp_serde::to_vec_named(&ask).unwrap();
            assert_eq!(decode_ask(&bytes).unwrap(), ask);
        }
    }

    #[test]
    fn what_is_no_request_is_refused_with_its_number() {
        let other = rmp_serde::to_vec_named(&Ask {
            version: 2,
            ..ask()
        })
        .unwrap();
        assert!(matches!(
            decode_ask(&other),
            Err((7, MessageError::Version(2)))
        ));
        let mut longer = rmp_serde::to_vec_named(&ask()).unwrap();
        longer.push(0);
        assert!(matches!(
            decode_ask(&longer),
            Err((7, MessageError::Trailing))
        ));
        let whole = &longer[..longer.len() - 1];
        for cut in 0..whole.len() {
            assert!(decode_ask(&whole[..cut]).is_err());
        }
        // A binary that announces more than there is.
        let huge = [0xc6, 0xff, 0xff, 0xff, 0xff, 1];
        assert!(matches!(
            decode_ask(&huge),
            Err((0, MessageError::Malformed(_)))
        ));
    }
}
