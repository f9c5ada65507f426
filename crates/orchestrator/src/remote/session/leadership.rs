//! Verification of this process's leadership when a client claims that there is a later leader.

use std::time::Duration;

use super::super::wire::Call;
use super::server_events::CallerId;
use crate::core::Time;

/// Time after a successful check of the lease during which it is not checked again, however many
/// clients claim that there is a later leader.
const CONFIRMED_FOR: Duration = Duration::from_millis(250);

/// Maximum number of calls that wait for a check of the lease; the clients repeat the others.
const AWAITING_CHECK_MAX: usize = 1024;

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
    claimed_term: u64,
    is_checking_lease: bool,
    /// Highest term known when the current check began.
    lease_check_term: u64,
    lost: bool,
    /// Calls that wait for the current check.
    awaiting_check: Vec<(CallerId, Call)>,
    /// Calls that arrived after it began and wait for the next.
    awaiting_next_check: Vec<(CallerId, Call)>,
}

/// The decision on a call.
pub(super) enum TermCheck {
    /// The call is accepted now.
    Accept(Box<Call>),
    /// The call waits for a check of the lease. `begin` is whether to begin the check now.
    AwaitLeaseCheck { begin: bool },
    /// The call is not accepted, as another process leads.
    NotLeader,
}

// === impl Leadership ===

impl Leadership {
    pub(super) fn new(term: u64) -> Self {
        Self {
            term,
            confirmed_until: Time(0),
            confirmed_term: 0,
            claimed_term: 0,
            is_checking_lease: false,
            lease_check_term: 0,
            lost: false,
            awaiting_check: Vec::new(),
            awaiting_next_check: Vec::new(),
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
    pub(super) fn check_term(
        &mut self,
        now: Time,
        caller: CallerId,
        call: Call,
        always: bool,
    ) -> TermCheck {
        if self.lost {
            return TermCheck::NotLeader;
        }
        self.claimed_term = self.claimed_term.max(call.term);
        let is_confirmed = now < self.confirmed_until && call.term <= self.confirmed_term;
        if !always && (call.term <= self.term || is_confirmed) {
            return TermCheck::Accept(Box::new(call));
        }
        let waiting = match self.is_checking_lease {
            true => &mut self.awaiting_next_check,
            false => &mut self.awaiting_check,
        };
        if waiting.len() < AWAITING_CHECK_MAX {
            waiting.push((caller, call));
        }
        TermCheck::AwaitLeaseCheck {
            begin: self.begin_lease_check(),
        }
    }

    /// Handles the claim that there is a later leader. Returns whether to check the lease now.
    pub(super) fn note_later_leader(&mut self, now: Time) -> bool {
        !self.lost && now >= self.confirmed_until && self.begin_lease_check()
    }

    fn begin_lease_check(&mut self) -> bool {
        if std::mem::replace(&mut self.is_checking_lease, true) {
            return false;
        }
        self.lease_check_term = self.claimed_term;
        true
    }

    /// Whether a further check is needed for waiting calls; if so, it begins.
    pub(super) fn check_lease_again(&mut self) -> bool {
        !self.lost && !self.awaiting_check.is_empty() && self.begin_lease_check()
    }

    /// Handles the result of a check; `None` means that it was not possible. Returns the waiting
    /// calls that are accepted now; the clients repeat the others.
    pub(super) fn lease_checked(
        &mut self,
        now: Time,
        is_held: Option<bool>,
    ) -> Vec<(CallerId, Call)> {
        self.is_checking_lease = false;
        let next = std::mem::take(&mut self.awaiting_next_check);
        let awaiting_check = std::mem::replace(&mut self.awaiting_check, next);
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
                self.confirmed_term = self.lease_check_term;
                let known = awaiting_check.into_iter();
                known
                    .filter(|(_, call)| call.term <= self.confirmed_term)
                    .collect()
            }
        }
    }
}
