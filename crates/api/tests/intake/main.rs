//! Tests of the intake over real connections.

mod calls;
mod cluster;
mod guard;
mod hostile;
mod messages;
mod support;
