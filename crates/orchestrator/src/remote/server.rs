//! Beside the coordinator: carries calls to it, and notices from it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt, Shared};
use proofmill_bus::{BlobStore, Connection, Request, RequestError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::gate::{Refused, admit};
use super::leadership::Leadership;
use super::wire::{
    Answer, Call, CallBody, Heard, Hello, Notice, NoticeBody, RemoteError, Subjects, decode, encode,
};
use crate::conversation::{HostEvent, Reply, RoleCommand, RoleEvent, SinkEvent, WorkerEvent};
use crate::coordinator::{CoordinatorGone, Handle};
use crate::id::WorkerId;
use crate::shutdown::{Level, Shutdown};

/// A client that has nothing to hear is asked so often whether it is there.
const PING: Duration = Duration::from_millis(200);

/// How long a client may take to answer a notice before it is sent again.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(2);

/// A client on whose subject nobody listens for so long is gone: a connection that is made anew
/// takes less.
const GONE_AFTER: Duration = Duration::from_millis(400);

/// So long after this process has connected, clients may still be connecting: the server may have
/// been away.
const SETTLING: Duration = Duration::from_secs(3);

/// A client that does not answer for so long is given up.
const SILENT_AFTER: Duration = Duration::from_secs(20);

/// Things told to a client in one notice, at most.
const NOTICE_MAX: usize = 256;

/// Characters of a client's name that are logged.
const NAME_SHOWN: usize = 100;

/// Replies that are remembered for each client, for those that ask again.
const REPLIES: usize = 1024;

/// Carries calls to a coordinator, and notices from it, while this process leads the workflow.
pub struct Server {
    connection: Connection,
    blobs: Arc<BlobStore>,
    handle: Handle,
    subjects: Subjects,
    /// [`Plan::digest`](crate::plan::Plan::digest) of the workflow.
    plan: [u8; 16],
    clients: Arc<Mutex<HashMap<Arc<str>, Client>>>,
    /// Of the sink.
    sink_term: AtomicU64,
    leadership: Arc<Leadership>,
}

/// A call with events that was taken.
struct Taken {
    number: u64,
    /// Whom it named that is not known.
    unknown: Vec<WorkerId>,
    sink_unknown: bool,
}

type PendingReply = Shared<BoxFuture<'static, Option<Reply>>>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Worker,
    Host,
}

struct Client {
    /// The last call with events. Held while its events are said: calls are taken one by one, and
    /// none is answered before all of it has been said, however often it is made.
    taken: Arc<tokio::sync::Mutex<Option<Taken>>>,
    /// Its workers, then its hosts.
    behind: BTreeSet<(Kind, WorkerId)>,
    has_sink: bool,
    tell: mpsc::UnboundedSender<RoleCommand>,
    replies: BTreeMap<u64, PendingReply>,
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
        let plan = handle.plan();
        Self {
            subjects: Subjects::new(&connection, &plan.workflow),
            plan: plan.digest(),
            connection,
            blobs,
            handle,
            clients: Arc::default(),
            sink_term: AtomicU64::new(0),
            leadership: Arc::new(leadership),
        }
    }

    /// Takes calls until the coordinator or the connection is gone, another process leads, or
    /// `shutdown` says [`Level::Stop`].
    pub fn run(self, mut shutdown: Shutdown) -> BoxFuture<'static, Result<(), RemoteError>> {
        // Boxed: compiled here, and not again in every program that calls it.
        Box::pin(async move {
            let mut calls = self.connection.listen(&self.subjects.calls()).await?;
            let hello = Hello {
                term: self.leadership.term(),
            };
            let hello = encode(&hello, &self.connection, &self.blobs).await?;
            self.connection.tell(&self.subjects.hello, hello).await?;
            let server = Arc::new(self);
            let mut working = JoinSet::new();
            let gone = server.handle.clone();
            loop {
                tokio::select! {
                    call = calls.next() => match call {
                        Some(request) => {
                            let server = server.clone();
                            working.spawn(async move { server.take(request).await });
                        }
                        None => return Ok(()),
                    },
                    Some(_) = working.join_next(), if !working.is_empty() => {}
                    () = gone.gone() => return Ok(()),
                    () = server.leadership.is_lost() => return Ok(()),
                    () = shutdown.reached(Level::Stop) => return Ok(()),
                }
            }
        })
    }

    async fn take(self: Arc<Self>, request: Request) {
        let answer = match decode::<Call>(&request.payload, &self.blobs).await {
            Ok(call) if call.plan != self.plan => Answer::OtherPlan,
            Ok(call) => match admit(&call, &request.subject, self.handle.plan()) {
                Err(refused) => refuse(&call, &request.subject, &refused),
                Ok(_)
                    if call.term > self.leadership.term()
                        && !self.leadership.is_confirmed().await =>
                {
                    return;
                }
                Ok(_) => match self.clone().answer(call).await {
                    Ok(answer) => answer,
                    Err(CoordinatorGone) => Answer::Stopping,
                },
            },
            Err(error) => {
                tracing::warn!(%error, "a call is not answered");
                return;
            }
        };
        match encode(&answer, &self.connection, &self.blobs).await {
            Ok(bytes) => request.reply(bytes).await,
            Err(error) => tracing::warn!(%error, "a call is not answered"),
        }
    }

    async fn answer(self: Arc<Self>, call: Call) -> Result<Answer, CoordinatorGone> {
        match call.body {
            CallBody::Events { number, events } => self.events(call.client, number, events).await,
            CallBody::Request { number, request } => {
                let pending = {
                    let mut clients = self.lock();
                    let client = self.client(&mut clients, &call.client);
                    while client.replies.len() >= REPLIES {
                        client.replies.pop_first();
                    }
                    let handle = self.handle.clone();
                    client
                        .replies
                        .entry(number)
                        .or_insert_with(|| {
                            let replied = async move { handle.line().request(request).await.ok() };
                            replied.boxed().shared()
                        })
                        .clone()
                };
                match pending.await {
                    Some(reply) => Ok(Answer::Reply(reply)),
                    None => Err(CoordinatorGone),
                }
            }
            CallBody::Query(query) => {
                let answer = self.handle.line().query(query).await?;
                Ok(Answer::Query(answer))
            }
        }
    }

    async fn events(
        self: &Arc<Self>,
        name: Arc<str>,
        number: u64,
        events: Vec<RoleEvent>,
    ) -> Result<Answer, CoordinatorGone> {
        let taken = {
            let mut clients = self.lock();
            self.client(&mut clients, &name).taken.clone()
        };
        let mut taken = taken.lock().await;
        let (unknown, sink_unknown) = match &*taken {
            Some(taken) if taken.number == number => (taken.unknown.clone(), taken.sink_unknown),
            _ => {
                let mut unknown = Vec::new();
                let mut sink_unknown = false;
                for event in events {
                    self.say(&name, event, &mut unknown, &mut sink_unknown)
                        .await?;
                }
                *taken = Some(Taken {
                    number,
                    unknown: unknown.clone(),
                    sink_unknown,
                });
                (unknown, sink_unknown)
            }
        };
        drop(taken);
        self.handle.flush().await?;
        Ok(Answer::Done {
            unknown,
            sink_unknown,
        })
    }

    /// Says one thing to the coordinator.
    async fn say(
        self: &Arc<Self>,
        name: &Arc<str>,
        event: RoleEvent,
        unknown: &mut Vec<WorkerId>,
        sink_unknown: &mut bool,
    ) -> Result<(), CoordinatorGone> {
        let handle = &self.handle;
        match event {
            RoleEvent::Worker(WorkerEvent::Join(join)) => {
                let (sender, receiver) = mpsc::unbounded_channel();
                let tell = self.enlist(name, Kind::Worker, &join.worker);
                let worker = join.worker.clone();
                forward(receiver, tell, move |command| {
                    RoleCommand::Worker(worker.clone(), command)
                });
                handle.worker().join(join, sender).await
            }
            RoleEvent::Worker(WorkerEvent::Heartbeat { ref worker, .. })
                if !self.is_enlisted(name, Kind::Worker, worker) =>
            {
                unknown.push(worker.clone());
                Ok(())
            }
            RoleEvent::Host(HostEvent::Beat { host })
                if !self.is_enlisted(name, Kind::Host, &host) =>
            {
                unknown.push(host);
                Ok(())
            }
            RoleEvent::Worker(WorkerEvent::Leave { worker }) => {
                self.strike_off(name, Kind::Worker, &worker);
                handle.line().say(WorkerEvent::Leave { worker }).await
            }
            RoleEvent::Host(HostEvent::Join(join)) => {
                let (sender, receiver) = mpsc::unbounded_channel();
                let tell = self.enlist(name, Kind::Host, &join.host);
                let host = join.host.clone();
                forward(receiver, tell, move |command| {
                    RoleCommand::Host(host.clone(), command)
                });
                handle.host().join(join, sender).await
            }
            RoleEvent::Host(HostEvent::Leave { host }) => {
                self.strike_off(name, Kind::Host, &host);
                handle.line().say(HostEvent::Leave { host }).await
            }
            RoleEvent::Sink(SinkEvent::Attach { term }) => {
                if self.sink_term.fetch_max(term, Ordering::SeqCst) > term {
                    return Ok(());
                }
                let (sender, receiver) = mpsc::unbounded_channel();
                let tell = {
                    let mut clients = self.lock();
                    // One at a time: the others' are closed, by the coordinator.
                    for client in clients.values_mut() {
                        client.has_sink = false;
                    }
                    let client = self.client(&mut clients, name);
                    client.has_sink = true;
                    client.tell.clone()
                };
                forward(receiver, tell, RoleCommand::Sink);
                handle.sink().attach(sender).await
            }
            event => {
                if matches!(event, RoleEvent::Sink(SinkEvent::Emitted { .. })) {
                    let mut clients = self.lock();
                    *sink_unknown |= !self.client(&mut clients, name).has_sink;
                }
                handle.line().say(event).await
            }
        }
    }

    /// A worker or host is behind a client. Returns the way to that.
    fn enlist(
        &self,
        name: &Arc<str>,
        kind: Kind,
        who: &WorkerId,
    ) -> mpsc::UnboundedSender<RoleCommand> {
        let mut clients = self.lock();
        let client = self.client(&mut clients, name);
        client.behind.insert((kind, who.clone()));
        client.tell.clone()
    }

    fn is_enlisted(&self, name: &Arc<str>, kind: Kind, who: &WorkerId) -> bool {
        let mut clients = self.lock();
        let client = self.client(&mut clients, name);
        client.behind.contains(&(kind, who.clone()))
    }

    fn strike_off(&self, name: &Arc<str>, kind: Kind, who: &WorkerId) {
        let mut clients = self.lock();
        let client = self.client(&mut clients, name);
        client.behind.remove(&(kind, who.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Client>> {
        // Nothing under this lock panics half-way through a change.
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client<'a>(
        &self,
        clients: &'a mut HashMap<Arc<str>, Client>,
        name: &Arc<str>,
    ) -> &'a mut Client {
        clients.entry(name.clone()).or_insert_with(|| {
            let (tell, commands) = mpsc::unbounded_channel();
            let notices = Notices {
                connection: self.connection.clone(),
                blobs: self.blobs.clone(),
                handle: self.handle.clone(),
                subject: self.subjects.client(name),
                name: name.clone(),
                clients: self.clients.clone(),
                leadership: self.leadership.clone(),
            };
            tokio::spawn(notices.run(commands));
            Client {
                taken: Arc::default(),
                behind: BTreeSet::new(),
                has_sink: false,
                tell,
                replies: BTreeMap::new(),
            }
        })
    }
}

/// A refusal, in the log and for the client.
fn refuse(call: &Call, subject: &str, refused: &Refused) -> Answer {
    let client: String = call.client.chars().take(NAME_SHOWN).collect();
    tracing::warn!(?client, subject, "a call is refused: {refused}");
    match (&call.body, refused) {
        // Whoever asked on somebody's behalf passes it on, and goes on.
        (CallBody::Request { .. }, refused) => Answer::Reply(Reply::Invalid {
            why: refused.to_string(),
        }),
        (_, Refused::NotYours(_)) => Answer::NotYours,
        (_, Refused::Invalid(why)) => Answer::Invalid(why.clone()),
    }
}

/// Has a client told what comes for one of those behind it.
fn forward<T: Send + 'static>(
    mut from: mpsc::UnboundedReceiver<T>,
    to: mpsc::UnboundedSender<RoleCommand>,
    command: impl Fn(T) -> RoleCommand + Send + 'static,
) {
    tokio::spawn(async move {
        while let Some(message) = from.recv().await {
            if to.send(command(message)).is_err() {
                return;
            }
        }
    });
}

/// Tells one client what there is to tell, and notices when it is gone.
struct Notices {
    connection: Connection,
    blobs: Arc<BlobStore>,
    handle: Handle,
    subject: String,
    name: Arc<str>,
    clients: Arc<Mutex<HashMap<Arc<str>, Client>>>,
    leadership: Arc<Leadership>,
}

impl Notices {
    async fn run(self, mut commands: mpsc::UnboundedReceiver<RoleCommand>) {
        let mut batch = Vec::new();
        loop {
            let body = tokio::select! {
                count = commands.recv_many(&mut batch, NOTICE_MAX) => {
                    if count == 0 {
                        return;
                    }
                    NoticeBody::Commands(std::mem::take(&mut batch))
                }
                () = tokio::time::sleep(PING) => NoticeBody::Ping,
                () = self.handle.gone() => return,
            };
            let notice = Notice {
                term: self.leadership.term(),
                body,
            };
            if let Err(why) = self.deliver(&notice).await {
                tracing::info!(client = %self.name, why, "a process is gone");
                self.forget().await;
                return;
            }
        }
    }

    /// Sends a notice until it is answered.
    async fn deliver(&self, notice: &Notice) -> Result<(), &'static str> {
        let begun = Instant::now();
        let mut nobody_since: Option<Instant> = None;
        loop {
            let bytes = match encode(notice, &self.connection, &self.blobs).await {
                Ok(bytes) => bytes,
                Err(error) => {
                    tracing::warn!(%error, "a notice has to wait");
                    tokio::time::sleep(PING).await;
                    continue;
                }
            };
            let asked = self
                .connection
                .request(&self.subject, bytes, NOTICE_TIMEOUT)
                .await;
            match asked {
                Ok(answer) => {
                    if let Ok(Heard::NotFromYou) = decode(&answer, &self.blobs).await {
                        self.leadership.is_confirmed().await;
                    }
                    return Ok(());
                }
                Err(RequestError::NoResponders(_)) => {
                    if self.connection.connected_for() < SETTLING {
                        nobody_since = None;
                    }
                    let since = *nobody_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= GONE_AFTER {
                        return Err("nobody listens");
                    }
                    tokio::time::sleep(PING / 4).await;
                }
                Err(_) => {
                    nobody_since = None;
                    if begun.elapsed() >= SILENT_AFTER {
                        return Err("it does not answer");
                    }
                }
            }
            if self.handle.is_gone() {
                return Err("the coordinator has stopped");
            }
        }
    }

    /// The client is gone, and its workers and hosts with it.
    async fn forget(&self) {
        let client = {
            let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
            clients.remove(&self.name)
        };
        let Some(client) = client else { return };
        for (kind, who) in client.behind {
            let leave: RoleEvent = match kind {
                Kind::Worker => WorkerEvent::Leave { worker: who }.into(),
                Kind::Host => HostEvent::Leave { host: who }.into(),
            };
            if self.handle.line().say(leave).await.is_err() {
                return;
            }
        }
    }
}
