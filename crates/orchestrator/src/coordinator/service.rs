//! The coordinator's event loop, which carries out the core's actions.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use proofmill_bus::{
    AppendError, BlobStore, Durable, Expect, Log, LogFailure, Op, ReadError, Seq, until_durable,
};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::handle::{Command, Condition, Handle};
use super::outbox::{DurableOutput, ImmediateAction, Outbox};
use super::questions::QuestionTimes;
use super::report;
use super::result_check::{CheckJob, Checker, ResultChecks};
use super::result_gate::{CheckId, GateAction, ResultGate, Verdict};
use crate::clock::wall_ms;
use crate::conversation::{
    HostCommand, HostEvent, Reply, RoleEvent, SinkCommand, SinkEvent, WorkerCommand, WorkerEvent,
    WorkerResult,
};
use crate::core::{
    Action, Core, CoreOptions, Event, Now, ReplayError, RequestId, Settled, Time, Token, WorkEvent,
};
use crate::id::WorkerId;
use crate::plan::{Plan, StageIx};
use crate::port::{Attachment, Message};
use crate::record::{Record, RecordKey, TaskRecord};
use crate::shutdown::{Level, Shutdown};
use crate::traces;

/// Capacity of the command channel; senders wait when it is full.
const COMMANDS: usize = 4096;

/// Maximum number of commands taken before the log and the watermark are checked again.
const TURN: usize = 256;

/// Settings of a coordinator.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Settings of the core.
    pub core: CoreOptions,
    /// Checks of results before they count.
    pub result_checks: ResultChecks,
    /// The store of the payloads that the checks read; without it nothing is checked.
    pub blobs: Option<Arc<BlobStore>>,
}

/// Failure that keeps a coordinator from starting, or stops it.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// The log cannot be read.
    #[error("cannot read the log")]
    Read(#[from] ReadError),
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    Random,
    /// The log does not fit the workflow.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The log refused an append for another reason than an existing record.
    #[error("cannot append to the log")]
    Append(#[source] AppendError),
    /// The log stopped. Accepted records may be lost, but none that was acknowledged.
    #[error("the log has failed: {0}")]
    Log(Arc<LogFailure>),
}

/// The coordinator of one workflow.
pub struct Coordinator {
    core: Core,
    /// Lease key to record before any task is leased; `None` if the log has one.
    fresh_lease_key: Option<Record>,
    log: Arc<dyn Log>,
    commands: mpsc::Receiver<Command>,
    epoch: Instant,
    next_request: u64,
    replies: HashMap<RequestId, oneshot::Sender<Reply>>,
    workers: HashMap<WorkerId, mpsc::UnboundedSender<WorkerCommand>>,
    hosts: HashMap<WorkerId, mpsc::UnboundedSender<HostCommand>>,
    sink: Option<mpsc::UnboundedSender<SinkCommand>>,
    observers: Vec<mpsc::UnboundedSender<Settled>>,
    work_observers: Vec<mpsc::UnboundedSender<WorkEvent>>,
    waiters: Vec<(Condition, oneshot::Sender<()>)>,
    outbox: Outbox,
    next_flush: u64,
    flushes: HashMap<u64, oneshot::Sender<()>>,
    result_gate: ResultGate,
    checker: Option<Checker>,
    questions: QuestionTimes,
}

type Appending = BoxFuture<'static, (Token, Result<Seq, AppendError>)>;

// === impl Coordinator ===

impl Coordinator {
    /// Replays the log. [`Coordinator::run`] then does the work; until it is called, requests of the handle
    /// wait.
    pub fn open(
        plan: Arc<Plan>,
        log: Arc<dyn Log>,
        options: Options,
    ) -> BoxFuture<'static, Result<(Self, Handle), CoordinatorError>> {
        // Boxed, so that it is compiled here and not again in every program that calls it.
        Box::pin(async move {
            let mut core_options = options.core;
            core_options.traces |= proofmill_trace::recorder().is_some();
            SystemRandom::new()
                .fill(&mut core_options.fresh_lease_key)
                .map_err(|_| CoordinatorError::Random)?;
            let lease_key = Record::LeaseKey(core_options.fresh_lease_key);
            let mut core = Core::new(plan.clone(), core_options);
            let mut entries = log.replay();
            let mut appended = Seq(0);
            while let Some(entry) = entries.next().await {
                let entry = entry?;
                core.replay(entry.key.as_str(), &entry.value, entry.seq)?;
                appended = entry.seq;
            }
            drop(entries);
            for (key, why) in core.set_aside() {
                tracing::error!(
                    %key,
                    why,
                    "a record of the log cannot be applied and is set aside: what it says is not \
                     known to this coordinator; the record stays where it is"
                );
            }
            let fresh_lease_key = (!core.has_lease_key()).then_some(lease_key);
            if appended == Seq(0) {
                appended = mark_as_opened(&*log).await;
            }
            let (sender, commands) = mpsc::channel(COMMANDS);
            let questions = QuestionTimes::new(&plan.workflow);
            let handle = Handle::new(sender, plan, questions.clone(), &log);
            let coordinator = Self {
                core,
                fresh_lease_key,
                log,
                commands,
                epoch: Instant::now(),
                next_request: 0,
                replies: HashMap::new(),
                workers: HashMap::new(),
                hosts: HashMap::new(),
                sink: None,
                observers: Vec::new(),
                work_observers: Vec::new(),
                waiters: Vec::new(),
                outbox: Outbox::new(appended),
                next_flush: 0,
                flushes: HashMap::new(),
                result_gate: ResultGate::default(),
                checker: options
                    .blobs
                    .and_then(|blobs| Checker::start(options.result_checks, blobs)),
                questions,
            };
            Ok((coordinator, handle))
        })
    }

    /// The core, as replayed from the log.
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Works until `shutdown` reaches [`Level::Stop`] or every handle is dropped, then until the accepted
    /// records are durable.
    pub fn run(
        mut self,
        mut shutdown: Shutdown,
    ) -> BoxFuture<'static, Result<(), CoordinatorError>> {
        // Boxed, so that it is compiled here and not again in every program that calls it.
        Box::pin(async move {
            let mut durable = self.log.durable();
            let mut appending: FuturesUnordered<Appending> = FuturesUnordered::new();
            self.record_lease_key().await?;
            let actions = self.core.start(self.now());
            self.carry_out(actions, &mut appending).await?;
            let mut turn = Vec::with_capacity(TURN);
            loop {
                let deadline = self.core.next_deadline().map(|time| self.instant(time));
                tokio::select! {
                    count = self.commands.recv_many(&mut turn, TURN) => {
                        if count == 0 {
                            break;
                        }
                        for command in turn.drain(..) {
                            self.command(command, &mut appending).await?;
                        }
                    }
                    Some((token, result)) = appending.next(), if !appending.is_empty() => {
                        self.appended(token, result, &mut appending).await?;
                    }
                    changed = durable.changed() => {
                        if changed.is_err() {
                            return Err(CoordinatorError::Append(AppendError::Closed));
                        }
                    }
                    (id, verdict) = next_verdict(&mut self.checker) => {
                        let actions = self.result_gate.checked(id, verdict);
                        self.pass_gate(actions, &mut appending).await?;
                    }
                    () = sleep_until(deadline) => {
                        self.handle(Event::Tick, &mut appending).await?;
                    }
                    () = shutdown.reached(Level::Stop) => break,
                }
                self.release(&mut durable)?;
            }
            self.finish(durable).await
        })
    }

    /// Records the lease key, if the log has none, so that a successor can verify this coordinator's leases.
    async fn record_lease_key(&mut self) -> Result<(), CoordinatorError> {
        let Some(record) = self.fresh_lease_key.take() else {
            return Ok(());
        };
        let put = Op::Put {
            key: RecordKey::LeaseKey.to_key().expect("a constant"),
            value: record.encode(),
            expect: Expect::Absent,
        };
        let appended = self.log.append(vec![put]).await;
        let appended = appended.map_err(|error| match error {
            AppendError::Failed(failure) => CoordinatorError::Log(failure),
            error => CoordinatorError::Append(error),
        })?;
        self.outbox.note_foreign_append(appended);
        Ok(())
    }

    /// Waits until the accepted records are durable, and sends the replies that wait for them.
    async fn finish(
        mut self,
        mut durable: watch::Receiver<Durable>,
    ) -> Result<(), CoordinatorError> {
        let target = self.outbox.appended();
        // `release`, below, reports a failed or closed log.
        let _ = durable
            .wait_for(|state| state.seq >= target || state.failed.is_some())
            .await;
        self.release(&mut durable)
    }

    async fn command(
        &mut self,
        command: Command,
        appending: &mut FuturesUnordered<Appending>,
    ) -> Result<(), CoordinatorError> {
        let event = match command {
            Command::Port(Message::Request(request, reply)) => Event::Request {
                id: self.expect_reply(reply),
                request,
            },
            Command::Port(Message::Attach(attachment)) => {
                self.attach(attachment);
                return Ok(());
            }
            Command::Port(Message::Event(RoleEvent::Worker(event))) => {
                if event.is_departure() {
                    // At once: if the worker comes back, its next channel must not go with a departure that waits.
                    self.workers.remove(event.worker());
                }
                let passed = match self.task_to_check(&event) {
                    Some((stage, task, result)) => vec![self.begin_check(stage, task, result)],
                    None => {
                        let is_known = self.core.knows_worker(event.worker());
                        self.result_gate.event(event, is_known)
                    }
                };
                return self.pass_gate(passed, appending).await;
            }
            Command::Port(Message::Event(event)) => {
                self.note(&event);
                event.into()
            }
            Command::Port(Message::Query(query, answer)) => {
                // Ages and silences are of now, even if no event has come for long.
                let now = self.now();
                self.core.set_time(now);
                // The caller may have gone.
                let _ = answer.send(self.questions.time(|| self.core.answer(query)));
                return Ok(());
            }
            Command::LiveBlobs(answer) => {
                // As above.
                let mut live = self.core.live_blobs();
                self.result_gate.each_blob(&mut |digest| {
                    live.insert(*digest);
                });
                let _ = answer.send(live);
                return Ok(());
            }
            Command::Examine(look) => {
                look(&self.core);
                return Ok(());
            }
            Command::Flush(checks, flushed) => {
                self.flushes.insert(self.next_flush, flushed);
                let passed = self.result_gate.flush(self.next_flush, &checks);
                self.next_flush += 1;
                return self.pass_gate(passed, appending).await;
            }
            Command::Observe(observer) => {
                self.outbox.observe();
                self.observers.push(observer);
                return Ok(());
            }
            Command::ObserveWork(observer) => {
                let past = self.core.observe_work();
                if past.into_iter().all(|event| observer.send(event).is_ok()) {
                    self.work_observers.push(observer);
                }
                return Ok(());
            }
            Command::When(condition, waiter) => {
                self.waiters.push((condition, waiter));
                return Ok(());
            }
            Command::Drain => Event::Drain,
        };
        self.handle(event, appending).await
    }

    /// A result that must be checked before it counts, with its stage and task.
    fn task_to_check(
        &self,
        event: &WorkerEvent,
    ) -> Option<(StageIx, Arc<TaskRecord>, WorkerResult)> {
        let checker = self.checker.as_ref()?;
        let WorkerEvent::Complete(result) = event else {
            return None;
        };
        let (stage, task) = self.core.leased_record(&result.worker, &result.lease)?;
        checker.has(stage).then(|| (stage, task, result.clone()))
    }

    async fn pass_gate(
        &mut self,
        actions: impl IntoIterator<Item = GateAction>,
        appending: &mut FuturesUnordered<Appending>,
    ) -> Result<(), CoordinatorError> {
        for action in actions {
            match action {
                GateAction::Pass(event) => self.handle(event, appending).await?,
                GateAction::Flush(number) => self.outbox.flush(number),
            }
        }
        Ok(())
    }

    fn begin_check(
        &mut self,
        stage: StageIx,
        task: Arc<TaskRecord>,
        result: WorkerResult,
    ) -> GateAction {
        let (id, waits) = self.result_gate.hold(result.clone());
        if let Some(checker) = &self.checker {
            checker.begin(CheckJob {
                id,
                stage,
                task,
                result,
            });
        }
        waits
    }

    fn attach(&mut self, attachment: Attachment) {
        match attachment {
            Attachment::Worker(worker, sender) => {
                self.workers.insert(worker, sender);
            }
            Attachment::Host(host, sender) => {
                self.hosts.insert(host, sender);
            }
            Attachment::Sink(sender) => {
                self.sink = Some(sender);
                self.outbox.attach_sink();
            }
        }
    }

    /// Updates the channels and the sink's unconfirmed emissions for an event of a host or the sink.
    fn note(&mut self, event: &RoleEvent) {
        match event {
            RoleEvent::Host(HostEvent::Leave { host }) => {
                self.hosts.remove(host);
            }
            RoleEvent::Sink(SinkEvent::Emitted { task: emitted, .. }) => {
                self.outbox.confirmed(emitted);
            }
            _ => {}
        }
    }

    fn expect_reply(&mut self, reply: oneshot::Sender<Reply>) -> RequestId {
        let request = RequestId(self.next_request);
        self.next_request += 1;
        self.replies.insert(request, reply);
        request
    }

    async fn handle(
        &mut self,
        event: Event,
        appending: &mut FuturesUnordered<Appending>,
    ) -> Result<(), CoordinatorError> {
        let actions = self.core.handle(self.now(), event);
        self.carry_out(actions, appending).await
    }

    /// Carries actions out in order. A log that accepts at once (the embedded one) gives its answer at once,
    /// so that the core never sees an append in flight; the answer of other logs is awaited in the loop.
    async fn carry_out(
        &mut self,
        actions: Vec<Action>,
        appending: &mut FuturesUnordered<Appending>,
    ) -> Result<(), CoordinatorError> {
        let mut queue = VecDeque::from(actions);
        while let Some(action) = queue.pop_front() {
            let Some(due) = self.outbox.hold_back(action) else {
                continue;
            };
            match due {
                ImmediateAction::Append { token, ops } => {
                    let log = self.log.clone();
                    let mut append: Appending =
                        Box::pin(async move { (token, log.append(ops).await) });
                    match futures_util::poll!(&mut append) {
                        std::task::Poll::Ready((token, result)) => {
                            let event = self.outcome(token, result)?;
                            queue.extend(self.core.handle(self.now(), event));
                        }
                        std::task::Poll::Pending => appending.push(append),
                    }
                }
                ImmediateAction::Worker(worker, command) => self.tell(&worker, command),
                ImmediateAction::Host(host, command) => {
                    if let Some(sender) = self.hosts.get(&host) {
                        // A host that is gone owes verdicts and loses its partitions.
                        let _ = sender.send(command);
                    }
                }
                ImmediateAction::Defect(why) => {
                    tracing::error!(why, "the coordinator cannot record something");
                }
                ImmediateAction::Report(report) => report::log(&report),
            }
        }
        Ok(())
    }

    fn outcome(
        &mut self,
        token: Token,
        result: Result<Seq, AppendError>,
    ) -> Result<Event, CoordinatorError> {
        match result {
            Ok(seq) => {
                self.outbox.accepted(token, seq);
                Ok(Event::Accepted { token, seq })
            }
            Err(AppendError::Conflict { key }) => {
                self.outbox.refused(token);
                Ok(Event::Conflicted {
                    token,
                    key: key.as_str().to_owned(),
                })
            }
            Err(AppendError::Failed(failure)) => Err(CoordinatorError::Log(failure)),
            Err(error) => Err(CoordinatorError::Append(error)),
        }
    }

    async fn appended(
        &mut self,
        token: Token,
        result: Result<Seq, AppendError>,
        appending: &mut FuturesUnordered<Appending>,
    ) -> Result<(), CoordinatorError> {
        let event = self.outcome(token, result)?;
        self.handle(event, appending).await
    }

    fn tell(&mut self, worker: &WorkerId, command: WorkerCommand) {
        let gone = self
            .workers
            .get(worker)
            .is_some_and(|sender| sender.send(command).is_err());
        if gone {
            // The worker's leases end by themselves (T_ack), or when its Leave arrives.
            self.workers.remove(worker);
        }
    }

    /// Sends the outputs that are durable now.
    fn release(&mut self, durable: &mut watch::Receiver<Durable>) -> Result<(), CoordinatorError> {
        let (watermark, failed) = {
            let state = durable.borrow_and_update();
            (state.seq, state.failed.clone())
        };
        if self
            .sink
            .as_ref()
            .is_some_and(mpsc::UnboundedSender::is_closed)
        {
            self.sink = None;
            self.outbox.detach_sink();
        }
        let mut reports = Vec::new();
        for released in self.outbox.release(watermark) {
            match released {
                DurableOutput::Reply(request, reply) => {
                    if let Some(sender) = self.replies.remove(&request) {
                        // The caller may have gone; the record stands all the same.
                        let _ = sender.send(reply);
                    }
                }
                DurableOutput::Flushed(number) => {
                    // As above.
                    let _ = self.flushes.remove(&number).map(|flushed| flushed.send(()));
                }
                DurableOutput::Worker(worker, command) => self.tell(&worker, command),
                DurableOutput::Trace(event) => reports.push(event),
                DurableOutput::Work(event) => {
                    self.work_observers
                        .retain(|observer| observer.send(event.clone()).is_ok());
                }
                DurableOutput::Settled(settled) => {
                    self.observers
                        .retain(|observer| observer.send(settled.clone()).is_ok());
                }
                DurableOutput::Sink(command) => {
                    // If the sink has closed since, the next one gets the command, because it has not been
                    // confirmed.
                    let _ = self.sink.as_ref().map(|sink| sink.send(command));
                }
            }
        }
        // Spans are made when all others have been sent what they wait for.
        for event in reports {
            traces::record(self.core.plan(), event, wall_ms());
        }
        if let Some(failure) = failed {
            return Err(CoordinatorError::Log(failure));
        }
        if !self.waiters.is_empty() && watermark >= self.outbox.appended() {
            let core = &self.core;
            let (held, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiters)
                .into_iter()
                .partition(|(condition, _)| match condition {
                    Condition::Idle => core.is_idle(),
                    Condition::Drained => core.is_drained(),
                });
            self.waiters = waiting;
            for (_, waiter) in held {
                // As above.
                let _ = waiter.send(());
            }
        }
        Ok(())
    }

    fn now(&self) -> Now {
        let micros = u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX);
        Now {
            mono: Time(micros),
            wall_ms: wall_ms(),
        }
    }

    fn instant(&self, time: Time) -> Instant {
        let since = std::time::Duration::from_micros(time.0);
        self.epoch + since
    }
}

/// Makes it durable that a coordinator has begun with this log. If the first work in it ends the process, the
/// next coordinator knows that there was an earlier one.
async fn mark_as_opened(log: &dyn Log) -> Seq {
    let record = Record::Opened(wall_ms()).encode();
    let key = RecordKey::Opened.to_key().expect("a constant");
    let op = Op::put(key, record);
    let appended = async {
        let seq = log.append(vec![op]).await?;
        until_durable(&mut log.durable(), seq).await?;
        Ok::<_, AppendError>(seq)
    };
    appended.await.unwrap_or_else(|error| {
        // A process that only reads needs no such mark; one that works gets the error with its first task.
        tracing::warn!(%error, "the log does not take a record");
        Seq(0)
    })
}

/// The next outcome of a check; pending for ever where nothing is checked.
async fn next_verdict(checker: &mut Option<Checker>) -> (CheckId, Verdict) {
    let verdict = match checker {
        Some(checker) => checker.verdict().await,
        None => None,
    };
    match verdict {
        Some(verdict) => verdict,
        None => std::future::pending().await,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
