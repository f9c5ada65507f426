//! In a process of its own: ports like those to a coordinator beside it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, FuturesUnordered};
use futures_util::{FutureExt, StreamExt};
use proofmill_bus as bus;
use proofmill_bus::{BlobError, BlobStore, Connection, Held, RequestError};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::held::blobs_of;
use super::seat::Seat;
use super::wire::{
    Answer, Call, CallBody, Heard, Hello, Notice, NoticeBody, RemoteError, Subjects, decode, encode,
};
use crate::conversation::{
    HostCommand, HostEvent, Query, QueryAnswer, Reply, Request, RoleCommand, RoleEvent,
    SinkCommand, SinkEvent, WorkerCommand, WorkerEvent,
};
use crate::id::{WorkerId, fresh_number};
use crate::plan::Plan;
use crate::port::{Attachment, Line, Message, Ports};

/// Commands that may wait before their senders wait.
const COMMANDS: usize = 4096;

/// Things said in one call, at most.
const SAID_MAX: usize = 256;

/// How long the leader may take to answer a call before it is made again.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// A submission may wait for a full queue: asking again costs little.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);

/// Once every port is gone, how long that workers have left is tried to be said: who leads finds
/// out by itself.
const FAREWELL: Duration = Duration::from_secs(1);

/// Between two calls while nobody leads.
const NO_LEADER_PAUSE: Duration = Duration::from_millis(50);

/// Carries what is said through [`Ports`] to whichever process leads the workflow.
pub struct Client {
    caller: Caller,
    commands: mpsc::Receiver<Message>,
    notices: BoxStream<'static, bus::Request>,
    hellos: BoxStream<'static, bus::Request>,
    workers: HashMap<WorkerId, mpsc::UnboundedSender<WorkerCommand>>,
    hosts: HashMap<WorkerId, mpsc::UnboundedSender<HostCommand>>,
    sink: Option<mpsc::UnboundedSender<SinkCommand>>,
    sink_term: u64,
    /// What has not been said yet.
    said: VecDeque<RoleEvent>,
    /// The blobs that it names.
    held: Held,
}

#[derive(Clone)]
struct Caller {
    connection: Connection,
    blobs: Arc<BlobStore>,
    /// Where the leader is called.
    leader: String,
    name: Arc<str>,
    plan: [u8; 16],
    workflow: Arc<str>,
    number: Arc<AtomicU64>,
    /// The latest term of a leader that was heard of.
    term: Arc<watch::Sender<u64>>,
}

type Saying = BoxFuture<'static, Result<Answer, RemoteError>>;
type Asking = BoxFuture<'static, Result<(), RemoteError>>;

// === impl Client ===

impl Client {
    /// A client on this seat, named `name` (unique among those alive; one token of a subject), and
    /// the ports that speak through it once [`Client::run`] runs. A leader takes what is for the role of
    /// the seat to say, and refuses the rest.
    pub fn open(
        connection: Connection,
        blobs: Arc<BlobStore>,
        plan: Arc<Plan>,
        seat: Seat,
        name: &str,
    ) -> BoxFuture<'_, Result<(Self, Ports), RemoteError>> {
        // Boxed: compiled here, and not again in every program that calls it.
        Box::pin(async move {
            let subjects = Subjects::new(&connection, &plan.workflow);
            let name = format!("{seat}.{name}");
            let notices = connection.listen(&subjects.client(&name)).await?;
            let hellos = connection.listen(&subjects.hello).await?;
            let (sender, commands) = mpsc::channel(COMMANDS);
            let client = Self {
                held: blobs.hold([]),
                caller: Caller {
                    connection,
                    blobs,
                    leader: subjects.leader(&seat),
                    name: name.into(),
                    plan: plan.digest(),
                    workflow: plan.workflow.clone(),
                    // Another process of this name must not be taken for this one.
                    number: Arc::new(AtomicU64::new(fresh_number())),
                    term: Arc::default(),
                },
                commands,
                notices,
                hellos,
                workers: HashMap::new(),
                hosts: HashMap::new(),
                sink: None,
                sink_term: 0,
                said: VecDeque::new(),
            };
            Ok((client, Ports::new(Line::Remote(sender), plan)))
        })
    }

    /// Sets the term of this process's sink: one of an earlier term, that was paused perhaps, does
    /// not get it back.
    pub fn set_sink_term(&mut self, term: u64) {
        self.sink_term = term;
    }

    /// Carries until every port is gone and all that matters has been heard.
    pub fn run(mut self) -> BoxFuture<'static, Result<(), RemoteError>> {
        // Boxed: compiled here, and not again in every program that calls it.
        Box::pin(async move {
            let mut saying: Option<Saying> = None;
            let mut asking: FuturesUnordered<Asking> = FuturesUnordered::new();
            let mut turn = Vec::with_capacity(SAID_MAX);
            let mut open = true;
            let mut farewell = None;
            let mut saying_matters = false;
            loop {
                if saying.is_none() && !self.said.is_empty() {
                    let count = self.said.len().min(SAID_MAX);
                    let events: Vec<RoleEvent> = self.said.drain(..count).collect();
                    saying_matters = events.iter().any(RoleEvent::matters);
                    let held = self.hold(events.iter());
                    self.held = self.hold(self.said.iter());
                    saying = Some(self.caller.clone().say(events, held).boxed());
                }
                if !open && asking.is_empty() {
                    let matters = saying.is_some() && saying_matters
                        || self.said.iter().any(RoleEvent::matters);
                    let until = *farewell.get_or_insert_with(|| Instant::now() + FAREWELL);
                    if saying.is_none() || (!matters && Instant::now() >= until) {
                        return Ok(());
                    }
                }
                tokio::select! {
                    count = self.commands.recv_many(&mut turn, SAID_MAX), if open => {
                        open = count > 0;
                        for command in turn.drain(..) {
                            self.command(command, &asking);
                        }
                    }
                    answer = async { saying.as_mut().expect("guarded").await }, if saying.is_some() => {
                        saying = None;
                        self.heard(answer?);
                    }
                    Some(asked) = asking.next(), if !asking.is_empty() => asked?,
                    () = tokio::time::sleep(FAREWELL / 4), if !open => {}
                    notice = self.notices.next() => match notice {
                        Some(request) => self.notice(request).await,
                        None => return Ok(()),
                    },
                    hello = self.hellos.next() => match hello {
                        Some(hello) => match decode::<Hello>(&hello.payload, &self.caller.blobs).await {
                            Ok(hello) => {
                                self.leader(hello.term);
                            }
                            Err(error) => tracing::warn!(%error, "a hello is not understood"),
                        },
                        None => return Ok(()),
                    },
                }
            }
        })
    }

    fn command(&mut self, message: Message, asking: &FuturesUnordered<Asking>) {
        match message {
            Message::Request(request, reply) => {
                asking.push(self.caller.clone().request(request, reply).boxed());
            }
            Message::Query(query, answer) => {
                asking.push(self.caller.clone().query(query, answer).boxed());
            }
            Message::Attach(Attachment::Worker(worker, sender)) => {
                self.workers.insert(worker, sender);
            }
            Message::Attach(Attachment::Host(host, sender)) => {
                self.hosts.insert(host, sender);
            }
            Message::Attach(Attachment::Sink(sender)) => {
                self.sink = Some(sender);
                let attach = self.attach();
                self.said.push_back(attach);
            }
            Message::Event(event) => self.say(event),
        }
    }

    fn say(&mut self, event: RoleEvent) {
        match &event {
            RoleEvent::Worker(WorkerEvent::Leave { worker }) => {
                self.workers.remove(worker);
            }
            RoleEvent::Host(HostEvent::Leave { host }) => {
                self.hosts.remove(host);
            }
            _ => {}
        }
        if let Some(who) = event.beat_of() {
            // While nobody leads they would pile up; the newest says it all.
            self.said.retain(|other| other.beat_of() != Some(who));
        }
        self.held.join(self.hold([&event]));
        self.said.push_back(event);
    }

    fn hold<'a>(&self, events: impl IntoIterator<Item = &'a RoleEvent>) -> Held {
        let blobs = events.into_iter().flat_map(blobs_of);
        self.caller.blobs.hold(blobs)
    }

    fn heard(&mut self, answer: Answer) {
        let Answer::Done {
            unknown,
            sink_unknown,
        } = answer
        else {
            return;
        };
        for who in unknown {
            self.tell(&who, WorkerCommand::Unknown);
            self.tell_host(&who, HostCommand::Unknown);
        }
        if sink_unknown && self.sink.is_some() {
            let attach = self.attach();
            self.said.push_back(attach);
        }
    }

    fn attach(&self) -> RoleEvent {
        let term = self.sink_term;
        SinkEvent::Attach { term }.into()
    }

    /// A leader of this term is there. Whether it is the latest that is known.
    fn leader(&mut self, term: u64) -> bool {
        let before = *self.caller.term.borrow();
        if before < term {
            self.caller.term.send_replace(term);
            self.introduce();
        }
        before <= term
    }

    /// A new leader knows nobody.
    fn introduce(&mut self) {
        for worker in self.workers.values() {
            // A dispatcher that has ended has said so.
            let _ = worker.send(WorkerCommand::Unknown);
        }
        for host in self.hosts.values() {
            // As above.
            let _ = host.send(HostCommand::Unknown);
        }
        if self.sink.is_some() {
            let attach = self.attach();
            self.said.push_back(attach);
        }
    }

    fn tell(&self, worker: &WorkerId, command: WorkerCommand) {
        if let Some(sender) = self.workers.get(worker) {
            // As above.
            let _ = sender.send(command);
        }
    }

    fn tell_host(&self, host: &WorkerId, command: HostCommand) {
        if let Some(sender) = self.hosts.get(host) {
            // As above.
            let _ = sender.send(command);
        }
    }

    async fn notice(&mut self, request: bus::Request) {
        let blobs = &self.caller.blobs;
        let notice: Notice = match decode(&request.payload, blobs).await {
            Ok(notice) => notice,
            Err(error) => {
                // Not answered: it comes again. A leader of another release is noticed by what it
                // answers.
                tracing::warn!(%error, "a notice cannot be read");
                return;
            }
        };
        let heard = if self.leader(notice.term) {
            if let NoticeBody::Commands(commands) = notice.body {
                self.take(commands);
            }
            Heard::Yes
        } else {
            Heard::NotFromYou
        };
        match encode(&heard, &self.caller.connection, &self.caller.blobs).await {
            Ok(answer) => request.reply(answer).await,
            Err(error) => tracing::warn!(%error, "a notice is not answered"),
        }
    }

    fn take(&mut self, commands: Vec<RoleCommand>) {
        for command in commands {
            match command {
                RoleCommand::Worker(worker, command) => self.tell(&worker, command),
                RoleCommand::Host(host, command) => self.tell_host(&host, command),
                RoleCommand::Sink(command) => {
                    if let Some(sink) = &self.sink {
                        // As above.
                        let _ = sink.send(command);
                    }
                }
            }
        }
    }
}

// === impl Caller ===

impl Caller {
    fn next_number(&self) -> u64 {
        // Wraps around.
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    async fn say(self, events: Vec<RoleEvent>, held: Held) -> Result<Answer, RemoteError> {
        let number = self.next_number();
        let answer = self.call(CallBody::Events { number, events }, CALL_TIMEOUT);
        let answer = answer.await;
        // A record names them now.
        drop(held);
        answer
    }

    async fn request(
        self,
        request: Request,
        reply: oneshot::Sender<Reply>,
    ) -> Result<(), RemoteError> {
        let number = self.next_number();
        let body = CallBody::Request { number, request };
        if let Answer::Reply(answer) = self.call(body, ASK_TIMEOUT).await? {
            // Whoever asked may have gone; the record stands all the same.
            let _ = reply.send(answer);
        }
        Ok(())
    }

    async fn query(
        self,
        query: Query,
        sender: oneshot::Sender<QueryAnswer>,
    ) -> Result<(), RemoteError> {
        let body = CallBody::Query(query);
        if let Answer::Query(answer) = self.call(body, CALL_TIMEOUT).await? {
            // As above.
            let _ = sender.send(answer);
        }
        Ok(())
    }

    /// Calls until a leader answers.
    async fn call(&self, body: CallBody, timeout: Duration) -> Result<Answer, RemoteError> {
        let mut call = Call {
            plan: self.plan,
            term: 0,
            client: self.name.clone(),
            body,
        };
        let held = self.blobs.hold(call.body.blobs());
        let mut term = self.term.subscribe();
        loop {
            match self.blobs.lost(&held).await {
                Ok(lost) if lost.is_empty() || call.body.give_up(&lost) => {}
                Ok(lost) => return Err(BlobError::Missing(lost[0]).into()),
                Err(error) => {
                    tracing::warn!(%error, "a call has to wait");
                    tokio::time::sleep(CALL_TIMEOUT).await;
                    continue;
                }
            }
            call.term = *term.borrow_and_update();
            let bytes = match encode(&call, &self.connection, &self.blobs).await {
                Ok(bytes) => bytes,
                Err(error) => {
                    tracing::warn!(%error, "a call has to wait");
                    tokio::time::sleep(CALL_TIMEOUT).await;
                    continue;
                }
            };
            let asked = self.connection.request(&self.leader, bytes, timeout);
            let answer = tokio::select! {
                answer = asked => answer,
                // Whoever was asked leads no more, if it was known who leads. The sender lives in
                // `self`.
                _ = term.changed(), if call.term > 0 => continue,
            };
            match answer {
                Ok(answer) => match decode::<Answer>(&answer, &self.blobs).await? {
                    Answer::OtherPlan => {
                        return Err(RemoteError::OtherPlan(self.workflow.to_string()));
                    }
                    Answer::NotYours => {
                        return Err(RemoteError::NotYours {
                            workflow: self.workflow.to_string(),
                            client: self.name.to_string(),
                        });
                    }
                    Answer::Invalid(why) => {
                        return Err(RemoteError::Invalid {
                            workflow: self.workflow.to_string(),
                            client: self.name.to_string(),
                            why,
                        });
                    }
                    Answer::Stopping => {}
                    answer => return Ok(answer),
                },
                Err(RequestError::TimedOut(_)) => continue,
                Err(RequestError::NoResponders(_)) => {}
                Err(error @ RequestError::Refused(_)) => return Err(error.into()),
                Err(error) => tracing::debug!(%error, "a call is made again"),
            }
            tokio::time::sleep(NO_LEADER_PAUSE).await;
        }
    }
}
