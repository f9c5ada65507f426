//! Notices to one client: numbered, one at a time, each sent again until it is answered.

use std::collections::VecDeque;
use std::time::Duration;

use super::super::wire::NoticeBody;
use crate::conversation::RoleCommand;
use crate::core::Time;

/// A client that has nothing to hear is asked so often whether it is there.
const PING: Duration = Duration::from_millis(200);

/// How long a client may take to answer a notice before it is sent again.
pub(super) const NOTICE_TIMEOUT: Duration = Duration::from_secs(2);

/// A client on whose subject nobody listens for so long is gone: a connection that is made anew takes less.
const GONE_AFTER: Duration = Duration::from_millis(400);

/// So long after this process has connected, clients may still be connecting: the server may have been away.
const SETTLING: Duration = Duration::from_secs(3);

/// A client that does not answer for so long is given up.
const SILENT_AFTER: Duration = Duration::from_secs(20);

/// Things told to a client in one notice, at most.
const NOTICE_MAX: usize = 256;

/// Reason for which a notice has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unheard {
    /// Nobody listens on the client's subject.
    NobodyListens {
        /// How long this process has been connected.
        connected_for: Duration,
    },
    /// No answer came in time, or the way to the client broke.
    Silent,
    /// It could not be sent: a store of blobs does not answer, say.
    NotSent,
}

/// What the client is told, and whether it hears.
pub(super) struct Notices {
    queue: VecDeque<RoleCommand>,
    /// Of the notice that is under way, or of the last one.
    number: u64,
    current: Option<Current>,
    next_ping: Time,
    has_ended: bool,
}

/// A notice that is not answered yet.
struct Current {
    commands: Option<Vec<RoleCommand>>,
    begun: Time,
    attempt: u32,
    under_way: bool,
    next_attempt: Time,
    nobody_since: Option<Time>,
}

/// An attempt to send a notice.
pub(super) struct Attempt {
    pub(super) number: u64,
    pub(super) attempt: u32,
    pub(super) body: NoticeBody,
}

// === impl Notices ===

impl Notices {
    pub(super) fn new(now: Time) -> Self {
        Self {
            queue: VecDeque::new(),
            number: 0,
            current: None,
            next_ping: now.plus(PING),
            has_ended: false,
        }
    }

    pub(super) fn tell(&mut self, command: RoleCommand) {
        if !self.has_ended {
            self.queue.push_back(command);
        }
    }

    /// The client is gone: it is told nothing, and not asked whether it is there.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
        self.queue.clear();
        self.current = None;
    }

    /// The client is there again.
    pub(super) fn begin(&mut self, now: Time) {
        self.has_ended = false;
        self.next_ping = now.plus(PING);
    }

    pub(super) fn next_deadline(&self) -> Time {
        match &self.current {
            _ if self.has_ended => Time(u64::MAX),
            Some(current) => current.next_attempt,
            None if !self.queue.is_empty() => Time(0),
            None => self.next_ping,
        }
    }

    /// An attempt that was not answered by now was not heard. Why the client is given up, if it is.
    pub(super) fn expire(&mut self, now: Time) -> Option<&'static str> {
        let current = self.current.as_mut()?;
        if !current.under_way || now < current.next_attempt {
            return None;
        }
        let (number, attempt) = (self.number, current.attempt);
        self.unheard(now, number, attempt, Unheard::Silent)
    }

    /// The attempt that is due, if one is.
    pub(super) fn next(&mut self, now: Time) -> Option<Attempt> {
        if now < self.next_deadline() {
            return None;
        }
        let (queue, number) = (&mut self.queue, &mut self.number);
        let current = self.current.get_or_insert_with(|| {
            *number += 1;
            let count = queue.len().min(NOTICE_MAX);
            Current {
                commands: (count > 0).then(|| queue.drain(..count).collect()),
                begun: now,
                attempt: 0,
                under_way: false,
                next_attempt: now,
                nobody_since: None,
            }
        });
        current.attempt += 1;
        current.under_way = true;
        current.next_attempt = now.plus(NOTICE_TIMEOUT);
        Some(Attempt {
            number: *number,
            attempt: current.attempt,
            body: current
                .commands
                .clone()
                .map_or(NoticeBody::Ping, NoticeBody::Commands),
        })
    }

    /// The client has answered this notice.
    pub(super) fn heard(&mut self, now: Time, number: u64) {
        if self.number == number && self.current.take().is_some() {
            self.next_ping = now.plus(PING);
        }
    }

    /// An attempt was not answered. Why the client is given up, if it is.
    pub(super) fn unheard(
        &mut self,
        now: Time,
        number: u64,
        attempt: u32,
        why: Unheard,
    ) -> Option<&'static str> {
        let is_current = self.number == number;
        let current = self.current.as_mut().filter(|_| is_current)?;
        if !current.under_way || current.attempt != attempt {
            return None;
        }
        current.under_way = false;
        match why {
            Unheard::NobodyListens { connected_for } => {
                if connected_for < SETTLING {
                    current.nobody_since = None;
                }
                let since = *current.nobody_since.get_or_insert(now);
                current.next_attempt = now.plus(PING / 4);
                (since.until(now) >= GONE_AFTER).then_some("nobody listens")
            }
            Unheard::Silent => {
                current.nobody_since = None;
                current.next_attempt = now;
                (current.begun.until(now) >= SILENT_AFTER).then_some("it does not answer")
            }
            Unheard::NotSent => {
                current.next_attempt = now.plus(PING);
                None
            }
        }
    }
}
