//! Events arranged as intervals: stages of partitions, work of workers, loading of keys.

use std::collections::{BTreeMap, HashMap};

use crate::engine::proto;
use crate::engine::proto::event::Kind;
use crate::engine::proto::{Event, Span, Stage, StageEnd, Tier};

/// The work of an engine. All times are microseconds since it began.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Time of the first event.
    pub from_us: u64,
    /// Time of the last event.
    pub to_us: u64,
    /// The partitions, in order of admission or first stage.
    pub rows: Vec<Row>,
    /// The workers and devices, by stage.
    pub workers: Vec<Worker>,
    /// The keys that were loaded.
    pub loads: Vec<Load>,
    /// Number of missing events.
    pub missed: u64,
}

/// A partition of a job.
#[derive(Clone, Debug)]
pub struct Row {
    /// The job's id.
    pub job: String,
    /// The partition, from 0.
    pub partition: u32,
    /// The circuit's name.
    pub circuit: String,
    /// Time at which the job was accepted, if that event is remembered.
    pub accepted_us: Option<u64>,
    /// Time at which the partition got its memory, if that event is remembered.
    pub admitted_us: Option<u64>,
    /// The stages of the partition, in order of time.
    pub bars: Vec<Bar>,
}

/// A stage of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The stage.
    pub stage: Stage,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The name of the device or the stage.
    pub worker: String,
    /// Time at which the partition entered the stage.
    pub began_us: u64,
    /// Time at which the partition left the stage; of the last event if it has not left.
    pub ended_us: u64,
    /// The outcome; `Unspecified` if the partition has not left the stage.
    pub end: StageEnd,
    /// Bytes of the budget that the partition kept afterwards.
    pub bytes: u64,
}

/// A worker or device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// The worker's stage.
    pub stage: Stage,
    /// The name of the worker or device.
    pub name: String,
    /// Intervals in which the worker was busy, in order.
    pub busy: Vec<(u64, u64)>,
}

/// A key that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The circuit's name.
    pub circuit: String,
    /// The tier to which the key was brought.
    pub tier: Tier,
    /// Time at which loading began.
    pub began_us: u64,
    /// Time at which loading ended.
    pub ended_us: u64,
    /// Size of the loaded key in bytes.
    pub bytes: u64,
}

/// A job's id, and the number of one of its partitions.
type JobPartition = (String, u32);

/// A timeline under construction.
#[derive(Default)]
struct TimelineBuilder {
    timeline: Timeline,
    rows: HashMap<JobPartition, usize>,
    accepted: HashMap<String, u64>,
    /// Stages that partitions have entered and not left.
    open: BTreeMap<(JobPartition, i32), Bar>,
}

// === impl Timeline ===

impl Timeline {
    /// The timeline of `events`, which must be in order.
    pub fn of(events: &[Event]) -> Self {
        let mut builder = TimelineBuilder::default();
        builder.timeline.from_us = events.first().map_or(0, |it| it.at_us);
        for event in events {
            builder.timeline.to_us = builder.timeline.to_us.max(event.at_us);
            builder.read(event);
        }
        builder.finish()
    }

    /// The length of the timeline in microseconds.
    pub fn length_us(&self) -> u64 {
        self.to_us.saturating_sub(self.from_us)
    }

    /// The timeline from `from_us` on, without intervals that ended before.
    pub fn since(mut self, from_us: u64) -> Self {
        self.from_us = self.from_us.max(from_us);
        for row in &mut self.rows {
            row.bars.retain(|bar| bar.ended_us >= from_us);
        }
        self.rows.retain(|row| !row.bars.is_empty());
        for worker in &mut self.workers {
            worker.busy.retain(|(_, to)| *to >= from_us);
        }
        self.loads.retain(|load| load.ended_us >= from_us);
        self
    }
}

// === impl Worker ===

impl Worker {
    /// The busy fraction of the time between the beginning of the first and the end of the last busy interval, and the
    /// longest idle interval in between, in microseconds.
    pub fn use_and_longest_gap(&self) -> (f64, u64) {
        let (Some(first), Some(end)) = (self.busy.first(), self.busy.iter().map(|it| it.1).max())
        else {
            return (0.0, 0);
        };
        let (mut busy, mut gap, mut until) = (0, 0, first.0);
        for (from, to) in &self.busy {
            gap = gap.max(from.saturating_sub(until));
            busy += to.saturating_sub(until.max(*from));
            until = until.max(*to);
        }
        let length = end.saturating_sub(first.0).max(1);
        (busy as f64 / length as f64, gap)
    }
}

// === impl TimelineBuilder ===

impl TimelineBuilder {
    fn read(&mut self, event: &Event) {
        match &event.kind {
            Some(Kind::Job(job)) if job.state() == proto::JobState::Queued => {
                self.accepted.insert(job.job.clone(), event.at_us);
            }
            Some(Kind::Admitted(admitted)) => {
                if let Some(span) = &admitted.span {
                    self.row(span).admitted_us.get_or_insert(event.at_us);
                }
            }
            Some(Kind::Began(began)) => {
                if let Some(span) = &began.span {
                    self.row(span);
                    let bar = Bar {
                        stage: began.stage(),
                        attempt: span.attempt,
                        worker: began.worker.clone(),
                        began_us: event.at_us,
                        ended_us: event.at_us,
                        end: StageEnd::Unspecified,
                        bytes: 0,
                    };
                    self.open.insert((partition_key(span), began.stage), bar);
                }
            }
            Some(Kind::Ended(ended)) => {
                if let Some(span) = &ended.span {
                    self.open.remove(&(partition_key(span), ended.stage));
                    let bar = Bar {
                        stage: ended.stage(),
                        attempt: span.attempt,
                        worker: ended.worker.clone(),
                        began_us: ended.began_us,
                        ended_us: event.at_us,
                        end: ended.end(),
                        bytes: ended.bytes,
                    };
                    self.row(span).bars.push(bar);
                }
            }
            Some(Kind::Key(key)) => {
                if let Some(began_us) = key.began_us {
                    self.timeline.loads.push(Load {
                        circuit: key.circuit.clone(),
                        tier: key.tier(),
                        began_us,
                        ended_us: event.at_us,
                        bytes: key.bytes,
                    });
                }
            }
            Some(Kind::Missed(missed)) => {
                self.timeline.missed = self.timeline.missed.saturating_add(missed.events);
            }
            // Other events are not drawn.
            _ => {}
        }
    }

    fn row(&mut self, span: &Span) -> &mut Row {
        let rows = &mut self.timeline.rows;
        let accepted_us = self.accepted.get(&span.job).copied();
        let index = *self.rows.entry(partition_key(span)).or_insert_with(|| {
            rows.push(Row {
                job: span.job.clone(),
                partition: span.partition,
                circuit: span.circuit.clone(),
                accepted_us,
                admitted_us: None,
                bars: Vec::new(),
            });
            rows.len() - 1
        });
        &mut rows[index]
    }

    fn finish(mut self) -> Timeline {
        for ((partition_key, _), mut bar) in std::mem::take(&mut self.open) {
            bar.ended_us = self.timeline.to_us;
            if let Some(index) = self.rows.get(&partition_key) {
                self.timeline.rows[*index].bars.push(bar);
            }
        }
        let mut workers: BTreeMap<(i32, String), Vec<(u64, u64)>> = BTreeMap::new();
        for row in &mut self.timeline.rows {
            row.bars.sort_by_key(|bar| (bar.began_us, bar.stage as i32));
            for bar in &row.bars {
                let key = (bar.stage as i32, bar.worker.clone());
                workers
                    .entry(key)
                    .or_default()
                    .push((bar.began_us, bar.ended_us));
            }
        }
        let workers = workers.into_iter().map(|((stage, name), mut busy)| {
            busy.sort_unstable();
            Worker {
                stage: Stage::try_from(stage).unwrap_or_default(),
                name,
                busy,
            }
        });
        self.timeline.workers = workers.collect();
        self.timeline
    }
}

fn partition_key(span: &Span) -> JobPartition {
    (span.job.clone(), span.partition)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn span(partition: u32) -> Option<Span> {
        Some(Span {
            job: "0a".repeat(16),
            partition,
            attempt: 1,
            circuit: "multiplier".to_owned(),
        })
    }

    fn at(at_us: u64, kind: Kind) -> Event {
        Event {
            at_us,
            kind: Some(kind),
        }
    }

    fn began(at_us: u64, partition: u32, stage: Stage) -> Event {
        at(
            at_us,
            Kind::Began(proto::BeganEvent {
                span: span(partition),
                stage: stage.into(),
                worker: "cpu".to_owned(),
            }),
        )
    }

    fn ended(began_us: u64, at_us: u64, partition: u32, stage: Stage) -> Event {
        at(
            at_us,
            Kind::Ended(proto::EndedEvent {
                span: span(partition),
                stage: stage.into(),
                worker: "cpu".to_owned(),
                began_us,
                end: StageEnd::Done.into(),
                bytes: 7,
            }),
        )
    }

    /// A job of two partitions; the second is still being proved.
    pub(in super::super) fn events() -> Vec<Event> {
        vec![
            at(
                100,
                Kind::Job(proto::JobEvent {
                    job: "0a".repeat(16),
                    priority: proto::Priority::Normal.into(),
                    partitions: 2,
                    state: proto::JobState::Queued.into(),
                    failure: String::new(),
                }),
            ),
            at(
                150,
                Kind::Key(proto::KeyEvent {
                    circuit_id: "0b".repeat(32),
                    circuit: "multiplier".to_owned(),
                    tier: Tier::Hot.into(),
                    bytes: 1 << 20,
                    began_us: Some(110),
                }),
            ),
            at(
                160,
                Kind::Admitted(proto::AdmittedEvent {
                    span: span(0),
                    bytes: 9,
                }),
            ),
            began(200, 0, Stage::Prove),
            ended(200, 300, 0, Stage::Prove),
            began(310, 1, Stage::Prove),
            began(310, 0, Stage::Finish),
            ended(310, 400, 0, Stage::Finish),
        ]
    }

    #[test]
    fn partitions_workers_and_keys_are_told_apart() {
        let timeline = Timeline::of(&events());
        assert_eq!((timeline.from_us, timeline.to_us), (100, 400));
        let [first, second] = &timeline.rows[..] else {
            panic!("{timeline:?}")
        };
        assert_eq!(first.accepted_us, Some(100));
        assert_eq!(first.admitted_us, Some(160));
        let stages: Vec<_> = first.bars.iter().map(|it| it.stage).collect();
        assert_eq!(stages, [Stage::Prove, Stage::Finish]);
        assert_eq!(second.bars[0].end, StageEnd::Unspecified);
        assert_eq!(second.bars[0].ended_us, 400);
        assert_eq!(timeline.loads[0].began_us, 110);
        let prover = &timeline.workers[0];
        assert_eq!(prover.busy, [(200, 300), (310, 400)]);
        let (used, gap) = prover.use_and_longest_gap();
        assert!((used - 0.95).abs() < 1e-9, "{used}");
        assert_eq!(gap, 10);
    }

    #[test]
    fn intervals_that_ended_before_are_left_out() {
        let timeline = Timeline::of(&events()).since(350);
        assert_eq!(timeline.from_us, 350);
        assert_eq!(timeline.rows.len(), 2);
        assert_eq!(timeline.rows[0].bars.len(), 1);
        assert_eq!(timeline.workers[0].busy, [(310, 400)]);
        assert!(timeline.loads.is_empty());
    }
}
