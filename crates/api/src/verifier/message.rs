//! The messages in frames, version 1: MessagePack maps with the fields' names.

use std::time::Duration;

use ::bytes::Bytes;
use proofmill_verifier::{KeyInfo, NoDigest, Status, Verdict, VerdictStats};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::operation::{Operation, ProofToVerify};

/// The version of these messages. Each message names its version, and other versions are refused.
pub const VERSION: u32 = 1;

/// A request with its number, which the client chooses; answers come in any order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request<'a> {
    /// [`VERSION`].
    pub version: u32,
    /// The number of the request, which its answer repeats.
    pub request_id: u64,
    /// The request.
    #[serde(borrow)]
    pub body: RequestBody<'a>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RequestBody<'a> {
    /// Verify a proof; the answer is a result.
    Verify {
        /// The kind's name.
        kind: &'a str,
        /// The digest of the verifying key, in hexadecimal digits; none if the kind has no keys.
        #[serde(default, borrow)]
        key: Option<&'a str>,
        /// The statement, in the kind's encoding.
        #[serde(default, with = "bytes", borrow)]
        statement: &'a [u8],
        /// The proof.
        #[serde(with = "bytes", borrow)]
        proof: &'a [u8],
        /// The proof's source, such as a peer; empty for the client itself.
        #[serde(default, borrow)]
        source: &'a str,
        /// Priority among waiting requests; higher ones go first.
        #[serde(default)]
        priority: u8,
        /// Milliseconds after which a verdict is no longer useful.
        #[serde(default)]
        deadline_ms: Option<u64>,
    },
    /// Cancel the request of that number, which is then answered as unavailable. The answer is a count.
    Cancel {
        /// The number of the request.
        request: u64,
    },
    /// Cancel all requests of a source. The answer is a count.
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
        /// The key's digest.
        key: &'a str,
    },
    /// List the client's verifying keys; the answer is keys.
    ListKeys,
    /// List the kinds of proofs that are taken; the answer is kinds.
    ListKinds,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// [`VERSION`].
    pub version: u32,
    /// The number of the request; 0 if a message was too malformed to read it.
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
        /// The digest, in hexadecimal digits.
        digest: String,
    },
    /// Keys.
    Keys(Vec<KeyEntry>),
    /// Names of kinds.
    Kinds(Vec<String>),
    /// The number of objects that were found and acted on.
    Count(u64),
    /// The request was refused.
    Refused {
        /// The reason, for a person.
        error_message: String,
    },
}

/// A verdict, with the fields of Aztec's service (`VerifyResult` of its `ChonkBatchVerifier`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerificationResult {
    /// The number of the request.
    pub request_id: u64,
    /// [`ResultStatus`] as a number.
    pub status: u8,
    /// The reason of `invalid` or `unavailable`; empty for a valid proof.
    pub error_message: String,
    /// Milliseconds before work on the request began.
    pub time_in_queue_ms: f64,
    /// Milliseconds of work on the request, including the wait for its batch.
    pub time_in_verify_ms: f64,
    /// Number of invalid proofs in the batch.
    pub batch_failure_count: u32,
    /// Number of proofs in the batch.
    pub batch_size: u32,
}

/// The status of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ResultStatus {
    /// The proof is valid.
    Valid = 0,
    /// The proof does not prove its statement.
    Invalid = 1,
    /// There is no verdict.
    Unavailable = 2,
}

/// A key in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyEntry {
    /// The key's digest, in hexadecimal digits.
    pub digest: String,
    /// The kind of proofs that the key is for.
    pub kind: String,
    /// Size of the key in bytes, as it was sent.
    pub bytes: u64,
}

/// The reason that a message is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The frame is not a request.
    #[error("not a request: {0}")]
    Malformed(#[from] rmp_serde::decode::Error),
    /// Bytes follow the request in its frame.
    #[error("not a request: something follows it in its frame")]
    Trailing,
    /// The request has another version.
    #[error("a request of version {0}: this verifier takes version {VERSION}")]
    Version(u32),
}

/// Decodes a request from an untrusted source.
///
/// # Errors
///
/// [`MessageError`], with the number of the request; 0 if the number cannot be read.
pub fn decode_request(frame: &[u8]) -> Result<Request<'_>, (u64, MessageError)> {
    // The fields that all versions have.
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
    let request = Request::deserialize(&mut reader).map_err(|error| (request_id, error.into()))?;
    match IgnoredAny::deserialize(&mut reader) {
        // The error means that not even the first byte of another value follows.
        Err(rmp_serde::decode::Error::InvalidMarkerRead(_)) => Ok(request),
        _ => Err((request_id, MessageError::Trailing)),
    }
}

// === impl RequestBody ===

impl RequestBody<'_> {
    /// The request with owned data; `frame` is the frame that it was decoded from.
    pub(super) fn into_operation(self, frame: &Bytes) -> Result<Operation, NoDigest> {
        Ok(match self {
            Self::Verify {
                kind,
                key,
                statement,
                proof,
                source,
                priority,
                deadline_ms,
            } => Operation::Verify(ProofToVerify {
                kind: kind.to_owned(),
                key: key.map(str::parse).transpose()?,
                statement: frame.slice_ref(statement),
                proof: frame.slice_ref(proof),
                source: source.to_owned(),
                priority,
                deadline: deadline_ms.map(Duration::from_millis),
            }),
            Self::Cancel { request } => Operation::Cancel(request),
            Self::CancelSource { source } => Operation::CancelSource(source.to_owned()),
            Self::AddKey { kind, key } => Operation::AddKey {
                kind: kind.to_owned(),
                key: frame.slice_ref(key),
            },
            Self::RemoveKey { key } => Operation::RemoveKey(key.parse()?),
            Self::ListKeys => Operation::ListKeys,
            Self::ListKinds => Operation::ListKinds,
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

    /// Encodes the answer for sending.
    pub fn encode(&self) -> Vec<u8> {
        rmp_serde::to_vec_named(self).expect("numbers and texts are written to memory")
    }
}

// === impl VerificationResult ===

impl VerificationResult {
    /// The status; none if its number is unknown to this version.
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
        let VerdictStats {
            queue_us,
            verify_us,
            batch,
            batch_failures,
        } = verdict.stats;
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
    /// The name: `valid`, `invalid` or `unavailable`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Encoding of bytes in MessagePack's binary format, not as a list of numbers. Decoded bytes are borrowed from the frame.
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

    fn request() -> Request<'static> {
        Request {
            version: VERSION,
            request_id: 7,
            body: RequestBody::Verify {
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
        let bytes = rmp_serde::to_vec_named(&request()).unwrap();
        assert_eq!(decode_request(&bytes).unwrap(), request());
        for body in [RequestBody::ListKeys, RequestBody::Cancel { request: 3 }] {
            let request = Request { body, ..request() };
            let bytes = rmp_serde::to_vec_named(&request).unwrap();
            assert_eq!(decode_request(&bytes).unwrap(), request);
        }
    }

    #[test]
    fn malformed_requests_are_refused_with_their_number() {
        let other = rmp_serde::to_vec_named(&Request {
            version: 2,
            ..request()
        })
        .unwrap();
        assert!(matches!(
            decode_request(&other),
            Err((7, MessageError::Version(2)))
        ));
        let mut longer = rmp_serde::to_vec_named(&request()).unwrap();
        longer.push(0);
        assert!(matches!(
            decode_request(&longer),
            Err((7, MessageError::Trailing))
        ));
        let whole = &longer[..longer.len() - 1];
        for cut in 0..whole.len() {
            assert!(decode_request(&whole[..cut]).is_err());
        }
        // A binary value that announces more bytes than there are.
        let huge = [0xc6, 0xff, 0xff, 0xff, 0xff, 1];
        assert!(matches!(
            decode_request(&huge),
            Err((0, MessageError::Malformed(_)))
        ));
    }
}
