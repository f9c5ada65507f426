//! The protocol between a process and the leader of its workflow, as two state machines without
//! input or output: inputs and the time go in, actions come out.
//!
//! ```text
//!  roles ──▶ ClientSession ──▶ calls ──▶ ServerSession ──▶ coordinator
//!  roles ◀── ClientSession ◀── notices ◀── ServerSession ◀── coordinator
//! ```
//!
//! [`Client`](super::Client) and [`Server`](super::Server) carry the actions out over the bus; the simulator
//! carries them out over a network that loses, repeats, reorders, delays and splits.
//!
//! * **Calls** are numbered within a session (the life of one process under a client's name). A
//!   call is repeated until it is answered; the same number is the same call, and a lower number is
//!   a late copy. Calls with events are made one at a time, so that events arrive in order.
//! * **Notices** to a client are numbered too, repeated until they are answered, and sent one at a
//!   time.
//! * **Terms**: each leader has a higher term than its predecessors. A client that learns of a
//!   higher term sends its calls to the new leader and announces its workers, hosts and sink again;
//!   it accepts nothing from a leader of an earlier term.
//! * **Liveness**: an idle client is pinged. A client whose subject has no listener, or that does
//!   not answer for long, is gone, together with its workers and hosts.

mod client;
mod client_call;
mod leadership;
mod notices;
mod presence;
mod replies;
mod server;
mod server_client;
mod server_events;

pub use client::{
    CallFailure, CallId, ClientAction, ClientInput, ClientSession, Question, Refusal,
};
pub use notices::NoticeFailure;
pub use server::ServerSession;
pub use server_events::{
    AttachedRole, CallerId, ClientRef, FlushId, NoticeRef, ServerAction, ServerInput,
};
