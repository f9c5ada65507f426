//! Verification of this process's leadership when a client claims that there is a later leader.

use std::time::Duration;

use super::super::wire::Call;
use super::server_events::CallerId;
use crate::core::Time;

/// Time after a successful check of the lease during which it is not checked again, however many
/// clients doubt it.
const CONFIRMED_FOR: Duration = Duration::from_millis(250);

/// Maximum number of calls that wait for a check of the lease; the clients repeat the others.
const DOUBTING_MAX: usize = 1024;

/// The leadership that this process holds, or held.
///
/// A client's claim that there is a later leader only causes a check of the lease: a client that
/// lies causes at most one check per quarter of a second.
pub(super) struct Leadership {
    term: u64,
    confirmed_until: Time,
    /// Highest term known when the last successful check began: the check says nothing about higher
    /// ones.
    confirmed_term: u64,
    /// Highest term claimed by a client.
    heard_term: u64,
    looking: bool,
    /// Highest term known when the current check began.
    look_term: u64,
    lost: bool,
    /// Calls that wait for the current check.
    doubting: Vec<(CallerId, Call)>,
    /// Calls that arrived after it began and wait for the next.
    doubting_next: Vec<(CallerId, Call)>,
}

/// The decision on a call.
pub(super) enum Doubt {
    /// It is accepted now.
    None(Box<Call>),
    /// It waits for a check of the lease; `look` is whether to begin the check now.
    Waits { look: bool },
    /// It is not accepted: another process leads.
    Lost,
}

// === impl Leadership ===

impl Leadership {
    pub(super) fn new(term: u64) -> Self {
        Self {
            term,
            confirmed_until: Time(0),
            confirmed_term: 0,
            heard_term: 0,
            looking: false,
            look_term: 0,
            lost: false,
            doubting: Vec::new(),
            doubting_next: Vec::new(),
        }
    }

    pub(super) fn term(&self) -> u64 {
        self.term
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Decides on an admitted call of a client that knows a leader of term `call.term`. With
    /// `always` the lease is checked whatever the client knows, since the answer must not be an
    /// earlier leader's.
    pub(super) fn doubt(&mut self, now: Time, caller: CallerId, call: Call, always: bool) -> Doubt {
        if self.lost {
            return Doubt::Lost;
        }
        self.heard_term = self.heard_term.max(call.term);
        let is_confirmed = now < self.confirmed_until && call.term <= self.confirmed_term;
        if !always && (call.term <= self.term || is_confirmed) {
            return Doubt::None(Box::new(call));
        }
        let waiting = match self.looking {
            true => &mut self.doubting_next,
            false => &mut self.doubting,
        };
        if waiting.len() < DOUBTING_MAX {
            waiting.push((caller, call));
        }
        Doubt::Waits {
            look: self.begin_look(),
        }
    }

    /// Handles the claim that there is a later leader. Returns whether to check the lease now.
    pub(super) fn is_doubted(&mut self, now: Time) -> bool {
        !self.lost && now >= self.confirmed_until && self.begin_look()
    }

    fn begin_look(&mut self) -> bool {
        if std::mem::replace(&mut self.looking, true) {
            return false;
        }
        self.look_term = self.heard_term;
        true
    }

    /// Whether a further check is needed for waiting calls; if so, it begins.
    pub(super) fn looks_again(&mut self) -> bool {
        !self.lost && !self.doubting.is_empty() && self.begin_look()
    }

    /// Handles the result of a check; `None` means that it was not possible. Returns the waiting
    /// calls that are accepted now; the clients repeat the others.
    pub(super) fn looked(&mut self, now: Time, is_held: Option<bool>) -> Vec<(CallerId, Call)> {
        self.looking = false;
        let next = std::mem::take(&mut self.doubting_next);
        let doubting = std::mem::replace(&mut self.doubting, next);
        match is_held {
            // A client that knows a later leader is answered by that one. This process continues:
            // if there is another leader, the log refuses its appends.
            None => Vec::new(),
            Some(false) => {
                self.lost = true;
                Vec::new()
            }
            Some(true) => {
                self.confirmed_until = now.plus(CONFIRMED_FOR);
                self.confirmed_term = self.look_term;
                let known = doubting.into_iter();
                known
                    .filter(|(_, call)| call.term <= self.confirmed_term)
                    .collect()
            }
        }
    }
}
