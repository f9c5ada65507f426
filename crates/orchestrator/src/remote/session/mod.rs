//! The protocol between a process and whoever leads its workflow, as two state machines without input or output:
//! inputs and the time go in, actions come out.
//!
//! ```text
//!  roles ──▶ ClientSession ──▶ calls ──▶ ServerSession ──▶ coordinator
//!  roles ◀── ClientSession ◀── notices ◀── ServerSession ◀── coordinator
//! ```
//!
//! [`Client`](super::Client) and [`Server`](super::Server) carry the actions out over the bus; the simulator
//! carries them out over a network that loses, repeats, reorders, delays and splits.
//!
//! * **Calls** are numbered within a session (one process's life under a client's name). A call is made again until it
//!   is answered; the same number is the same call, and an earlier number is a late copy. Calls with events are made one
//!   at a time, so that events arrive in order.
//! * **Notices** to a client are numbered too, are sent again until they are answered, and one at a time.
//! * **Terms**: each leader has a higher one than those before. A client that hears of a higher term makes its calls to
//!   the new leader and introduces what is behind it again; it takes nothing from a leader of an earlier term.
//! * **Liveness**: a client that has nothing to hear is pinged. One on whose subject nobody listens, or that does not
//!   answer for long, is gone, and its workers and hosts with it.

mod client;
mod client_call;
mod leadership;
mod notices;
mod replies;
mod server;
mod server_client;
mod server_events;

pub use client::{CallId, ClientAction, ClientInput, ClientSession, Question, Refusal, Unanswered};
pub use notices::Unheard;
pub use server::ServerSession;
pub use server_events::{
    Behind, CallerId, ClientRef, FlushId, NoticeRef, ServerAction, ServerInput,
};
