//! Messages over HTTP, by real connections.

mod cluster;
mod guard;
mod messages;
mod support;
