//! The work of sources, sinks and the operator.

use std::collections::BTreeSet;
use std::sync::Arc;

use proofmill_orchestrator::conversation::{
    QueryAnswer, Reply, Request, Rewind, SinkEvent, Submit, Target, Uniqueness,
};
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::message::Message;
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::plan::{Needs, QueueIx};
use proofmill_orchestrator::record::{RecordKey, TaskRecord};
use proofmill_orchestrator::remote::Answer;
use proofmill_orchestrator::remote::session::Question;

use super::network::End;
use super::roles::{Brings, Role, SimSource};
use super::shared_log::LEASE_MS;
use super::world::{Ev, ProcessEv, Protocol};
use crate::actors::digest;
use crate::checks::ensure;
use crate::world::Checked;

/// Maximum number of unanswered messages of a source.
const WINDOW: usize = 3;

impl Protocol {
    fn sim_source(&mut self, ix: usize) -> Option<&mut SimSource> {
        match &mut self.processes[ix].role {
            Role::Source(sim_source) => Some(sim_source),
            _ => None,
        }
    }

    fn queue_of(&self, source: usize) -> QueueIx {
        let queue = self.scene.sources[source].queue;
        let found = self.scene.plan.queue_named(queue);
        found.expect("the scene has it")
    }

    /// Sends the next message, or a rewind.
    pub(super) fn produces(&mut self, ix: usize) -> Checked {
        let delay = self.rng.within(1, 80);
        let life = self.processes[ix].life;
        self.after(delay, Ev::Process(ix, life, ProcessEv::Produce));
        let may_take_back = self.scene.chain && !self.calm && self.rng.per_mille(40);
        let ticket = self.fresh();
        let Some(sim_source) = self.sim_source(ix).filter(|sim_source| sim_source.begun) else {
            return Ok(());
        };
        sim_source.takes_back |= may_take_back && sim_source.known.contains(&true);
        if sim_source.takes_back {
            if sim_source.tickets.is_empty() {
                return self.takes_back(ix, ticket);
            }
            return Ok(());
        }
        let mut messages = 0..sim_source.known.len();
        let next = messages.find(|at| !sim_source.known[*at] && !sim_source.sent[*at]);
        let Some(at) = next.filter(|_| sim_source.tickets.len() < WINDOW) else {
            return Ok(());
        };
        sim_source.sent[at] = true;
        sim_source.tickets.insert(ticket, Brings::Message(at));
        let request = self.message(ix, at);
        self.ask(ix, ticket, Question::Request(Request::Submit(request)))
    }

    fn message(&mut self, ix: usize, at: usize) -> Submit {
        let (number, source_next) = match &self.processes[ix].role {
            Role::Source(sim_source) => (sim_source.number, sim_source.next(&self.scene)),
            _ => (0, None),
        };
        let source = &self.scene.sources[number];
        let (first, last) = source.spans[at];
        Submit {
            producer: source.name.into(),
            queue: self.queue_of(number),
            message: Message {
                first,
                last,
                part: Part::whole(),
                payload: Payload::json(format!("{{\"block\":{first}}}")),
                needs: (first % 5 == 3).then(|| Needs {
                    memory: first % 3,
                    ..Needs::default()
                }),
                grouping: Vec::new(),
            },
            uniqueness: Uniqueness::Multiple,
            source_next,
            caller: None,
        }
    }

    fn takes_back(&mut self, ix: usize, ticket: u64) -> Checked {
        let Some(sim_source) = self.sim_source(ix) else {
            return Ok(());
        };
        let known: Vec<usize> = (0..sim_source.known.len())
            .filter(|at| sim_source.known[*at])
            .collect();
        sim_source.tickets.insert(ticket, Brings::TakesBack);
        let number = sim_source.number;
        let at = known[self.rng.below(known.len())];
        let source = &self.scene.sources[number];
        let asked = Request::Rewind(Rewind {
            source: source.name.into(),
            queues: vec![self.queue_of(number)],
            from: source.spans[at].0,
        });
        self.note(|| format!("process {ix}: {asked:?}"));
        self.ask(ix, ticket, Question::Request(asked))
    }

    /// Handles an answer of the coordinator.
    pub(super) fn role_is_answered(&mut self, ix: usize, ticket: u64, answer: Answer) -> Checked {
        let spans = match &self.processes[ix].role {
            Role::Source(sim_source) => self.scene.sources[sim_source.number].spans.clone(),
            _ => return Ok(()),
        };
        let text = format!("{answer:?}");
        let Some(sim_source) = self.sim_source(ix) else {
            return Ok(());
        };
        match (sim_source.tickets.remove(&ticket), answer) {
            (Some(Brings::Next), Answer::Query(QueryAnswer::SourceNext(next))) => {
                let next = next.unwrap_or(0);
                sim_source.known = spans.iter().map(|(first, _)| *first < next).collect();
                sim_source.begun = true;
            }
            (Some(Brings::Message(at)), Answer::Reply(reply)) => match reply {
                Reply::Draining => sim_source.sent[at] = false,
                Reply::Invalid { why } => return Err(format!("process {ix}: {why}")),
                _ => sim_source.known[at] = true,
            },
            (Some(Brings::TakesBack), Answer::Reply(reply)) => {
                sim_source.takes_back = false;
                if let Reply::Rewound { from } = reply {
                    for (at, (first, _)) in spans.iter().enumerate() {
                        if *first >= from {
                            sim_source.known[at] = false;
                            sim_source.sent[at] = false;
                        }
                    }
                    self.lived.rewinds += 1;
                }
            }
            _ => {}
        }
        self.note(|| format!("process {ix} is answered {text}"));
        Ok(())
    }

    /// Retries dead letters, and cancels live tasks, from time to time.
    pub(super) fn operates(&mut self, ix: usize) -> Checked {
        let delay = match self.calm {
            true => 400,
            false => self.rng.within(100, 4_000),
        };
        let life = self.processes[ix].life;
        self.after(delay, Ev::Process(ix, life, ProcessEv::Operate));
        let (mut dead, mut live): (Vec<TaskId>, Vec<TaskId>) = Default::default();
        for (_, key, _) in self.log.replay() {
            match RecordKey::parse(&key) {
                Ok(RecordKey::Dead(id)) => dead.push(id),
                Ok(RecordKey::Task(id)) => live.push(id),
                _ => {}
            }
        }
        if !self.calm {
            dead.truncate(1);
            if !live.is_empty() && self.rng.per_mille(100) {
                let at = self.rng.below(live.len());
                let cancel = Request::Cancel(Target::Task(live.swap_remove(at)));
                let ticket = self.fresh();
                self.ask(ix, ticket, Question::Request(cancel))?;
            }
        }
        for task in dead {
            let ticket = self.fresh();
            let retry = Request::RetryDead(task);
            self.ask(ix, ticket, Question::Request(retry))?;
        }
        Ok(())
    }

    /// Takes or renews the lease of the sinks, which one sequencer at a time has.
    pub(super) fn asks_for_sink(&mut self, ix: usize, renews: bool) {
        let life = self.processes[ix].life;
        let again = match renews {
            true => (LEASE_MS / 4, ProcessEv::RenewSink),
            false => (self.rng.within(100, 300), ProcessEv::TryToEmit),
        };
        let holds = match &self.processes[ix].role {
            Role::Sequencer(emitter) => emitter.holds,
            _ => return,
        };
        if holds != renews {
            return;
        }
        self.after(again.0, Ev::Process(ix, life, again.1));
        let end = End::Process(ix);
        let Some(delay) = self.network.store_delay(&mut self.rng, end, self.calm) else {
            return;
        };
        let now_ms = self.now_ms;
        let answer = if renews {
            Some(ProcessEv::SinkRenewed(self.sink_lease.renew(life, now_ms)))
        } else {
            let term = self.sink_lease.take(life, now_ms);
            term.map(|term| ProcessEv::Emits { term })
        };
        if let Some(answer) = answer {
            self.after(delay, Ev::Process(ix, life, answer));
        }
    }

    pub(super) fn emits(&mut self, ix: usize, term: u64) -> Checked {
        let life = self.processes[ix].life;
        let Role::Sequencer(emitter) = &mut self.processes[ix].role else {
            return Ok(());
        };
        // A process that was stopped may learn of two terms at once, in any order.
        if emitter.holds && term <= emitter.term {
            return Ok(());
        }
        emitter.term = term;
        let renews = std::mem::replace(&mut emitter.holds, true);
        self.lived.sinks += 1;
        self.note(|| format!("process {ix} emits, term {term}"));
        self.processes[ix].set_sink_term(term);
        if !renews {
            self.after(LEASE_MS / 4, Ev::Process(ix, life, ProcessEv::RenewSink));
        }
        self.say(ix, SinkEvent::Attach { term }.into())
    }

    pub(super) fn writes(&mut self, ix: usize) -> Checked {
        let life = self.processes[ix].life;
        let Role::Sequencer(emitter) = &mut self.processes[ix].role else {
            return Ok(());
        };
        let Some(task) = emitter.inbox.pop_front() else {
            emitter.busy = false;
            return Ok(());
        };
        let delay = self.rng.within(1, 30);
        self.after(delay, Ev::Process(ix, life, ProcessEv::SinkWrites));
        self.write(ix, &task)?;
        let places = vec![format!("file {}", task.id.block)];
        self.say(
            ix,
            SinkEvent::Emitted {
                task: task.id.clone(),
                places,
            }
            .into(),
        )
    }

    fn write(&mut self, ix: usize, task: &Arc<TaskRecord>) -> Checked {
        let (first, last) = (task.id.block, task.last);
        self.note(|| format!("process {ix} writes {first}..={last}"));
        ensure!(
            self.monitor.seen.contains(&task.id),
            "(e) {} was emitted and is not durable",
            task.id
        );
        let content = (last, digest(&task.payload));
        match self.files.files.get(&first) {
            Some(before) => ensure!(
                *before == content,
                "(e) {} was emitted again with another content",
                task.id
            ),
            None => {
                ensure!(
                    first == self.files.next,
                    "(e) {} was emitted, block {} is next",
                    task.id,
                    self.files.next
                );
                self.files.next = last + 1;
                self.files.files.insert(first, content);
            }
        }
        Ok(())
    }

    /// Checks that all messages of the sources are answered.
    pub(super) fn check_sources(&self) -> Checked {
        for (ix, process) in self.processes.iter().enumerate() {
            let Role::Source(sim_source) = &process.role else {
                continue;
            };
            let unknown: BTreeSet<usize> = (0..sim_source.known.len())
                .filter(|at| !sim_source.known[*at])
                .collect();
            ensure!(
                unknown.is_empty() && !sim_source.takes_back,
                "(liveness) process {ix} has no answer to {unknown:?}"
            );
        }
        Ok(())
    }
}
