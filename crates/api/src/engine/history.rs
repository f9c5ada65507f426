//! The remembered events of an engine, and the stream of new ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use proofmill_engine::{Event, JobId};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::convert;
use super::metrics::Durations;
use super::proto;

/// Most remembered events. The proto file documents the same number.
const REMEMBERED_EVENTS_MAX: usize = 1 << 16;
/// Number of events that are buffered for a slow reader. A reader that is further behind misses events.
const READER_BUFFER_EVENTS: usize = 1 << 12;

/// The last events of an engine, and the stream of new ones. All readers are served from here, so that there is no gap
/// between the remembered events and the new ones.
#[derive(Debug)]
pub(crate) struct History {
    recent: Mutex<Recent>,
    durations: Durations,
}

#[derive(Debug)]
struct Recent {
    events: VecDeque<Recorded>,
    /// None after the engine has ended.
    live: Option<broadcast::Sender<Recorded>>,
}

/// An event, or a number of missing events.
#[derive(Clone, Debug)]
enum Recorded {
    Event(Arc<Event>),
    Missed { at_us: u64, events: u64 },
}

/// One reader of events.
pub(crate) struct Reader {
    /// The remembered events.
    pub(crate) past: Vec<proto::Event>,
    live: Option<broadcast::Receiver<Recorded>>,
    job: Option<JobId>,
    at_us: u64,
}

// === impl History ===

impl History {
    pub(crate) fn new() -> Arc<Self> {
        let (live, _) = broadcast::channel(READER_BUFFER_EVENTS);
        Arc::new(Self {
            recent: Mutex::new(Recent {
                events: VecDeque::new(),
                live: Some(live),
            }),
            durations: Durations::default(),
        })
    }

    /// Records events until the future is dropped.
    pub(crate) async fn record(&self, mut events: broadcast::Receiver<Event>) {
        let mut at_us = 0;
        loop {
            let recorded = match events.recv().await {
                Ok(event) => {
                    self.durations.observe(&event);
                    at_us = event.at_us;
                    Recorded::Event(Arc::new(event))
                }
                Err(RecvError::Lagged(events)) => {
                    self.durations.missed();
                    Recorded::Missed { at_us, events }
                }
                Err(RecvError::Closed) => return,
            };
            let mut recent = self.recent();
            if recent.events.len() == REMEMBERED_EVENTS_MAX {
                recent.events.pop_front();
            }
            recent.events.push_back(recorded.clone());
            if let Some(live) = &recent.live {
                // An error only means that there is no reader.
                let _ = live.send(recorded);
            }
        }
    }

    /// Ends the streams of all readers, since the engine has ended.
    pub(crate) fn close(&self) {
        self.recent().live = None;
    }

    /// The durations observed so far.
    pub(crate) fn durations(&self) -> &Durations {
        &self.durations
    }

    /// A reader of new events and, if `past`, of the remembered ones; with `job`, of that job's events
    /// only.
    pub(crate) fn read(&self, past: bool, job: Option<JobId>) -> Reader {
        let (events, live) = {
            let recent = self.recent();
            let live = recent.live.as_ref().map(broadcast::Sender::subscribe);
            let events: Vec<Recorded> = if past {
                recent.events.iter().cloned().collect()
            } else {
                Vec::new()
            };
            (events, live)
        };
        Reader {
            at_us: events.last().map_or(0, Recorded::at_us),
            past: events.iter().filter_map(|it| it.to_message(job)).collect(),
            live,
            job,
        }
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Recorded ===

impl Recorded {
    fn at_us(&self) -> u64 {
        match self {
            Self::Event(event) => event.at_us,
            Self::Missed { at_us, .. } => *at_us,
        }
    }

    /// The event as a message; none if the reader wants another job's events.
    fn to_message(&self, job: Option<JobId>) -> Option<proto::Event> {
        match self {
            Self::Event(event) => {
                let wanted = job.is_none() || event.kind.job() == job;
                wanted.then(|| convert::event(event))
            }
            Self::Missed { at_us, events } => Some(proto::Event {
                at_us: *at_us,
                kind: Some(proto::event::Kind::Missed(proto::MissedEvent {
                    events: *events,
                })),
            }),
        }
    }
}

// === impl Reader ===

impl Reader {
    /// The next event; none after the engine has ended.
    pub(crate) async fn next(&mut self) -> Option<proto::Event> {
        loop {
            let recorded = match self.live.as_mut()?.recv().await {
                Ok(recorded) => recorded,
                Err(RecvError::Lagged(events)) => Recorded::Missed {
                    at_us: self.at_us,
                    events,
                },
                Err(RecvError::Closed) => {
                    self.live = None;
                    return None;
                }
            };
            self.at_us = recorded.at_us();
            if let Some(event) = recorded.to_message(self.job) {
                return Some(event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proofmill_engine::{EventKind, JobState, Priority};

    use super::*;

    fn event(at_us: u64, job: u8) -> Event {
        Event {
            at_us,
            kind: EventKind::Job {
                job: JobId([job; 16]),
                priority: Priority::Normal,
                partitions: 1,
                state: JobState::Queued,
            },
        }
    }

    #[tokio::test]
    async fn a_reader_goes_on_where_the_past_ends() {
        let history = History::new();
        let (sender, receiver) = broadcast::channel(16);
        sender.send(event(1, 1)).unwrap();
        sender.send(event(2, 2)).unwrap();
        let recording = history.clone();
        let recorder = tokio::spawn(async move { recording.record(receiver).await });
        let mut live = history.read(false, None);
        let mut first = history.read(true, None);
        let mut seen: Vec<u64> = first.past.iter().map(|it| it.at_us).collect();
        while seen.len() < 2 {
            seen.push(first.next().await.unwrap().at_us);
        }
        sender.send(event(3, 1)).unwrap();
        seen.push(first.next().await.unwrap().at_us);
        assert_eq!(seen, [1, 2, 3]);
        drop(sender);
        recorder.await.unwrap();
        let of_job = history.read(true, Some(JobId([1; 16])));
        let seen: Vec<u64> = of_job.past.iter().map(|it| it.at_us).collect();
        assert_eq!(seen, [1, 3]);
        history.close();
        assert_eq!(first.next().await, None);
        while live.next().await.is_some() {}
        assert_eq!(history.read(false, None).next().await, None);
    }

    #[tokio::test]
    async fn missing_events_are_reported() {
        let history = History::new();
        let (sender, receiver) = broadcast::channel(2);
        for at in 1..=5 {
            sender.send(event(at, 1)).unwrap();
        }
        drop(sender);
        history.record(receiver).await;
        let reader = history.read(true, None);
        let missed = proto::event::Kind::Missed(proto::MissedEvent { events: 3 });
        assert_eq!(reader.past[0].kind, Some(missed));
        assert_eq!(reader.past.len(), 3);
    }
}
