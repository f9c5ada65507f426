//! A workflow over many processes, which are killed and stopped, with a real NATS server.

#![expect(
    clippy::disallowed_methods,
    reason = "provers take their time, and processes are waited for"
)]

mod chaos;
mod collectors;
mod emitted;
mod failover;
mod ports;
mod roles;
mod spread;
mod support;
