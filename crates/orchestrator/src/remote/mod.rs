//! Roles in processes of their own, connected to the coordinator over the bus.
//!
//! A [`Client`] provides a process with [`Ports`](crate::port::Ports) like those in the
//! coordinator's own process, and forwards their messages to the process that leads the workflow; a
//! [`Server`] beside the coordinator receives them. A message stays with the client until a leader
//! acknowledges that it is durable: when a leader dies nothing is lost, since its successor gets
//! every unacknowledged message.
//!
//! Subjects: `PREFIX.leader.WORKFLOW.SEAT`, on which the leader receives calls of a [`Seat`];
//! `PREFIX.client.WORKFLOW.SEAT.NAME`, on which a client receives notices; `PREFIX.hello.WORKFLOW`,
//! on which a new leader announces itself. Calls and notices larger than a message are sent as
//! blobs.
//!
//! A client is trusted only about its own role and workers: [`admit`] checks every call against the
//! seat that it came from, and every value in it, before it reaches the coordinator.
//!
//! The protocol itself (retransmission, choice of the leader, detection of lost peers) is in
//! [`session`]: state machines without input or output, around which clients and servers are thin
//! shells.
//!
//! A client that stops listening is gone: the server reports at once that there is no listener, and
//! the client's tasks are given to others. A client that listens but does not answer keeps its
//! tasks until their leases expire.

mod admission;
mod client;
mod held;
mod leadership;
mod role;
mod seat;
mod server;
pub mod session;
mod wire;

pub use admission::{Refused, admit};
pub use client::Client;
pub use leadership::Leadership;
pub use role::Role;
pub use seat::Seat;
pub use server::Server;
pub use wire::{
    Answer, Call, CallBody, Notice, NoticeAck, NoticeBody, RemoteError, decode, encode, parse,
};
