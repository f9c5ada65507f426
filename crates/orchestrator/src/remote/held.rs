//! The blobs in a client's unanswered calls, to which no record refers yet.

use proofmill_bus::Digest;

use super::wire::CallBody;
use crate::conversation::{Request, RoleEvent, WorkerEvent};
use crate::payload::Payload;

/// The blobs that an event refers to.
pub(super) fn blobs_of(event: &RoleEvent) -> Vec<Digest> {
    let RoleEvent::Worker(WorkerEvent::Complete(complete)) = event else {
        return Vec::new();
    };
    let mut blobs = Vec::new();
    for output in &complete.outputs {
        collect(&output.payload, &mut blobs);
    }
    blobs
}

// === impl CallBody ===

impl CallBody {
    /// The blobs that the call refers to.
    pub(super) fn blobs(&self) -> Vec<Digest> {
        match self {
            Self::Events { events, .. } => events.iter().flat_map(blobs_of).collect(),
            Self::Request {
                request: Request::Submit(submit),
                ..
            } => {
                let mut blobs = Vec::new();
                collect(&submit.message.payload, &mut blobs);
                blobs
            }
            _ => Vec::new(),
        }
    }

    /// Removes references to lost blobs. Such results are released as if the task had not been
    /// tried: this process was stopped or cut off for so long that its blobs were swept. Returns
    /// `false` if that is impossible, because a message from outside cannot be made again here.
    pub(super) fn release_lost_results(&mut self, lost: &[Digest]) -> bool {
        let Self::Events { events, .. } = self else {
            return false;
        };
        for event in events {
            let is_lost = blobs_of(event).iter().any(|blob| lost.contains(blob));
            if let (true, RoleEvent::Worker(WorkerEvent::Complete(complete))) = (is_lost, &*event) {
                *event = RoleEvent::Worker(WorkerEvent::Release {
                    worker: complete.worker.clone(),
                    lease: complete.lease.clone(),
                });
            }
        }
        true
    }
}

fn collect(payload: &Payload, blobs: &mut Vec<Digest>) {
    payload.each_blob(&mut |digest| blobs.push(Digest::from(*digest)));
}
