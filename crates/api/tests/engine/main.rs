//! Tests of the engine's front end over real sockets, with a real engine.

mod access;
mod calls;
mod console;
#[allow(dead_code, reason = "the engine's own tests use more of it")]
#[path = "../../../engine/tests/engine/support.rs"]
mod engines;
mod executor;
mod limits;
mod lockout;
mod observability;
mod shutdown;
mod site;
