//! What the core has decided and may not be seen yet: until the log has it, durably.
//!
//! Without input or output: the core's actions and the log's answers go in, and what may be let out comes out, in
//! order.

use std::collections::{BTreeMap, HashMap, VecDeque};

use proofmill_bus::{Op, Seq};

use crate::conversation::{HostCommand, Reply, SinkCommand, WorkerCommand};
use crate::core::{Action, RequestId, Settled, Token};
use crate::id::{TaskId, WorkerId};
use crate::plan::Late;

/// Something that is to be done at once.
#[derive(Debug)]
pub enum Due {
    /// Append to the log; report [`Outbox::accepted`] or [`Outbox::refused`].
    Append {
        /// To report with.
        token: Token,
        /// What to append, atomically.
        ops: Vec<Op>,
    },
    /// Tell a worker.
    Worker(WorkerId, WorkerCommand),
    /// Tell a host.
    Host(WorkerId, HostCommand),
    /// See [`Action::Defect`].
    Defect(String),
    /// See [`Action::Late`].
    Late(TaskId, String, Late),
}

/// Something that may be let out now.
#[derive(Debug)]
pub enum Released {
    /// Answer a request.
    Reply(RequestId, Reply),
    /// Tell observers.
    Settled(Settled),
    /// What a flush waits for is durable; the number is the one that was given to [`Outbox::flush`].
    Flushed(u64),
    /// Tell a worker.
    Worker(WorkerId, WorkerCommand),
    /// Tell the sink.
    Sink(SinkCommand),
}

/// What waits for the log.
#[derive(Default)]
pub struct Outbox {
    /// In the order of the places in the log that they wait for, and of their coming.
    waiting: BTreeMap<(Seq, u64), Released>,
    next: u64,
    /// Commands to workers that wait for an append to be accepted, and then to be durable.
    to_workers: HashMap<Token, Vec<(WorkerId, WorkerCommand)>>,
    /// Commands to the sink in order; the first waits for its record to be durable.
    to_sink: VecDeque<(Seq, SinkCommand)>,
    /// Commands that the sink was given and has not confirmed: another sink gets them again.
    unconfirmed: VecDeque<SinkCommand>,
    has_sink: bool,
    is_observed: bool,
    /// Flushes that wait for appends that the log has not accepted yet.
    flushing: Vec<u64>,
    /// Appends that the log has not answered yet.
    unanswered: usize,
    appended: Seq,
}

// === impl Outbox ===

impl Outbox {
    /// Nothing waits; the log goes up to `appended`.
    pub fn new(appended: Seq) -> Self {
        Self {
            appended,
            ..Self::default()
        }
    }

    /// Place of the last record that the log has accepted.
    pub fn appended(&self) -> Seq {
        self.appended
    }

    /// The log has accepted a record that is none of the core's.
    pub fn appended_besides(&mut self, seq: Seq) {
        self.appended = self.appended.max(seq);
    }

    /// Takes an action of the core; what is due at once is returned.
    pub fn take(&mut self, action: Action) -> Option<Due> {
        match action {
            Action::Append { token, ops } => {
                self.unanswered += 1;
                return Some(Due::Append { token, ops });
            }
            Action::Worker {
                after: None,
                worker,
                command,
            } => return Some(Due::Worker(worker, command)),
            Action::Worker {
                after: Some(token),
                worker,
                command,
            } => {
                let waiting = self.to_workers.entry(token).or_default();
                waiting.push((worker, command));
            }
            Action::Host { host, command } => return Some(Due::Host(host, command)),
            Action::Reply {
                request,
                after,
                reply,
            } => self.wait(after, Released::Reply(request, reply)),
            Action::Sink { after, command } => self.to_sink.push_back((after, command)),
            Action::Settle { after, settled } => {
                if self.is_observed {
                    self.wait(after, Released::Settled(settled));
                }
            }
            Action::Defect { why } => return Some(Due::Defect(why)),
            Action::Late { task, why, became } => return Some(Due::Late(task, why, became)),
        }
        None
    }

    fn wait(&mut self, after: Seq, what: Released) {
        self.waiting.insert((after, self.next), what);
        self.next += 1;
    }

    /// The log has accepted an append: its last operation is at `seq`.
    pub fn accepted(&mut self, token: Token, seq: Seq) {
        self.unanswered -= 1;
        self.appended = self.appended.max(seq);
        for (worker, command) in self.to_workers.remove(&token).unwrap_or_default() {
            self.wait(seq, Released::Worker(worker, command));
        }
    }

    /// The log has refused an append, because of a record that was there first.
    pub fn refused(&mut self, token: Token) {
        self.unanswered -= 1;
        self.to_workers.remove(&token);
    }

    /// [`Released::Flushed`] with this number comes once what follows from all that the core was told is durable.
    pub fn flush(&mut self, number: u64) {
        self.flushing.push(number);
    }

    /// Somebody wants to hear of tasks that end.
    pub fn observe(&mut self) {
        self.is_observed = true;
    }

    /// A sink is there; another one's unconfirmed emissions are for it.
    pub fn attach_sink(&mut self) {
        self.has_sink = true;
        for command in self.unconfirmed.drain(..).rev() {
            self.to_sink.push_front((Seq(0), command));
        }
    }

    /// No sink is there: emissions wait.
    pub fn detach_sink(&mut self) {
        self.has_sink = false;
    }

    /// The sink has it.
    pub fn confirmed(&mut self, task: &TaskId) {
        self.unconfirmed
            .retain(|SinkCommand::Emit(emitted)| emitted.id != *task);
    }

    /// What may be let out, as the log is durable up to here. To be called when the core has heard of all answers of
    /// the log that there are: they may lead to further appends, for which a flush waits too.
    pub fn release(&mut self, durable: Seq) -> Vec<Released> {
        if self.unanswered == 0 {
            for number in std::mem::take(&mut self.flushing) {
                self.wait(self.appended, Released::Flushed(number));
            }
        }
        let mut released = Vec::new();
        while let Some(entry) = self.waiting.first_entry() {
            if entry.key().0 > durable {
                break;
            }
            released.push(entry.remove());
        }
        while self.has_sink
            && self
                .to_sink
                .front()
                .is_some_and(|(after, _)| *after <= durable)
        {
            if let Some((_, command)) = self.to_sink.pop_front() {
                self.unconfirmed.push_back(command.clone());
                released.push(Released::Sink(command));
            }
        }
        released
    }
}
