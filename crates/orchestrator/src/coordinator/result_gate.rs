//! Holds back results that the coordinator checks before they count, and everything that must come after them.
//!
//! A state machine without input or output. Events of a worker stay in order: what a worker sends after a
//! result that is being checked waits behind it. A flush waits for the checks that began before it, so that no
//! worker is told that its result is safe before the result counts.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::conversation::{WorkerEvent, WorkerResult};
use crate::core::{Event, FalseResult};
use crate::id::WorkerId;

/// Number of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CheckId(pub(crate) u64);

/// Outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Valid,
    /// The result is false, with a description of the fault.
    False(String),
}

/// An action of the gate, to be carried out in order.
#[derive(Debug)]
pub(crate) enum GateAction {
    /// Pass an event to the core.
    Pass(Event),
    /// Flush the outbox under this number.
    Flush(u64),
}

/// The results that are being checked.
#[derive(Default)]
pub(crate) struct ResultGate {
    next: u64,
    /// Worker of each check that has not ended.
    open: BTreeMap<CheckId, WorkerId>,
    /// Results and later events of each worker that has a result here.
    waiting: HashMap<WorkerId, VecDeque<Waiting>>,
    /// Flushes, each with the number of the first check that began after it.
    flushes: VecDeque<(CheckId, u64)>,
}

/// An event of a worker that waits.
enum Waiting {
    Result(CheckId, WorkerResult, Option<Verdict>),
    Later(WorkerEvent),
}

// === impl ResultGate ===

impl ResultGate {
    /// Holds a result until the check under this number has ended.
    pub(crate) fn hold(&mut self, result: WorkerResult) -> CheckId {
        let id = CheckId(self.next);
        self.next += 1;
        self.open.insert(id, result.worker.clone());
        let behind = self.waiting.entry(result.worker.clone()).or_default();
        behind.push_back(Waiting::Result(id, result, None));
        id
    }

    /// Takes an event of a worker that needs no check; nothing if it must wait.
    pub(crate) fn event(&mut self, event: WorkerEvent) -> Option<GateAction> {
        let Some(behind) = self.waiting.get_mut(event.worker()) else {
            return Some(GateAction::Pass(event.into()));
        };
        // The newest heartbeat supersedes earlier ones.
        let is_heartbeat = event.is_heartbeat();
        if is_heartbeat
            && matches!(behind.back(), Some(Waiting::Later(last)) if last.is_heartbeat())
        {
            behind.pop_back();
        }
        behind.push_back(Waiting::Later(event));
        None
    }

    /// Takes a flush; nothing if it must wait.
    pub(crate) fn flush(&mut self, number: u64) -> Option<GateAction> {
        if self.open.is_empty() {
            return Some(GateAction::Flush(number));
        }
        self.flushes.push_back((CheckId(self.next), number));
        None
    }

    /// Takes the outcome of a check.
    pub(crate) fn checked(&mut self, id: CheckId, verdict: Verdict) -> Vec<GateAction> {
        let Some(worker) = self.open.remove(&id) else {
            return Vec::new();
        };
        let mut actions = Vec::new();
        if let Some(behind) = self.waiting.get_mut(&worker) {
            for waiting in behind.iter_mut() {
                if let Waiting::Result(of, _, outcome) = waiting
                    && *of == id
                {
                    *outcome = Some(verdict.clone());
                }
            }
            while let Some(event) = next_event(behind) {
                actions.push(GateAction::Pass(event));
            }
            if behind.is_empty() {
                self.waiting.remove(&worker);
            }
        }
        // Checks end in any order: a flush waits for the oldest.
        let oldest = self.open.keys().next().copied();
        while let Some((after, number)) = self.flushes.front().copied() {
            if oldest.is_some_and(|oldest| oldest < after) {
                break;
            }
            self.flushes.pop_front();
            actions.push(GateAction::Flush(number));
        }
        actions
    }
}

/// Removes the first of a worker's waiting events, unless it is a result whose check has not ended.
fn next_event(waiting: &mut VecDeque<Waiting>) -> Option<Event> {
    match waiting.front()? {
        Waiting::Result(_, _, None) => return None,
        Waiting::Result(_, _, Some(_)) | Waiting::Later(_) => {}
    }
    match waiting.pop_front()? {
        Waiting::Later(event) => Some(event.into()),
        Waiting::Result(_, result, Some(Verdict::False(why))) => {
            Some(Event::FalseResult(FalseResult {
                worker: result.worker,
                lease: result.lease,
                why,
            }))
        }
        Waiting::Result(_, result, _) => Some(WorkerEvent::Complete(result).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::conversation::LeaseRef;
    use crate::core::LeaseTag;
    use crate::id::{Part, TaskId};

    fn result(worker: usize, block: u64) -> WorkerResult {
        WorkerResult {
            worker: format!("w{worker}").into(),
            lease: LeaseRef {
                task: TaskId {
                    stage: "prove".into(),
                    block,
                    part: Part::whole(),
                },
                attempt: 1,
                tag: LeaseTag::from_bytes([0; 16]),
            },
            outputs: Vec::new(),
            ran: Duration::ZERO,
        }
    }

    fn leave(worker: usize) -> WorkerEvent {
        WorkerEvent::Leave {
            worker: format!("w{worker}").into(),
        }
    }

    /// Text of an action, such as `w0 7` for a valid result of block 7.
    fn text(action: &GateAction) -> String {
        match action {
            GateAction::Pass(Event::Worker(WorkerEvent::Complete(result))) => {
                format!("{} {}", result.worker, result.lease.task.block)
            }
            GateAction::Pass(Event::FalseResult(result)) => {
                format!("{} lies", result.worker)
            }
            GateAction::Pass(Event::Worker(event)) => format!("{} leaves", event.worker()),
            GateAction::Pass(other) => panic!("{other:?}"),
            GateAction::Flush(number) => format!("flush {number}"),
        }
    }

    fn texts(actions: impl IntoIterator<Item = GateAction>) -> Vec<String> {
        actions.into_iter().map(|action| text(&action)).collect()
    }

    #[test]
    fn a_workers_events_and_a_flush_wait_for_its_result() {
        let mut gate = ResultGate::default();
        assert_eq!(texts(gate.event(leave(1))), ["w1 leaves"]);
        assert_eq!(gate.hold(result(0, 7)), CheckId(0));
        assert_eq!(texts(gate.event(leave(0))), [""; 0]);
        assert_eq!(texts(gate.flush(1)), [""; 0]);
        // Another worker's events do not wait, nor does its check keep an earlier flush.
        let unchecked = WorkerEvent::Complete(result(1, 8));
        assert_eq!(texts(gate.event(unchecked)), ["w1 8"]);
        assert_eq!(gate.hold(result(1, 9)), CheckId(1));
        let passed = gate.checked(CheckId(0), Verdict::Valid);
        assert_eq!(texts(passed), ["w0 7", "w0 leaves", "flush 1"]);
        let passed = gate.checked(CheckId(1), Verdict::False("no".into()));
        assert_eq!(texts(passed), ["w1 lies"]);
        assert_eq!(texts(gate.flush(2)), ["flush 2"]);
        assert!(gate.checked(CheckId(1), Verdict::Valid).is_empty());
    }

    proptest! {
        /// Whatever the order in which checks end: each event passes once, a worker's in order, and no flush
        /// passes before a result that came before it.
        #[test]
        fn nothing_is_lost_repeated_or_overtaken(
            inputs in prop::collection::vec((0usize..4, 0u8..4), 1..60),
            order in any::<u64>(),
        ) {
            let mut gate = ResultGate::default();
            let mut draw = order;
            let mut open = Vec::new();
            let mut passed: Vec<u64> = Vec::new();
            // For each worker the numbers of its results, in order; for each flush the results before it.
            let mut sent: Vec<Vec<u64>> = vec![Vec::new(); 4];
            let mut flushes: Vec<Vec<u64>> = Vec::new();
            let mut number = 0;
            let mut note = |actions: Vec<GateAction>, flushes: &[Vec<u64>]| {
                for action in actions {
                    match action {
                        GateAction::Pass(Event::Worker(WorkerEvent::Complete(result))) => {
                            passed.push(result.lease.task.block);
                        }
                        GateAction::Pass(Event::FalseResult(result)) => {
                            passed.push(result.lease.task.block);
                        }
                        GateAction::Flush(flush) => {
                            let before = &flushes[flush as usize];
                            assert!(before.iter().all(|block| passed.contains(block)));
                        }
                        GateAction::Pass(_) => {}
                    }
                }
                passed.clone()
            };
            for (worker, kind) in inputs {
                let actions = match kind {
                    0 | 1 => {
                        sent[worker].push(number);
                        number += 1;
                        let result = result(worker, number - 1);
                        if kind == 0 {
                            open.push(gate.hold(result));
                            Vec::new()
                        } else {
                            Vec::from_iter(gate.event(WorkerEvent::Complete(result)))
                        }
                    }
                    2 => {
                        flushes.push(sent.concat());
                        Vec::from_iter(gate.flush(flushes.len() as u64 - 1))
                    }
                    _ if open.is_empty() => Vec::new(),
                    _ => {
                        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let id = open.swap_remove((draw >> 33) as usize % open.len());
                        let is_valid = draw >> 63 == 0;
                        gate.checked(id, if is_valid { Verdict::Valid } else { Verdict::False(String::new()) })
                    }
                };
                note(actions, &flushes);
            }
            while let Some(id) = open.pop() {
                note(gate.checked(id, Verdict::Valid), &flushes);
            }
            let passed = note(Vec::new(), &flushes);
            for of_worker in &sent {
                let order: Vec<u64> = passed.iter().copied().filter(|n| of_worker.contains(n)).collect();
                prop_assert_eq!(&order, of_worker);
            }
            prop_assert_eq!(passed.len() as u64, number);
            prop_assert!(gate.waiting.is_empty() && gate.flushes.is_empty());
        }
    }
}
