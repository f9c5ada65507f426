//! Messages over HTTP, by real connections.

mod calls;
mod cluster;
mod guard;
mod hostile;
mod messages;
mod support;
