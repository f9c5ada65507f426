//! Origins of payloads, as recorded by the core: the reference with which a verifier compares a
//! result.
//!
//! A result is a worker's claim; its origin is not: the core computes the digest of the payload
//! that a source or a producer submitted, and passes it on with every result derived from it. So a
//! prover that verifies knows the statement without relying on the worker that proved it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::payload::Payload;

/// Prefix of the input of [`digest_of_several`].
const SEVERAL: &[u8] = b"proofmill origins v1\0";

/// Prefix of the hash input for a group's payload.
const GROUP: &[u8] = b"proofmill group v1\0";

/// The origin of one or several payloads that were submitted, or are results for the same task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// The dispatcher stage whose results the payloads are; `None` for submitted payloads.
    pub stage: Option<Arc<str>>,
    /// First block of the submission.
    pub first: u64,
    /// Last block of the submission, inclusive.
    pub last: u64,
    /// SHA-256 of the submitted payload. For the result of a task on a group, the digest of its
    /// members' origins, computed by [`digest_of_several`].
    pub digest: [u8; 32],
    /// Number of the task's payloads with this origin: one, or the number of results that the stage
    /// accepts.
    pub payloads: u32,
}

/// The origins of all payloads of a task, in their order: one for a message that no collector has
/// gathered, several for a group. Empty if unknown: the record was written by a version that did
/// not record them.
pub type Origins = Arc<[Origin]>;

/// The origin of a message submitted from outside the workflow's stages.
pub(crate) fn submitted(first: u64, last: u64, payload: &Payload) -> Origins {
    [Origin {
        stage: None,
        first,
        last,
        digest: digest_of_payload(payload),
        payloads: leaves(payload),
    }]
    .into()
}

/// The origin of `payload`, a result of `stage` for a task with the origins `of`.
pub(crate) fn made_by(stage: &Arc<str>, of: &Origins, payload: &Payload) -> Origins {
    let (digest, first, last) = match &**of {
        [] => return Origins::default(),
        [one] => (one.digest, one.first, one.last),
        several => (
            digest_of_several(several),
            several.iter().map(|of| of.first).min().unwrap_or(0),
            several.iter().map(|of| of.last).max().unwrap_or(0),
        ),
    };
    [Origin {
        stage: Some(stage.clone()),
        first,
        last,
        digest,
        payloads: leaves(payload),
    }]
    .into()
}

/// The origins of a group of tasks, in the order of its members.
pub(crate) fn together<'a>(members: impl Iterator<Item = &'a Origins>) -> Origins {
    let mut all = Vec::new();
    for origins in members {
        if origins.is_empty() {
            return Origins::default();
        }
        all.extend_from_slice(origins);
    }
    all.into()
}

/// SHA-256 of a payload's bytes. A blob has the same digest, so it does not depend on where the
/// bytes are stored. For a group, the hash of its members' digests.
pub fn digest_of_payload(payload: &Payload) -> [u8; 32] {
    match payload {
        Payload::Inline { bytes, .. } => Sha256::digest(bytes).into(),
        Payload::Blob { digest, .. } => *digest,
        Payload::Group { members, .. } => {
            let mut hasher = Sha256::new_with_prefix(GROUP);
            for (_, member) in members {
                hasher.update(digest_of_payload(member));
            }
            hasher.finalize().into()
        }
    }
}

/// SHA-256 of `proofmill origins v1`, a zero byte, and for each origin its first block, its last
/// block (8 little-endian bytes each) and its digest.
pub fn digest_of_several(origins: &[Origin]) -> [u8; 32] {
    let mut hasher = Sha256::new_with_prefix(SEVERAL);
    for origin in origins {
        hasher.update(origin.first.to_le_bytes());
        hasher.update(origin.last.to_le_bytes());
        hasher.update(origin.digest);
    }
    hasher.finalize().into()
}

/// Number of messages in a payload: 1, or those of all members of a group.
pub(crate) fn leaves(payload: &Payload) -> u32 {
    match payload {
        Payload::Inline { .. } | Payload::Blob { .. } => 1,
        Payload::Group { members, .. } => members
            .iter()
            .fold(0, |sum, (_, member)| leaves(member).saturating_add(sum)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &str) -> Arc<str> {
        name.into()
    }

    #[test]
    fn a_result_keeps_the_digest_of_what_was_submitted_whatever_the_worker_made() {
        let source = submitted(4, 7, &Payload::binary(&b"headers"[..]));
        let expected: [u8; 32] = Sha256::digest(b"headers").into();
        assert_eq!(source[0].digest, expected);
        let proof = made_by(&stage("prove"), &source, &Payload::binary(&b"lies"[..]));
        let verified = made_by(&stage("verify"), &proof, &Payload::json(&b"{}"[..]));
        assert_eq!(verified[0].digest, expected);
        assert_eq!((verified[0].first, verified[0].last), (4, 7));
        assert_eq!(verified[0].stage.as_deref(), Some("verify"));
    }

    #[test]
    fn where_the_bytes_are_does_not_matter() {
        let digest: [u8; 32] = Sha256::digest(b"headers").into();
        let blob = Payload::Blob {
            encoding: crate::payload::Encoding::Binary,
            digest,
            len: 7,
        };
        let inline = Payload::binary(&b"headers"[..]);
        assert_eq!(submitted(0, 0, &blob), submitted(0, 0, &inline));
    }

    #[test]
    fn digests_of_groups_are_pinned() {
        let one = submitted(0, 1, &Payload::binary(&b"a"[..]));
        let two = submitted(2, 3, &Payload::binary(&b"b"[..]));
        let group = together([&one, &two].into_iter());
        assert_eq!(group.len(), 2);
        let made = made_by(&stage("aggregate"), &group, &Payload::json(&b"1"[..]));
        assert_eq!((made[0].first, made[0].last, made.len()), (0, 3, 1));
        assert_eq!(
            hex::encode(made[0].digest),
            "54cfc919afa8dc5631c5eb7a41642ab193dd093e42febb7d9d700ed7a3f79bcf"
        );
        // If the origin of one member is unknown, so is that of the group.
        let unknown = Origins::default();
        assert!(together([&one, &unknown].into_iter()).is_empty());
        assert!(made_by(&stage("s"), &unknown, &Payload::json("1")).is_empty());
    }
}
