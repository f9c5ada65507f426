//! The client: provides ports to the leader in another process.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, FuturesUnordered};
use futures_util::{FutureExt, StreamExt};
use proofmill_bus as bus;
use proofmill_bus::{BlobError, BlobStore, Connection, Held, RequestError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::held::blobs_of;
use super::seat::Seat;
use super::session::{
    CallFailure, CallId, ClientAction, ClientInput, ClientSession, Question, Refusal,
};
use super::wire::{Answer, Call, Hello, Notice, NoticeAck, RemoteError, Subjects, decode, encode};
use crate::conversation::{
    HostCommand, HostEvent, QueryAnswer, Reply, RoleCommand, RoleEvent, SinkCommand, SinkEvent,
    WorkerCommand, WorkerEvent,
};
use crate::core::Time;
use crate::id::{WorkerId, fresh_number};
use crate::plan::Plan;
use crate::port::{Attachment, CoordinatorLink, Message, Ports};

/// Capacity of the channel of ports' messages; senders wait while it is full.
const MESSAGES: usize = 4096;

/// Maximum number of ports' messages handled in one turn.
const TURN: usize = 256;

/// Forwards messages of [`Ports`] to the process that leads the workflow. The asynchronous shell
/// around a [`ClientSession`].
pub struct Client {
    session: ClientSession,
    epoch: Instant,
    link: LeaderLink,
    workflow: Arc<str>,
    messages: mpsc::Receiver<Message>,
    notices: BoxStream<'static, bus::Request>,
    hellos: BoxStream<'static, bus::Request>,
    workers: HashMap<WorkerId, mpsc::UnboundedSender<WorkerCommand>>,
    hosts: HashMap<WorkerId, mpsc::UnboundedSender<HostCommand>>,
    sink: Option<mpsc::UnboundedSender<SinkCommand>>,
    next_ticket: u64,
    waiting: HashMap<u64, Waiting>,
    /// The notice that is being handled.
    notice: Option<bus::Request>,
    attempts: FuturesUnordered<BoxFuture<'static, Attempt>>,
    /// Holds on the blobs of each unanswered call.
    called: HashMap<CallId, Arc<Held>>,
    /// Holds on the blobs of events that are not in a call yet.
    held_for_queued: Held,
}

/// Everything needed to call the leader.
#[derive(Clone)]
struct LeaderLink {
    connection: Connection,
    blobs: Arc<BlobStore>,
    /// The subject on which the leader receives calls.
    leader: Arc<str>,
}

/// The receiver of the answer to a question.
enum Waiting {
    Reply(oneshot::Sender<Reply>),
    Query(oneshot::Sender<QueryAnswer>),
}

/// The result of an attempt at a call.
struct Attempt {
    call: CallId,
    attempt: u32,
    outcome: Result<Result<Answer, CallFailure>, RemoteError>,
}

// === impl Client ===

impl Client {
    /// A client on this seat, named `name` (unique among living clients; one token of a subject),
    /// and the ports that work once [`Client::run`] runs. A leader accepts messages of the seat's
    /// role, and refuses all others.
    pub fn open(
        connection: Connection,
        blobs: Arc<BlobStore>,
        plan: Arc<Plan>,
        seat: Seat,
        name: &str,
    ) -> BoxFuture<'_, Result<(Self, Ports), RemoteError>> {
        // Boxed, so that it is compiled in this crate and not again in every caller's.
        Box::pin(async move {
            let subjects = Subjects::new(&connection, &plan.workflow);
            let name = format!("{seat}.{name}");
            let notices = connection.subscribe(&subjects.client(&name)).await?;
            let hellos = connection.subscribe(&subjects.hello).await?;
            let (sender, messages) = mpsc::channel(MESSAGES);
            let client = Self {
                session: ClientSession::new(plan.digest(), name.into(), session_number()),
                epoch: Instant::now(),
                held_for_queued: blobs.hold([]),
                link: LeaderLink {
                    connection,
                    blobs,
                    leader: subjects.leader(&seat).into(),
                },
                workflow: plan.workflow.clone(),
                messages,
                notices,
                hellos,
                workers: HashMap::new(),
                hosts: HashMap::new(),
                sink: None,
                next_ticket: 0,
                waiting: HashMap::new(),
                notice: None,
                attempts: FuturesUnordered::new(),
                called: HashMap::new(),
            };
            Ok((client, Ports::new(CoordinatorLink::Remote(sender), plan)))
        })
    }

    /// Sets the term of this process's sink. A sink of an earlier term, which may have been paused,
    /// cannot take over again.
    pub fn set_sink_term(&mut self, term: u64) {
        self.session.set_sink_term(term);
    }

    /// Forwards messages until every port is gone and every event that matters is acknowledged.
    pub fn run(mut self) -> BoxFuture<'static, Result<(), RemoteError>> {
        // Boxed, so that it is compiled in this crate and not again in every caller's.
        Box::pin(async move {
            let mut turn = Vec::with_capacity(TURN);
            let mut open = true;
            loop {
                let due = self.session.next_deadline();
                let due = due.map(|time| self.epoch + Duration::from_micros(time.0));
                let flow = tokio::select! {
                    count = self.messages.recv_many(&mut turn, TURN), if open => {
                        open = count > 0;
                        self.messages(&mut turn).await?
                    }
                    Some(attempt) = self.attempts.next(), if !self.attempts.is_empty() => {
                        self.attempted(attempt).await?
                    }
                    notice = self.notices.next() => match notice {
                        Some(request) => self.notice(request).await?,
                        None => return Ok(()),
                    },
                    hello = self.hellos.next() => match hello {
                        Some(hello) => self.hello(&hello).await?,
                        None => return Ok(()),
                    },
                    () = sleep_until(due) => self.input(ClientInput::Tick).await?,
                };
                if flow.is_break() {
                    return Ok(());
                }
            }
        })
    }

    /// Handles messages of ports; an empty list means that every port is gone.
    async fn messages(&mut self, turn: &mut Vec<Message>) -> Result<ControlFlow<()>, RemoteError> {
        if turn.is_empty() {
            return self.input(ClientInput::Close).await;
        }
        for message in turn.drain(..) {
            let input = match message {
                Message::Request(request, reply) => {
                    self.ask(Question::Request(request), Waiting::Reply(reply))
                }
                Message::Query(query, answer) => {
                    self.ask(Question::Query(query), Waiting::Query(answer))
                }
                Message::Attach(Attachment::Worker(worker, sender)) => {
                    self.workers.insert(worker, sender);
                    continue;
                }
                Message::Attach(Attachment::Host(host, sender)) => {
                    self.hosts.insert(host, sender);
                    continue;
                }
                Message::Attach(Attachment::Sink(sender)) => {
                    self.sink = Some(sender);
                    // The session fills in the term.
                    ClientInput::Event(SinkEvent::Attach { term: 0 }.into())
                }
                Message::Event(event) => {
                    self.note(&event);
                    ClientInput::Event(event)
                }
            };
            if self.input(input).await?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Removes the channels of workers and hosts that leave, and holds the blobs of an event.
    fn note(&mut self, event: &RoleEvent) {
        match event {
            RoleEvent::Worker(WorkerEvent::Leave { worker }) => {
                self.workers.remove(worker);
            }
            RoleEvent::Host(HostEvent::Leave { host }) => {
                self.hosts.remove(host);
            }
            _ => {}
        }
        self.held_for_queued
            .join(self.link.blobs.hold(blobs_of(event)));
    }

    fn ask(&mut self, question: Question, waiting: Waiting) -> ClientInput {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting.insert(ticket, waiting);
        ClientInput::Ask { ticket, question }
    }

    async fn attempted(&mut self, attempt: Attempt) -> Result<ControlFlow<()>, RemoteError> {
        let Attempt {
            call,
            attempt,
            outcome,
        } = attempt;
        let input = match outcome? {
            Ok(answer) => ClientInput::Answered {
                call,
                attempt,
                answer,
            },
            Err(why) => ClientInput::AttemptFailed { call, attempt, why },
        };
        self.input(input).await
    }

    async fn notice(&mut self, request: bus::Request) -> Result<ControlFlow<()>, RemoteError> {
        let notice: Notice = match decode(&request.payload, &self.link.blobs).await {
            Ok(notice) => notice,
            Err(error) => {
                // Not answered, so it is sent again. The other release of the leader is noticed in
                // its answers.
                tracing::warn!(%error, "a notice cannot be read");
                return Ok(ControlFlow::Continue(()));
            }
        };
        self.notice = Some(request);
        let ticket = 0;
        self.input(ClientInput::Notice { ticket, notice }).await
    }

    async fn hello(&mut self, hello: &bus::Request) -> Result<ControlFlow<()>, RemoteError> {
        match decode::<Hello>(&hello.payload, &self.link.blobs).await {
            Ok(Hello { term }) => self.input(ClientInput::Hello { term }).await,
            Err(error) => {
                tracing::warn!(%error, "a hello is not understood");
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// Passes an input to the session, and carries out its actions.
    async fn input(&mut self, input: ClientInput) -> Result<ControlFlow<()>, RemoteError> {
        let micros = u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX);
        for action in self.session.handle(Time(micros), input) {
            match action {
                ClientAction::Send {
                    call,
                    attempt,
                    message,
                    timeout,
                } => {
                    let held = self.held(call, &message);
                    let link = self.link.clone();
                    let outcome = async move { link.call(message, held, timeout).await };
                    let attempted = outcome.map(move |outcome| Attempt {
                        call,
                        attempt,
                        outcome,
                    });
                    self.attempts.push(attempted.boxed());
                }
                // The record refers to the blobs now.
                ClientAction::Ended { call } => drop(self.called.remove(&call)),
                ClientAction::Deliver(command) => self.deliver(command),
                ClientAction::Answer { ticket, answer } => self.answer(ticket, answer),
                ClientAction::AnswerNotice { ack, .. } => self.answer_notice(ack).await,
                ClientAction::Fail(refusal) => return Err(self.refused(refusal)),
                ClientAction::Finished => return Ok(ControlFlow::Break(())),
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Holds the blobs of a call, from its first attempt until it is answered.
    fn held(&mut self, call: CallId, message: &Call) -> Arc<Held> {
        if let Some(held) = self.called.get(&call) {
            return held.clone();
        }
        let held = Arc::new(self.link.blobs.hold(message.body.blobs()));
        self.called.insert(call, held.clone());
        let queued = self.session.queued_events().flat_map(blobs_of);
        self.held_for_queued = self.link.blobs.hold(queued);
        held
    }

    fn deliver(&self, command: RoleCommand) {
        match command {
            RoleCommand::Worker(worker, command) => tell(self.workers.get(&worker), command),
            RoleCommand::Host(host, command) => tell(self.hosts.get(&host), command),
            RoleCommand::Sink(command) => tell(self.sink.as_ref(), command),
        }
    }

    fn answer(&mut self, ticket: u64, answer: Answer) {
        // The asker may be gone; the record stands nevertheless.
        match (self.waiting.remove(&ticket), answer) {
            (Some(Waiting::Reply(sender)), Answer::Reply(reply)) => {
                let _ = sender.send(reply);
            }
            (Some(Waiting::Query(sender)), Answer::Query(answer)) => {
                let _ = sender.send(answer);
            }
            _ => {}
        }
    }

    async fn answer_notice(&mut self, ack: NoticeAck) {
        let Some(request) = self.notice.take() else {
            return;
        };
        match encode(&ack, &self.link.connection, &self.link.blobs).await {
            Ok(answer) => request.reply(answer).await,
            Err(error) => tracing::warn!(%error, "a notice is not answered"),
        }
    }

    fn refused(&self, refusal: Refusal) -> RemoteError {
        let workflow = self.workflow.to_string();
        let client = self.session.name().to_string();
        match refusal {
            Refusal::OtherPlan => RemoteError::OtherPlan(workflow),
            Refusal::NotPermitted => RemoteError::NotPermitted { workflow, client },
            Refusal::Invalid(why) => RemoteError::Invalid {
                workflow,
                client,
                why,
            },
        }
    }
}

fn tell<T>(to: Option<&mpsc::UnboundedSender<T>>, command: T) {
    if let Some(to) = to {
        // A receiver that has ended has reported so.
        let _ = to.send(command);
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// A number that differs between processes; higher for a later process of the same name, unless the
/// clock was set back.
fn session_number() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = u64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(0);
    (micros << 8) | (fresh_number() & 0xff)
}

// === impl LeaderLink ===

impl LeaderLink {
    /// Makes one attempt at a call.
    async fn call(
        &self,
        mut call: Call,
        held: Arc<Held>,
        timeout: Duration,
    ) -> Result<Result<Answer, CallFailure>, RemoteError> {
        match self.blobs.lost(&held).await {
            Ok(lost) if lost.is_empty() || call.body.release_lost_results(&lost) => {}
            Ok(lost) => return Err(BlobError::Missing(lost[0]).into()),
            Err(error) => {
                tracing::warn!(%error, "a call has to wait");
                return Ok(Err(CallFailure::NotSent));
            }
        }
        let bytes = match encode(&call, &self.connection, &self.blobs).await {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::warn!(%error, "a call has to wait");
                return Ok(Err(CallFailure::NotSent));
            }
        };
        match self.connection.request(&self.leader, bytes, timeout).await {
            Ok(answer) => Ok(Ok(decode(&answer, &self.blobs).await?)),
            Err(RequestError::TimedOut(_)) => Ok(Err(CallFailure::TimedOut)),
            Err(RequestError::NoResponders(_)) => Ok(Err(CallFailure::NoLeader)),
            Err(error @ RequestError::Refused(_)) => Err(error.into()),
            Err(error) => {
                tracing::debug!(%error, "a call is made again");
                Ok(Err(CallFailure::NoLeader))
            }
        }
    }
}
