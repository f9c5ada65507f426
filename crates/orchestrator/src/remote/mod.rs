//! The coordinator and its workers, sources and sinks in processes of their own, over the bus.
//!
//! A [`Client`] gives a process a [`Handle`](crate::coordinator::Handle) like that of a coordinator
//! beside it, and carries what is said through it to whichever process leads the workflow; a
//! [`Server`] beside the coordinator carries it on. What a client says stays with it until a leader
//! answers that it is durable: a leader that dies takes nothing with it, and the next hears it all.
//!
//! Subjects, after the cluster's prefix and the workflow's name: `leader`, on which the leader
//! takes calls; `client.NAME`, on which a client takes notices; `hello`, on which a new leader says
//! that it is there. Calls and notices that are larger than a message travel as blobs.
//!
//! Whoever stops listening is gone: the server answers that nobody is there, at once, and what the
//! client's workers had is given to others. One that listens and does not answer is left to its
//! leases' ends.

mod client;
mod held;
mod server;
mod wire;

pub use client::Client;
pub use server::Server;
pub use wire::{RemoteError, decode, encode};
