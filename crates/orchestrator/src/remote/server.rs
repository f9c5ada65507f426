//! The server: receives calls for the coordinator, and sends its commands to clients.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use proofmill_bus as bus;
use proofmill_bus::{BlobStore, Connection, RequestError};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::leadership::Leadership;
use super::session::{
    AttachedRole, CallerId, ClientRef, NoticeFailure, NoticeRef, ServerAction, ServerInput,
    ServerSession,
};
use super::wire::{Answer, Call, Hello, Notice, NoticeAck, RemoteError, Subjects, decode, encode};
use crate::conversation::{Query, RoleCommand};
use crate::coordinator::{CoordinatorGone, Handle};
use crate::core::Time;
use crate::port::Attachment;
use crate::shutdown::{Level, Shutdown};

/// Maximum number of callers that wait for an answer. The oldest are dropped, since late copies of
/// calls never get one.
const CALLERS_MAX: usize = 1 << 16;

/// Forwards calls to the coordinator, and its commands to clients, while this process leads the
/// workflow. The asynchronous shell around a [`ServerSession`].
pub struct Server {
    session: ServerSession,
    epoch: Instant,
    links: ServerLinks,
    leadership: Arc<Leadership>,
    /// The coordinator's commands for workers, hosts and the sink of clients.
    commands: (
        mpsc::UnboundedSender<ServerInput>,
        mpsc::UnboundedReceiver<ServerInput>,
    ),
    /// Tasks that forward commands, by client.
    forwarding: HashMap<ClientRef, Vec<AbortHandle>>,
    working: JoinSet<WorkResult>,
    next_caller: u64,
    callers: BTreeMap<CallerId, bus::Request>,
}

/// Access to the clients, and to the coordinator.
#[derive(Clone)]
struct ServerLinks {
    connection: Connection,
    blobs: Arc<BlobStore>,
    handle: Handle,
    subjects: Arc<Subjects>,
}

/// The result of a task of the server.
enum WorkResult {
    /// A call was decoded.
    Call(bus::Request, Box<Call>),
    /// An input for the session.
    Input(ServerInput),
    Nothing,
}

/// The reason why the server ends.
enum StopReason {
    CoordinatorGone,
    /// Another process leads.
    Lost,
}

// === impl Server ===

impl Server {
    /// A server for the coordinator behind `handle`.
    pub fn new(
        connection: Connection,
        blobs: Arc<BlobStore>,
        handle: Handle,
        leadership: Leadership,
    ) -> Self {
        let plan = handle.plan().clone();
        Self {
            epoch: Instant::now(),
            links: ServerLinks {
                subjects: Arc::new(Subjects::new(&connection, &plan.workflow)),
                connection,
                blobs,
                handle,
            },
            session: ServerSession::new(plan, leadership.term()),
            leadership: Arc::new(leadership),
            commands: mpsc::unbounded_channel(),
            forwarding: HashMap::new(),
            working: JoinSet::new(),
            next_caller: 0,
            callers: BTreeMap::new(),
        }
    }

    /// Serves calls until the coordinator or the connection is gone, another process leads, or
    /// `shutdown` reaches [`Level::Stop`].
    pub fn run(mut self, mut shutdown: Shutdown) -> BoxFuture<'static, Result<(), RemoteError>> {
        // Boxed, so that it is compiled in this crate and not again in every caller's.
        Box::pin(async move {
            let subject = self.links.subjects.calls();
            let mut calls = self.links.connection.subscribe(&subject).await?;
            let gone = self.links.handle.clone();
            let mut input = Some(ServerInput::Tick);
            loop {
                if let Some(input) = input.take()
                    && self.input(input).await.is_err()
                {
                    break;
                }
                tokio::select! {
                    call = calls.next() => match call {
                        Some(request) => self.read(request),
                        None => return Ok(()),
                    },
                    Some(result) = self.working.join_next(), if !self.working.is_empty() => {
                        input = match result {
                            Ok(result) => self.work_finished(result),
                            Err(error) => std::panic::resume_unwind(error.into_panic()),
                        };
                    }
                    command = self.commands.1.recv() => input = command,
                    () = sleep_until(self.epoch, self.session.next_deadline()) => {
                        input = Some(ServerInput::Tick);
                    }
                    () = gone.gone() => break,
                    () = shutdown.reached(Level::Stop) => break,
                }
            }
            self.stop().await;
            Ok(())
        })
    }

    /// Answers all callers that this leader is stopping.
    async fn stop(mut self) {
        for caller in std::mem::take(&mut self.callers).into_values() {
            let links = self.links.clone();
            self.working.spawn(links.answer(caller, Answer::Stopping));
        }
        for forwarding in self.forwarding.values().flatten() {
            forwarding.abort();
        }
        let answered = async { while self.working.join_next().await.is_some() {} };
        // A notice may take longer.
        let _ = tokio::time::timeout(Duration::from_millis(200), answered).await;
    }

    fn read(&mut self, request: bus::Request) {
        let blobs = self.links.blobs.clone();
        self.working.spawn(async move {
            match decode::<Call>(&request.payload, &blobs).await {
                Ok(call) => WorkResult::Call(request, Box::new(call)),
                Err(error) => {
                    tracing::warn!(%error, "a call is not answered");
                    WorkResult::Nothing
                }
            }
        });
    }

    fn work_finished(&mut self, result: WorkResult) -> Option<ServerInput> {
        match result {
            WorkResult::Call(request, call) => {
                let caller = CallerId(self.next_caller);
                self.next_caller += 1;
                let subject = request.subject.clone();
                self.callers.insert(caller, request);
                if self.callers.len() > CALLERS_MAX {
                    self.callers.pop_first();
                }
                Some(ServerInput::Call {
                    caller,
                    subject,
                    call: *call,
                })
            }
            WorkResult::Input(input) => Some(input),
            WorkResult::Nothing => None,
        }
    }

    /// Passes an input to the session, and carries out its actions.
    async fn input(&mut self, input: ServerInput) -> Result<(), StopReason> {
        let micros = u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX);
        for action in self.session.handle(Time(micros), input) {
            let link = self.links.handle.link();
            match action {
                ServerAction::Hello { term } => {
                    self.working.spawn(self.links.clone().greet(Hello { term }));
                }
                ServerAction::Attach { client, role } => self.attach(client, role).await?,
                ServerAction::Event(event) => link.send_event(event).await?,
                ServerAction::Flush { flush, workers } => {
                    let flushed = self.links.handle.flush_later(workers).await?;
                    self.working.spawn(async move {
                        let flushed = flushed.await;
                        flushed.map_or(WorkResult::Nothing, |()| {
                            WorkResult::Input(ServerInput::Flushed(flush))
                        })
                    });
                }
                ServerAction::Request {
                    client,
                    number,
                    request,
                } => {
                    let reply = link.request_later(request).await?;
                    self.working.spawn(async move {
                        match reply.await {
                            Ok(reply) => WorkResult::Input(ServerInput::Replied {
                                client,
                                number,
                                reply,
                            }),
                            Err(_) => WorkResult::Nothing,
                        }
                    });
                }
                ServerAction::Query { caller, query } => {
                    if let Some(caller) = self.callers.remove(&caller) {
                        self.working.spawn(self.links.clone().query(caller, query));
                    }
                }
                ServerAction::Answer { caller, answer } => {
                    if let Some(caller) = self.callers.remove(&caller) {
                        self.working
                            .spawn(self.links.clone().answer(caller, answer));
                    }
                }
                ServerAction::Notify {
                    notice,
                    message,
                    timeout,
                } => {
                    let links = self.links.clone();
                    self.working.spawn(links.notify(notice, message, timeout));
                }
                ServerAction::CheckLease => {
                    let leadership = self.leadership.clone();
                    self.working.spawn(async move {
                        let is_held = leadership.is_held().await;
                        WorkResult::Input(ServerInput::LeaseChecked { is_held })
                    });
                }
                ServerAction::Lost => return Err(StopReason::Lost),
                ServerAction::Gone { client, why } => self.gone(&client, why),
            }
        }
        Ok(())
    }

    async fn attach(
        &mut self,
        client: ClientRef,
        role: AttachedRole,
    ) -> Result<(), CoordinatorGone> {
        let (attachment, forwarding) = match role {
            AttachedRole::Worker(worker) => {
                let (sender, receiver) = mpsc::unbounded_channel();
                let attachment = Attachment::Worker(worker.clone(), sender);
                let command = move |command| RoleCommand::Worker(worker.clone(), command);
                (attachment, self.forward(&client, receiver, command))
            }
            AttachedRole::Host(host) => {
                let (sender, receiver) = mpsc::unbounded_channel();
                let attachment = Attachment::Host(host.clone(), sender);
                let command = move |command| RoleCommand::Host(host.clone(), command);
                (attachment, self.forward(&client, receiver, command))
            }
            AttachedRole::Sink => {
                let (sender, receiver) = mpsc::unbounded_channel();
                let forwarding = self.forward(&client, receiver, RoleCommand::Sink);
                (Attachment::Sink(sender), forwarding)
            }
        };
        let of_client = self.forwarding.entry(client).or_default();
        of_client.retain(|forwarding| !forwarding.is_finished());
        of_client.push(forwarding);
        self.links.handle.link().attach(attachment).await
    }

    /// Forwards commands for a worker, host or sink of the client, until the coordinator drops the
    /// channel.
    fn forward<T: Send + 'static>(
        &self,
        client: &ClientRef,
        mut from: mpsc::UnboundedReceiver<T>,
        command: impl Fn(T) -> RoleCommand + Send + 'static,
    ) -> AbortHandle {
        let (to, client) = (self.commands.0.clone(), client.clone());
        let forwarding = tokio::spawn(async move {
            while let Some(message) = from.recv().await {
                let tell = ServerInput::Tell {
                    client: client.clone(),
                    command: command(message),
                };
                if to.send(tell).is_err() {
                    return;
                }
            }
        });
        forwarding.abort_handle()
    }

    fn gone(&mut self, client: &ClientRef, why: &str) {
        tracing::info!(client = %client.name, why, "a process is gone");
        // Dropping the task closes the channel, so that the coordinator gives undelivered emissions
        // to another sink.
        for forwarding in self.forwarding.remove(client).unwrap_or_default() {
            forwarding.abort();
        }
    }
}

async fn sleep_until(epoch: Instant, time: Time) {
    tokio::time::sleep_until(epoch + Duration::from_micros(time.0)).await;
}

// === impl StopReason ===

impl From<CoordinatorGone> for StopReason {
    fn from(CoordinatorGone: CoordinatorGone) -> Self {
        Self::CoordinatorGone
    }
}

// === impl ServerLinks ===

impl ServerLinks {
    async fn greet(self, hello: Hello) -> WorkResult {
        let greeted = async {
            let hello = encode(&hello, &self.connection, &self.blobs).await?;
            self.connection.publish(&self.subjects.hello, hello).await?;
            Ok::<_, RemoteError>(())
        };
        if let Err(error) = greeted.await {
            tracing::debug!(%error, "clients do not hear of this leader now");
        }
        WorkResult::Nothing
    }

    async fn query(self, caller: bus::Request, query: Query) -> WorkResult {
        let answer = self.handle.link().query(query).await;
        let answer = answer.map_or(Answer::Stopping, Answer::Query);
        self.answer(caller, answer).await
    }

    async fn answer(self, caller: bus::Request, answer: Answer) -> WorkResult {
        match encode(&answer, &self.connection, &self.blobs).await {
            Ok(bytes) => caller.reply(bytes).await,
            Err(error) => tracing::warn!(%error, "a call is not answered"),
        }
        WorkResult::Nothing
    }

    /// Makes one attempt to send a notice.
    async fn notify(self, notice: NoticeRef, message: Notice, timeout: Duration) -> WorkResult {
        let subject = self.subjects.client(&notice.client.name);
        let failed = |notice, why| WorkResult::Input(ServerInput::NoticeFailed { notice, why });
        let bytes = match encode(&message, &self.connection, &self.blobs).await {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::warn!(%error, "a notice has to wait");
                return failed(notice, NoticeFailure::NotSent);
            }
        };
        match self.connection.request(&subject, bytes, timeout).await {
            Ok(answer) => match decode::<NoticeAck>(&answer, &self.blobs).await {
                Ok(ack) => WorkResult::Input(ServerInput::NoticeAnswered { notice, ack }),
                Err(error) => {
                    tracing::warn!(%error, "the answer to a notice cannot be read");
                    failed(notice, NoticeFailure::NotSent)
                }
            },
            Err(RequestError::NoResponders(_)) => {
                let connected_for = self.connection.connected_for();
                failed(notice, NoticeFailure::NoListener { connected_for })
            }
            Err(_) => failed(notice, NoticeFailure::TimedOut),
        }
    }
}
