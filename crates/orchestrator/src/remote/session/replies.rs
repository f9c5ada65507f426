//! Requests of one client, and their replies until the client has them.

use std::collections::BTreeMap;

use super::server_events::CallerId;
use crate::conversation::Reply;

/// Requests of one client that are kept, at most: those beyond are not taken until the client has its earlier replies.
const REQUESTS_MAX: usize = 4096;

/// Callers of one request that wait, at most: earlier attempts are not waited for any more.
pub(super) const CALLERS_MAX: usize = 4;

/// What is known of a request.
enum Request {
    /// The core has it, and the callers wait.
    Open(Vec<CallerId>),
    /// The reply.
    Replied(Reply),
}

/// The requests of a client's session.
#[derive(Default)]
pub(super) struct Replies(BTreeMap<u64, Request>);

/// What to do with a request.
pub(super) enum Taken {
    /// It is new: the core is to answer it.
    New,
    /// It was answered.
    Replied(Reply),
    /// The core answers it in time, or it is one too many.
    Waits,
}

// === impl Replies ===

impl Replies {
    /// The client has the replies to all before this number.
    pub(super) fn forget_before(&mut self, number: u64) {
        self.0 = self.0.split_off(&number);
    }

    pub(super) fn ask(&mut self, number: u64, caller: CallerId) -> Taken {
        let is_full = self.0.len() >= REQUESTS_MAX;
        match self.0.get_mut(&number) {
            Some(Request::Replied(reply)) => Taken::Replied(reply.clone()),
            Some(Request::Open(callers)) => {
                if callers.len() == CALLERS_MAX {
                    callers.remove(0);
                }
                callers.push(caller);
                Taken::Waits
            }
            None if is_full => Taken::Waits,
            None => {
                self.0.insert(number, Request::Open(vec![caller]));
                Taken::New
            }
        }
    }

    /// The core has replied. Returns who waits for it.
    pub(super) fn replied(&mut self, number: u64, reply: &Reply) -> Vec<CallerId> {
        let Some(request) = self.0.get_mut(&number) else {
            return Vec::new();
        };
        match std::mem::replace(request, Request::Replied(reply.clone())) {
            Request::Open(callers) => callers,
            Request::Replied(_) => Vec::new(),
        }
    }
}
