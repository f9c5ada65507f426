//! Identifiers of jobs, requests and circuits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

/// Domain separator in the hash of a job's id. It has a version number, so that another version gives other
/// ids.
const JOB_DOMAIN: &[u8] = b"proofmill/engine/job/1";

/// A job's identifier: the first 16 bytes of a hash of the client and its request id. The same request is
/// the same job, from any caller and after a restart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub [u8; 16]);

/// A circuit's identifier, together with its key: SHA-256 over the proof system, the curve, the
/// constraints' digest and the key file's digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CircuitId(pub [u8; 32]);

/// A text that is not an identifier of the expected kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an id: expected {digits} lower-case hexadecimal digits")]
pub struct InvalidId {
    /// Number of digits of a valid identifier.
    pub digits: usize,
}

/// A client's name, and the client's own id of a request: each 1 to 128 bytes of printable ASCII without
/// space. A second submission under the same id is the same request.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId {
    client: String,
    request: String,
}

// === impl JobId ===

impl JobId {
    pub(crate) fn of(request: &RequestId) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(JOB_DOMAIN);
        for part in [&request.client, &request.request] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let mut id = [0; 16];
        id.copy_from_slice(&hasher.finalize()[..16]);
        Self(id)
    }
}

// === impl RequestId ===

impl RequestId {
    /// Longest client name and longest request id, in bytes.
    pub const MAX_BYTES: usize = 128;

    /// The request `request` of `client`. Requests of different clients never collide, since the client's
    /// name is part of the id.
    ///
    /// # Errors
    ///
    /// A message that says which of the two is empty, too long or not printable ASCII.
    pub fn new(client: impl Into<String>, request: impl Into<String>) -> Result<Self, String> {
        let (client, request) = (client.into(), request.into());
        for (what, text) in [("client name", &client), ("request id", &request)] {
            let printable = text.bytes().all(|byte| byte.is_ascii_graphic());
            if text.is_empty() || text.len() > Self::MAX_BYTES || !printable {
                return Err(format!(
                    "a {what} has 1 to {} characters of printable ASCII without space",
                    Self::MAX_BYTES
                ));
            }
        }
        Ok(Self { client, request })
    }

    /// The client's name; quotas are counted for each client.
    pub fn client(&self) -> &str {
        &self.client
    }

    /// The client's own id of the request.
    pub fn request(&self) -> &str {
        &self.request
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.client, self.request)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({self})")
    }
}

/// Implements `Display`, `FromStr` and `serde` traits: hexadecimal digits in text formats, bytes in binary
/// formats.
macro_rules! hexadecimal {
    ($($id:ident)*) => {$(
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(self.0))
            }
        }

        impl fmt::Debug for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($id), "({})"), self)
            }
        }

        impl FromStr for $id {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let mut bytes = Self([0; _]);
                let digits = 2 * bytes.0.len();
                // Upper case is refused: an id has one spelling.
                let upper = text.bytes().any(|byte| byte.is_ascii_uppercase());
                if upper || hex::decode_to_slice(text, &mut bytes.0).is_err() {
                    return Err(InvalidId { digits });
                }
                Ok(bytes)
            }
        }

        impl Serialize for $id {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(self)
                } else {
                    self.0.serialize(serializer)
                }
            }
        }

        impl<'de> Deserialize<'de> for $id {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    let text = String::deserialize(deserializer)?;
                    text.parse().map_err(de::Error::custom)
                } else {
                    Deserialize::deserialize(deserializer).map(Self)
                }
            }
        }
    )*};
}

hexadecimal! { JobId CircuitId }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_different_clients_are_different_jobs() {
        let id = |client: &str, request: &str| JobId::of(&RequestId::new(client, request).unwrap());
        assert_eq!(id("a", "1"), id("a", "1"));
        assert_ne!(id("a", "1"), id("b", "1"));
        assert_ne!(id("a", "bc"), id("ab", "c"));
    }

    #[test]
    fn ids_are_read_as_they_are_shown() {
        let id = JobId::of(&RequestId::new("a", "1").unwrap());
        assert_eq!(id.to_string().parse(), Ok(id));
        let text = id.to_string();
        for bad in ["", &text[1..], &text.to_uppercase().replace('0', "A")] {
            assert_eq!(bad.parse::<JobId>(), Err(InvalidId { digits: 32 }));
        }
    }

    #[test]
    fn names_are_printable_and_bounded() {
        for bad in ["", "a b", "ä", &"x".repeat(129)] {
            assert!(
                RequestId::new("client", bad)
                    .unwrap_err()
                    .contains("request id")
            );
            assert!(
                RequestId::new(bad, "request")
                    .unwrap_err()
                    .contains("client name")
            );
        }
    }
}
