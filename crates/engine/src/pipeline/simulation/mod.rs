//! Seeded histories of the scheduler. A digest pins all its decisions and answers in them.
//!
//! The test drives the scheduler one event at a time: a command, a partition that comes back, granted
//! memory, progress of the log, the clock. Circuits, keys, the budget and the log are real. The stages
//! compute nothing, and end when the history says so, in success or failure. Results that depend on time,
//! machine or randomness are left out of the digest.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, UNIX_EPOCH};

use proofmill_mutation::SplitMix64;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::sync::broadcast;
use tokio::sync::oneshot::error::TryRecvError;

mod inputs;
mod texts;

use inputs::{CIRCUITS, FakeKey, name, options, registered};
use texts::{label, refusal, shown, shown_as, view};

use super::*;
use crate::budget::Budget;
use crate::front::CallerSide;
use crate::interface::{
    Event, Input, JobView, Partition, Priority, RequestId, Secret, Submission, Submitted,
};
use crate::key::{KeyPolicy, StepError};
use crate::options::KeyForm;
use crate::pipeline::background::Completion;
use crate::pipeline::pool;
use crate::pipeline::results::KeptResult;
use crate::registry::Registered;
use crate::residency::{CheckedMemory, KeySizes, StoredFacts};

/// SHA-256 over the histories. It changes only if the scheduler's behaviour changes.
const DIGEST: &str = "25da93da1c8a02a4f7ff5f6b09e0e8676102280fe20d3e9c5137fffeaddd8e97";

const HISTORIES: u64 = 24;
/// Events of a history before it drains.
const EVENTS: usize = 260;
/// Most events of a history that drains; beyond them it counts as stuck.
const STUCK: usize = 20_000;
const CLIENTS: [&str; 3] = ["one", "two", "three"];

/// A request that was made.
#[derive(Clone)]
struct Request {
    id: RequestId,
    /// Circuits, and the contents of their inputs.
    partitions: Vec<(usize, u8)>,
}

/// Polls for an answer, and returns its text once it is there.
type Answer = Box<dyn FnMut() -> Option<String>>;

struct World {
    numbers: SplitMix64,
    scheduler: Scheduler,
    caller_side: CallerSide,
    durable: watch::Receiver<Durable>,
    told: broadcast::Receiver<Event>,
    /// Partitions whose work outside the scheduler is not done.
    outside: usize,
    /// Partitions whose work is done but that have not come back.
    done: Vec<(String, Completion)>,
    requests: Vec<Request>,
    answers: Vec<(String, Answer)>,
    lines: Vec<String>,
    _inputs: TempDir,
}

#[test]
fn the_scheduler_decides_as_it_did() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.unwrap();
    let mut lines = Vec::new();
    for seed in 0..HISTORIES {
        lines.push(format!("history {seed}"));
        lines.append(&mut runtime.block_on(history(seed)));
    }
    let text = lines.join("\n");
    let digest = hex::encode(Sha256::digest(&text));
    if digest != DIGEST {
        let path = std::env::temp_dir().join(format!("engine-histories-{}", &digest[..8]));
        std::fs::write(&path, text).unwrap();
        panic!(
            "the histories' digest is {digest}; they are in {}",
            path.display()
        );
    }
}

async fn history(seed: u64) -> Vec<String> {
    let mut world = World::new(seed).await;
    for step in 0..EVENTS {
        if step == EVENTS * 3 / 4 && world.numbers.one_in(4) {
            world.scheduler.draining = true;
        }
        world.step(false).await;
    }
    for length in CIRCUITS {
        let circuit = CircuitRef::Name(name(length));
        world.scheduler.residency.pin(&circuit, false).unwrap();
    }
    for step in 0.. {
        assert!(
            step < STUCK,
            "history {seed} is stuck: {:?}",
            world.status()
        );
        let idle = world.done.is_empty() && world.scheduler.pending.is_empty();
        if idle && world.scheduler.jobs.is_empty() {
            break;
        }
        world.step(true).await;
    }
    world.ended();
    world.lines
}

// === impl World ===

impl World {
    async fn new(seed: u64) -> Self {
        let mut numbers = SplitMix64::new(seed);
        let inputs = tempfile::tempdir().unwrap();
        let policy = KeyPolicy {
            allow_insecure: false,
        };
        let registered: Vec<Registered> = CIRCUITS
            .iter()
            .map(|length| registered(*length, policy, inputs.path()))
            .collect();
        let options = options(&mut numbers);
        let shared = pool("simulated", 1).unwrap();
        let events = Events::new();
        let residency = |total| {
            let stored_facts = StoredFacts {
                checked: CheckedMemory::new(None),
                key_sizes: KeySizes::open(None, &[]),
            };
            ResidencyTable::new(
                Budget::new(total),
                events.clone(),
                shared.clone(),
                stored_facts,
                KeyForm::Plain,
                policy,
                CIRCUITS.len(),
            )
        };
        // From hardly enough memory for the largest circuit to enough for all of them.
        let unlimited = residency(u64::MAX);
        let largest = registered.iter().map(|circuit| {
            let work = circuit.footprint(KeyForm::Plain).peak();
            unlimited.needed(circuit.clone(), work)
        });
        let total = largest.max().unwrap() / 100 * *numbers.one_of(&[105, 130, 180, 260, 900]);
        let residency = residency(total);
        for circuit in &registered {
            residency.insert(circuit.clone()).unwrap();
        }
        let env = Arc::new(Env {
            events: events.clone(),
            inputs: Inputs::open(inputs.path().join("inputs"), options.limits).unwrap(),
            generators: BTreeMap::new(),
            interference: None,
            pool: shared.clone(),
        });
        let caller_side = CallerSide {
            env: env.clone(),
            residency: residency.clone(),
            precompiled: inputs.path().to_owned(),
            policy,
            partition_workers: options.partition_workers,
            workers: PipelineStage::ALL.map(|stage| options.workers(stage)),
        };
        let devices = options.devices.iter().enumerate();
        let devices = devices
            .map(|(number, device)| Device::new(number, device, &shared).unwrap())
            .collect();
        let (journal, _) = Journal::open(None, false).await.unwrap();
        let (_, commands) = mpsc::channel(1);
        let durable = journal.durable();
        let scheduler = Scheduler::new(&options, env, residency, journal, commands, devices);
        Self {
            numbers,
            scheduler,
            caller_side,
            durable,
            told: events.subscribe(),
            outside: 0,
            done: Vec::new(),
            requests: Vec::new(),
            answers: Vec::new(),
            lines: Vec::new(),
            _inputs: inputs,
        }
    }

    /// Carries out one event and all that follows from it.
    async fn step(&mut self, draining: bool) {
        let from = if draining { 48 } else { 0 };
        let event = from + self.numbers.below(100 - from);
        match event {
            0..16 => self.submit().await,
            16..21 => self.submit_again().await,
            21..23 => self.may_submit().await,
            23..28 => self.wait_for_result().await,
            28..32 => self.cancel().await,
            32..34 => self.look().await,
            34..36 => self.lose_interest(),
            36..38 => self.change_keys(),
            38..48 if self.done.len() > 6 => self.bring_back(),
            38..48 => self.submit().await,
            48..51 => {
                self.line("tick".to_owned());
                self.scheduler.tick().await.unwrap();
            }
            51..60 => {
                self.line("release".to_owned());
                self.scheduler.release(&self.durable).await.unwrap();
            }
            60..75 => self.admit().await,
            _ => self.bring_back(),
        }
        self.scheduler.advance().await.unwrap();
        self.scheduler.check();
        self.settle().await;
    }

    /// Waits for all work outside the scheduler, and writes down the consequences of the event.
    async fn settle(&mut self) {
        let told = self.events();
        self.lines.extend(told);
        let mut came = Vec::new();
        while self.outside > 0 {
            self.outside -= 1;
            let completion = self.scheduler.background.next().await;
            came.push((label(&completion), completion));
        }
        came.sort_by(|one, other| one.0.cmp(&other.0));
        self.done.append(&mut came);
        let mut told = self.events();
        told.sort_unstable();
        self.lines.extend(told);
        let mut answered = Vec::new();
        self.answers.retain_mut(|(asked, answer)| {
            let text = answer();
            answered.extend(text.iter().map(|text| format!("{asked}: {text}")));
            text.is_none()
        });
        self.lines.append(&mut answered);
        let status = self.status();
        self.line(status);
        let budget = self.scheduler.residency.budget().status();
        let held: u64 = budget.owners.iter().map(|owner| owner.bytes).sum();
        assert!(held == budget.used && held <= budget.total);
    }

    /// The events since the last call. Updates the count of work outside from them.
    fn events(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok(Event { kind, .. }) = self.told.try_recv() {
            lines.push(match kind {
                EventKind::Job { job, state, .. } => format!("  {job} {}", shown(&state)),
                EventKind::Admitted { span, .. } => {
                    self.outside += 1;
                    format!("  admitted {span:?}")
                }
                EventKind::Began {
                    span,
                    stage,
                    worker,
                } => {
                    self.outside += 1;
                    format!("  began {span:?} {stage} {worker}")
                }
                EventKind::Ended {
                    span,
                    stage,
                    worker,
                    end,
                    bytes,
                    ..
                } => format!("  ended {span:?} {stage} {worker} {end:?} {}", bytes > 0),
                EventKind::Key { name, tier, .. } => format!("  key {name} {}", tier.name()),
            });
        }
        lines
    }

    fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    fn status(&self) -> String {
        let status = self.scheduler.status();
        let stages: Vec<_> = status
            .stages
            .iter()
            .map(|it| (it.busy, it.queued, it.ended))
            .collect();
        let devices: Vec<_> = status
            .devices
            .iter()
            .map(|it| {
                (
                    it.busy,
                    it.products,
                    it.failures,
                    it.suspected,
                    it.broken.is_some(),
                )
            })
            .collect();
        let circuits: Vec<_> = status
            .circuits
            .iter()
            .map(|it| {
                (
                    it.tier.name(),
                    it.users,
                    it.loads,
                    it.evictions,
                    it.pinned,
                    it.proofs,
                )
            })
            .collect();
        let views = |views: &[JobView]| views.iter().map(view).collect::<Vec<_>>();
        let (jobs, recent) = (views(&status.jobs), views(&status.recent));
        let (counts, waiting) = (status.counts, status.budget.waiting);
        format!("  {counts:?} {stages:?} {devices:?} {circuits:?} {waiting} {jobs:?} {recent:?}")
    }

    /// Checks that nothing is left.
    fn ended(&mut self) {
        assert!(self.answers.is_empty() && self.done.is_empty());
        let status = self.scheduler.status();
        assert!(status.jobs.is_empty() && status.stages.iter().all(|it| it.busy + it.queued == 0));
        let owners = status.budget.owners.iter();
        assert!(owners.clone().all(|it| matches!(it.owner, Owner::Key(_))));
        assert!(status.circuits.iter().all(|it| it.users == 0));
    }

    async fn ask<T: 'static>(
        &mut self,
        asked: String,
        show: impl Fn(&T) -> String + 'static,
        command: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Command,
    ) {
        self.line(asked.clone());
        let (reply, mut answer) = oneshot::channel();
        let answer = move || match answer.try_recv() {
            Ok(Ok(answer)) => Some(show(&answer)),
            Ok(Err(error)) => Some(refusal(&error)),
            Err(TryRecvError::Closed) => Some("no answer".to_owned()),
            Err(TryRecvError::Empty) => None,
        };
        self.answers.push((asked, Box::new(answer)));
        self.scheduler.command(command(reply)).await.unwrap();
    }

    async fn submit(&mut self) {
        let client = *self.numbers.one_of(&CLIENTS);
        let id = RequestId::new(client, self.requests.len().to_string()).unwrap();
        let count = *self.numbers.one_of(&[1, 1, 2, 3]);
        let partitions = (0..count).map(|_| {
            let circuit = *self.numbers.one_of(&[0, 0, 1, 1, 2]);
            (circuit, self.numbers.below(256) as u8)
        });
        let partitions = partitions.collect();
        let request = Request { id, partitions };
        self.requests.push(request.clone());
        self.send("submit", request).await;
    }

    async fn submit_again(&mut self) {
        let Some(mut request) = self.known() else {
            return;
        };
        if self.numbers.one_in(4) {
            request.partitions[0].1 ^= 1;
        }
        self.send("again", request).await;
    }

    async fn send(&mut self, how: &str, request: Request) {
        let priority = *self.numbers.one_of(&[
            Priority::Low,
            Priority::Normal,
            Priority::Normal,
            Priority::High,
            Priority::Critical,
        ]);
        let deadline = match self.numbers.below(8) {
            0 => Some(UNIX_EPOCH + Duration::from_secs(1)),
            1 => Some(UNIX_EPOCH + Duration::from_secs(9_000_000_000)),
            _ => None,
        };
        let partitions = request.partitions.iter().map(|(circuit, content)| {
            let length = CIRCUITS[*circuit];
            Partition {
                circuit: CircuitRef::Name(name(length)),
                input: Input::Vector(Secret::new(vec![*content; 32 * (length + 3)])),
            }
        });
        let asked = format!("{how} {} {priority} {:?}", request.id, request.partitions);
        let submission = Submission {
            request: request.id,
            priority,
            deadline,
            partitions: partitions.collect(),
            trace: None,
        };
        if let Err(error) = self.caller_side.check(&submission) {
            return self.line(format!("{asked}: unchecked {}", refusal(&error)));
        }
        let prepared = self.caller_side.prepare(submission).await.unwrap();
        let show = |it: &Submitted| format!("{} {}", it.job, it.existing);
        self.ask(asked, show, |reply| Command::Submit(prepared, reply))
            .await;
    }

    async fn may_submit(&mut self) {
        let request = RequestId::new(*self.numbers.one_of(&CLIENTS), "new").unwrap();
        let known = self.known().filter(|_| self.numbers.one_in(2));
        let request = known.map_or(request, |known| known.id);
        let asked = format!("may submit {request}");
        self.ask(asked, shown_as, |reply| Command::MaySubmit(request, reply))
            .await;
    }

    async fn wait_for_result(&mut self) {
        let Some(request) = self.known() else { return };
        let job = JobId::of(&request.id);
        let show = |it: &KeptResult| {
            let it = it.clone().into_result().unwrap();
            format!("{} {} {}", it.job, shown(&it.state), it.proofs.len())
        };
        self.ask(format!("await {job}"), show, |reply| {
            Command::Await(job, reply)
        })
        .await;
    }

    async fn cancel(&mut self) {
        let Some(request) = self.known() else { return };
        let job = JobId::of(&request.id);
        let most = *self.numbers.one_of(&[None, Some(0), Some(1)]);
        self.ask(format!("cancel {job} {most:?}"), view, |reply| {
            Command::Cancel(job, most, reply)
        })
        .await;
    }

    async fn look(&mut self) {
        let Some(request) = self.known() else { return };
        let job = JobId::of(&request.id);
        self.ask(format!("look {job}"), view, |reply| {
            Command::Job(job, reply)
        })
        .await;
        self.ask("load".to_owned(), shown_as, Command::Load).await;
    }

    /// A caller that waits for an answer goes away.
    fn lose_interest(&mut self) {
        if !self.answers.is_empty() {
            let number = self.numbers.below(self.answers.len());
            let (asked, _) = self.answers.remove(number);
            self.line(format!("gone: {asked}"));
        }
    }

    fn change_keys(&mut self) {
        let circuit = CircuitRef::Name(name(*self.numbers.one_of(&CIRCUITS)));
        let residency = self.scheduler.residency.clone();
        let line = match self.numbers.below(4) {
            0 => {
                let evicted = residency.evict(&circuit).map(|bytes| bytes > 0);
                format!("evict {circuit} {:?}", evicted.map_err(|it| it.to_string()))
            }
            1 => format!("pin {circuit} {}", residency.pin(&circuit, true).is_ok()),
            _ => format!("unpin {circuit} {}", residency.pin(&circuit, false).is_ok()),
        };
        self.line(line);
    }

    /// Polls for the memory that is asked for.
    async fn admit(&mut self) {
        let polled = {
            let admitted = pin!(self.scheduler.admission.admitted());
            // Unconstrained, so that the answer does not depend on the task's other work.
            let mut admitted = tokio::task::unconstrained(admitted);
            let mut admitted = pin!(&mut admitted);
            let mut context = Context::from_waker(Waker::noop());
            admitted.as_mut().poll(&mut context)
        };
        let Poll::Ready((place, job, acquired)) = polled else {
            return self.line("nothing is admitted".to_owned());
        };
        let memory = acquired.as_ref().map(drop).is_ok();
        self.line(format!("admit {job} {} {memory}", place.partition));
        self.scheduler.admitted(place, job, acquired);
    }

    /// Brings back one partition whose work is done, perhaps with an injected error.
    fn bring_back(&mut self) {
        if self.done.is_empty() {
            return;
        }
        let number = self.numbers.below(self.done.len());
        let (label, mut completion) = self.done.remove(number);
        let wrong = match &mut completion {
            Completion::Key(_, key) => {
                let fake = FakeKey {
                    knows_constraints: self.numbers.one_in(2),
                };
                let damaged = self.numbers.one_in(30);
                match key {
                    Ok(_) if damaged => {
                        let why = "the key is damaged".to_owned();
                        *key = Err(StepError::Permanent(why));
                    }
                    Ok(key) => *key = Arc::new(fake),
                    Err(_) => {}
                }
                key.as_ref().err().cloned()
            }
            Completion::Stage(outcome) => {
                let device = outcome.running.device();
                if let Some(wrong) = self.wrong(outcome.stage, device) {
                    outcome.result = Err(wrong);
                }
                outcome.result.as_ref().err().cloned()
            }
        };
        self.line(format!("back {label} {wrong:?}"));
        self.scheduler.completed(completion);
    }

    fn wrong(&mut self, stage: PipelineStage, device: Option<usize>) -> Option<StepError> {
        let number = self.numbers.below(100);
        match (stage, number) {
            // One device always stays in use.
            (PipelineStage::Prove, 0..4) if device != Some(0) => {
                Some(StepError::Broken("on fire".to_owned()))
            }
            (PipelineStage::Prove, 4..12) => Some(StepError::Retry("a panic".to_owned())),
            (PipelineStage::Verify, 0..16) => Some(StepError::Invalid),
            (PipelineStage::Witness, 0..3) => Some(StepError::Permanent("no witness".to_owned())),
            (PipelineStage::Evaluate | PipelineStage::Finish, 0..3) => {
                Some(StepError::Retry("bad luck".to_owned()))
            }
            _ => None,
        }
    }

    fn known(&mut self) -> Option<Request> {
        let count = self.requests.len();
        (count > 0).then(|| {
            // Recent requests rather than those that ended long ago.
            let number = count - 1 - self.numbers.below(count.min(12));
            self.requests[number].clone()
        })
    }
}
