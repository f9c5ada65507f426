//! Asynchronous events.

use std::collections::VecDeque;

use crate::controller::device::MsmDevice;
use crate::controller::state::{Controller, Executed, Reply};
use crate::nvme::{Status, zkpu::Event};

/// Requests that are held at once.
const REQUESTS_MAX: usize = 4;

/// Requests that wait, and events that are due.
#[derive(Debug, Default)]
pub(super) struct Events {
    requests: VecDeque<u16>,
    jobs_ended: Notice,
    fault: Notice,
}

/// One sort of event: it is reported once, then masked until its log page is read.
#[derive(Clone, Copy, Debug, Default)]
struct Notice {
    is_due: bool,
    is_masked: bool,
}

// === impl Events ===

impl Events {
    pub(super) fn raise(&mut self, event: Event) {
        if let Some(notice) = self.notice(event) {
            notice.is_due = true;
        }
    }

    /// The event's log page was read: the next one is reported again.
    pub(super) fn clear(&mut self, event: Event) {
        if let Some(notice) = self.notice(event) {
            *notice = Notice::default();
        }
    }

    /// Removes a waiting request.
    pub(super) fn abort(&mut self, cid: u16) -> bool {
        let before = self.requests.len();
        self.requests.retain(|waiting| *waiting != cid);
        self.requests.len() < before
    }

    fn notice(&mut self, event: Event) -> Option<&mut Notice> {
        match event {
            Event::JobsEnded => Some(&mut self.jobs_ended),
            Event::Fault => Some(&mut self.fault),
            Event::Other(_) => None,
        }
    }

    /// An event to report, and the request that reports it.
    fn take(&mut self) -> Option<(u16, Event)> {
        for event in [Event::JobsEnded, Event::Fault] {
            let can_report = self
                .notice(event)
                .is_some_and(|notice| notice.is_due && !notice.is_masked);
            if can_report {
                let cid = self.requests.pop_front()?;
                if let Some(notice) = self.notice(event) {
                    *notice = Notice {
                        is_due: false,
                        is_masked: true,
                    };
                }
                return Some((cid, event));
            }
        }
        None
    }
}

impl<D: MsmDevice> Controller<D> {
    pub(super) fn request_event(&mut self, cid: u16) -> Executed {
        let requests = &mut self.events.requests;
        if requests.contains(&cid) {
            return Err(Status::COMMAND_ID_CONFLICT);
        }
        if requests.len() == REQUESTS_MAX {
            return Err(Status::EVENT_LIMIT_EXCEEDED);
        }
        requests.push_back(cid);
        Ok(None)
    }

    pub(super) fn deliver_events(&mut self) {
        while let Some((cid, event)) = self.events.take() {
            self.counters.events += 1;
            self.reply(Reply {
                queue: 0,
                cid,
                status: Status::SUCCESS,
                result: [event.encode(), 0],
                data: Vec::new(),
            });
        }
    }
}
