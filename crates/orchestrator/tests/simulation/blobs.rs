//! The store of large payloads, and the sweeps that remove unreferenced ones.
//!
//! A put and a renewal give a blob a new version. The sweeper deletes a blob that it has seen unreferenced
//! and unchanged in two scans that are a grace period apart. It does not know which process holds which blob.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proofmill_bus::{Op, Seq, UnreferencedSince};
use proofmill_orchestrator::conversation::{Output, WorkerEvent};
use proofmill_orchestrator::payload::{Encoding, Payload};
use proofmill_orchestrator::record::Record;

use crate::world::{Checked, Ev, World};

pub(crate) type Digest = [u8; 32];

/// Time between two scans.
const EVERY_MS: u64 = 600;

/// Grace period; far longer than any message is on its way.
const GRACE_MS: u64 = 2_500;

/// Time without a renewal after which a worker checks whether the blobs that it holds still exist.
const DOUBTFUL_AFTER_MS: u64 = 1_200;

#[derive(Default)]
pub(crate) struct SimBlobs {
    there: BTreeMap<Digest, u64>,
    puts: u64,
    unreferenced: Option<UnreferencedSince<Digest, u64>>,
    /// Blobs to remove, each with the number of its put, and the sequence number up to which the log must be
    /// durable first.
    due: Option<(Vec<(Digest, u64)>, Seq)>,
    pub(crate) swept: u64,
}

impl SimBlobs {
    fn put(&mut self, digest: Digest) {
        self.puts += 1;
        self.there.insert(digest, self.puts);
    }

    /// Discards the sweeper's observations, since a new coordinator has none.
    pub(crate) fn coordinator_died(&mut self) {
        self.unreferenced = None;
        self.due = None;
    }

    /// Whether a worker can report a result, `age_ms` after its blobs were last renewed.
    pub(crate) fn renew(&mut self, result: &WorkerEvent, age_ms: u64) -> bool {
        let WorkerEvent::Complete(complete) = result else {
            return true;
        };
        let mut named = Vec::new();
        for output in &complete.outputs {
            output.payload.each_blob(&mut |digest| named.push(*digest));
        }
        if age_ms > DOUBTFUL_AFTER_MS && !named.iter().all(|digest| self.there.contains_key(digest))
        {
            return false;
        }
        for digest in named {
            if self.there.contains_key(&digest) {
                self.put(digest);
            }
        }
        true
    }
}

impl World {
    /// Stores an inline payload as a blob, in worlds that have blobs.
    pub(crate) fn store(&mut self, payload: Payload) -> Payload {
        let Payload::Inline { bytes, .. } = &payload else {
            return payload;
        };
        if !self.has_blobs() {
            return payload;
        }
        let mut digest = Digest::default();
        let hash = crate::actors::digest(&payload);
        digest[..8].copy_from_slice(&hash.to_le_bytes());
        self.blobs.put(digest);
        Payload::Blob {
            encoding: Encoding::Json,
            digest,
            len: bytes.len() as u64,
        }
    }

    pub(crate) fn store_outputs(&mut self, outputs: Vec<Output>) -> Vec<Output> {
        let store = |output: Output| Output {
            payload: self.store(output.payload),
            ..output
        };
        outputs.into_iter().map(store).collect()
    }

    pub(crate) fn has_blobs(&self) -> bool {
        self.seed % 3 == 1 && !self.scene.chain
    }

    pub(crate) fn sweep(&mut self) -> Checked {
        self.after(EVERY_MS, Ev::Sweep);
        let Some(core) = &self.core else {
            return Ok(());
        };
        if self.blobs.due.is_some() {
            return Ok(());
        }
        let live = core.live_blobs();
        let found = self.blobs.there.iter();
        let found = found.filter(|(digest, _)| !live.contains(*digest));
        let found: Vec<(Digest, u64)> = found.map(|(digest, put)| (*digest, *put)).collect();
        let grace = Duration::from_millis(GRACE_MS);
        let unreferenced = &mut self.blobs.unreferenced;
        let unreferenced = unreferenced.get_or_insert_with(|| UnreferencedSince::new(grace));
        let due = unreferenced.record_scan(Duration::from_millis(self.now_ms), found);
        if !due.is_empty() {
            self.blobs.due = Some((due, self.log.last()));
        }
        self.remove_due()
    }

    /// Removes the blobs that are due, once the records that ended the references to them are durable.
    pub(crate) fn remove_due(&mut self) -> Checked {
        let durable = self.log.durable();
        let ripe = self.blobs.due.take_if(|(_, after)| *after <= durable);
        let Some((due, _)) = ripe else { return Ok(()) };
        let mut removed = BTreeSet::new();
        for (digest, seen) in due {
            if self.blobs.there.get(&digest) == Some(&seen) {
                self.blobs.there.remove(&digest);
                self.blobs.swept += 1;
                removed.insert(digest);
            }
        }
        for (key, value) in self.log.values() {
            let record = Record::decode(key, value).map_err(|error| error.to_string())?;
            let mut lost = false;
            if let Some(payload) = record.payload() {
                payload.each_blob(&mut |digest| lost |= removed.contains(digest));
            }
            if lost {
                return Err(format!("(n) a blob was swept that {key} names"));
            }
        }
        Ok(())
    }

    /// (n) Every blob that a durable batch refers to exists.
    pub(crate) fn check_named(&self, ops: &[Op]) -> Checked {
        if !self.has_blobs() {
            return Ok(());
        }
        for op in ops {
            let Op::Put { key, value, .. } = op else {
                continue;
            };
            let record = Record::decode(key.as_str(), value).map_err(|error| error.to_string())?;
            self.check_record(key.as_str(), &record)?;
        }
        Ok(())
    }

    fn check_record(&self, key: &str, record: &Record) -> Checked {
        let mut missing = false;
        if let Some(payload) = record.payload() {
            payload.each_blob(&mut |digest| missing |= !self.blobs.there.contains_key(digest));
        }
        match missing {
            true => Err(format!("(n) {key} names a blob that is not there")),
            false => Ok(()),
        }
    }
}
