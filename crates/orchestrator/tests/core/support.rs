//! A core with a log that accepts at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proofmill_bus::{Expect, Op, Seq};
use proofmill_orchestrator::collector::Host;
use proofmill_orchestrator::conversation::{
    HostCommand, HostEvent, LeaseRef, Output, Reply, Request, SinkCommand, Submit, Target,
    Uniqueness, WorkerCommand, WorkerEvent, WorkerFailure, WorkerJoin, WorkerResult,
};
use proofmill_orchestrator::core::{
    Action, Core, CoreOptions, Event, HistoryOptions, LeaseKey, LeaseTag, Now, RequestId,
    TaskReport, TaskReportKind, Time, Token,
};
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::message::{Message, grouping};
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::plan::{Late, Plan, StageIx};
use proofmill_orchestrator::record::{Failure, Record};
use proofmill_orchestrator::traces::{TraceEvent, spans_of};
use proofmill_trace::{Span, TraceContext};

pub(crate) use crate::draft::{Draft, dispatcher};

pub(crate) struct Mill {
    pub(crate) core: Core,
    plan: Arc<Plan>,
    log: BTreeMap<String, (Seq, Bytes)>,
    last: Seq,
    now_ms: u64,
    wall_ahead_ms: i64,
    requests: u64,
    /// Assignments that the test has not read.
    pub(crate) assigned: Vec<(String, TaskId, u32)>,
    /// Assignments that wait for an append.
    waiting: Vec<(Token, (String, TaskId, u32))>,
    pub(crate) batches: Vec<usize>,
    pub(crate) emitted: Vec<TaskId>,
    pub(crate) cancelled: Vec<(String, LeaseRef)>,
    pub(crate) unknown: Vec<String>,
    /// Reports for traces.
    pub(crate) traces: Vec<TraceEvent>,
    /// Context that submissions come with.
    pub(crate) caller: Option<Arc<TraceContext>>,
    /// Late messages that were reported to the operator.
    pub(crate) late: Vec<(TaskId, Late)>,
    /// All reports to the operator about tasks.
    pub(crate) reports: Vec<TaskReport>,
    hosts: BTreeMap<String, Host>,
    /// Commands to hosts that they have not handled, each with the host's name.
    pub(crate) told: Vec<(String, HostCommand)>,
    sessions: u64,
    replies: BTreeMap<RequestId, Reply>,
    /// History options from the next restart on.
    pub(crate) history: HistoryOptions,
    /// Number of appends that the log accepted, and of operations in them.
    pub(crate) appends: (usize, usize),
    /// Appends on their way to a slow log; `None` if the log accepts at once.
    pub(crate) on_the_way: Option<Vec<(Token, Vec<Op>)>>,
}

/// Wall-clock time at the beginning, in milliseconds since 1970-01-01 UTC.
const WALL_MS: u64 = 1_000_000_000_000;

pub(crate) fn id(text: &str) -> TaskId {
    text.parse().expect("a task id")
}

impl Mill {
    pub(crate) fn new(plan: Plan) -> Self {
        let plan = Arc::new(plan);
        let options = CoreOptions {
            traces: true,
            ..CoreOptions::default()
        };
        let mut core = Core::new(plan.clone(), options);
        core.start(Now::default());
        Self {
            core,
            plan,
            log: BTreeMap::new(),
            last: Seq(0),
            now_ms: 0,
            wall_ahead_ms: 0,
            requests: 0,
            assigned: Vec::new(),
            waiting: Vec::new(),
            batches: Vec::new(),
            emitted: Vec::new(),
            cancelled: Vec::new(),
            unknown: Vec::new(),
            traces: Vec::new(),
            caller: None,
            late: Vec::new(),
            reports: Vec::new(),
            hosts: BTreeMap::new(),
            told: Vec::new(),
            sessions: 0,
            replies: BTreeMap::new(),
            history: HistoryOptions::default(),
            appends: (0, 0),
            on_the_way: None,
        }
    }

    fn now(&self) -> Now {
        Now {
            mono: Time(self.now_ms * 1000),
            wall_ms: (WALL_MS + self.now_ms).saturating_add_signed(self.wall_ahead_ms),
        }
    }

    pub(crate) fn tell(&mut self, event: impl Into<Event>) {
        let actions = self.core.handle(self.now(), event.into());
        self.perform(actions);
        #[cfg(debug_assertions)]
        if let Err(why) = self.core.check() {
            panic!("{why}");
        }
    }

    fn take_command(&mut self, after: Option<Token>, worker: &str, command: WorkerCommand) {
        match command {
            WorkerCommand::Assign(leases) => {
                self.batches.push(leases.len());
                for lease in leases {
                    let what = (worker.to_owned(), lease.task.id.clone(), lease.attempt);
                    match after {
                        None => self.assigned.push(what),
                        Some(token) => self.waiting.push((token, what)),
                    }
                }
            }
            WorkerCommand::Cancel(lease) => self.cancelled.push((worker.to_owned(), lease)),
            WorkerCommand::Unknown => self.unknown.push(worker.to_owned()),
        }
    }

    fn perform(&mut self, actions: Vec<Action>) {
        let mut answers = Vec::new();
        for action in actions {
            match action {
                Action::Append { token, ops } => match &mut self.on_the_way {
                    Some(on_the_way) => on_the_way.push((token, ops)),
                    None => answers.push(self.take(token, ops)),
                },
                Action::Worker {
                    after,
                    worker,
                    command,
                } => self.take_command(after, &worker, command),
                Action::Reply { request, reply, .. } => {
                    self.replies.insert(request, reply);
                }
                Action::Sink {
                    command: SinkCommand::Emit(task),
                    ..
                } => self.emitted.push(task.id.clone()),
                Action::Host { host, command } => self.told.push((host.to_string(), command)),
                Action::Report(report) => {
                    if let TaskReportKind::Late { became, .. } = report.kind {
                        self.late.push((report.task.clone(), became));
                    }
                    self.reports.push(*report);
                }
                Action::Settle { .. } | Action::Work { .. } => {}
                Action::Trace { event, .. } => self.traces.push(event),
                Action::Defect { why } => panic!("{why}"),
            }
        }
        for answer in answers {
            self.tell(answer);
        }
    }

    fn take(&mut self, token: Token, ops: Vec<Op>) -> Event {
        match self.append(ops) {
            Ok(seq) => {
                let ripe = self.waiting.extract_if(.., |(after, _)| *after == token);
                self.assigned.extend(ripe.map(|(_, what)| what));
                Event::Accepted { token, seq }
            }
            Err(key) => Event::Conflicted { token, key },
        }
    }

    /// Makes the log accept all pending appends, in order, including those that follow.
    pub(crate) fn arrive(&mut self) {
        while self.arrive_first() {}
    }

    /// Makes the log accept the first pending append. Returns whether there was one.
    pub(crate) fn arrive_first(&mut self) -> bool {
        let on_the_way = self.on_the_way.as_mut().filter(|it| !it.is_empty());
        let Some((token, ops)) = on_the_way.map(|on_the_way| on_the_way.remove(0)) else {
            return false;
        };
        let answer = self.take(token, ops);
        self.tell(answer);
        true
    }

    fn append(&mut self, ops: Vec<Op>) -> Result<Seq, String> {
        for op in &ops {
            if let Op::Put {
                key,
                expect: Expect::Absent,
                ..
            } = op
                && self.log.contains_key(key.as_str())
            {
                return Err(key.as_str().to_owned());
            }
        }
        assert!(
            ops.len() <= proofmill_bus::MAX_BATCH_OPS,
            "{} operations",
            ops.len()
        );
        self.appends.0 += 1;
        self.appends.1 += ops.len();
        for op in ops {
            self.last = self.last.next();
            match op {
                Op::Put { key, value, .. } => {
                    assert!(
                        value.len() <= proofmill_bus::MAX_VALUE_BYTES,
                        "{key} is too large"
                    );
                    self.log.insert(key.as_str().to_owned(), (self.last, value));
                }
                Op::Delete { key } => {
                    self.log.remove(key.as_str());
                }
            }
        }
        Ok(self.last)
    }

    pub(crate) fn has_key(&self, key: &str) -> bool {
        self.log.contains_key(key)
    }

    /// Records whose keys begin with `prefix`.
    pub(crate) fn records(&self, prefix: &str) -> Vec<Record> {
        let found = self.log.iter().filter(|(key, _)| key.starts_with(prefix));
        found
            .map(|(key, (_, value))| Record::decode(key, value).expect("our own record"))
            .collect()
    }

    /// Removes the records whose keys begin with `prefix`, as if they had never been written.
    pub(crate) fn without(&mut self, prefix: &str) {
        self.log.retain(|key, _| !key.starts_with(prefix));
    }

    /// Replaces the core by a new one that replays the log.
    pub(crate) fn restart(&mut self, adopt_grace: Duration) {
        self.set_wall_by(adopt_grace, 0);
    }

    /// Restarts as [`Mill::restart`] does, with a wall clock that is `ahead_ms` ahead; behind if negative.
    pub(crate) fn set_wall_by(&mut self, adopt_grace: Duration, ahead_ms: i64) {
        self.wall_ahead_ms = ahead_ms;
        let options = CoreOptions {
            adopt_grace,
            history: self.history,
            traces: true,
            ..CoreOptions::default()
        };
        let mut core = Core::new(self.plan.clone(), options);
        let mut entries: Vec<_> = self.log.iter().collect();
        entries.sort_by_key(|(_, (seq, _))| *seq);
        for (key, (seq, value)) in entries {
            core.replay(key, value, *seq).expect("our own records");
        }
        self.core = core;
        self.assigned.clear();
        let actions = self.core.start(self.now());
        self.perform(actions);
    }

    /// Lets time pass, with a tick at each deadline.
    pub(crate) fn pass(&mut self, ms: u64) {
        let until = self.now_ms + ms;
        while let Some(due) = self.core.next_deadline().map(|due| due.0.div_ceil(1000)) {
            if due > until {
                break;
            }
            self.now_ms = self.now_ms.max(due);
            self.tell(Event::Tick);
        }
        self.now_ms = until;
        self.tell(Event::Tick);
    }

    /// Lets time pass without an event, until somebody asks.
    pub(crate) fn look_in(&mut self, ms: u64) {
        self.now_ms += ms;
        self.core.set_time(self.now());
    }

    pub(crate) fn join(&mut self, worker: &str, slots: usize) {
        self.join_with(worker, slots, &[], 0);
    }

    pub(crate) fn join_with(&mut self, worker: &str, slots: usize, labels: &[&str], memory: u64) {
        let labels: BTreeSet<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let group = "g".into();
        self.tell(WorkerEvent::Join(WorkerJoin {
            worker: worker.into(),
            group,
            labels,
            memory,
            slots,
        }));
    }

    /// Makes a host for all collectors join, or join again.
    pub(crate) fn host(&mut self, name: &str) {
        self.sessions += 1;
        let stages = (0..self.plan.stages.len()).map(StageIx);
        let is_collector = |ix: &StageIx| self.plan.stage(*ix).collector().is_some();
        let stages = stages.filter(is_collector).collect();
        let mut host = Host::new(self.plan.clone(), name.into(), stages);
        let join = host.join(self.sessions);
        self.hosts.insert(name.to_owned(), host);
        self.tell(HostEvent::Join(join));
    }

    pub(crate) fn host_leaves(&mut self, name: &str) {
        self.hosts.remove(name);
        self.tell(HostEvent::Leave { host: name.into() });
    }

    /// Lets the hosts handle their commands until none is left.
    pub(crate) fn hosts_work(&mut self) {
        while !self.told.is_empty() {
            for said in self.verdicts() {
                self.tell(said);
            }
        }
    }

    /// Verdicts of the hosts about the commands that they have not handled.
    pub(crate) fn verdicts(&mut self) -> Vec<HostEvent> {
        let mut said = Vec::new();
        for (name, message) in std::mem::take(&mut self.told) {
            let Some(host) = self.hosts.get_mut(&name) else {
                continue;
            };
            let verdicts = host.handle([message]).expect("it is known");
            if !verdicts.is_empty() {
                said.push(HostEvent::Verdicts(host.report(verdicts)));
            }
        }
        said
    }

    /// The lease that the core would give a worker for the task in its present state.
    pub(crate) fn lease(&self, worker: &str, task: &str, attempt: u32) -> LeaseRef {
        let task = id(task);
        let live = self.core.tasks(|record| record.id == task);
        let key = LeaseKey::new(&CoreOptions::default().fresh_lease_key);
        let tag = live.first().map(|live| {
            let content = live.record.content();
            key.tag(worker, &live.record, &content, attempt)
        });
        LeaseRef {
            task,
            attempt,
            tag: tag.unwrap_or(LeaseTag::from_bytes([0; 16])),
        }
    }

    pub(crate) fn beat(&mut self, worker: &str, running: &[(&str, u32)]) {
        let running = running
            .iter()
            .map(|(task, attempt)| self.lease(worker, task, *attempt))
            .collect();
        self.tell(WorkerEvent::Heartbeat {
            worker: worker.into(),
            running,
            retired: false,
            paused: None,
        });
    }

    pub(crate) fn message(first: u64, last: u64, json: &str) -> Message {
        Message {
            first,
            last,
            part: Part::whole(),
            payload: Payload::json(json.to_owned()),
            needs: None,
            grouping: Vec::new(),
        }
    }

    /// Submits a message; `None` while it waits for room or for an append.
    pub(crate) fn send(&mut self, queue: &str, message: Message) -> Option<Reply> {
        let request = self.begin(queue, message);
        self.replies.remove(&request)
    }

    pub(crate) fn begin(&mut self, queue: &str, message: Message) -> RequestId {
        self.begin_as(queue, message, Uniqueness::Multiple)
    }

    pub(crate) fn begin_as(
        &mut self,
        queue: &str,
        mut message: Message,
        uniqueness: Uniqueness,
    ) -> RequestId {
        self.requests += 1;
        let request = RequestId(self.requests);
        let queue = self.plan.queue_named(queue).expect("a queue of the plan");
        if let Payload::Inline { bytes, .. } = &message.payload {
            message.grouping = grouping(&self.plan, queue, Some(bytes));
        }
        self.tell(Event::Request {
            id: request,
            request: Request::Submit(Submit {
                producer: "test".into(),
                queue,
                message,
                uniqueness,
                source_next: None,
                caller: self.caller.clone(),
            }),
        });
        request
    }

    /// Spans of the reports since the last call.
    pub(crate) fn spans(&mut self) -> Vec<Span> {
        let events = std::mem::take(&mut self.traces);
        let spans = |event| spans_of(&self.plan, event, WALL_MS + self.now_ms);
        events.iter().flat_map(spans).collect()
    }

    pub(crate) fn reply(&mut self, request: RequestId) -> Option<Reply> {
        self.replies.remove(&request)
    }

    /// Submits block `block` as one message.
    pub(crate) fn block(&mut self, queue: &str, block: u64) -> Option<Reply> {
        self.send(
            queue,
            Self::message(block, block, &format!("{{\"block\":{block}}}")),
        )
    }

    /// Makes a request, and returns the reply if it has come.
    pub(crate) fn ask(&mut self, request: Request) -> Option<Reply> {
        self.requests += 1;
        let id = RequestId(self.requests);
        self.tell(Event::Request { id, request });
        self.replies.remove(&id)
    }

    pub(crate) fn retry(&mut self, task: &str) -> Option<Reply> {
        self.requests += 1;
        let request = RequestId(self.requests);
        self.tell(Event::Request {
            id: request,
            request: Request::RetryDead(id(task)),
        });
        self.replies.remove(&request)
    }

    pub(crate) fn cancel(&mut self, task: &str) -> Option<Reply> {
        self.requests += 1;
        let request = RequestId(self.requests);
        let target = Target::Task(id(task));
        self.tell(Event::Request {
            id: request,
            request: Request::Cancel(target),
        });
        self.replies.remove(&request)
    }

    pub(crate) fn drop_dead(&mut self, task: &str) -> Option<Reply> {
        self.requests += 1;
        let request = RequestId(self.requests);
        self.tell(Event::Request {
            id: request,
            request: Request::DropDead(id(task)),
        });
        self.replies.remove(&request)
    }

    pub(crate) fn complete(&mut self, worker: &str, task: &str, attempt: u32) {
        self.complete_with(worker, task, attempt, &[None], "{}");
    }

    pub(crate) fn complete_with(
        &mut self,
        worker: &str,
        task: &str,
        attempt: u32,
        elements: &[Option<usize>],
        json: &str,
    ) {
        let lease = self.lease(worker, task, attempt);
        let stage = self
            .plan
            .stage_named(&lease.task.stage)
            .map(|stage| self.plan.stage(stage));
        let outputs = stage.map(|stage| stage.outputs.clone()).unwrap_or_default();
        let grouping: Vec<_> = outputs
            .iter()
            .flat_map(|queue| grouping(&self.plan, *queue, Some(json.as_bytes())))
            .collect();
        let outputs = elements
            .iter()
            .map(|element| Output {
                element: *element,
                payload: Payload::json(json.to_owned()),
                grouping: grouping.clone(),
            })
            .collect();
        let ran = Duration::ZERO;
        self.tell(WorkerEvent::Complete(WorkerResult {
            worker: worker.into(),
            lease,
            outputs,
            ran,
        }));
    }

    pub(crate) fn fail(&mut self, worker: &str, task: &str, attempt: u32, permanent: bool) {
        let failure = Failure {
            permanent,
            ..Failure::retryable("no luck")
        };
        let lease = self.lease(worker, task, attempt);
        self.tell(WorkerEvent::Fail(WorkerFailure {
            worker: worker.into(),
            lease,
            failure,
        }));
    }

    /// Assignments since the last call, as `worker task#attempt`.
    pub(crate) fn news(&mut self) -> Vec<String> {
        let news = self.assigned.drain(..);
        news.map(|(worker, task, attempt)| format!("{worker} {task}#{attempt}"))
            .collect()
    }

    /// Live tasks and their phases.
    pub(crate) fn tasks(&self) -> Vec<String> {
        let views = self.core.tasks(|_| true);
        views
            .iter()
            .map(|view| format!("{} {:?}", view.record.id, view.phase))
            .collect()
    }
}
