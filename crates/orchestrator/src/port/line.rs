//! The connection from a port to the coordinator: a channel in this process, or a client for
//! another process.

use tokio::sync::{mpsc, oneshot};

use crate::conversation::{
    HostCommand, Query, QueryAnswer, Reply, Request, RoleEvent, SinkCommand, WorkerCommand,
};
use crate::coordinator::{Command, CoordinatorGone};
use crate::id::WorkerId;

/// A message from a port, independent of its transport.
pub(crate) enum Message {
    Attach(Attachment),
    /// An event. A worker or host that joins has been attached before.
    Event(RoleEvent),
    Request(Request, oneshot::Sender<Reply>),
    Query(Query, oneshot::Sender<QueryAnswer>),
}

/// A channel for the coordinator's commands to a worker, a host or the sink.
pub(crate) enum Attachment {
    Worker(WorkerId, mpsc::UnboundedSender<WorkerCommand>),
    Host(WorkerId, mpsc::UnboundedSender<HostCommand>),
    /// Replaces an earlier sink's channel.
    Sink(mpsc::UnboundedSender<SinkCommand>),
}

/// The connection from a port to the coordinator.
#[derive(Clone)]
pub(crate) enum CoordinatorLink {
    /// The coordinator is in this process.
    Local(mpsc::Sender<Command>),
    /// A client in this process forwards messages to the leader.
    Remote(mpsc::Sender<Message>),
}

// === impl CoordinatorLink ===

impl CoordinatorLink {
    async fn send(&self, message: Message) -> Result<(), CoordinatorGone> {
        let sent = match self {
            Self::Local(commands) => commands.send(Command::Port(message)).await.is_ok(),
            Self::Remote(messages) => messages.send(message).await.is_ok(),
        };
        if sent { Ok(()) } else { Err(CoordinatorGone) }
    }

    pub(crate) async fn attach(&self, attachment: Attachment) -> Result<(), CoordinatorGone> {
        self.send(Message::Attach(attachment)).await
    }

    pub(crate) async fn send_event(
        &self,
        event: impl Into<RoleEvent>,
    ) -> Result<(), CoordinatorGone> {
        self.send(Message::Event(event.into())).await
    }

    /// Returns as soon as the request is sent; requests of one caller are processed in order.
    pub(crate) async fn request_later(
        &self,
        request: Request,
    ) -> Result<oneshot::Receiver<Reply>, CoordinatorGone> {
        let (sender, receiver) = oneshot::channel();
        self.send(Message::Request(request, sender)).await?;
        Ok(receiver)
    }

    pub(crate) async fn request(&self, request: Request) -> Result<Reply, CoordinatorGone> {
        let reply = self.request_later(request).await?;
        reply.await.map_err(|_| CoordinatorGone)
    }

    pub(crate) async fn query(&self, query: Query) -> Result<QueryAnswer, CoordinatorGone> {
        let (sender, receiver) = oneshot::channel();
        self.send(Message::Query(query, sender)).await?;
        receiver.await.map_err(|_| CoordinatorGone)
    }

    /// Waits until the receiver of the messages is gone.
    pub(crate) async fn gone(&self) {
        match self {
            Self::Local(commands) => commands.closed().await,
            Self::Remote(messages) => messages.closed().await,
        }
    }
}
