//! Holds back results that the coordinator checks before they count, and everything that must come after them.
//!
//! A state machine without input or output. A worker's reports stay in order: what it reports after a result that is
//! being checked waits behind it, and the core hears that it waits. A flush waits for the checks of its workers that began before
//! it, so that no worker is told that its result is safe before the result counts. A check may take longer than a lease
//! lasts: joins and heartbeats do not wait.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::conversation::{LeaseRef, WorkerEvent, WorkerResult};
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
    /// Flushes in order, each with the open checks that it waits for.
    flushes: Vec<(u64, BTreeSet<CheckId>)>,
}

/// The checks that a flush waits for, among those that have begun.
#[derive(Clone, Debug)]
pub(crate) enum ChecksBefore {
    /// All of them.
    All,
    /// Those of results of these workers.
    Of(BTreeSet<WorkerId>),
}

/// An event of a worker that waits.
enum Waiting {
    Result(CheckId, WorkerResult, Option<Verdict>),
    Later(WorkerEvent),
}

// === impl ResultGate ===

impl ResultGate {
    /// Holds a result until the check under this number has ended.
    pub(crate) fn hold(&mut self, result: WorkerResult) -> (CheckId, GateAction) {
        let id = CheckId(self.next);
        self.next += 1;
        self.open.insert(id, result.worker.clone());
        let waits = report_waits(&result.worker, &result.lease, true);
        let behind = self.waiting.entry(result.worker.clone()).or_default();
        behind.push_back(Waiting::Result(id, result, None));
        (id, waits)
    }

    /// Takes an event of a worker that needs no check. `is_known`: whether the core knows the worker.
    pub(crate) fn event(&mut self, event: WorkerEvent, is_known: bool) -> Vec<GateAction> {
        let Some(behind) = self.waiting.get_mut(event.worker()) else {
            return vec![GateAction::Pass(event.into())];
        };
        let has_left = behind.iter().any(Waiting::is_departure);
        let mut actions = Vec::new();
        match &event {
            WorkerEvent::Join(_) if !has_left => {
                actions.push(GateAction::Pass(event.into()));
                if !is_known {
                    tell_again(behind, &mut actions);
                }
                return actions;
            }
            WorkerEvent::Heartbeat { .. } | WorkerEvent::Retire { .. } if !has_left => {
                return vec![GateAction::Pass(event.into())];
            }
            // A heartbeat must follow the join that waits behind the departure; only the newest is kept.
            WorkerEvent::Heartbeat { .. } => {
                behind.retain(|it| !matches!(it, Waiting::Later(other) if other.is_heartbeat()));
            }
            WorkerEvent::Leave { worker } | WorkerEvent::Lost { worker } => {
                // It gets no task meanwhile, nor for a join that waits: it has left again.
                let worker = worker.clone();
                actions.push(GateAction::Pass(WorkerEvent::Retire { worker }.into()));
                behind.retain(|it| !it.is_sign_of_life());
            }
            _ => {}
        }
        let waits = |lease: &LeaseRef| {
            let is_result = matches!(event, WorkerEvent::Complete(_));
            report_waits(event.worker(), lease, is_result)
        };
        actions.extend(event.reported_lease().map(waits));
        behind.push_back(Waiting::Later(event));
        actions
    }

    /// Takes a flush; nothing if it must wait.
    pub(crate) fn flush(&mut self, number: u64, checks: &ChecksBefore) -> Option<GateAction> {
        let before = self.open.iter().filter(|(_, worker)| match checks {
            ChecksBefore::All => true,
            ChecksBefore::Of(workers) => workers.contains(*worker),
        });
        let before: BTreeSet<CheckId> = before.map(|(id, _)| *id).collect();
        if before.is_empty() {
            return Some(GateAction::Flush(number));
        }
        self.flushes.push((number, before));
        None
    }

    /// Calls `each` with the digest of every blob of the results here, which no record names yet.
    pub(crate) fn each_blob(&self, each: &mut impl FnMut(&[u8; 32])) {
        let results = self.waiting.values().flatten().filter_map(Waiting::result);
        for output in results.flat_map(|result| &result.outputs) {
            output.payload.each_blob(each);
        }
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
                let joins = matches!(event, Event::Worker(WorkerEvent::Join(_)));
                actions.push(GateAction::Pass(event));
                if joins {
                    tell_again(behind, &mut actions);
                }
            }
            if behind.is_empty() {
                self.waiting.remove(&worker);
            }
        }
        self.flushes.retain_mut(|(number, before)| {
            before.remove(&id);
            if before.is_empty() {
                actions.push(GateAction::Flush(*number));
            }
            !before.is_empty()
        });
        actions
    }
}

// === impl Waiting ===

impl Waiting {
    fn result(&self) -> Option<&WorkerResult> {
        match self {
            Self::Result(_, result, _) | Self::Later(WorkerEvent::Complete(result)) => Some(result),
            Self::Later(_) => None,
        }
    }

    fn is_departure(&self) -> bool {
        matches!(self, Self::Later(event) if event.is_departure())
    }

    fn is_sign_of_life(&self) -> bool {
        use WorkerEvent::{Heartbeat, Join, Retire};
        matches!(
            self,
            Self::Later(Join(_) | Heartbeat { .. } | Retire { .. })
        )
    }
}

fn report_waits(worker: &WorkerId, lease: &LeaseRef, is_result: bool) -> GateAction {
    GateAction::Pass(Event::ReportWaits {
        worker: worker.clone(),
        lease: lease.clone(),
        is_result,
    })
}

/// Tells a core that did not know the worker which results of it wait, up to its next departure.
fn tell_again(behind: &VecDeque<Waiting>, actions: &mut Vec<GateAction>) {
    let until_departure = behind.iter().take_while(|waiting| !waiting.is_departure());
    let results = until_departure.filter_map(Waiting::result);
    actions.extend(results.map(|result| report_waits(&result.worker, &result.lease, true)));
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
    use crate::conversation::WorkerJoin;
    use crate::core::LeaseTag;
    use crate::id::{Part, TaskId};

    fn name(worker: usize) -> WorkerId {
        format!("w{worker}").into()
    }

    fn result(worker: usize, block: u64) -> WorkerResult {
        WorkerResult {
            worker: name(worker),
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
            worker: name(worker),
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
            GateAction::Pass(Event::ReportWaits { worker, lease, .. }) => {
                format!("{worker} {} waits", lease.task.block)
            }
            GateAction::Pass(Event::Worker(event)) => {
                let what = match event {
                    WorkerEvent::Join(_) => "joins",
                    WorkerEvent::Heartbeat { .. } => "lives",
                    WorkerEvent::Retire { .. } => "retires",
                    WorkerEvent::Leave { .. } => "leaves",
                    WorkerEvent::Release { .. } => "releases",
                    other => panic!("{other:?}"),
                };
                format!("{} {what}", event.worker())
            }
            GateAction::Pass(other) => panic!("{other:?}"),
            GateAction::Flush(number) => format!("flush {number}"),
        }
    }

    const ALL: ChecksBefore = ChecksBefore::All;

    fn texts(actions: impl IntoIterator<Item = GateAction>) -> Vec<String> {
        actions.into_iter().map(|action| text(&action)).collect()
    }

    fn join(worker: usize) -> WorkerEvent {
        WorkerEvent::Join(WorkerJoin {
            worker: name(worker),
            group: "prove".into(),
            labels: BTreeSet::new(),
            memory: 0,
            slots: 1,
        })
    }

    fn beat(worker: usize) -> WorkerEvent {
        WorkerEvent::Heartbeat {
            worker: name(worker),
            running: Vec::new(),
            retired: false,
            paused: None,
        }
    }

    fn release(worker: usize, block: u64) -> WorkerEvent {
        WorkerEvent::Release {
            worker: name(worker),
            lease: result(worker, block).lease,
        }
    }

    #[test]
    fn a_workers_reports_and_a_flush_wait_for_its_result() {
        let mut gate = ResultGate::default();
        assert_eq!(texts(gate.event(leave(1), true)), ["w1 leaves"]);
        let (id, waits) = gate.hold(result(0, 7));
        assert_eq!((id, text(&waits)), (CheckId(0), "w0 7 waits".into()));
        assert_eq!(texts(gate.event(release(0, 6), true)), ["w0 6 waits"]);
        assert_eq!(texts(gate.event(leave(0), true)), ["w0 retires"]);
        assert_eq!(texts(gate.flush(1, &ALL)), [""; 0]);
        // Another worker's events do not wait, nor does its check keep an earlier flush.
        let unchecked = WorkerEvent::Complete(result(1, 8));
        assert_eq!(texts(gate.event(unchecked, true)), ["w1 8"]);
        assert_eq!(gate.hold(result(1, 9)).0, CheckId(1));
        let passed = gate.checked(CheckId(0), Verdict::Valid);
        assert_eq!(
            texts(passed),
            ["w0 7", "w0 releases", "w0 leaves", "flush 1"]
        );
        let passed = gate.checked(CheckId(1), Verdict::False("no".into()));
        assert_eq!(texts(passed), ["w1 lies"]);
        assert_eq!(texts(gate.flush(2, &ALL)), ["flush 2"]);
        assert!(gate.checked(CheckId(1), Verdict::Valid).is_empty());
    }

    #[test]
    fn signs_of_life_pass_unless_the_worker_has_left() {
        let mut gate = ResultGate::default();
        gate.hold(result(0, 7));
        gate.event(release(0, 6), true);
        assert_eq!(texts(gate.event(beat(0), true)), ["w0 lives"]);
        // A new leader learns only now that it has them.
        let passed = texts(gate.event(join(0), false));
        assert_eq!(passed, ["w0 joins", "w0 7 waits"]);
        assert_eq!(texts(gate.event(join(0), true)), ["w0 joins"]);
        assert_eq!(texts(gate.event(leave(0), true)), ["w0 retires"]);
        // It comes and goes: nothing is assigned to it in between.
        for event in [join(0), beat(0)] {
            assert_eq!(texts(gate.event(event, false)), [""; 0]);
        }
        assert_eq!(texts(gate.event(leave(0), true)), ["w0 retires"]);
        for event in [join(0), beat(0), beat(0)] {
            assert_eq!(texts(gate.event(event, false)), [""; 0]);
        }
        gate.hold(result(0, 8));
        let passed = texts(gate.checked(CheckId(0), Verdict::Valid));
        let departures = ["w0 7", "w0 releases", "w0 leaves", "w0 leaves"];
        let again = ["w0 joins", "w0 8 waits", "w0 lives"];
        assert_eq!(passed, [&departures[..], &again].concat());
        assert_eq!(texts(gate.event(beat(0), true)), ["w0 lives"]);
    }

    #[test]
    fn a_flush_for_some_workers_does_not_wait_for_others() {
        let mut gate = ResultGate::default();
        let of = |workers: &[usize]| ChecksBefore::Of(workers.iter().map(|it| name(*it)).collect());
        gate.hold(result(0, 7));
        gate.hold(result(1, 8));
        assert_eq!(texts(gate.flush(0, &of(&[]))), ["flush 0"]);
        assert_eq!(texts(gate.flush(1, &of(&[2]))), ["flush 1"]);
        assert_eq!(texts(gate.flush(2, &of(&[1]))), [""; 0]);
        assert_eq!(texts(gate.flush(3, &of(&[0, 1]))), [""; 0]);
        gate.hold(result(1, 9));
        let passed = gate.checked(CheckId(1), Verdict::Valid);
        assert_eq!(texts(passed), ["w1 8", "flush 2"]);
        let passed = gate.checked(CheckId(0), Verdict::Valid);
        assert_eq!(texts(passed), ["w0 7", "flush 3"]);
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
                draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let actions = match kind {
                    0 | 1 => {
                        sent[worker].push(number);
                        number += 1;
                        let result = result(worker, number - 1);
                        if kind == 0 {
                            let (id, waits) = gate.hold(result);
                            open.push(id);
                            vec![waits]
                        } else {
                            gate.event(WorkerEvent::Complete(result), true)
                        }
                    }
                    2 => {
                        // Of one worker, or of all.
                        let checks = match (draw >> 33) & 1 {
                            0 => ChecksBefore::Of([name(worker)].into()),
                            _ => ALL,
                        };
                        flushes.push(match checks {
                            ChecksBefore::Of(_) => sent[worker].clone(),
                            ChecksBefore::All => sent.concat(),
                        });
                        Vec::from_iter(gate.flush(flushes.len() as u64 - 1, &checks))
                    }
                    _ if open.is_empty() => Vec::new(),
                    _ => {
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
