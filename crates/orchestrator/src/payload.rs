//! Payloads of tasks.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};

use crate::identity::Identity;

/// Payloads up to this many bytes are stored in the record; larger ones are blobs.
pub const INLINE_LIMIT: usize = 64 * 1024;

/// Encoding of a payload's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Encoding {
    /// UTF-8 JSON: the input and output of process executors.
    Json,
    /// A format agreed between the native provers that write and read it.
    Binary,
}

/// Maximum nesting of groups, including the outermost: batches of blocks, bundles of batches, joins
/// with the boundaries of bundles (examples/proposer-flow has three levels), and results of several
/// workers among them. Only the core makes groups: a message that carries one is refused.
pub const NESTING_MAX: usize = 4;

/// A task's payload, or a reference to it. The core passes payloads on without reading them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Payload {
    /// The bytes themselves.
    Inline {
        /// Encoding of `bytes`.
        encoding: Encoding,
        /// The content, at most [`INLINE_LIMIT`] bytes.
        bytes: Bytes,
    },
    /// A blob of the content-addressed store.
    Blob {
        /// Encoding of the blob's content.
        encoding: Encoding,
        /// SHA-256 of the bytes.
        digest: [u8; 32],
        /// Length in bytes.
        len: u64,
    },
    /// The payloads of a collector's group, in order of (first block, queue, part); or several
    /// results of one task, in order of their workers' distinct names.
    Group {
        /// Whether the collector reads several queues: a program then gets an object that maps each
        /// queue to an array, else one array.
        by_queue: bool,
        /// Each member with the queue it came from, or with the distinct name of its worker.
        members: Vec<(Arc<str>, Payload)>,
    },
}

// === impl Encoding ===

impl Encoding {
    fn number(self) -> u64 {
        match self {
            Self::Json => 0,
            Self::Binary => 1,
        }
    }
}

// === impl Payload ===

impl Payload {
    /// An inline JSON payload. The caller has checked that `bytes` are JSON.
    pub fn json(bytes: impl Into<Bytes>) -> Self {
        Self::Inline {
            encoding: Encoding::Json,
            bytes: bytes.into(),
        }
    }

    /// An inline binary payload.
    pub fn binary(bytes: impl Into<Bytes>) -> Self {
        Self::Inline {
            encoding: Encoding::Binary,
            bytes: bytes.into(),
        }
    }

    /// Number of bytes, including those of blobs.
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline { bytes, .. } => bytes.len() as u64,
            Self::Blob { len, .. } => *len,
            Self::Group { members, .. } => members.iter().map(|(_, member)| member.len()).sum(),
        }
    }

    /// Whether the payload has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the payload that are in the record itself.
    pub(crate) fn inline_len(&self) -> usize {
        match self {
            Self::Inline { bytes, .. } => bytes.len(),
            Self::Blob { .. } => 0,
            Self::Group { members, .. } => members.iter().map(|(_, one)| one.inline_len()).sum(),
        }
    }

    /// Nesting of groups, including the outermost; 0 if the payload is not a group.
    pub fn nesting(&self) -> usize {
        match self {
            Self::Inline { .. } | Self::Blob { .. } => 0,
            Self::Group { members, .. } => {
                let deepest = members.iter().map(|(_, member)| member.nesting()).max();
                1 + deepest.unwrap_or(0)
            }
        }
    }

    /// Adds the payload to a hash of an identity.
    pub(crate) fn identify(&self, identity: &mut Identity) {
        match self {
            Self::Inline { encoding, bytes } => {
                identity.number(0);
                identity.number(encoding.number());
                identity.bytes(bytes);
            }
            Self::Blob {
                encoding,
                digest,
                len,
            } => {
                identity.number(1);
                identity.number(encoding.number());
                identity.bytes(digest);
                identity.number(*len);
            }
            Self::Group { by_queue, members } => {
                identity.number(2);
                identity.flag(*by_queue);
                identity.size(members.len());
                for (name, member) in members {
                    identity.text(name);
                    member.identify(identity);
                }
            }
        }
    }

    /// Calls `visit` with the digest of each blob that the payload refers to.
    pub fn each_blob(&self, visit: &mut impl FnMut(&[u8; 32])) {
        match self {
            Self::Inline { .. } => {}
            Self::Blob { digest, .. } => visit(digest),
            Self::Group { members, .. } => {
                members
                    .iter()
                    .for_each(|(_, member)| member.each_blob(visit));
            }
        }
    }
}

/// A payload during decoding, with members of type `M`: the depth is bounded by the type and not by
/// the sender.
#[derive(Deserialize)]
#[serde(rename = "Payload")]
enum Decoded<M> {
    Inline {
        encoding: Encoding,
        bytes: Bytes,
    },
    Blob {
        encoding: Encoding,
        digest: [u8; 32],
        len: u64,
    },
    Group {
        by_queue: bool,
        members: Vec<(Arc<str>, M)>,
    },
}

/// A member that cannot be a group.
#[derive(Deserialize)]
#[serde(rename = "Payload")]
enum Leaf {
    Inline {
        encoding: Encoding,
        bytes: Bytes,
    },
    Blob {
        encoding: Encoding,
        digest: [u8; 32],
        len: u64,
    },
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // `Decoded` is nested NESTING_MAX times.
        Decoded::<Decoded<Decoded<Decoded<Leaf>>>>::deserialize(deserializer).map(Self::from)
    }
}

impl<M: Into<Payload>> From<Decoded<M>> for Payload {
    fn from(decoded: Decoded<M>) -> Self {
        match decoded {
            Decoded::Inline { encoding, bytes } => Self::Inline { encoding, bytes },
            Decoded::Blob {
                encoding,
                digest,
                len,
            } => Self::Blob {
                encoding,
                digest,
                len,
            },
            Decoded::Group { by_queue, members } => {
                let members = members.into_iter();
                let members = members.map(|(name, member)| (name, member.into()));
                Self::Group {
                    by_queue,
                    members: members.collect(),
                }
            }
        }
    }
}

impl From<Leaf> for Payload {
    fn from(leaf: Leaf) -> Self {
        match leaf {
            Leaf::Inline { encoding, bytes } => Self::Inline { encoding, bytes },
            Leaf::Blob {
                encoding,
                digest,
                len,
            } => Self::Blob {
                encoding,
                digest,
                len,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(members: Vec<Payload>) -> Payload {
        let members = members.into_iter().map(|member| ("q".into(), member));
        Payload::Group {
            by_queue: true,
            members: members.collect(),
        }
    }

    fn blob() -> Payload {
        Payload::Blob {
            encoding: Encoding::Binary,
            digest: [7; 32],
            len: 1 << 40,
        }
    }

    #[test]
    fn payloads_up_to_the_nesting_limit_round_trip() {
        let mut most = Payload::json("1");
        for _ in 0..NESTING_MAX {
            most = group(vec![most, blob()]);
        }
        assert_eq!(most.nesting(), NESTING_MAX);
        for payload in [Payload::json("{}"), Payload::binary("x"), blob(), most] {
            let bytes = postcard::to_stdvec(&payload).expect("encodes");
            assert_eq!(
                postcard::from_bytes::<Payload>(&bytes).expect("ours"),
                payload
            );
        }
    }

    #[test]
    fn ten_thousand_nested_groups_are_refused_without_recursion() {
        // Each level consists of the variant, by_queue, the number of members (1) and an empty
        // name.
        let mut bytes = [2, 0, 1, 0].repeat(10_000);
        bytes.extend([2, 0, 0]);
        assert!(postcard::from_bytes::<Payload>(&bytes).is_err());
        let mut more = group(vec![]);
        for _ in 0..NESTING_MAX {
            more = group(vec![more]);
        }
        let bytes = postcard::to_stdvec(&more).expect("encodes");
        assert!(postcard::from_bytes::<Payload>(&bytes).is_err());
    }

    /// Running workflows compare these values across processes and releases, so they must never
    /// change.
    #[test]
    fn the_identity_of_a_payload_is_pinned() {
        let of = |payload: &Payload| {
            let mut identity = Identity::new("test");
            payload.identify(&mut identity);
            hex::encode(identity.finish())
        };
        let pinned = [
            (
                Payload::json("{}"),
                "32bd719aa2406ff5470c27768ec48e9a2fdfd2a9f0f91422c3a8156915ccdcfe",
            ),
            (
                blob(),
                "45c5d8449ccef1cdbf961f4563f25352ec07915b74fc34b88caf8a8cc72b0fd8",
            ),
            (
                group(vec![Payload::binary("x"), blob()]),
                "bb1b68132bec1c281e017f234adc90751c28596981e1a44a4333865b8f80ee39",
            ),
        ];
        for (payload, expected) in pinned {
            assert_eq!(of(&payload), expected, "{payload:?}");
        }
    }
}
