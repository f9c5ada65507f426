//! Holds back the core's outputs until the log has made them durable.
//!
//! A state machine without input or output: it takes the core's actions and the log's answers, and returns
//! the outputs that may be sent, in order.

use std::collections::{BTreeMap, HashMap, VecDeque};

use proofmill_bus::{Op, Seq};

use crate::conversation::{HostCommand, Reply, SinkCommand, WorkerCommand};
use crate::core::{Action, RequestId, Settled, TaskReport, Token, WorkEvent};
use crate::id::{TaskId, WorkerId};
use crate::traces::TraceEvent;

/// An action to carry out at once.
#[derive(Debug)]
pub enum ImmediateAction {
    /// Append to the log; report the outcome with [`Outbox::accepted`] or [`Outbox::refused`].
    Append {
        /// Token to report the outcome with.
        token: Token,
        /// Operations to append, atomically.
        ops: Vec<Op>,
    },
    /// Send a command to a worker.
    Worker(WorkerId, WorkerCommand),
    /// Send a command to a host.
    Host(WorkerId, HostCommand),
    /// See [`Action::Defect`].
    Defect(String),
    /// See [`Action::Report`].
    Report(Box<TaskReport>),
}

/// An output that may be sent now.
#[derive(Debug)]
pub enum DurableOutput {
    /// Answer a request.
    Reply(RequestId, Reply),
    /// Report the end of a task to observers.
    Settled(Settled),
    /// The flush with this number (see [`Outbox::flush`]) is complete: its records are durable.
    Flushed(u64),
    /// Send a command to a worker.
    Worker(WorkerId, WorkerCommand),
    /// Send a command to the sink.
    Sink(SinkCommand),
    /// Make spans of a report.
    Trace(TraceEvent),
    /// Report work to observers.
    Work(WorkEvent),
}

/// The outputs that wait for the log.
#[derive(Default)]
pub struct Outbox {
    /// Waiting outputs, by the sequence number that must be durable and then by age.
    waiting: BTreeMap<(Seq, u64), DurableOutput>,
    next: u64,
    /// Commands to workers that wait for an append to be accepted, and then to be durable.
    to_workers: HashMap<Token, Vec<(WorkerId, WorkerCommand)>>,
    /// Commands to the sink, in order, each with the sequence number that must be durable.
    to_sink: VecDeque<(Seq, SinkCommand)>,
    /// Commands that the sink was given and has not confirmed; a new sink gets them again.
    unconfirmed: VecDeque<SinkCommand>,
    has_sink: bool,
    is_observed: bool,
    /// Flushes that wait for appends that the log has not answered.
    flushing: Vec<u64>,
    /// Number of appends that the log has not answered.
    unanswered: usize,
    appended: Seq,
}

// === impl Outbox ===

impl Outbox {
    /// An empty outbox for a log whose last record is at `appended`.
    pub fn new(appended: Seq) -> Self {
        Self {
            appended,
            ..Self::default()
        }
    }

    /// Sequence number of the last record that the log has accepted.
    pub fn appended(&self) -> Seq {
        self.appended
    }

    /// Notes a record in the log that did not come from the core.
    pub fn note_foreign_append(&mut self, seq: Seq) {
        self.appended = self.appended.max(seq);
    }

    /// Holds back an action of the core until the log is durable; returns it if it must be carried out at once.
    pub fn hold_back(&mut self, action: Action) -> Option<ImmediateAction> {
        match action {
            Action::Append { token, ops } => {
                self.unanswered += 1;
                return Some(ImmediateAction::Append { token, ops });
            }
            Action::Worker {
                after: None,
                worker,
                command,
            } => return Some(ImmediateAction::Worker(worker, command)),
            Action::Worker {
                after: Some(token),
                worker,
                command,
            } => {
                let waiting = self.to_workers.entry(token).or_default();
                waiting.push((worker, command));
            }
            Action::Host { host, command } => return Some(ImmediateAction::Host(host, command)),
            Action::Reply {
                request,
                after,
                reply,
            } => self.wait(after, DurableOutput::Reply(request, reply)),
            Action::Sink { after, command } => self.to_sink.push_back((after, command)),
            Action::Settle { after, settled } => {
                if self.is_observed {
                    self.wait(after, DurableOutput::Settled(settled));
                }
            }
            Action::Trace { after, event } => self.wait(after, DurableOutput::Trace(event)),
            Action::Work { after, event } => self.wait(after, DurableOutput::Work(event)),
            Action::Defect { why } => return Some(ImmediateAction::Defect(why)),
            Action::Report(report) => return Some(ImmediateAction::Report(report)),
        }
        None
    }

    fn wait(&mut self, after: Seq, what: DurableOutput) {
        self.waiting.insert((after, self.next), what);
        self.next += 1;
    }

    /// Notes that the log has accepted an append whose last operation is at `seq`.
    pub fn accepted(&mut self, token: Token, seq: Seq) {
        self.unanswered -= 1;
        self.appended = self.appended.max(seq);
        for (worker, command) in self.to_workers.remove(&token).unwrap_or_default() {
            self.wait(seq, DurableOutput::Worker(worker, command));
        }
    }

    /// Notes that the log has refused an append because of an existing record.
    pub fn refused(&mut self, token: Token) {
        self.unanswered -= 1;
        self.to_workers.remove(&token);
    }

    /// Requests [`DurableOutput::Flushed`] with this number once the effects of all earlier events are durable.
    pub fn flush(&mut self, number: u64) {
        self.flushing.push(number);
    }

    /// Starts to report tasks that end.
    pub fn observe(&mut self) {
        self.is_observed = true;
    }

    /// Notes that a sink is attached; it gets the unconfirmed emissions of an earlier one again.
    pub fn attach_sink(&mut self) {
        self.has_sink = true;
        for command in self.unconfirmed.drain(..).rev() {
            self.to_sink.push_front((Seq(0), command));
        }
    }

    /// Notes that no sink is attached; emissions wait.
    pub fn detach_sink(&mut self) {
        self.has_sink = false;
    }

    /// Notes that the sink has confirmed a task's message.
    pub fn confirmed(&mut self, task: &TaskId) {
        self.unconfirmed
            .retain(|SinkCommand::Emit(emitted)| emitted.id != *task);
    }

    /// Outputs that may be sent now that the log is durable up to `durable`. Call after the core has handled
    /// all answers of the log: they may lead to further appends, for which a flush waits too.
    pub fn release(&mut self, durable: Seq) -> Vec<DurableOutput> {
        if self.unanswered == 0 {
            for number in std::mem::take(&mut self.flushing) {
                self.wait(self.appended, DurableOutput::Flushed(number));
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
                released.push(DurableOutput::Sink(command));
            }
        }
        released
    }
}
