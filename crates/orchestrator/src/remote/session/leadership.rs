//! Whether this process still leads, which others may doubt.

use std::time::Duration;

use super::super::wire::Call;
use super::server_events::CallerId;
use crate::core::Time;

/// A leader that has just made sure of its lease does not look at it again so soon, however often it is doubted.
const CONFIRMED_FOR: Duration = Duration::from_millis(250);

/// Calls that wait until the lease has been looked at, at most; the others are made again by their clients.
const DOUBTING_MAX: usize = 1024;

/// The leadership that this process holds, or held.
///
/// A client may say that it knows of a later leader. That is a hint to look at the lease, and no more: a client that lies
/// costs one look in a quarter of a second.
pub(super) struct Leadership {
    term: u64,
    confirmed_until: Time,
    /// The highest term that had been heard of when the lease was last looked at: the look says nothing of higher ones.
    confirmed_term: u64,
    /// The highest term that was heard of.
    heard_term: u64,
    looking: bool,
    /// The highest term that had been heard of when the present look began.
    look_term: u64,
    lost: bool,
    /// Calls that wait for the present look.
    doubting: Vec<(CallerId, Call)>,
    /// Calls that came after it had begun: they wait for the next.
    doubting_next: Vec<(CallerId, Call)>,
}

/// Whether to take a call.
pub(super) enum Doubt {
    /// It is taken now.
    None(Box<Call>),
    /// It waits until the lease was looked at; whether that look is to begin now.
    Waits { look: bool },
    /// It is not taken: another process leads.
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

    /// A call that is admitted comes from a client that knows of a leader of `call.term`. `always`: its answer must not be
    /// what an earlier leader knows, whatever the client knows.
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

    /// Somebody says that there is a later leader. Whether to look at the lease now.
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

    /// Whether calls wait for a look that has not begun.
    pub(super) fn looks_again(&mut self) -> bool {
        !self.lost && !self.doubting.is_empty() && self.begin_look()
    }

    /// The lease was looked at; `None`: that was not possible. Returns the calls that are taken now, of those that waited
    /// for it: the others are made again by their clients.
    pub(super) fn looked(&mut self, now: Time, is_held: Option<bool>) -> Vec<(CallerId, Call)> {
        self.looking = false;
        let next = std::mem::take(&mut self.doubting_next);
        let doubting = std::mem::replace(&mut self.doubting, next);
        match is_held {
            // Whoever knows of a later leader is answered by that one. This one goes on: the log refuses its appends, if
            // there is another.
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
