//! The blobs that a client names in what it has not been answered yet: nobody else knows of them.

use proofmill_bus::Digest;

use super::wire::{Said, What};
use crate::coordinator::Asked;
use crate::payload::Payload;

// === impl Said ===

impl Said {
    /// The blobs that it names.
    pub(super) fn blobs(&self) -> Vec<Digest> {
        let Self::Complete(complete) = self else {
            return Vec::new();
        };
        let mut blobs = Vec::new();
        for output in &complete.outputs {
            collect(&output.payload, &mut blobs);
        }
        blobs
    }
}

// === impl What ===

impl What {
    /// The blobs that it names.
    pub(super) fn blobs(&self) -> Vec<Digest> {
        match self {
            Self::Events { events, .. } => events.iter().flat_map(Said::blobs).collect(),
            Self::Ask {
                asked: Asked::Submit(request),
                ..
            } => {
                let mut blobs = Vec::new();
                collect(&request.message.payload, &mut blobs);
                blobs
            }
            _ => Vec::new(),
        }
    }

    /// Leaves out what names a lost blob. Results are handed back as if nobody had tried: this process
    /// was stopped or cut off for so long that what it had made was swept. Whether that was possible:
    /// a message from outside cannot be made again here.
    pub(super) fn give_up(&mut self, lost: &[Digest]) -> bool {
        let Self::Events { events, .. } = self else {
            return false;
        };
        for said in events {
            let is_lost = said.blobs().iter().any(|blob| lost.contains(blob));
            if let (true, Said::Complete(complete)) = (is_lost, &*said) {
                *said = Said::Release(complete.worker.clone(), complete.lease.clone());
            }
        }
        true
    }
}

fn collect(payload: &Payload, blobs: &mut Vec<Digest>) {
    payload.each_blob(&mut |digest| blobs.push(Digest::from(*digest)));
}
