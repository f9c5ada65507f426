//! The coordinator and its workers, sources and sinks in processes of their own, over the bus.
//!
//! A [`Client`] gives a process [`Ports`](crate::port::Ports) like those to a coordinator beside it, and carries what
//! is said through them to whichever process leads the workflow; a [`Server`] beside the coordinator carries it on. What a client says stays with it until a leader
//! answers that it is durable: a leader that dies takes nothing with it, and the next hears it all.
//!
//! Subjects: `PREFIX.leader.WORKFLOW.SEAT`, on which the leader takes calls of a [`Seat`];
//! `PREFIX.client.WORKFLOW.SEAT.NAME`, on which a client takes notices; `PREFIX.hello.WORKFLOW`, on
//! which a new leader says that it is there. Calls and notices that are larger than a message travel
//! as blobs.
//!
//! A client is believed about what is its own: [`admit`] checks every call against the seat that it
//! came from, and every value in it, before the coordinator hears of it.
//!
//! The protocol itself, what is said again and when, which leader is heard and who is gone, is in [`session`]: state
//! machines without input or output, which clients and servers are thin shells of.
//!
//! Whoever stops listening is gone: the server answers that nobody is there, at once, and what the
//! client's workers had is given to others. One that listens and does not answer is left to its
//! leases' ends.

mod client;
mod gate;
mod held;
mod leadership;
mod seat;
mod server;
pub mod session;
mod wire;

pub use client::Client;
pub use gate::{Refused, admit};
pub use leadership::Leadership;
pub use seat::Seat;
pub use server::Server;
pub use wire::{
    Answer, Call, CallBody, Heard, Notice, NoticeBody, RemoteError, decode, encode, parse,
};
