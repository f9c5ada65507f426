//! Producers, the sink, operators, strangers, and faults.

use std::sync::Arc;

use proofmill_orchestrator::conversation::{Reply, Request, SinkEvent, Submit, Target, Uniqueness};
use proofmill_orchestrator::core::{Event, RequestId};
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::message::Message;
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::plan::Needs;

use crate::actors::{State, digest};
use crate::chain;
use crate::world::{Asker, Checked, Ev, World};

impl World {
    pub(crate) fn outside_event(&mut self, ev: Ev) {
        match ev {
            Ev::ProducerUp(ix) => self.producer_starts(ix),
            Ev::Produce(ix, inc) if self.producers[ix].up && self.producers[ix].inc == inc => {
                self.produce(ix);
            }
            Ev::Operate => self.operate(),
            Ev::Strange => self.act_strangely(),
            Ev::Reorganise => self.reorganise(),
            _ => {}
        }
    }

    fn producer_starts(&mut self, ix: usize) {
        let Some(core) = &self.core else {
            self.after(50, Ev::ProducerUp(ix));
            return;
        };
        let next = core.source_next(self.scene.sources[ix].name).unwrap_or(0);
        self.note(|| format!("producer {ix} starts at {next}"));
        let spans = &self.scene.sources[ix].spans;
        let producer = &mut self.producers[ix];
        producer.up = true;
        producer.inc += 1;
        producer.known = spans.iter().map(|(first, _)| *first < next).collect();
        producer.sent = vec![None; spans.len()];
        let inc = producer.inc;
        if self.scene.chain {
            self.chain_starts();
        }
        self.after(1, Ev::Produce(ix, inc));
    }

    /// Submits messages in order, a few at a time, over a channel that breaks when the coordinator dies.
    fn produce(&mut self, ix: usize) {
        let (now, epoch) = (self.now_ms, self.epoch);
        if self.scene.chain && self.takes_back() {
            let (inc, delay) = (self.producers[ix].inc, self.rng.within(1, 80));
            self.after(delay, Ev::Produce(ix, inc));
            return;
        }
        let producer = &mut self.producers[ix];
        if producer.epoch != epoch {
            producer.epoch = epoch;
            producer.sent.iter_mut().for_each(|sent| *sent = None);
        }
        let known = producer.known.clone();
        let lost = |sent: &Option<u64>| sent.is_some_and(|at| at + 4_000 < now);
        if producer
            .sent
            .iter()
            .zip(&known)
            .any(|(sent, known)| !known && lost(sent))
        {
            // The producer starts again with the first unanswered message, to keep the order.
            producer.sent.iter_mut().for_each(|sent| *sent = None);
        }
        let in_flight = producer
            .sent
            .iter()
            .zip(&known)
            .filter(|(s, k)| s.is_some() && !**k);
        // One at a time if the next may depend on the answer.
        let most = if self.scene.chain { 1 } else { 4 };
        if in_flight.count() < most {
            let next = (0..known.len()).find(|at| !known[*at] && producer.sent[*at].is_none());
            if let Some(at) = next {
                producer.sent[at] = Some(now);
                let inc = producer.inc;
                let submit = self.submission(ix, at, b"");
                let asker = Asker::Producer {
                    producer: ix,
                    inc,
                    message: at,
                    part: submit.message.part.clone(),
                };
                let event = self.ask(asker, Request::Submit(submit));
                self.in_order(ix, event);
            }
        }
        let (inc, delay) = (self.producers[ix].inc, self.rng.within(1, 80));
        self.after(delay, Ev::Produce(ix, inc));
    }

    /// Delivers a producer's messages in order, as long as the coordinator lives.
    pub(crate) fn in_order(&mut self, ix: usize, event: Event) {
        let delay = self.rng.within(0, 10);
        let (now, epoch) = (self.now_ms, self.epoch);
        let producer = &mut self.producers[ix];
        producer.in_order_until = producer.in_order_until.max(now + delay);
        let wait = producer.in_order_until - now;
        self.after(wait, Ev::ToCore(Some(epoch), event));
    }

    pub(crate) fn submission(&mut self, ix: usize, at: usize, twist: &[u8]) -> Submit {
        let (first, last) = self.scene.sources[ix].spans[at];
        let mut content = format!("{{\"block\":{first}}}").into_bytes();
        let (mut part, mut uniqueness) = (Part::whole(), Uniqueness::Multiple);
        if self.scene.chain {
            let fork = self.chain.forks[first as usize];
            content = chain::payload(first, fork);
            part = chain::part(fork);
            uniqueness = self.chain.uniqueness(first);
        }
        content.extend_from_slice(twist);
        let payload = self.store(Payload::json(content));
        let source = &self.scene.sources[ix];
        Submit {
            producer: source.name.into(),
            queue: self
                .scene
                .plan
                .queue_named(source.queue)
                .expect("the scene has it"),
            message: Message {
                first,
                last,
                part,
                payload,
                needs: (first % 5 == 3).then(|| Needs {
                    memory: first % 3,
                    ..Needs::default()
                }),
                grouping: Vec::new(),
            },
            uniqueness,
            source_next: source.recorded.then_some(last + 1),
            caller: None,
        }
    }

    pub(crate) fn ask(&mut self, asker: Asker, request: Request) -> Event {
        self.next_request += 1;
        let id = RequestId(self.next_request);
        self.requests.insert(id, asker);
        Event::Request { id, request }
    }

    /// Checks a reply that leaves the coordinator: the records that it confirms must be durable.
    pub(crate) fn show_reply(&mut self, request: RequestId, reply: Reply) -> Checked {
        self.note(|| format!("reply {} {reply:?}", request.0));
        if let Some(
            Asker::Producer {
                producer,
                message,
                part,
                ..
            }
            | Asker::Stranger {
                producer,
                message,
                part,
            },
        ) = self.requests.get(&request)
            && (matches!(reply, Reply::Accepted)
                // A recalled block may be unknown.
                || (matches!(reply, Reply::Duplicate { .. }) && !self.scene.chain))
        {
            for id in self.ids_of(*producer, *message, part) {
                // A partial run may pass a block that has not come yet.
                let passed = self.scene.partial && self.monitor.has_passed(id.block);
                if !passed && !self.monitor.seen.contains(&id) {
                    return Err(format!("(a) {id} was acknowledged, and is not in the log"));
                }
            }
        }
        let delay = self.rng.within(0, 10);
        if self.calm || !self.rng.per_mille(20) {
            self.after(delay, Ev::Reply(request, reply));
        }
        Ok(())
    }

    fn ids_of(&self, producer: usize, message: usize, part: &Part) -> Vec<TaskId> {
        let source = &self.scene.sources[producer];
        let Some(queue) = self.scene.plan.queue_named(source.queue) else {
            return Vec::new();
        };
        let queue = self.scene.plan.queue(queue);
        let part = if queue.many_writers {
            part.of(source.name)
        } else {
            part.clone()
        };
        let block = source.spans[message].0;
        let readers = queue
            .readers
            .iter()
            .map(|reader| self.scene.plan.stage(*reader));
        readers
            .map(|stage| TaskId {
                stage: stage.name.clone(),
                block,
                part: part.clone(),
            })
            .collect()
    }

    pub(crate) fn replied(&mut self, request: RequestId, reply: Reply) -> Checked {
        let asker = self.requests.remove(&request);
        if let Some(Asker::Rewinder { from }) = asker {
            self.taken_back(request, from, &reply);
            return Ok(());
        }
        if let Some(Asker::Producer {
            producer,
            inc,
            message,
            ..
        }) = asker
        {
            let block = self.scene.sources[producer].spans[message].0;
            let has_left = self.scene.chain && block < self.sink.next;
            let producer = &mut self.producers[producer];
            if producer.inc == inc {
                match reply {
                    Reply::Draining | Reply::Rewound { .. } => producer.sent[message] = None,
                    Reply::Differs { .. } if self.scene.chain => self.chain.change(block),
                    reply => {
                        producer.known[message] = true;
                        if has_left && matches!(reply, Reply::Duplicate { .. }) {
                            self.chain.has_left(block);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn operate(&mut self) {
        let delay = if self.calm {
            400
        } else {
            self.rng.within(100, 4_000)
        };
        self.after(delay, Ev::Operate);
        self.cancel_something();
        let Some(core) = &self.core else { return };
        let dead: Vec<TaskId> = core
            .dead_letters()
            .map(|dead| dead.task.id.clone())
            .collect();
        if dead.is_empty() {
            return;
        }
        let drop_one = !self.calm && self.seed % 4 == 3 && self.rng.per_mille(100);
        let chosen: Vec<TaskId> = match self.calm {
            true => dead,
            false => vec![dead[self.rng.below(dead.len())].clone()],
        };
        for task in chosen {
            let event = self.ask(
                Asker::Operator,
                match drop_one {
                    true => Request::DropDead(task),
                    false => Request::RetryDead(task),
                },
            );
            self.lossy(|| Ev::ToCore(None, event.clone()));
        }
    }

    fn cancel_something(&mut self) {
        let Some(core) = &self.core else { return };
        if self.calm || !self.rng.per_mille(150) {
            return;
        }
        let live: Vec<TaskId> = core
            .tasks(|_| true)
            .iter()
            .map(|view| view.record.id.clone())
            .collect();
        if live.is_empty() {
            return;
        }
        let one = live[self.rng.below(live.len())].clone();
        let target = match self.rng.within(0, 9) {
            0 => Target::All,
            1..4 => Target::Block(one.block),
            _ => Target::Task(one),
        };
        let event = self.ask(Asker::Operator, Request::Cancel(target));
        self.lossy(|| Ev::ToCore(None, event.clone()));
    }

    /// Submits a known message again, identical or changed; or an invalid one.
    fn act_strangely(&mut self) {
        if self.calm {
            return;
        }
        let delay = self.rng.within(20, 700);
        self.after(delay, Ev::Strange);
        let ix = self.rng.below(self.producers.len());
        let known: Vec<usize> = (0..self.producers[ix].known.len())
            .filter(|at| self.producers[ix].known[*at])
            .collect();
        if known.is_empty() {
            return;
        }
        let at = known[self.rng.below(known.len())];
        let twist: &[u8] = if self.rng.per_mille(200) { b" " } else { b"" };
        let mut submit = self.submission(ix, at, twist);
        submit.source_next = None;
        if !self.scene.chain && self.rng.flip() {
            submit.uniqueness = Uniqueness::Resubmitted;
        }
        let mut asker = Asker::Stranger {
            producer: ix,
            message: at,
            part: submit.message.part.clone(),
        };
        if self.scene.junk && self.rng.flip() {
            submit.message.part = Part::from_text("junk");
            asker = Asker::Operator;
        }
        let event = self.ask(asker, Request::Submit(submit));
        self.lossy(|| Ev::ToCore(None, event.clone()));
    }

    pub(crate) fn sink_starts(&mut self) {
        if self.sink.up && !self.sink.busy && !self.sink.inbox.is_empty() {
            self.sink.busy = true;
            let (delay, epoch) = (self.rng.within(1, 40), self.epoch);
            self.after(delay, Ev::SinkWrite(epoch));
        }
    }

    pub(crate) fn sink_writes(&mut self, epoch: u64) -> Checked {
        self.sink.busy = false;
        if !self.sink.up || epoch != self.epoch {
            self.sink_starts();
            return Ok(());
        }
        let Some(task) = self.sink.inbox.front().cloned() else {
            return Ok(());
        };
        let content = (task.last, digest(&task.payload));
        self.note(|| format!("sink writes {}..={}", task.id.block, task.last));
        if !self.monitor.seen.contains(&task.id) {
            return Err(format!("(e) {} was emitted and is not durable", task.id));
        }
        if self.scene.chain {
            self.chain.leaves(&task)?;
        }
        match self.sink.files.get(&task.id.block) {
            // The sink died before it could confirm the message that was taken back.
            Some(before) if *before != content && self.scene.chain => {
                self.sink.files.insert(task.id.block, content);
            }
            Some(before) if *before != content => {
                return Err(format!(
                    "(e) {} was emitted again with another content",
                    task.id
                ));
            }
            Some(_) => {}
            None if task.id.block != self.sink.next => {
                return Err(format!(
                    "(e) {} was emitted, block {} is next",
                    task.id, self.sink.next
                ));
            }
            None => {
                self.sink.next = task.last + 1;
                self.sink.files.insert(task.id.block, content);
            }
        }
        if !self.calm && self.rng.per_mille(30) {
            // The sink dies before it can confirm; the messages in its inbox are handed to it again.
            self.sink.up = false;
            let delay = self.rng.within(1, 2_000);
            self.after(delay, Ev::SinkUp);
            return Ok(());
        }
        self.sink.inbox.pop_front();
        let confirm = SinkEvent::Emitted {
            task: task.id.clone(),
            places: vec![format!("file {}", task.id.block)],
        };
        let copies = if self.rng.per_mille(50) { 2 } else { 1 };
        for _ in 0..copies {
            // Confirmations overtake one another, but none is lost while the coordinator lives.
            let delay = self.rng.within(0, 60);
            let epoch = self.epoch;
            self.after(delay, Ev::ToCore(Some(epoch), confirm.clone().into()));
        }
        self.sink_starts();
        Ok(())
    }

    pub(crate) fn fault(&mut self) -> Checked {
        if self.calm {
            return Ok(());
        }
        let delay = self.rng.within(30, 1_500);
        self.after(delay, Ev::Fault);
        let worker = self.rng.below(self.workers.len());
        match self.rng.within(0, 99) {
            0..14 => return self.coordinator_dies(),
            14..30 => self.worker_dies(worker),
            30..46 => self.worker_pauses(worker),
            46..52 => self.worker_retires(worker),
            52..62 => {
                let ix = self.rng.below(self.producers.len());
                if self.producers[ix].up {
                    self.note(|| format!("producer {ix} dies"));
                    self.producers[ix].up = false;
                    let delay = self.rng.within(1, 2_000);
                    self.after(delay, Ev::ProducerUp(ix));
                }
            }
            62..68 => {
                let by = self.rng.within(1, 300_000);
                self.note(|| format!("the clock jumps forwards by {by} ms"));
                self.jump(true, by);
            }
            68..74 => {
                let by = self.rng.within(1, 4_000);
                self.note(|| format!("the clock jumps backwards by {by} ms"));
                self.jump(false, by);
            }
            76..86 => self.host_fault(),
            86..94 => self.worker_fills(worker),
            74..76 => {
                // The drain lasts until the coordinator ends.
                self.after(0, Ev::ToCore(None, Event::Drain));
                self.draining = true;
            }
            _ => {}
        }
        if self.draining && self.rng.per_mille(400) {
            self.draining = false;
            return self.coordinator_dies();
        }
        Ok(())
    }

    /// Ends all faults, and brings all processes back.
    pub(crate) fn end_faults(&mut self) -> Checked {
        self.calm = true;
        self.note(|| "calm".to_owned());
        if self.draining {
            self.coordinator_dies()?;
        }
        for ix in 0..self.workers.len() {
            match self.workers[ix].state {
                State::Paused => self.after(0, Ev::WorkerResumes(ix)),
                State::Down => self.after(0, Ev::WorkerUp(ix)),
                State::Up => {}
            }
        }
        self.liar_calms_down()?;
        self.hosts_calm_down();
        self.after(0, Ev::SinkUp);
        Ok(())
    }

    /// Checks that all accepted work has ended, or rests for a reason.
    pub(crate) fn check_end(&mut self) -> Checked {
        self.compare_with_replayed()?;
        for (ix, producer) in self.producers.iter().enumerate() {
            if self.monitor.dropped {
                break;
            }
            if let Some(at) = producer.known.iter().position(|known| !known) {
                return Err(format!(
                    "(liveness) producer {ix} has no answer to message {at}"
                ));
            }
        }
        let Some(core) = &self.core else {
            return Err("no coordinator at the end".to_owned());
        };
        // Tasks may wait without end for one that an operator has dropped.
        let may_wait = self.monitor.dropped;
        if !core.is_idle() && !may_wait {
            let rest: Vec<String> = core
                .tasks(|_| true)
                .iter()
                .map(|view| format!("{} {:?}", view.record.id, view.phase))
                .collect();
            return Err(format!("(liveness) not idle at the end: {rest:?}"));
        }
        let keys: Vec<String> = self
            .log
            .replay()
            .into_iter()
            .map(|(_, key, _)| key)
            .collect();
        for key in &keys {
            if let Some(id) = key.strip_prefix("try.")
                && !keys.contains(&format!("task.{id}"))
            {
                return Err(format!("(a) the attempts at {id} outlived it"));
            }
            if let Some(id) = key.strip_prefix("run.")
                && !keys.contains(&format!("task.{id}"))
            {
                return Err(format!("(a) what has begun of {id} outlived it"));
            }
            if let Some((id, _)) = key
                .strip_prefix("part.")
                .and_then(|rest| rest.rsplit_once('.'))
                && !keys.contains(&format!("task.{id}"))
            {
                return Err(format!("(a) a result of {id} outlived it"));
            }
        }
        if self.monitor.dropped {
            return Ok(());
        }
        if let Some(slot) = keys.iter().find(|key| key.starts_with("slot.")) {
            return Err(format!("(l) {slot} outlived its block"));
        }
        self.chain.check_end()?;
        let status = core.status();
        // Late dead letters stay until an operator drops them.
        let dead = core.dead_letters().filter(|dead| !dead.late).count();
        let unsequenced = self.scene.plan.sequencer().is_none();
        let emitted = unsequenced || self.sink.next == self.scene.end;
        if status.live > 0 || dead > 0 || !emitted {
            let rest: Vec<Arc<str>> = core
                .tasks(|_| true)
                .iter()
                .map(|view| format!("{} {:?}", view.record.id, view.phase).into())
                .collect();
            return Err(format!(
                "(a) {} of {} blocks came out, {dead} are dead, left are {rest:?}",
                self.sink.next, self.scene.end
            ));
        }
        Ok(())
    }
}
