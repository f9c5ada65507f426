//! Notices to one client: numbered, sent one at a time, each repeated until it is answered.

use std::collections::VecDeque;
use std::time::Duration;

use super::super::wire::NoticeBody;
use crate::conversation::RoleCommand;
use crate::core::Time;

/// Interval between pings of an idle client.
const PING: Duration = Duration::from_millis(200);

/// Time limit for the answer to a notice, after which the notice is repeated.
pub(super) const NOTICE_TIMEOUT: Duration = Duration::from_secs(2);

/// Time without a listener on a client's subject after which the client is gone; reconnecting takes
/// less.
const GONE_AFTER: Duration = Duration::from_millis(400);

/// Time after this process has connected during which clients may still be reconnecting, since the
/// server may have been away.
const SETTLING: Duration = Duration::from_secs(3);

/// Time without an answer after which a client is given up.
const SILENT_AFTER: Duration = Duration::from_secs(20);

/// Maximum number of commands in one notice.
const NOTICE_MAX: usize = 256;

/// The reason why a notice has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeFailure {
    /// The client's subject has no listener.
    NoListener {
        /// Time for which this process has been connected.
        connected_for: Duration,
    },
    /// The time limit passed without an answer, or the connection to the client broke.
    TimedOut,
    /// The notice could not be sent, for example because the blob store does not answer.
    NotSent,
}

/// Commands for the client, and their delivery.
pub(super) struct Notices {
    queue: VecDeque<RoleCommand>,
    /// Number of the notice in progress, or of the last one.
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
    no_listener_since: Option<Time>,
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

    /// Stops notices and pings: the client is gone.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
        self.queue.clear();
        self.current = None;
    }

    /// Resumes notices and pings: the client is back.
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

    /// Ends an attempt whose time limit has passed. Returns the reason why the client is given up,
    /// if it is.
    pub(super) fn expire(&mut self, now: Time) -> Option<&'static str> {
        let current = self.current.as_mut()?;
        if !current.under_way || now < current.next_attempt {
            return None;
        }
        let (number, attempt) = (self.number, current.attempt);
        self.attempt_failed(now, number, attempt, NoticeFailure::TimedOut)
    }

    /// The attempt that is due, if any.
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
                no_listener_since: None,
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

    /// Records the client's answer to a notice.
    pub(super) fn acknowledged(&mut self, now: Time, number: u64) {
        if self.number == number && self.current.take().is_some() {
            self.next_ping = now.plus(PING);
        }
    }

    /// Records that an attempt was not answered. Returns the reason why the client is given up, if
    /// it is.
    pub(super) fn attempt_failed(
        &mut self,
        now: Time,
        number: u64,
        attempt: u32,
        why: NoticeFailure,
    ) -> Option<&'static str> {
        let is_current = self.number == number;
        let current = self.current.as_mut().filter(|_| is_current)?;
        if !current.under_way || current.attempt != attempt {
            return None;
        }
        current.under_way = false;
        match why {
            NoticeFailure::NoListener { connected_for } => {
                if connected_for < SETTLING {
                    current.no_listener_since = None;
                }
                let since = *current.no_listener_since.get_or_insert(now);
                current.next_attempt = now.plus(PING / 4);
                (since.until(now) >= GONE_AFTER).then_some("nobody listens")
            }
            NoticeFailure::TimedOut => {
                current.no_listener_since = None;
                current.next_attempt = now;
                (current.begun.until(now) >= SILENT_AFTER).then_some("it does not answer")
            }
            NoticeFailure::NotSent => {
                current.next_attempt = now.plus(PING);
                None
            }
        }
    }
}
