//! Virtual time, the coordinator's driver, and the channels between the actors.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use proofmill_bus::Seq;
use proofmill_orchestrator::conversation::{
    HostCommand, Lease, LeaseRef, Reply, Request, SinkCommand, WorkerCommand, WorkerEvent,
};
use proofmill_orchestrator::core::{
    Action, Core, CoreOptions, Event, HistoryOptions, LEASE_KEY_BYTES, Now, RequestId,
    TaskReportKind, Time, Token,
};
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::record::TaskRecord;

use crate::actors::{Hears, Producer, SimWorker, Sink};
use crate::blobs::SimBlobs;
use crate::byzantine::Liar;
use crate::chain::Chain;
use crate::checks::Monitor;
use crate::digest::ActionDigest;
use crate::hosts::{SimHost, finished_groups};
use crate::log::SimLog;
use crate::pauses::Pauser;
use crate::plans::{self, Scene};
use crate::rng::Rng;

/// Small, so that the history's slots are reused many times.
pub(crate) const HISTORY: HistoryOptions = HistoryOptions {
    steps: 60,
    keep: Duration::from_secs(1_000_000),
};

/// A scheduled event.
pub(crate) enum Ev {
    Flush,
    Answer(u64, Event),
    ToCore(Option<u64>, Event),
    Tick(u64),
    ToWorker(usize, u64, Hears),
    Beat(usize, u64),
    Ran(usize, u64, LeaseRef),
    Reply(RequestId, Reply),
    Produce(usize, u64),
    SinkWrite(u64),
    SinkUp,
    Restart,
    WorkerUp(usize),
    WorkerResumes(usize),
    WorkerGone(usize, u64),
    WorkerHasRoom(usize, u64),
    ToHost(usize, u64, HostCommand),
    HostBeat(usize, u64),
    HostUp(usize),
    HostResumes(usize),
    ProducerUp(usize),
    Operate,
    Strange,
    Reorganise,
    Fault,
    Sweep,
    Lie,
    Pause,
}

pub(crate) enum Shown {
    Reply(RequestId, Reply),
    Settled(TaskId),
    Assign(Arc<str>, Vec<Lease>),
}

pub(crate) enum Asker {
    Producer {
        producer: usize,
        inc: u64,
        message: usize,
        part: Part,
    },
    Stranger {
        producer: usize,
        message: usize,
        part: Part,
    },
    /// A source that takes back its blocks from one on.
    Rewinder {
        from: u64,
    },
    Operator,
}

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) rng: Rng,
    pub(crate) scene: Scene,
    pub(crate) now_ms: u64,
    agenda: BTreeMap<(u64, u64), Ev>,
    next_ev: u64,
    pub(crate) log: SimLog,
    flushing: bool,
    pub(crate) core: Option<Core>,
    pub(crate) epoch: u64,
    clock_ms: u64,
    /// Time on the core's clock, which does not go back when the machine's clock does.
    core_ms: u64,
    answer_delay: u64,
    last_answer: u64,
    pub(crate) unanswered: usize,
    ticks_at: Option<u64>,
    shown: Vec<(Seq, Shown)>,
    emissions: VecDeque<(Seq, std::sync::Arc<TaskRecord>)>,
    pub(crate) requests: BTreeMap<RequestId, Asker>,
    pub(crate) next_request: u64,
    pub(crate) workers: Vec<SimWorker>,
    pub(crate) producers: Vec<Producer>,
    pub(crate) hosts: Vec<SimHost>,
    pub(crate) next_session: u64,
    /// Number of groups that hosts have completed.
    pub(crate) gathered: u64,
    pub(crate) sink: Sink,
    pub(crate) chain: Chain,
    pub(crate) blobs: SimBlobs,
    pub(crate) monitor: Monitor,
    pub(crate) liar: Option<Liar>,
    pub(crate) pauser: Option<Pauser>,
    pub(crate) calm: bool,
    pub(crate) draining: bool,
    pub(crate) steps: u64,
    trace: VecDeque<String>,
    pub(crate) digest: u64,
    /// Digest of the actions of all cores of the history.
    pub(crate) actions: ActionDigest,
    print: bool,
}

pub(crate) type Checked = Result<(), String>;

impl World {
    pub(crate) fn new(seed: u64, print: bool) -> Self {
        let mut rng = Rng::new(seed);
        let scene = plans::scene(seed as usize % plans::SCENES, &mut rng);
        let workers = SimWorker::crew(&scene, &mut rng);
        let hosts = SimHost::crew(&scene, &mut rng);
        let producers = scene.sources.iter().map(Producer::new).collect();
        let chain = Chain::new(scene.end);
        let mut world = Self {
            seed,
            rng,
            scene,
            now_ms: 0,
            agenda: BTreeMap::new(),
            next_ev: 0,
            log: SimLog::default(),
            flushing: false,
            core: None,
            epoch: 0,
            clock_ms: 0,
            core_ms: 0,
            answer_delay: 0,
            last_answer: 0,
            unanswered: 0,
            ticks_at: None,
            shown: Vec::new(),
            emissions: VecDeque::new(),
            requests: BTreeMap::new(),
            next_request: 0,
            workers,
            producers,
            hosts,
            next_session: 0,
            gathered: 0,
            sink: Sink::default(),
            chain,
            blobs: SimBlobs::default(),
            monitor: Monitor::default(),
            liar: None,
            pauser: Pauser::of(seed),
            calm: false,
            draining: false,
            steps: 0,
            trace: VecDeque::new(),
            digest: 0xcbf2_9ce4_8422_2325,
            actions: ActionDigest::default(),
            print,
        };
        world.after(0, Ev::Restart);
        for worker in 0..world.workers.len() {
            let delay = world.rng.within(0, 50);
            world.after(delay, Ev::WorkerUp(worker));
        }
        for host in 0..world.hosts.len() {
            let delay = world.rng.within(0, 2_000);
            world.after(delay, Ev::HostUp(host));
        }
        for producer in 0..world.producers.len() {
            world.after(1, Ev::ProducerUp(producer));
        }
        world.after(0, Ev::SinkUp);
        world.after(300, Ev::Operate);
        match world.scene.chain {
            true => world.after(400, Ev::Reorganise),
            false => world.after(100, Ev::Strange),
        }
        world.after(50, Ev::Fault);
        if world.has_blobs() {
            world.after(70, Ev::Sweep);
        }
        if seed % 2 == 1 {
            world.liar = Some(Liar::new(seed, &world.scene));
            world.after(20, Ev::Lie);
        }
        if world.pauser.is_some() {
            world.after(150, Ev::Pause);
        }
        world
    }

    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        let line = format!("{:>7} {}", self.now_ms, line());
        for byte in line.bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if self.print {
            println!("{line}");
        }
        if self.trace.len() == 60 {
            self.trace.pop_front();
        }
        self.trace.push_back(line);
    }

    /// The last lines of the trace, for error messages.
    pub(crate) fn trace_tail(&self) -> String {
        self.trace.iter().map(|line| format!("{line}\n")).collect()
    }

    pub(crate) fn after(&mut self, delay_ms: u64, ev: Ev) {
        self.next_ev += 1;
        self.agenda
            .insert((self.now_ms + delay_ms, self.next_ev), ev);
    }

    /// Schedules an event over a channel that loses, repeats, delays and reorders.
    pub(crate) fn lossy(&mut self, make: impl Fn() -> Ev) {
        let copies = match self.rng.within(0, 99) {
            _ if self.calm => 1,
            0..3 => 0,
            3..6 => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let slow = if self.rng.per_mille(30) { 800 } else { 15 };
            let delay = self.rng.within(0, slow);
            self.after(delay, make());
        }
    }

    /// Runs until `until_ms`, or until no event is left.
    pub(crate) fn run(&mut self, until_ms: u64) -> Checked {
        while let Some((&(at, number), _)) = self.agenda.first_key_value() {
            if at > until_ms {
                break;
            }
            let Some(ev) = self.agenda.remove(&(at, number)) else {
                break;
            };
            self.now_ms = at;
            self.steps += 1;
            if self.steps > 400_000 {
                return Err("(liveness) this history does not end".to_owned());
            }
            self.happen(ev)?;
        }
        self.now_ms = until_ms;
        Ok(())
    }

    fn happen(&mut self, ev: Ev) -> Checked {
        match ev {
            Ev::Flush => self.flush(),
            Ev::Answer(epoch, event) => match epoch == self.epoch && self.core.is_some() {
                true => self.tell(event),
                false => Ok(()),
            },
            Ev::ToCore(epoch, event) => {
                let connected = epoch.is_none_or(|epoch| epoch == self.epoch);
                match connected && self.core.is_some() {
                    true => self.tell(event),
                    false => Ok(()),
                }
            }
            Ev::Tick(epoch) => {
                if epoch == self.epoch && self.core.is_some() {
                    self.ticks_at = None;
                    return self.tell(Event::Tick);
                }
                Ok(())
            }
            Ev::Restart => self.restart(),
            Ev::Reply(request, reply) => self.replied(request, reply),
            Ev::SinkWrite(epoch) => self.sink_writes(epoch),
            Ev::SinkUp => {
                self.sink.up = true;
                self.sink_starts();
                Ok(())
            }
            Ev::ToWorker(..)
            | Ev::Beat(..)
            | Ev::Ran(..)
            | Ev::WorkerUp(_)
            | Ev::WorkerResumes(_)
            | Ev::WorkerGone(..)
            | Ev::WorkerHasRoom(..) => {
                self.worker_event(ev);
                Ok(())
            }
            Ev::ToHost(..) | Ev::HostBeat(..) | Ev::HostUp(_) | Ev::HostResumes(_) => {
                self.host_event(ev);
                Ok(())
            }
            Ev::Produce(..) | Ev::ProducerUp(_) | Ev::Strange | Ev::Reorganise | Ev::Operate => {
                self.outside_event(ev);
                Ok(())
            }
            Ev::Fault => self.fault(),
            Ev::Sweep => self.sweep(),
            Ev::Lie => self.lie(),
            Ev::Pause => {
                self.pause_something();
                Ok(())
            }
        }
    }

    pub(crate) fn now(&self) -> Now {
        let mono = Time((self.clock_ms + self.now_ms) * 1000);
        Now {
            mono,
            wall_ms: self.clock_ms / 2 + self.now_ms,
        }
    }

    /// Moves the machine's clock forwards or backwards.
    pub(crate) fn jump(&mut self, forwards: bool, by_ms: u64) {
        self.clock_ms = if forwards {
            self.clock_ms + by_ms
        } else {
            self.clock_ms.saturating_sub(by_ms)
        };
        self.ticks_at = None;
        let epoch = self.epoch;
        self.after(0, Ev::Tick(epoch));
    }

    fn restart(&mut self) -> Checked {
        self.epoch += 1;
        self.clock_ms = self.rng.within(0, 1_000_000);
        self.answer_delay = if self.rng.flip() {
            0
        } else {
            self.rng.within(1, 30)
        };
        self.ticks_at = None;
        let grace = if self.rng.flip() {
            0
        } else {
            self.rng.within(100, 2_000)
        };
        self.log.keep_lease_key(self.epoch)?;
        let mut core = self.replayed(Duration::from_millis(grace))?;
        let epoch = self.epoch;
        self.note(|| format!("coordinator {epoch} starts, grace {grace} ms"));
        self.core_ms = self.now().mono.0 / 1000;
        let actions = core.start(self.now());
        self.actions.note(&actions);
        self.core = Some(core);
        self.hosts_hear_of_a_coordinator();
        let mut todo = VecDeque::new();
        self.perform(actions, &mut todo)?;
        self.work_off(todo)
    }

    pub(crate) fn replayed(&self, adopt_grace: Duration) -> Result<Core, String> {
        let options = CoreOptions {
            adopt_grace,
            // The key that the log has makes leases outlive a coordinator; this one differs for each.
            fresh_lease_key: [self.epoch as u8; LEASE_KEY_BYTES],
            history: HISTORY,
            ..CoreOptions::default()
        };
        let mut core = Core::new(self.scene.plan.clone(), options);
        for (seq, key, value) in self.log.replay() {
            core.replay(&key, &value, seq)
                .map_err(|error| error.to_string())?;
        }
        Ok(core)
    }

    pub(crate) fn coordinator_dies(&mut self) -> Checked {
        if self.core.take().is_none() {
            return Ok(());
        }
        // The crash may come between the sync and its report.
        let synced = self.rng.within(0, self.log.pending() as u64) as usize;
        for ops in self.log.flush(synced) {
            self.check_named(&ops)?;
            self.monitor.durable(&self.scene, &ops)?;
        }
        let lost = self.log.pending();
        self.note(|| format!("coordinator dies, {lost} batches are lost"));
        self.log.crash();
        self.blobs.coordinator_died();
        self.shown.clear();
        self.emissions.clear();
        self.sink.inbox.clear();
        self.unanswered = 0;
        self.last_answer = 0;
        self.monitor.coordinator_died();
        let delay = self.rng.within(1, 1_500);
        self.after(delay, Ev::Restart);
        Ok(())
    }

    pub(crate) fn tell(&mut self, event: Event) -> Checked {
        self.work_off(VecDeque::from([event]))
    }

    /// Passes an event to the core and returns its actions; `None` if there is no core.
    pub(crate) fn pass_event(&mut self, event: Event) -> Option<Vec<Action>> {
        let dull = match &event {
            Event::Tick => true,
            Event::Host(event) => event.is_heartbeat(),
            Event::Worker(WorkerEvent::Heartbeat { running, .. }) => {
                running.is_empty() || self.calm
            }
            _ => false,
        };
        if !dull {
            self.note(|| short(&event));
        }
        let now = self.now();
        self.core_ms = self.core_ms.max(now.mono.0 / 1000);
        self.monitor.hears(&event, self.core_ms);
        self.gathered += finished_groups(&event);
        if matches!(event, Event::Accepted { .. } | Event::Conflicted { .. }) {
            self.unanswered -= 1;
        }
        let actions = self.core.as_mut()?.handle(now, event);
        self.actions.note(&actions);
        Some(actions)
    }

    pub(crate) fn work_off(&mut self, mut todo: VecDeque<Event>) -> Checked {
        while let Some(event) = todo.pop_front() {
            let Some(actions) = self.pass_event(event) else {
                return Ok(());
            };
            self.perform(actions, &mut todo)?;
        }
        let deadline = self.core.as_ref().and_then(Core::next_deadline);
        if let Some(due) = deadline {
            let due_ms = (due.0.div_ceil(1000))
                .saturating_sub(self.clock_ms)
                .max(self.now_ms);
            if self.ticks_at.is_none_or(|at| due_ms < at) {
                self.ticks_at = Some(due_ms);
                let epoch = self.epoch;
                self.after(due_ms - self.now_ms, Ev::Tick(epoch));
            }
        }
        if self.rng.per_mille(30) {
            self.compare_with_replayed()?;
        }
        Ok(())
    }

    pub(crate) fn perform(&mut self, actions: Vec<Action>, todo: &mut VecDeque<Event>) -> Checked {
        if let Some(core) = &self.core {
            #[cfg(debug_assertions)]
            if self.print || self.steps.is_multiple_of(4) {
                core.check().map_err(|why| format!("(j) {why}"))?;
            }
            self.monitor
                .step(&self.scene, core, &actions, self.core_ms)?;
        }
        let mut assigned: Vec<(Token, Arc<str>, Vec<Lease>)> = Vec::new();
        for action in actions {
            if let Some(liar) = &mut self.liar {
                liar.learns(&action);
            }
            match action {
                Action::Append { token, ops } => {
                    self.note(|| format!("append {} {ops:?}", token.0));
                    self.unanswered += 1;
                    let answer = match self.log.append(ops) {
                        Ok(seq) => {
                            for (_, worker, leases) in
                                assigned.extract_if(.., |(after, ..)| *after == token)
                            {
                                self.shown.push((seq, Shown::Assign(worker, leases)));
                            }
                            Event::Accepted { token, seq }
                        }
                        Err(key) => Event::Conflicted { token, key },
                    };
                    if self.answer_delay == 0 {
                        todo.push_back(answer);
                    } else {
                        let delay = self.rng.within(0, self.answer_delay);
                        self.last_answer = self.last_answer.max(self.now_ms + delay);
                        let (wait, epoch) = (self.last_answer - self.now_ms, self.epoch);
                        self.after(wait, Ev::Answer(epoch, answer));
                    }
                }
                Action::Worker {
                    after,
                    worker,
                    command: WorkerCommand::Assign(leases),
                } => {
                    let ids: Vec<String> = leases
                        .iter()
                        .map(|lease| format!("{}#{}", lease.task.id, lease.attempt))
                        .collect();
                    self.note(|| format!("assign {worker} {ids:?}"));
                    match after {
                        None => self.post(&worker, WorkerCommand::Assign(leases)),
                        Some(token) => assigned.push((token, worker, leases)),
                    }
                }
                Action::Worker {
                    worker, command, ..
                } => self.post(&worker, command),
                Action::Host { host, command } => {
                    self.note(|| format!("tell {host} {command:?}"));
                    self.tell_host(&host, &command);
                }
                Action::Reply {
                    request,
                    after,
                    reply,
                } => {
                    self.shown.push((after, Shown::Reply(request, reply)));
                }
                Action::Defect { why } => return Err(format!("(g) {why}")),
                Action::Report(report) => {
                    if let TaskReportKind::Late { why, .. } = &report.kind {
                        self.note(|| format!("{}: {why}", report.task));
                        self.monitor.late += 1;
                    }
                }
                Action::Trace { .. } | Action::Work { .. } => {
                    return Err("(g) a report nobody asked for".to_owned());
                }
                Action::Settle { after, settled } => {
                    self.shown
                        .push((after, Shown::Settled(settled.task.id.clone())));
                }
                Action::Sink {
                    after,
                    command: SinkCommand::Emit(task),
                } => {
                    self.note(|| format!("emit {} after {}", task.id, after.0));
                    self.emissions.push_back((after, task));
                }
            }
        }
        self.show()?;
        if self.log.pending() > 0 && !self.flushing {
            self.flushing = true;
            let delay = self.rng.within(1, 25);
            self.after(delay, Ev::Flush);
        }
        Ok(())
    }

    fn post(&mut self, name: &str, command: WorkerCommand) {
        if let Some(ix) = self.workers.iter().position(|worker| &*worker.name == name) {
            let inc = self.workers[ix].inc;
            self.lossy(|| Ev::ToWorker(ix, inc, Hears::Command(command.clone())));
        }
    }

    fn flush(&mut self) -> Checked {
        self.flushing = false;
        let most = self.log.pending();
        if most == 0 {
            return Ok(());
        }
        let count = self.rng.within(1, most as u64) as usize;
        for ops in self.log.flush(count) {
            self.check_named(&ops)?;
            self.monitor.durable(&self.scene, &ops)?;
        }
        self.remove_due()?;
        let durable = self.log.durable().0;
        self.note(|| format!("durable {durable}"));
        if self.log.pending() > 0 {
            self.flushing = true;
            let delay = self.rng.within(1, 25);
            self.after(delay, Ev::Flush);
        }
        self.show()
    }

    /// Releases the outputs that waited for durability.
    fn show(&mut self) -> Checked {
        let durable = self.log.durable();
        let (ripe, waiting) = std::mem::take(&mut self.shown)
            .into_iter()
            .partition(|(after, _)| *after <= durable);
        self.shown = waiting;
        let ripe: Vec<(Seq, Shown)> = ripe;
        for (_, shown) in ripe {
            match shown {
                Shown::Reply(request, reply) => self.show_reply(request, reply)?,
                Shown::Assign(worker, leases) => {
                    self.post(&worker, WorkerCommand::Assign(leases));
                }
                Shown::Settled(task) => {
                    for ix in 0..self.workers.len() {
                        let inc = self.workers[ix].inc;
                        if self.workers[ix].waits_for(&task) {
                            self.lossy(|| Ev::ToWorker(ix, inc, Hears::Settled(task.clone())));
                        }
                    }
                }
            }
        }
        while self
            .emissions
            .front()
            .is_some_and(|(after, _)| *after <= durable)
        {
            if let Some((_, task)) = self.emissions.pop_front() {
                self.sink.inbox.push_back(task);
            }
        }
        self.sink_starts();
        Ok(())
    }
}

fn short(event: &Event) -> String {
    match event {
        Event::Request {
            id,
            request: Request::Submit(submit),
        } => format!(
            "submit {} {}/{}..={} as {}",
            submit.producer, submit.queue.0, submit.message.first, submit.message.last, id.0
        ),
        Event::Worker(WorkerEvent::Complete(complete)) => format!(
            "complete {} {}#{}",
            complete.worker, complete.lease.task, complete.lease.attempt
        ),
        Event::Worker(WorkerEvent::Fail(fail)) => {
            format!(
                "fail {} {}#{}",
                fail.worker, fail.lease.task, fail.lease.attempt
            )
        }
        Event::Worker(WorkerEvent::Join(join)) => format!("join {}", join.worker),
        other => format!("{other:?}"),
    }
}
