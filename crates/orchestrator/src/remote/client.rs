//! In a process of its own: a handle like that of a coordinator beside it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, FuturesUnordered};
use futures_util::{FutureExt, StreamExt};
use proofmill_bus::{BlobError, BlobStore, Connection, Held, Request, RequestError};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::seat::Seat;
use super::wire::{
    Answer, Call, Heard, Hello, Notice, RemoteError, Said, Subjects, Tell, Told, What, decode,
    encode,
};
use crate::collector::ToHost;
use crate::coordinator::{Asked, Command, Emission, Handle, ToWorker};
use crate::core::{Event, Reply, Status};
use crate::id::{WorkerId, fresh_number};
use crate::plan::Plan;

/// Commands that may wait before their senders wait.
const COMMANDS: usize = 4096;

/// Things said in one call, at most.
const SAID_MAX: usize = 256;

/// How long the leader may take to answer a call before it is made again.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// A submission may wait for a full queue: asking again costs little.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);

/// Once every handle is gone, how long that workers have left is tried to be said: who leads finds
/// out by itself.
const FAREWELL: Duration = Duration::from_secs(1);

/// Between two calls while nobody leads.
const NO_LEADER_PAUSE: Duration = Duration::from_millis(50);

/// Carries what is said through a [`Handle`] to whichever process leads the workflow.
pub struct Client {
    caller: Caller,
    commands: mpsc::Receiver<Command>,
    notices: BoxStream<'static, Request>,
    hellos: BoxStream<'static, Request>,
    workers: HashMap<WorkerId, mpsc::UnboundedSender<ToWorker>>,
    hosts: HashMap<WorkerId, mpsc::UnboundedSender<ToHost>>,
    sink: Option<mpsc::UnboundedSender<Emission>>,
    sink_term: u64,
    /// What has not been said yet.
    said: VecDeque<Said>,
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
    /// the handle that speaks through it once [`Client::run`] runs.
    ///
    /// Looking into the core and waiting for it to be idle are not carried: such requests are
    /// answered as if the coordinator were gone.
    pub fn open(
        connection: Connection,
        blobs: Arc<BlobStore>,
        plan: Arc<Plan>,
        seat: Seat,
        name: &str,
    ) -> BoxFuture<'_, Result<(Self, Handle), RemoteError>> {
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
            Ok((
                client,
                Handle {
                    commands: sender,
                    plan,
                },
            ))
        })
    }

    /// Sets the term of this process's sink: one of an earlier term, that was paused perhaps, does
    /// not get it back.
    pub fn set_sink_term(&mut self, term: u64) {
        self.sink_term = term;
    }

    /// Carries until every handle is gone and all that matters has been heard.
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
                    let events: Vec<Said> = self.said.drain(..count).collect();
                    saying_matters = events.iter().any(Said::matters);
                    let held = self.hold(events.iter());
                    self.held = self.hold(self.said.iter());
                    saying = Some(self.caller.clone().say(events, held).boxed());
                }
                if !open && asking.is_empty() {
                    let matters =
                        saying.is_some() && saying_matters || self.said.iter().any(Said::matters);
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

    fn command(&mut self, command: Command, asking: &FuturesUnordered<Asking>) {
        match command {
            Command::Ask(asked, reply) => {
                asking.push(self.caller.clone().ask(asked, reply).boxed());
            }
            Command::SourceNext(source, reply) => {
                asking.push(self.caller.clone().source_next(source, reply).boxed());
            }
            Command::Status(reply) => {
                asking.push(self.caller.clone().status(reply).boxed());
            }
            Command::Join(join, to_worker) => {
                self.workers.insert(join.worker.clone(), to_worker);
                self.said.push_back(Said::Join(join));
            }
            Command::Leave(worker) => {
                self.workers.remove(&worker);
                self.said.push_back(Said::Leave(worker));
            }
            Command::HostJoin(join, to_host) => {
                self.hosts.insert(join.host.clone(), to_host);
                self.said.push_back(Said::HostJoin(join));
            }
            Command::HostLeave(host) => {
                self.hosts.remove(&host);
                self.said.push_back(Said::HostLeave(host));
            }
            Command::AttachSink(sink) => {
                self.sink = Some(sink);
                let attach = self.attach();
                self.said.push_back(attach);
            }
            Command::Worker(event) => {
                if let Some(said) = said(event) {
                    self.say(said);
                }
            }
            // See `open`: dropping the sender tells whoever asked.
            Command::Inspect(_)
            | Command::Flush(_)
            | Command::Observe(_)
            | Command::When(..)
            | Command::Drain => {}
        }
    }

    fn say(&mut self, said: Said) {
        if let Some(who) = said.beats_for() {
            // While nobody leads they would pile up; the newest says it all.
            self.said.retain(|other| other.beats_for() != Some(who));
        }
        self.held.join(self.hold([&said]));
        self.said.push_back(said);
    }

    fn hold<'a>(&self, said: impl IntoIterator<Item = &'a Said>) -> Held {
        let blobs = said.into_iter().flat_map(Said::blobs);
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
            self.tell(&who, ToWorker::Unknown);
            self.tell_host(&who, ToHost::Unknown);
        }
        if sink_unknown && self.sink.is_some() {
            let attach = self.attach();
            self.said.push_back(attach);
        }
    }

    fn attach(&self) -> Said {
        let term = self.sink_term;
        Said::AttachSink { term }
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
            let _ = worker.send(ToWorker::Unknown);
        }
        for host in self.hosts.values() {
            // As above.
            let _ = host.send(ToHost::Unknown);
        }
        if self.sink.is_some() {
            let attach = self.attach();
            self.said.push_back(attach);
        }
    }

    fn tell(&self, worker: &WorkerId, message: ToWorker) {
        if let Some(sender) = self.workers.get(worker) {
            // As above.
            let _ = sender.send(message);
        }
    }

    fn tell_host(&self, host: &WorkerId, message: ToHost) {
        if let Some(sender) = self.hosts.get(host) {
            // As above.
            let _ = sender.send(message);
        }
    }

    async fn notice(&mut self, request: Request) {
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
            if let Tell::All(told) = notice.tell {
                self.take(told);
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

    fn take(&mut self, told: Vec<Told>) {
        for told in told {
            match told {
                Told::Worker(worker, message) => self.tell(&worker, message),
                Told::Host(host, message) => self.tell_host(&host, message),
                Told::Emit(task) => {
                    if let Some(sink) = &self.sink {
                        // As above.
                        let _ = sink.send(Emission { task });
                    }
                }
            }
        }
    }
}

/// What there is to say of an event at a worker.
fn said(event: Event) -> Option<Said> {
    Some(match event {
        Event::Retire { worker } => Said::Retire(worker),
        Event::Heartbeat {
            worker,
            running,
            retired,
            paused,
        } => Said::Heartbeat {
            worker,
            running,
            retired,
            paused,
        },
        Event::Complete(complete) => Said::Complete(complete),
        Event::Fail(fail) => Said::Fail(fail),
        Event::Release { worker, lease } => Said::Release(worker, lease),
        Event::HostBeat { host } => Said::HostBeat(host),
        Event::Verdicts(verdicts) => Said::Verdicts(verdicts),
        Event::Emitted { task, places } => Said::Emitted(task, places),
        _ => return None,
    })
}

// === impl Caller ===

impl Caller {
    fn next_number(&self) -> u64 {
        // Wraps around.
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    async fn say(self, events: Vec<Said>, held: Held) -> Result<Answer, RemoteError> {
        let number = self.next_number();
        let answer = self.call(What::Events { number, events }, CALL_TIMEOUT);
        let answer = answer.await;
        // A record names them now.
        drop(held);
        answer
    }

    async fn ask(self, asked: Asked, reply: oneshot::Sender<Reply>) -> Result<(), RemoteError> {
        let number = self.next_number();
        let what = What::Ask { number, asked };
        if let Answer::Reply(answer) = self.call(what, ASK_TIMEOUT).await? {
            // Whoever asked may have gone; the record stands all the same.
            let _ = reply.send(answer);
        }
        Ok(())
    }

    async fn source_next(
        self,
        source: Arc<str>,
        reply: oneshot::Sender<Option<u64>>,
    ) -> Result<(), RemoteError> {
        let what = What::SourceNext(source);
        if let Answer::SourceNext(next) = self.call(what, CALL_TIMEOUT).await? {
            // As above.
            let _ = reply.send(next);
        }
        Ok(())
    }

    async fn status(self, reply: oneshot::Sender<Status>) -> Result<(), RemoteError> {
        if let Answer::Status(status) = self.call(What::Status, CALL_TIMEOUT).await? {
            // As above.
            let _ = reply.send(*status);
        }
        Ok(())
    }

    /// Calls until a leader answers.
    async fn call(&self, what: What, timeout: Duration) -> Result<Answer, RemoteError> {
        let mut call = Call {
            plan: self.plan,
            term: 0,
            client: self.name.clone(),
            session: 0,
            open_from: 0,
            what,
        };
        let held = self.blobs.hold(call.what.blobs());
        let mut term = self.term.subscribe();
        loop {
            match self.blobs.lost(&held).await {
                Ok(lost) if lost.is_empty() || call.what.give_up(&lost) => {}
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
