//! Messages over HTTP, by real connections.

mod calls;
mod cluster;
mod guard;
mod messages;
mod support;
