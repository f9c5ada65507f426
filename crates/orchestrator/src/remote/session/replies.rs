//! Requests of one client, and their replies until the client acknowledges them.

use std::collections::BTreeMap;

use super::server_events::CallerId;
use crate::conversation::Reply;

/// Maximum number of a client's requests that are kept; further ones are ignored until the client
/// acknowledges earlier replies.
const REQUESTS_MAX: usize = 4096;

/// Maximum number of callers of one request that wait; the callers of the oldest attempts are
/// dropped.
pub(super) const CALLERS_MAX: usize = 4;

/// State of a request.
enum Request {
    /// The core is handling it, and these callers wait.
    Open(Vec<CallerId>),
    /// The reply.
    Replied(Reply),
}

/// The requests of a client's session, by number.
#[derive(Default)]
pub(super) struct Replies(BTreeMap<u64, Request>);

/// Classification of a request by its number.
pub(super) enum RequestStage {
    /// New: to be passed to the core.
    New,
    /// Already answered, with this reply.
    Replied(Reply),
    /// The core is handling it, or there are too many requests.
    Pending,
}

// === impl Replies ===

impl Replies {
    /// Drops the replies to requests before this number, which the client has received.
    pub(super) fn forget_before(&mut self, number: u64) {
        self.0 = self.0.split_off(&number);
    }

    pub(super) fn ask(&mut self, number: u64, caller: CallerId) -> RequestStage {
        let is_full = self.0.len() >= REQUESTS_MAX;
        match self.0.get_mut(&number) {
            Some(Request::Replied(reply)) => RequestStage::Replied(reply.clone()),
            Some(Request::Open(callers)) => {
                if callers.len() == CALLERS_MAX {
                    callers.remove(0);
                }
                callers.push(caller);
                RequestStage::Pending
            }
            None if is_full => RequestStage::Pending,
            None => {
                self.0.insert(number, Request::Open(vec![caller]));
                RequestStage::New
            }
        }
    }

    /// Records the core's reply. Returns the callers that wait for it.
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
