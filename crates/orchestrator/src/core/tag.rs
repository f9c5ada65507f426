//! Tags of leases: proof that a coordinator of the workflow gave a lease to a worker.
//!
//! A tag is a message authentication code over all data of a lease, under a key that is drawn once for a
//! workflow and lies in its log, which only coordinators read. So a coordinator keeps no table of the leases
//! that it gave: the current leader can verify the tag of a late result, of a lease that another coordinator
//! gave before a failover, and of a lease whose worker it does not know yet. A worker cannot name a lease
//! that it was not given, even with another worker's credentials.

use std::fmt;

use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::record::TaskRecord;

/// Length of the key, bytes.
pub const LEASE_KEY_BYTES: usize = 32;

/// The tag of a lease: the first 128 bits of HMAC-SHA256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaseTag([u8; 16]);

/// Key with which a workflow's coordinators tag leases. Its `Debug` output hides it.
pub struct LeaseKey(hmac::Key);

// === impl LeaseTag ===

impl LeaseTag {
    /// A tag with these bytes, as claimed by a peer.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for LeaseTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseTag(…)")
    }
}

// === impl LeaseKey ===

impl LeaseKey {
    /// A key with these bytes.
    pub fn new(bytes: &[u8; LEASE_KEY_BYTES]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// Whether `tag` is the tag of this lease. Runs in constant time.
    pub fn verify(
        &self,
        tag: LeaseTag,
        worker: &str,
        task: &TaskRecord,
        content: &[u8; 32],
        attempt: u32,
    ) -> bool {
        let expected = self.tag(worker, task, content, attempt);
        let differences = expected.0.iter().zip(tag.0).map(|(a, b)| a ^ b);
        differences.fold(0, |all, one| all | one) == 0
    }

    /// Tag of the lease of `task` given to `worker` as attempt number `attempt`; `content` is the task's
    /// [`TaskRecord::content`].
    pub fn tag(
        &self,
        worker: &str,
        task: &TaskRecord,
        content: &[u8; 32],
        attempt: u32,
    ) -> LeaseTag {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(b"proofmill lease 1\0");
        for text in [worker, &task.id.stage, task.id.part.as_str()] {
            context.update(&(text.len() as u64).to_le_bytes());
            context.update(text.as_bytes());
        }
        context.update(&task.id.block.to_le_bytes());
        context.update(&attempt.to_le_bytes());
        context.update(content);
        let mut tag = [0; 16];
        tag.copy_from_slice(&context.sign().as_ref()[..16]);
        LeaseTag(tag)
    }
}

impl fmt::Debug for LeaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Part, TaskId};

    fn task(stage: &str, block: u64, part: &str) -> TaskRecord {
        TaskRecord::for_tests(TaskId {
            stage: stage.into(),
            block,
            part: Part::new(part).unwrap(),
        })
    }

    #[test]
    fn a_tag_is_of_one_lease_alone() {
        let key = LeaseKey::new(&[7; LEASE_KEY_BYTES]);
        let content = [1; 32];
        let of = |worker, task: &TaskRecord, attempt| key.tag(worker, task, &content, attempt);
        let tag = of("w", &task("prove", 1, "0"), 1);
        assert_eq!(tag, of("w", &task("prove", 1, "0"), 1));
        for other in [
            of("v", &task("prove", 1, "0"), 1),
            of("w", &task("verify", 1, "0"), 1),
            of("w", &task("prove", 2, "0"), 1),
            of("w", &task("prove", 1, "1"), 1),
            of("w", &task("prove", 1, "0"), 2),
            // The length prefixes keep adjacent texts apart.
            of("wp", &task("rove", 1, "0"), 1),
            key.tag("w", &task("prove", 1, "0"), &[2; 32], 1),
            LeaseKey::new(&[8; LEASE_KEY_BYTES]).tag("w", &task("prove", 1, "0"), &content, 1),
        ] {
            assert_ne!(tag, other);
        }
    }
}
